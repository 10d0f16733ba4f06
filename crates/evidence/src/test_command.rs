//! What a check's command stands for where another file says it: `npm test` runs a script of `package.json`, `make test` a
//! target of the makefile. Whoever edits those edits the check.

use serde_json::Value;

/// A definition in another file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NamedDefinition {
    /// Files that may hold it; the first that exists does.
    pub files: &'static [&'static str],
    /// The script or target.
    pub name: String,
}

const PACKAGE: &[&str] = &["package.json"];
const MAKEFILES: &[&str] = &["GNUmakefile", "makefile", "Makefile"];
const JUSTFILES: &[&str] = &["justfile", "Justfile", ".justfile"];

/// The simple commands of a check: the command itself, or those of the line that a shell is given. Rough: quotes do not
/// join words.
pub fn simple_commands(argv: &[String]) -> Vec<Vec<String>> {
    let is_shell = argv
        .first()
        .is_some_and(|p| matches!(p.rsplit('/').next().unwrap_or(p), "sh" | "bash" | "dash" | "zsh" | "ksh"));
    let Some(line) = argv.get(2).filter(|_| is_shell && argv[1].starts_with('-') && argv[1].ends_with('c'))
    else {
        return if argv.is_empty() { Vec::new() } else { vec![argv.to_vec()] };
    };
    line.split([';', '&', '|', '\n', '(', ')', '{', '}'])
        .map(|command| {
            let skipped = ["if", "then", "do", "while", "until", "!", "exec", "time", "else", "env"];
            let words = command.split_whitespace().map(|w| w.trim_matches(['\'', '"']));
            let words = words.skip_while(|w| w.contains('=') || skipped.contains(w));
            words.map(str::to_owned).collect::<Vec<_>>()
        })
        .filter(|words| !words.is_empty())
        .collect()
}

/// The definitions that a check runs.
pub fn named_by(argv: &[String]) -> Vec<NamedDefinition> {
    let mut found = Vec::new();
    for command in simple_commands(argv) {
        let program = command[0].rsplit('/').next().unwrap_or_default();
        let words: Vec<&str> =
            command[1..].iter().map(String::as_str).filter(|w| !w.starts_with('-')).collect();
        let named =
            |files: &'static [&'static str], name: &str| NamedDefinition { files, name: name.to_owned() };
        match (program, words.as_slice()) {
            ("npm" | "pnpm" | "yarn" | "bun", ["run" | "run-script", name, ..]) => {
                found.push(named(PACKAGE, name))
            }
            ("npm", ["t" | "tst", ..]) => found.push(named(PACKAGE, "test")),
            ("npm" | "pnpm" | "yarn", [name, ..]) => found.push(named(PACKAGE, name)),
            ("make" | "gmake", targets) => {
                found.extend(targets.iter().filter(|t| !t.contains('=')).map(|t| named(MAKEFILES, t)));
            }
            ("just", [name, ..]) => found.push(named(JUSTFILES, name)),
            _ => {}
        }
    }
    found
}

/// The definition in the text of its file; `None` where it has none.
pub fn definition(file: &str, text: &str, name: &str) -> Option<String> {
    if file == "package.json" {
        let package: Value = serde_json::from_str(text).ok()?;
        let script = |name: &str| package["scripts"][name].as_str().map(str::to_owned);
        let own = script(name)?;
        let around = [format!("pre{name}"), format!("post{name}")].map(|n| script(&n).unwrap_or_default());
        return Some([own, around.join("\n")].join("\n").trim().to_owned());
    }
    let mut found: Option<Vec<&str>> = None;
    let mut inside = false;
    // Settings that decide for every target what a failure is.
    let mut settings: Vec<&str> = Vec::new();
    for line in text.lines() {
        if line.starts_with([' ', '\t']) || line.trim().is_empty() {
            if inside && !line.trim().is_empty() {
                found.get_or_insert_default().push(line.trim_end());
            }
            continue;
        }
        inside = line.split_once(':').is_some_and(|(head, rest)| {
            !rest.starts_with('=') && head.split_whitespace().any(|word| word == name)
        });
        if inside {
            found.get_or_insert_default().push(line.trim_end());
        } else if [
            "SHELL",
            ".SHELLFLAGS",
            "MAKEFLAGS",
            ".IGNORE",
            ".ONESHELL",
            "export PATH",
            "PATH",
            "set shell",
        ]
        .iter()
        .any(|s| line.starts_with(s))
        {
            settings.push(line.trim_end());
        }
    }
    let found = found?;
    Some([found, settings].concat().join("\n"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(argv: &[&str]) -> Vec<String> {
        let argv: Vec<String> = argv.iter().map(|a| (*a).to_owned()).collect();
        named_by(&argv).into_iter().map(|n| format!("{} {}", n.files[n.files.len() - 1], n.name)).collect()
    }

    #[test]
    fn commands_lead_to_what_they_run() {
        assert_eq!(named(&["npm", "test"]), ["package.json test"]);
        assert_eq!(named(&["npm", "run", "--silent", "test:unit"]), ["package.json test:unit"]);
        assert_eq!(
            named(&["sh", "-c", "CI=1 yarn lint && make -s test"]),
            ["package.json lint", "Makefile test"]
        );
        assert_eq!(named(&["just", "check"]), [".justfile check"]);
        assert_eq!(named(&["cargo", "test"]), [""; 0]);
        assert_eq!(named(&["make"]), [""; 0]);
    }

    #[test]
    fn a_definition_is_the_script_with_what_runs_around_it_or_the_target_with_its_recipe() {
        let package = r#"{"scripts":{"test":"jest","pretest":"tsc","build":"x"}}"#;
        assert_eq!(definition("package.json", package, "test").as_deref(), Some("jest\ntsc"));
        assert_eq!(definition("package.json", package, "lint"), None);
        let make = "SHELL = /bin/sh\nall: test\n\ttrue\n\ntest: build\n\t./run\n\n\t./more\nX := test\nlint:\n\tlint\n";
        assert_eq!(
            definition("Makefile", make, "test").as_deref(),
            Some("test: build\n\t./run\n\t./more\nSHELL = /bin/sh")
        );
        assert_eq!(definition("Makefile", make, "deploy"), None);
    }
}
