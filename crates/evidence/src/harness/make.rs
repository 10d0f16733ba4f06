//! Makefiles: which target runs what, by which variables and files.

use std::collections::{BTreeMap, BTreeSet};

/// Names under which make looks for its file, in its order.
pub(crate) const MAKEFILES: &[&str] = &["GNUmakefile", "makefile", "Makefile"];

/// What decides for every target what is run and what a failure is.
const SETTINGS: &[&str] = &[
    "SHELL",
    ".SHELLFLAGS",
    "MAKEFLAGS",
    ".IGNORE",
    ".ONESHELL",
    ".SECONDEXPANSION",
    ".DEFAULT_GOAL",
    ".RECIPEPREFIX",
    "vpath",
    "VPATH",
    "export PATH",
    "PATH",
    "unexport",
    "set",
];

/// A makefile, as far as it takes to see what its targets run.
#[derive(Debug, Default)]
pub(crate) struct Makefile {
    rules: Vec<Rule>,
    variables: BTreeMap<String, Vec<String>>,
    /// Lines that hold for all targets.
    pub(crate) settings: Vec<String>,
    /// Files that it reads, in order.
    pub(crate) includes: Vec<String>,
}

#[derive(Debug)]
struct Rule {
    targets: Vec<String>,
    needs: Vec<String>,
    head: String,
    recipe: Vec<String>,
}

/// What a target comes to.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct Target {
    /// Its rules as they stand, recipes included.
    pub(crate) text: String,
    /// What is made before it.
    pub(crate) needs: Vec<String>,
    /// Its command lines, variables filled in.
    pub(crate) lines: Vec<String>,
    /// The variables that its rules use.
    pub(crate) variables: BTreeSet<String>,
}

impl Makefile {
    pub(crate) fn parse(text: &str) -> Self {
        let mut made = Self::default();
        let mut inside = false;
        for line in logical_lines(text) {
            let bare = line.trim();
            if line.starts_with('\t') {
                if let Some(rule) = made.rules.last_mut().filter(|_| inside) {
                    rule.recipe.push(bare.to_owned());
                }
                continue;
            }
            if bare.is_empty() || bare.starts_with('#') {
                continue;
            }
            inside = made.line(bare);
        }
        made
    }

    /// One line that is no recipe; whether recipes may follow.
    fn line(&mut self, line: &str) -> bool {
        let bare = line.trim_start_matches("override ").trim_start_matches("export ").trim_start();
        if SETTINGS.iter().any(|s| starts_with_word(line, s) || starts_with_word(bare, s)) {
            self.settings.push(line.to_owned());
        }
        for word in ["include ", "-include ", "sinclude "] {
            if let Some(files) = line.strip_prefix(word) {
                self.includes.extend(files.split_whitespace().map(str::to_owned));
                return false;
            }
        }
        if let Some((name, _)) = assignment(bare) {
            self.variables.entry(name.to_owned()).or_default().push(bare.to_owned());
            return false;
        }
        let Some((targets, rest)) = bare.split_once(':') else { return false };
        let rest = rest.trim_start_matches(':');
        let (needs, first) = rest.split_once(';').unwrap_or((rest, ""));
        // A variable of a target alone: `test: FLAGS = -x`.
        let own = assignment(needs).is_some();
        let words = |text: &str| text.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
        let recipe = Some(first.trim().to_owned()).filter(|first| !first.is_empty());
        self.rules.push(Rule {
            targets: words(targets),
            needs: if own { Vec::new() } else { words(needs) },
            head: line.to_owned(),
            recipe: recipe.into_iter().collect(),
        });
        true
    }

    /// What `make` without a target makes.
    pub(crate) fn first_target(&self) -> Option<String> {
        self.rules.iter().flat_map(|rule| &rule.targets).find(|t| !t.starts_with('.')).cloned()
    }

    /// The target; `None` where no rule names it.
    pub(crate) fn target(&self, name: &str) -> Option<Target> {
        let mut target = Target::default();
        let mut known = false;
        for rule in self.rules.iter().filter(|rule| rule.targets.iter().any(|t| t == name)) {
            known = true;
            for line in std::iter::once(&rule.head).chain(&rule.recipe) {
                target.text.push_str(line);
                target.text.push('\n');
                target.variables.extend(references(line));
            }
            let filled = rule.needs.iter().map(|need| self.filled(need, 0));
            target
                .needs
                .extend(filled.flat_map(|n| n.split_whitespace().map(str::to_owned).collect::<Vec<_>>()));
            target.lines.extend(rule.recipe.iter().map(|line| self.filled(line, 0)));
        }
        let mut open: Vec<String> = target.variables.iter().cloned().collect();
        while let Some(name) = open.pop() {
            for line in self.variables.get(&name).into_iter().flatten() {
                for more in references(line) {
                    if target.variables.insert(more.clone()) {
                        open.push(more);
                    }
                }
            }
        }
        known.then_some(target)
    }

