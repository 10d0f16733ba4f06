//! What a `Gemfile` says beside plain dependencies: gems of the start, and tools of tests, from another place; and code.

use std::collections::BTreeMap;

/// Gems that tests are written with, by the beginning of their names.
const TOOLS: &[&str] = &[
    "capybara",
    "cucumber",
    "minitest",
    "mocha",
    "rake",
    "rspec",
    "shoulda",
    "simplecov",
    "test-unit",
    "vcr",
    "webmock",
];

/// Statements that only declare dependencies, and for whom.
const DECLARES: &[&str] = &[
    "gem ",
    "gem(",
    "source ",
    "source(",
    "ruby ",
    "ruby(",
    "group ",
    "group(",
    "end",
    "platform",
    "gemspec",
    "git_source",
    "install_if",
];

/// What decides of a `Gemfile`, beside the one of the start.
pub(super) fn deciding(text: Option<&str>, start: Option<&str>) -> BTreeMap<String, String> {
    let mut found: BTreeMap<String, String> = BTreeMap::new();
    let known: Vec<&str> = start.unwrap_or_default().lines().filter_map(gem).collect();
    let mut deeper = 0_u32;
    for line in text.unwrap_or_default().lines().map(str::trim) {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        let place =
            ["path:", ":path", "git:", ":git", "github:", "require:"].iter().any(|word| line.contains(word));
        match gem(line) {
            Some(name) if place || deeper > 0 => {
                if known.contains(&name) || TOOLS.iter().any(|tool| name.starts_with(tool)) {
                    found.insert(format!("gem {name}"), line.to_owned());
                }
            }
            Some(_) => {}
            None if ["path ", "path(", "git "].iter().any(|word| line.starts_with(word)) => deeper += 1,
            None if DECLARES.iter().any(|word| line.starts_with(word)) => {
                deeper = deeper.saturating_sub(u32::from(line == "end"));
            }
            None => {
                let code = found.entry("code".to_owned()).or_default();
                code.push_str(line);
                code.push('\n');
            }
        }
    }
    found
}

/// The gem that a line declares.
fn gem(line: &str) -> Option<&str> {
    let rest = line.trim().strip_prefix("gem")?.trim_start_matches([' ', '(']);
    rest.strip_prefix(['"', '\''])?.split(['"', '\'']).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gems_from_elsewhere_and_code_are_told_from_dependencies() {
        let old = "source 'https://rubygems.org'\ngem 'minitest'\ngem 'shop'\n";
        let differs = |new: &str| deciding(Some(old), Some(old)) != deciding(Some(new), Some(old));
        assert!(!differs(&format!("{old}# more\ngem 'rack', '~> 3'\ngem 'mine', path: 'gems/mine'\n")));
        assert!(!differs(&format!("{old}group :test do\n  gem 'rspec'\nend\n")));
        assert!(differs(&old.replace("'minitest'", "'minitest', path: 'easy'")));
        assert!(differs(&old.replace("'shop'", "'shop', :path => 'easy'")));
        assert!(differs(&old.replace("gem 'minitest'", "path 'easy' do\n  gem 'minitest'\nend")));
        assert!(differs(&format!("{old}ENV['TESTOPTS'] = '--name=easy'\n")));
    }
}
