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

/// Variables that the rules of make's own go by.
const BUILT_IN: &[&str] = &[
    "AR",
    "ARFLAGS",
    "AS",
    "ASFLAGS",
    "CC",
    "CFLAGS",
    "CPP",
    "CPPFLAGS",
    "CXX",
    "CXXFLAGS",
    "FC",
    "FFLAGS",
    "LD",
    "LDFLAGS",
    "LDLIBS",
    "LEX",
    "LFLAGS",
    "LOADLIBES",
    "OUTPUT_OPTION",
    "TARGET_ARCH",
    "YACC",
    "YFLAGS",
];

/// Functions by which make runs something, or makes rules and files, while it reads its files.
const AS_IT_READS: &[&str] =
    &["$(shell", "${shell", "$(eval", "${eval", "$(file", "${file", "$(guile", "${guile", "!="];

/// What decides for targets of any name: rules for many of them, what runs while the files are read, what all commands get.
pub(crate) const FOR_ANY_TARGET: &str = "rules for many targets, and what make runs as it reads";

/// A makefile, as far as it takes to see what its targets run.
#[derive(Debug, Default)]
pub(crate) struct Makefile {
    rules: Vec<Rule>,
    variables: BTreeMap<String, Vec<Variable>>,
    /// Lines that decide for targets of any name.
    pub(crate) for_any: Vec<String>,
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
    /// The conditions that it stands under.
    under: String,
}

#[derive(Debug)]
struct Variable {
    line: String,
    under: String,
}

