//! From a command to targets of makefiles, with all that they need.

use super::make::{FOR_ANY_TARGET, MAKEFILES, Makefile};
use super::shell::{is_assignment, join};
use super::test_places::TestPlace;
use super::{Via, Walk, named_files};
use crate::weakened::is_source;

impl Walk<'_> {
    pub(super) fn make(&mut self, words: &[String], folder: &str, depth: u32) {
        let (mut folder, mut named, mut targets) = (folder.to_owned(), None, Vec::new());
        let mut rest = words[1..].iter().peekable();
        while let Some(word) = rest.next() {
            match word.as_str() {
                "-C" | "--directory" => {
                    let to = rest.next();
                    self.reach.any_makefile |= to.is_some_and(|to| to.contains(['$', '*', '`']));
                    folder = to.and_then(|to| join(&folder, to)).unwrap_or(folder);
                }
                "-f" | "--file" | "--makefile" => named = rest.next().cloned(),
                "-j" | "--jobs" | "-l" if rest.peek().is_some_and(|n| n.parse::<f64>().is_ok()) => {
                    rest.next();
                }
                word if word.starts_with("-C") => folder = join(&folder, &word[2..]).unwrap_or(folder),
                word if word.starts_with("-f") => named = Some(word[2..].to_owned()),
                word if word.starts_with('-') || is_assignment(word) => {}
                target => targets.push(target.to_owned()),
            }
        }
        let file = match named {
            Some(named) => join(&folder, &named),
            None => MAKEFILES.iter().filter_map(|n| join(&folder, n)).find(|p| (self.read)(p).is_some()),
        };
        if let Some(file) = file {
            self.makefile(&file, &folder, targets, depth, "make", &|text| text.to_owned());
        }
    }

    pub(super) fn just(&mut self, words: &[String], folder: &str, depth: u32) {
        let names = ["justfile", "Justfile", ".justfile"];
        let file = names.iter().filter_map(|n| join(folder, n)).find(|p| (self.read)(p).is_some());
        let target = words[1..].iter().find(|w| !w.starts_with('-')).cloned();
        // A recipe of `just` is indented in any way.
        let tabbed = |text: &str| {
            let line = |l: &str| match l.starts_with([' ', '\t']) {
                true => format!("\t{}", l.trim_start().trim_start_matches('@')),
                false => l.to_owned(),
            };
            text.lines().map(line).collect::<Vec<_>>().join("\n")
        };
        if let Some(file) = file {
            self.makefile(&file, folder, target.into_iter().collect(), depth, "just", &tabbed);
        }
    }

    /// The targets of a makefile with all that they need, each under its key.
    fn makefile(
        &mut self,
        file: &str,
        folder: &str,
        targets: Vec<String>,
        depth: u32,
        kind: &str,
        shape: &dyn Fn(&str) -> String,
    ) {
        let files = self.with_includes(file, folder, shape);
        let all: Vec<&str> = files.iter().map(|(_, text, _)| text.as_str()).collect();
        let whole = Makefile::parse(&all.join("\n"));
        let scope = format!("{kind} in {}", if folder.is_empty() { "." } else { folder });
        for (path, _, made) in &files {
            let settings = Some(made.settings.join("\n")).filter(|text| !text.is_empty());
            self.define(&scope, "settings of all targets", path, settings);
            let for_any = Some(made.for_any.join("\n")).filter(|text| !text.is_empty());
            self.define(&scope, FOR_ANY_TARGET, path, for_any);
            // Files that only make itself finds.
            let found = made.included().into_iter().filter(|file| file.contains('*'));
            self.reach.tests.extend(found.filter_map(|file| named_files::of_pattern(&file, folder)));
        }
        let phony = whole.target(".PHONY").map(|phony| phony.needs).unwrap_or_default();
        let mut open = if targets.is_empty() { whole.first_target().into_iter().collect() } else { targets };
        while let Some(name) = open.pop() {
            if !self.seen.insert(format!("{scope} {file} {name}")) {
                continue;
            }
            if let Some((needs, lines)) = whole.by_pattern(&name) {
                self.recipe(&lines, folder, depth);
                open.extend(needs);
            }
            let Some(target) = whole.target(&name) else { continue };
            for (path, _, made) in &files {
                self.define(&scope, &name, path, made.target(&name).map(|t| t.text));
                for variable in &target.variables {
                    let text = made.variable(variable);
                    self.asked_of_a_shell(text.as_deref().unwrap_or_default(), folder, depth);
                    self.define(&scope, variable, path, text);
                }
            }
            let makes =
                |line: &String| line.contains("$@") || line.split(['/', ' ']).any(|word| word == name);
            if kind == "make" && !phony.contains(&name) && !target.lines.iter().any(makes) {
                self.reach
                    .open_targets
                    .extend(join(folder, &name).filter(|path| (self.read)(path).is_none()));
            }
            self.reach.made_targets.extend(join(folder, &name).filter(|path| (self.read)(path).is_none()));
            self.recipe(&target.lines, folder, depth);
            open.extend(target.needs);
        }
    }

    fn recipe(&mut self, lines: &[String], folder: &str, depth: u32) {
        for line in lines.iter().flat_map(|line| line.lines()) {
            let line = line.trim_start_matches(['@', '-', '+', ' ']);
            self.lines(line, folder, Via::Definition, depth + 1);
        }
    }

    /// What a variable is filled with by a shell: the files that are read for it, and the scripts that are run.
    fn asked_of_a_shell(&mut self, text: &str, folder: &str, depth: u32) {
        for (at, start) in text.match_indices("$(shell ") {
            let rest = &text[at + start.len()..];
            let Some(command) = rest.find(')').map(|end| rest[..end].trim()) else { continue };
            let mut words = command.split_whitespace();
            if matches!(words.next(), Some("cat" | "head" | "tail" | "jq" | "sed" | "awk" | "grep" | "tr")) {
                let files =
                    words.map(|word| word.trim_matches(['"', '\''])).filter_map(|word| join(folder, word));
                let read =
                    files.filter(|file| !file.is_empty() && !is_source(file) && (self.read)(file).is_some());
                let found: Vec<TestPlace> = read.map(TestPlace::whole).collect();
                self.reach.tests.extend(found);
            } else {
                self.lines(command, folder, Via::Script, depth + 1);
            }
        }
    }

    /// A makefile and what it includes, in order.
    fn with_includes(
        &self,
        file: &str,
        folder: &str,
        shape: &dyn Fn(&str) -> String,
    ) -> Vec<(String, String, Makefile)> {
        let (mut files, mut open): (Vec<(String, String, Makefile)>, _) = (Vec::new(), vec![file.to_owned()]);
        while let Some(path) = open.pop() {
            if files.len() >= 64 || files.iter().any(|(known, ..)| *known == path) {
                continue;
            }
            let Some(text) = (self.read)(&path) else { continue };
            let text = shape(&text);
            let made = Makefile::parse(&text);
            open.extend(made.included().iter().rev().filter_map(|i| join(folder, i)));
            files.push((path, text, made));
        }
        files
    }
}