    /// A variable as it is defined; `None` where it is not.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        self.variables.get(name).map(|lines| lines.join("\n"))
    }

    /// A line with its variables filled in, as far as they are plain.
    fn filled(&self, line: &str, depth: u32) -> String {
        let mut out = String::new();
        let mut rest = line;
        while let Some(at) = rest.find('$') {
            out.push_str(&rest[..at]);
            rest = &rest[at + 1..];
            let (end, skip) = match rest.chars().next() {
                Some('(') => (')', 1),
                Some('{') => ('}', 1),
                Some('$') => {
                    out.push('$');
                    rest = &rest[1..];
                    continue;
                }
                _ => {
                    out.push('$');
                    continue;
                }
            };
            let Some(close) = rest.find(end) else { break };
            let name = &rest[skip..close];
            rest = &rest[close + 1..];
            match (name, self.variables.get(name).and_then(|lines| lines.last())) {
                ("MAKE", _) => out.push_str("make"),
                (_, Some(line)) if depth < 8 => {
                    let value = assignment(line).map(|(_, value)| value.trim()).unwrap_or_default();
                    out.push_str(&self.filled(value, depth + 1));
                }
                _ => out.push_str(&format!("$({name})")),
            }
        }
        out + rest
    }
}

/// `NAME = value` in any of make's forms.
fn assignment(line: &str) -> Option<(&str, &str)> {
    let at = line.find('=')?;
    let (head, value) = (&line[..at], &line[at + 1..]);
    let name = head.trim_end_matches([':', '?', '+', '!']).trim();
    let colon = name.contains(':') || name.contains(char::is_whitespace) || name.is_empty();
    (!colon).then_some((name, value))
}

fn starts_with_word(line: &str, word: &str) -> bool {
    line.strip_prefix(word).is_some_and(|rest| !rest.starts_with(|c: char| c.is_alphanumeric() || c == '_'))
}

/// Names of variables that a line uses.
fn references(line: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    let mut rest = line;
    while let Some(at) = rest.find('$') {
        rest = &rest[at + 1..];
        let end = match rest.chars().next() {
            Some('(') => ')',
            Some('{') => '}',
            _ => {
                rest = rest.strip_prefix('$').unwrap_or(rest);
                continue;
            }
        };
        let Some(close) = rest.find(end) else { break };
        found.insert(rest[1..close].to_owned());
        rest = &rest[1..];
    }
    found
}

/// Lines with those that a backslash continues joined, comments of recipes kept.
fn logical_lines(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut open = false;
    for line in text.lines() {
        let (bare, goes_on) = match line.strip_suffix('\\') {
            Some(bare) => (bare, true),
            None => (line, false),
        };
        match lines.last_mut().filter(|_| open) {
            Some(last) => {
                last.push(' ');
                last.push_str(bare.trim());
            }
            None => lines.push(bare.to_owned()),
        }
        open = goes_on;
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_have_recipes_needs_and_variables() {
        let make = Makefile::parse(
            "include common.mk\n-include local.mk\nSHELL = /bin/bash\nRUN := sh $(DIR)/run.sh\nDIR = tools\n\ntest: build\n\t@$(RUN) \\\n\t  --all\n\t$(MAKE) lint\n\nbuild: ; true\ntest: FLAGS = -x\nlint:\n\techo $$HOME\n",
        );
        assert_eq!(make.includes, ["common.mk", "local.mk"]);
        assert_eq!(make.settings, ["SHELL = /bin/bash"]);
        assert_eq!(make.first_target().as_deref(), Some("test"));
        let test = make.target("test").unwrap();
        assert_eq!(test.needs, ["build"]);
        assert_eq!(test.lines, ["@sh tools/run.sh  --all", "make lint"]);
        assert_eq!(test.variables, ["DIR", "MAKE", "RUN"].map(str::to_owned).into());
        assert_eq!(make.target("build").unwrap().lines, ["true"]);
        assert_eq!(make.target("lint").unwrap().lines, ["echo $HOME"]);
        assert_eq!(make.variable("DIR").as_deref(), Some("DIR = tools"));
        assert!(make.target("deploy").is_none());
    }
}
