//! What a `pom.xml` says of tests: the plug-ins that run them, and settings that leave them out.

use super::parts::{Part, Role};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

/// Words in a plug-in that runs tests.
const PLUGINS: &[&str] = &["surefire", "failsafe", "testExclude", "testInclude", "maven.test"];
/// Settings elsewhere, by the beginning of their names.
const SETTINGS: &[&str] = &[
    "skipTests",
    "skipITs",
    "maven.test",
    "testFailureIgnore",
    "surefire",
    "failsafe",
    "testSourceDirectory",
    "test",
    "packaging",
    "argLine",
    "relativePath",
];

/// Where each stands, by its key.
fn places(text: &str) -> BTreeMap<String, Range<usize>> {
    let mut found = BTreeMap::new();
    let mut insert = |key: String, range: Range<usize>| {
        let mut key = key;
        while found.contains_key(&key) {
            key.push('\'');
        }
        found.insert(key, range);
    };
    let mut at = 0;
    while let Some(open) = text[at..].find('<').map(|n| at + n) {
        if text[open..].starts_with("<!--") {
            at = text[open..].find("-->").map_or(text.len(), |n| open + n + 3);
            continue;
        }
        let Some(close) = text[open..].find('>').map(|n| open + n + 1) else { break };
        let name = text[open + 1..close - 1].trim();
        at = close;
        let ends = |name: &str| {
            let end = format!("</{name}>");
            text[close..].find(&end).map(|n| close + n + end.len())
        };
        if name == "plugin"
            && let Some(end) = ends(name)
        {
            let said = &text[open..end];
            if let Some(word) = PLUGINS.iter().find(|word| said.contains(**word)) {
                insert(format!("plugin {word}"), open..end);
            }
            at = end;
        } else if SETTINGS.iter().any(|setting| name.starts_with(setting))
            && let Some(end) = ends(name)
        {
            insert(name.to_owned(), open..end);
            at = end;
        }
    }
    found
}

/// What it says of tests, by key.
pub(super) fn about_tests(text: &str) -> BTreeMap<String, String> {
    let said = |range: Range<usize>| text[range].split_whitespace().collect::<String>();
    places(text).into_iter().map(|(key, range)| (key, said(range))).collect()
}

/// The modules that a build is made of.
fn modules(text: &str) -> BTreeSet<String> {
    let named = text.split("<module>").skip(1).filter_map(|rest| rest.split_once("</module>"));
    named.map(|(name, _)| name.trim().to_owned()).collect()
}

/// Modules that are no longer built and tested, each as far as it is still there.
pub(super) fn lost_modules(old: &str, new: &str) -> Vec<Part> {
    let part = |module: &String| Part {
        key: Some("modules".to_owned()),
        role: Role::Configuration,
        added: false,
        needs: Some(format!("{}/pom.xml", module.trim_end_matches('/'))),
    };
    modules(old).difference(&modules(new)).map(part).collect()
}

/// `new` with what `old` says of tests; `None` where there is no place for it.
pub(super) fn put_back(old: &str, new: &str, there: &dyn Fn(&str) -> bool) -> Option<String> {
    let mut out = with_settings_of(old, new)?;
    for module in modules(old).difference(&modules(new)).filter(|module| there(&format!("{module}/pom.xml")))
    {
        let place = out.find("</modules>")?;
        out.insert_str(place, &format!("<module>{module}</module>\n"));
    }
    Some(out)
}

fn with_settings_of(old: &str, new: &str) -> Option<String> {
    let mut was = places(old);
    let mut ranges: Vec<(String, Range<usize>)> = places(new).into_iter().collect();
    ranges.sort_by_key(|(_, range)| range.start);
    let (mut out, mut at) = (String::new(), 0);
    for (key, range) in ranges {
        out.push_str(new.get(at..range.start)?);
        if let Some(before) = was.remove(&key) {
            out.push_str(old.get(before)?);
        }
        at = range.end;
    }
    out.push_str(new.get(at..)?);
    for (key, range) in was {
        let end = if key.starts_with("plugin ") { "</plugins>" } else { "</properties>" };
        let place = out.find(end)?;
        out.insert_str(place, old.get(range)?);
    }
    Some(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    const OLD: &str = "<project>\n <build><plugins><plugin>\n  <artifactId>maven-surefire-plugin</artifactId>\n  <configuration>\n   <argLine>-Xmx1g</argLine>\n  </configuration>\n </plugin></plugins></build>\n</project>\n";

    #[test]
    fn dependencies_are_free_and_skipped_tests_are_not() {
        let dependency = OLD.replace(
            "<project>\n",
            "<project>\n<dependencies><dependency><artifactId>a</artifactId><exclusions><exclusion/></exclusions></dependency></dependencies>\n",
        );
        assert_eq!(about_tests(OLD), about_tests(&dependency));
        let cheat = dependency.replace("<argLine>-Xmx1g</argLine>", "<skip>true</skip>");
        assert_ne!(about_tests(OLD), about_tests(&cheat));
        assert_eq!(put_back(OLD, &cheat, &|_| true).as_deref(), Some(dependency.as_str()));
        let property =
            OLD.replace("<project>", "<project><properties><skipTests>true</skipTests></properties>");
        assert_ne!(about_tests(OLD), about_tests(&property));
        assert_eq!(about_tests(&put_back(OLD, &property, &|_| true).unwrap()), about_tests(OLD));
        assert_eq!(put_back(OLD, "<project/>", &|_| true), None);
    }
}