impl Rule {
    /// Whether it is one for targets whose names only make itself finds out.
    fn is_for_many(&self) -> bool {
        let suffixes = |target: &String| target.starts_with('.') && target.matches('.').count() == 2;
        self.targets.iter().any(|t| t.contains(['%', '$']) || t == ".DEFAULT" || suffixes(t))
    }
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
        let mut conditions: Vec<String> = Vec::new();
        let mut text_of: Option<(String, String)> = None;
        for line in logical_lines(text) {
            let bare = line.trim();
            if let Some((_, body)) = text_of.as_mut().filter(|_| bare != "endef") {
                body.push_str(&format!("{bare}\n"));
                continue;
            }
            if let Some((name, body)) = text_of.take() {
                made.variable_line(&name, format!("{name} = {}", body.trim_end()), conditions.join(", "));
                continue;
            }
            if line.starts_with('\t') {
                if let Some(rule) = made.rules.last_mut().filter(|_| inside) {
                    rule.recipe.push(bare.to_owned());
                }
                continue;
            }
            if bare.is_empty() || bare.starts_with('#') || is_condition(bare, &mut conditions) {
                continue;
            }
            if let Some(name) = bare.trim_start_matches("override ").strip_prefix("define ") {
                let name = name.trim_end_matches(|c: char| "=:?+! ".contains(c)).trim();
                text_of = Some((name.to_owned(), String::new()));
                continue;
            }
            inside = made.line(bare, &conditions.join(", "));
        }
        made.keep_for_any();
        made
    }

    fn variable_line(&mut self, name: &str, line: String, under: String) {
        self.variables.entry(name.to_owned()).or_default().push(Variable { line, under });
    }

    /// Keeps what decides for targets of any name.
    fn keep_for_any(&mut self) {
        for rule in self.rules.iter().filter(|rule| rule.is_for_many()) {
            self.for_any.push(format!("{}\n{}\n{}", rule.head, rule.recipe.join("\n"), rule.under));
        }
    }

    /// One line that is no recipe; whether recipes may follow.
    fn line(&mut self, line: &str, under: &str) -> bool {
        let bare = line.trim_start_matches("override ").trim_start_matches("export ").trim_start();
        if SETTINGS.iter().any(|s| starts_with_word(line, s) || starts_with_word(bare, s)) {
            self.settings.push(line.to_owned());
        }
        if let Some(file) = line.strip_prefix("import ").or_else(|| line.strip_prefix("import? ")) {
            // `just` takes another file in.
            self.includes.push(file.trim().trim_matches(['"', '\'']).to_owned());
            return false;
        }
        for word in ["include ", "-include ", "sinclude "] {
            if let Some(files) = line.strip_prefix(word) {
                self.includes.extend(files.split_whitespace().map(str::to_owned));
                return false;
            }
        }
        let given_to_all = line.starts_with("export ") || line == "export" || line.starts_with("undefine ");
        let runs = AS_IT_READS.iter().any(|word| line.contains(word)) || line.starts_with("$(call ");
        if let Some((name, value)) = assignment(bare) {
            let built_in =
                BUILT_IN.contains(&name) || name.starts_with("COMPILE.") || name.starts_with("LINK.");
            if given_to_all || runs || (built_in && !value.split_whitespace().all(is_library)) {
                self.for_any.push(format!("{line}\n{under}"));
            }
            self.variable_line(name, bare.to_owned(), under.to_owned());
            return false;
        }
        if given_to_all || runs || line.starts_with("load ") || line.starts_with("-load ") {
            self.for_any.push(format!("{line}\n{under}"));
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
            under: under.to_owned(),
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
            if !rule.under.is_empty() {
                target.text.push_str(&format!("under {}\n", rule.under));
            }
            let filled = rule.needs.iter().map(|need| self.filled(need, 0));
            target
                .needs
                .extend(filled.flat_map(|n| n.split_whitespace().map(str::to_owned).collect::<Vec<_>>()));
            target.lines.extend(rule.recipe.iter().map(|line| self.filled(line, 0)));
        }
        let mut open: Vec<String> = target.variables.iter().cloned().collect();
        while let Some(name) = open.pop() {
            for Variable { line, .. } in self.variables.get(&name).into_iter().flatten() {
                for more in references(line) {
                    if target.variables.insert(more.clone()) {
                        open.push(more);
                    }
                }
            }
        }
        known.then_some(target)
    }

    /// What a target comes to by rules for many: what is made before it, and its command lines.
    pub(crate) fn by_pattern(&self, name: &str) -> Option<(Vec<String>, Vec<String>)> {
        let (mut needs, mut lines) = (Vec::new(), Vec::new());
        for rule in self.rules.iter().filter(|rule| rule.is_for_many() && !rule.recipe.is_empty()) {
            let targets: Vec<String> = rule.targets.iter().map(|target| self.filled(target, 0)).collect();
            let Some(stem) = targets.iter().flat_map(|t| t.split_whitespace()).find_map(|t| stem(t, name))
            else {
                continue;
            };
            let before: Vec<String> =
                rule.needs.iter().map(|need| self.filled(need, 0).replacen('%', stem, 1)).collect();
            let first = before.first().map_or("", String::as_str);
            lines.extend(rule.recipe.iter().map(|line| {
                self.filled(&line.replace("$<", first).replace("$*", stem).replace("$@", name), 0)
            }));
            needs.extend(before);
        }
        (!lines.is_empty()).then_some((needs, lines))
    }

    /// The files that it reads, their names filled in.
    pub(crate) fn included(&self) -> Vec<String> {
        let filled = self.includes.iter().map(|file| self.filled(file, 0));
        filled.flat_map(|file| file.split_whitespace().map(str::to_owned).collect::<Vec<_>>()).collect()
    }

    /// A variable as it is defined; `None` where it is not.
    pub(crate) fn variable(&self, name: &str) -> Option<String> {
        let said = |variable: &Variable| match variable.under.as_str() {
            "" => variable.line.clone(),
            under => format!("{}\nunder {under}", variable.line),
        };
        self.variables.get(name).map(|lines| lines.iter().map(said).collect::<Vec<_>>().join("\n"))
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
            // `$(call name,…)` is filled in as far as it stands there.
            let name = called(name).unwrap_or(name);
            match (name, self.variables.get(name).and_then(|lines| lines.last())) {
                ("MAKE", _) => out.push_str("make"),
                (_, Some(Variable { line, .. })) if depth < 8 => {
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
        let name = &rest[1..close];
        // `$(SRC:.c=.o)`, `$(call verify,right)`
        let name = called(name).unwrap_or_else(|| name.split(':').next().unwrap_or(name));
        found.insert(name.to_owned());
        rest = &rest[1..];
    }
    found
}

/// The name in `call name,…`.
fn called(text: &str) -> Option<&str> {
    text.strip_prefix("call ").map(|rest| rest.split(',').next().unwrap_or(rest).trim())
}

/// What `%` stands for where `name` is one of the targets of `pattern`.
fn stem<'a>(pattern: &str, name: &'a str) -> Option<&'a str> {
    match pattern.split_once('%') {
        Some((before, after)) => {
            name.strip_prefix(before)?.strip_suffix(after).filter(|stem| !stem.is_empty())
        }
        None => (pattern == name).then_some(name),
    }
}

/// Whether a word of a list of libraries names one of the system: `-lm`.
fn is_library(word: &str) -> bool {
    let named = word.strip_prefix("-l").is_some_and(|name| !name.is_empty() && !name.contains(['/', ':']));
    named || word == "-pthread"
}

/// Whether a line is a condition around others, or ends one; keeps those that are open.
fn is_condition(line: &str, open: &mut Vec<String>) -> bool {
    let word = line.split(|c: char| c.is_whitespace() || c == '(').next().unwrap_or_default();
    match word {
        "ifdef" | "ifndef" | "ifeq" | "ifneq" => open.push(line.to_owned()),
        "else" => {
            let last = open.pop().unwrap_or_default();
            open.push(format!("not {last} {}", line.trim_start_matches("else").trim()));
        }
        "endif" => drop(open.pop()),
        _ => return false,
    }
    true
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
