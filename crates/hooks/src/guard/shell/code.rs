//! Code of other languages on a command line (`python -c`, `node -e`, `awk`): its string literals and names, without
//! parsing the language.

use super::Shell;
use crate::guard::category::Category;
use crate::guard::paths::Guards;
use crate::guard::text;

const LITERALS_MAX: usize = 64;

impl Shell<'_> {
    /// Checks the code that an interpreter gets: from an option, a file that this command wrote, or a pipe.
    pub(super) fn run_interpreter(&mut self, name: &str, args: &[String], stdin: &str, line: &str) {
        let rules = self.rules;
        let Some(found) = rules.interpreter.iter().find(|found| rules.is(&found.programs, name)) else {
            return;
        };
        let mut given: Vec<String> = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            let bundled = arg.starts_with('-')
                && !arg.starts_with("--")
                && arg.len() <= 4
                && found.options.iter().any(|option| arg.ends_with(option.trim_start_matches('-')));
            if found.options.contains(arg) || bundled {
                given.extend(args.get(at + 1).cloned());
            } else if let Some((_, code)) =
                arg.split_once('=').filter(|(option, _)| found.options.iter().any(|one| one == option))
            {
                given.push(code.to_owned());
            }
        }
        if given.is_empty() {
            let file = args.iter().find(|arg| !arg.starts_with('-') || *arg == "-");
            match file.filter(|file| *file != "-" && *file != "/dev/stdin") {
                Some(file) if self.files.contains_key(&self.path(file)) => given.push(self.content(file)),
                Some(program) if found.options.is_empty() => given.push(program.clone()),
                None if !args.iter().any(|arg| {
                    ["-m", "-V", "-v", "--version", "--help", "--test"].contains(&arg.as_str())
                }) =>
                {
                    given.push(stdin.to_owned())
                }
                Some(_) | None => {}
            }
        }
        for code in given {
            self.code(&code, line);
        }
    }

    /// Judges a program by its literals and names.
    pub(super) fn code(&mut self, code: &str, line: &str) {
        let rules = self.rules;
        if text::producers(code).any(|word| rules.is(&rules.programs.fetchers, word)) {
            return self.refuse(Category::RemoteCode, line, "It runs code from the network.");
        }
        let home = format!("'{}'", self.paths.home);
        let code = rules.code.homes.iter().fold(code.to_owned(), |code, name| code.replace(name, &home));
        let code = glued(&code, &self.paths.home);
        let bare: String = code.chars().filter(|c| !c.is_whitespace()).collect();
        let has = |names: &[String]| names.iter().any(|name| code.contains(name.as_str()));
        for rule in &rules.code.rule {
            let fits = |names: &Vec<String>| names.iter().any(|name| bare.contains(&name.replace(' ', "")));
            if rule.all.iter().all(fits) {
                self.refuse(rule.category, line, &rule.why);
            }
        }
        if bare == "process.env" || bare == "os.environ" {
            self.refuse(Category::Environment, line, "It prints the environment, including its keys.");
        }
        let literals = literals(&code);
        let (starts, removes, writes) =
            (has(&rules.code.starts), has(&rules.code.removes), has(&rules.code.writes));
        let access = match (removes, writes) {
            (true, _) => Guards::Removing,
            (_, true) => Guards::Writing,
            _ => Guards::Reading,
        };
        for literal in literals
            .iter()
            .map(|literal| literal.trim_start_matches('>'))
            .filter(|literal| literal.starts_with(['/', '~', '.']))
        {
            let class = self.paths.judge(&self.path(literal), access);
            // A literal that only starts a path isn't what is removed.
            let class = class.filter(|(category, _)| {
                starts || *category != Category::Files || removes || writes && literal.len() > 1
            });
            self.keep_path(class, line);
        }
        if starts {
            let lists =
                code.split(['[', '(']).skip(1).filter_map(|rest| rest.split_once([']', ')'])).take(16);
            let lists: Vec<String> = lists.map(|(list, _)| self::literals(list).join(" ")).collect();
            let spawned = code.split([';', '\n', '{', '}']).filter_map(|part| {
                part.trim().strip_prefix("spawn ").or_else(|| part.trim().strip_prefix("exec "))
            });
            for script in literals.iter().chain(&lists).map(String::as_str).chain(spawned) {
                self.run_quietly(script);
            }
        }
    }
}

/// The code with added literals joined: `'sys' + 'tem'`, `home + '/x'`.
fn glued(code: &str, home: &str) -> String {
    let mut out = code.to_owned();
    for quote in ['\'', '"'] {
        for between in ["+", " + ", ".", " . ", " "] {
            out = out.replace(&format!("{quote}{between}{quote}"), "");
        }
        for between in [" / ", "/", ", ", ",", " + ", "+", " . ", "."] {
            out = out.replace(&format!("'{home}'{between}{quote}"), &format!("{quote}{home}/"));
        }
    }
    out
}

fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut rest = code;
    while let Some(start) = rest.find(['"', '\'', '`']).filter(|_| found.len() < LITERALS_MAX) {
        let quote = &rest[start..=start];
        let triple = rest[start..].starts_with(&quote.repeat(3));
        let end_mark = if triple { quote.repeat(3) } else { quote.to_owned() };
        let body = &rest[start + end_mark.len()..];
        let mut end = 0;
        while end < body.len() && !body[end..].starts_with(&end_mark) {
            let escaped = usize::from(body[end..].starts_with('\\'));
            end += body[end..].chars().take(1 + escaped).map(char::len_utf8).sum::<usize>();
        }
        found.push(text::unescape(&body[..end.min(body.len())]));
        rest = body.get(end + end_mark.len()..).unwrap_or_default();
    }
    found
}
