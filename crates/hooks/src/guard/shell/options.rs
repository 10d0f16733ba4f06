//! Options, settings and inputs of ordinary programs that name a command.

use super::Shell;
use super::wrappers::{after_options, option, wrapper};
use crate::guard::rules;
use crate::guard::value::{Field, Value};

/// Clients of databases, which run what follows `\\!`.
const CLIENTS: &[&str] = &[
    "psql", "mysql", "mariadb", "sqlite3", "pgcli", "mycli", "litecli", "duckdb", "usql", "gnuplot", "ftp",
    "gdb",
];
/// Options of tmux and screen that take the next word.
const TERMINAL_VALUES: &[&str] =
    &["-s", "-S", "-t", "-n", "-c", "-x", "-y", "-F", "-e", "-l", "-p", "-L", "-f", "-h", "-T"];
/// Recipes of a makefile that are looked at.
const RECIPES_MAX: usize = 200;

impl Shell<'_> {
    /// Options of ordinary programs that name a command.
    pub(super) fn options_that_run(&mut self, name: &str, args: &[Field], stdin: &Value) {
        match name {
            "git" => self.git(args),
            "tmux" | "screen" => self.terminals(name, args),
            "npm" | "pnpm" if args.iter().any(|arg| arg.text == "set") => self.scripts_set(args),
            "make" | "gmake" => self.recipes(args, stdin),
            "just" | "ninja" | "samu" | "task" | "go-task" => self.other_recipes(name, args, stdin),
            "ed" | "ex" | "vi" | "vim" | "nvim" => {
                self.escaped_lines(&stdin.text);
                self.foreign_lines(args);
            }
            _ if CLIENTS.contains(&name) => {
                self.foreign_lines(args);
                args.iter().for_each(|arg| self.escaped_lines(&arg.text));
                self.escaped_lines(&stdin.text);
                for arg in args.iter().filter(|arg| arg.text.starts_with("/dev/fd/")) {
                    let statement = self.content(&arg.text).text;
                    self.judged(rules::sql(&statement, &arg.text), &arg.text);
                }
            }
            _ => {}
        }
        let mut lines: Vec<Value> = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            let text = arg.text.as_str();
            let next = || args.get(at + 1).map(Field::value);
            match (name, text) {
                ("git", _) if text.contains("=!") => {
                    lines.extend(text.split_once("=!").map(|(_, line)| Value::known(line)));
                }
                ("git", _) if git_runs(text) => {
                    lines.extend(text.split_once('=').map(|(_, line)| Value::known(line)))
                }
                ("git", "--upload-pack" | "--receive-pack" | "--exec") => lines.extend(next()),
                ("tar", _) if text.starts_with("--checkpoint-action=exec=") => {
                    lines.push(Value::known(&text["--checkpoint-action=exec=".len()..]));
                }
                ("tar", _)
                    if text.starts_with("--to-command=") || text.starts_with("--use-compress-program=") =>
                {
                    lines.extend(text.split_once('=').map(|(_, line)| Value::known(line)));
                }
                ("tar", "-I")
                | ("rsync", "-e" | "--rsh")
                | ("man", "-P")
                | ("sort", "--compress-program") => {
                    lines.extend(next());
                }
                ("split", _) if text.starts_with("--filter=") => {
                    lines.push(Value::known(&text["--filter=".len()..]))
                }
                ("vim" | "vi" | "nvim" | "ex" | "view", _) if text.contains('!') => {
                    lines.extend(text.split_once('!').map(|(_, line)| Value::known(line)));
                }
                ("gdb", _) if text.starts_with('!') || text.starts_with("shell ") => {
                    lines.push(Value::known(text.trim_start_matches('!').trim_start_matches("shell ")));
                }
                ("make", _) if text.starts_with("--eval=") => {
                    lines.extend(text.split_once([';', '\t']).map(|(_, line)| Value::known(line)));
                }
                ("zip", "-TT") => lines.extend(next()),
                ("sed" | "gsed", _) if substitutes_and_runs(text).is_some() => {
                    lines.extend(substitutes_and_runs(text).map(Value::known));
                }
                ("sed" | "gsed", _) if text.contains("e ") && !text.starts_with('-') => {
                    // `1e command` runs one; a plain `s/a/b/` does not look like that.
                    let after = text
                        .split_once("e ")
                        .filter(|(before, _)| before.bytes().all(|b| b.is_ascii_digit() || b == b'$'));
                    lines.extend(after.map(|(_, line)| Value::known(line)));
                }
                _ => {}
            }
        }
        for line in lines {
            let words = line.text.clone();
            self.run_text(&line, &words);
        }
    }

    /// Subcommands of git that take a command.
    fn git(&mut self, args: &[Field]) {
        let verb =
            after_options(args, &wrapper("git", &["-C", "-c", "--git-dir", "--work-tree", "--namespace"], 0));
        let Some((verb, rest)) = verb.split_first() else { return };
        let text = |shell: &mut Self, line: &str| drop(shell.run_text(&Value::known(line), line));
        match (verb.text.as_str(), rest.first().map(|arg| arg.text.as_str())) {
            ("bisect", Some("run")) => drop(self.run_words(&rest[1..], &Value::default())),
            ("submodule", Some("foreach")) => {
                let inner = after_options(&rest[1..], &wrapper("foreach", &[], 0)).to_vec();
                self.run_line(&inner);
            }
            ("difftool" | "rebase", _) => {
                if let Some(line) = option(rest, &["-x", "--extcmd", "--exec"]).cloned() {
                    text(self, &line.text);
                }
            }
            ("config", _) => {
                if let Some(line) =
                    rest.last().and_then(|last| last.text.strip_prefix('!')).map(str::to_owned)
                {
                    text(self, &line);
                }
            }
            _ => {}
        }
        for arg in rest {
            let line =
                ["--extcmd=", "--exec=", "--open-files-in-pager=", "--upload-pack=", "--receive-pack=", "-O"]
                    .iter()
                    .find_map(|start| arg.text.strip_prefix(start))
                    .filter(|line| !line.is_empty());
            if let Some(line) = line {
                text(self, line);
            }
            if let Some(line) = arg.text.strip_prefix("ext::") {
                // There, `% ` is a space within a word.
                let words = line.replace("% ", "\u{1}");
                let words: Vec<Field> =
                    words.split(' ').map(|word| Field::plain(word.replace('\u{1}', " "))).collect();
                self.run_words(&words, &Value::default());
            }
        }
    }

    /// Commands that are typed into another terminal.
    fn terminals(&mut self, name: &str, args: &[Field]) {
        let inner = after_options(args, &wrapper("terminal", TERMINAL_VALUES, 0));
        let inner = match name {
            "tmux" => after_options(inner.get(1..).unwrap_or_default(), &wrapper("tmux", TERMINAL_VALUES, 0)),
            _ => inner,
        };
        let words = inner.to_vec();
        for word in words.iter().filter(|word| word.text.contains(char::is_whitespace)) {
            self.quiet_script(&word.text);
        }
        self.quiet_script(&super::invoke::quoted_words(&words));
    }

    /// `npm pkg set scripts.x=COMMAND`.
    fn scripts_set(&mut self, args: &[Field]) {
        let lines = args.iter().filter_map(|arg| arg.text.strip_prefix("scripts.")?.split_once('='));
        for (_, line) in lines.map(|(a, b)| (a.to_owned(), b.to_owned())).collect::<Vec<_>>() {
            self.quiet_script(&line);
        }
    }

    /// The recipes of a makefile that this command has made.
    fn recipes(&mut self, args: &[Field], stdin: &Value) {
        let named = option(args, &["-f", "--file", "--makefile"]).map(|file| file.text.clone());
        let text = match named.as_deref() {
            Some("-" | "/dev/stdin") => stdin.text.clone(),
            Some(file) => self.content(&self.path(file)).text,
            None => {
                let made = ["GNUmakefile", "makefile", "Makefile"].map(|file| self.path(file));
                let made = made.iter().find(|file| self.files.contains_key(*file));
                made.map(|file| self.content(file).text).unwrap_or_default()
            }
        };
        for line in text.lines().filter_map(|line| line.strip_prefix('\t')).take(RECIPES_MAX) {
            self.quiet_script(&line.trim_start_matches(['@', '-', '+', ' ']).replace("$$", "$"));
        }
    }

    /// The same of the files of `just`, `ninja` and `task`.
    fn other_recipes(&mut self, name: &str, args: &[Field], stdin: &Value) {
        let (flags, files): (&[&str], &[&str]) = match name {
            "just" => (&["-f", "--justfile"], &["justfile", "Justfile", ".justfile", "JUSTFILE"]),
            "ninja" | "samu" => (&["-f"], &["build.ninja"]),
            _ => (
                &["-t", "--taskfile"],
                &["Taskfile.yml", "taskfile.yml", "Taskfile.yaml", "taskfile.yaml", "Taskfile.dist.yml"],
            ),
        };
        let named = option(args, flags).map(|file| file.text.clone());
        let text = match named.as_deref() {
            Some("-" | "/dev/stdin") => stdin.text.clone(),
            Some(file) => self.content(&self.path(file)).text,
            None => {
                let made: Vec<String> = files.iter().map(|file| self.path(file)).collect();
                let made = made.iter().find(|file| self.files.contains_key(*file));
                made.map(|file| self.content(file).text).unwrap_or_default()
            }
        };
        for line in text.lines().filter_map(|line| recipe_line(name, line)).take(RECIPES_MAX) {
            self.quiet_script(&line);
        }
    }

    /// `py3 …`, `lua …` and their like of editors and debuggers.
    fn foreign_lines(&mut self, args: &[Field]) {
        let starts = ["py3 ", "python3 ", "python ", "py ", "lua ", "ruby ", "perl "];
        for arg in args {
            let bare = arg.text.trim_start_matches(['+', ':', ' ']);
            if let Some(code) = starts.iter().find_map(|start| bare.strip_prefix(start)) {
                let code = code.to_owned();
                self.code(&code, &arg.text);
            }
        }
    }

    /// Lines of other programs that begin a command of the shell.
    fn escaped_lines(&mut self, text: &str) {
        for line in text.lines().take(RECIPES_MAX) {
            let bare = line.trim_start_matches([' ', '\t', ':', '%', ',']);
            let starts = ["!", ".shell ", ".system ", "shell ", "system "];
            let after = starts.iter().find_map(|start| bare.strip_prefix(start));
            let within = line.split_once("\\!").map(|(_, rest)| rest);
            let program =
                line.to_uppercase().find(" PROGRAM '").and_then(|at| line.get(at + " PROGRAM '".len()..));
            let program = program.map(|rest| rest.rsplit_once('\'').map_or(rest, |(line, _)| line));
            if let Some(script) = after.or(within).or(program) {
                self.quiet_script(script);
            }
        }
    }
}

/// The command in a line of such a file.
fn recipe_line(name: &str, line: &str) -> Option<String> {
    let bare = line.trim_start();
    let indented = bare.len() < line.len();
    match name {
        "just" => indented.then(|| bare.trim_start_matches(['@', '-']).to_owned()),
        "ninja" | "samu" => {
            let (key, command) = bare.split_once('=')?;
            (key.trim() == "command").then(|| command.trim().replace("$$", "$"))
        }
        _ => {
            let item = bare.trim_start_matches("- ").trim_start();
            let item = ["cmd:", "sh:", "defer:", "cmds:", "status:"]
                .iter()
                .find_map(|key| item.strip_prefix(key))
                .or_else(|| {
                    (item.len() < bare.len() || indented).then_some(item).filter(|item| !item.ends_with(':'))
                })?;
            Some(item.trim().trim_matches(['"', '\'', '[', ']']).to_owned())
        }
    }
}

/// What `s/a/command/e` runs.
fn substitutes_and_runs(text: &str) -> Option<&str> {
    let mark = text.strip_prefix('s')?.chars().next().filter(|mark| !mark.is_alphanumeric())?;
    let parts: Vec<&str> = text[1 + mark.len_utf8()..].split(mark).collect();
    let flags = parts.last().filter(|_| parts.len() >= 3)?;
    (flags.contains('e') && flags.chars().all(|flag| flag.is_ascii_alphanumeric())).then_some(parts[1])
}

/// Settings of git that name a program.
fn git_runs(text: &str) -> bool {
    let key = text.split('=').next().unwrap_or_default().to_lowercase();
    let whole =
        ["core.pager", "core.editor", "core.sshcommand", "core.fsmonitor", "core.askpass", "core.gitproxy"];
    let ends = [
        ".external",
        ".editor",
        ".helper",
        ".program",
        ".clean",
        ".smudge",
        ".process",
        ".driver",
        ".textconv",
        ".command",
        ".cmd",
        ".difffilter",
        ".packobjectshook",
    ];
    text.contains('=')
        && (whole.contains(&key.as_str())
            || key.starts_with("pager.")
            || ends.iter().any(|end| key.ends_with(end)))
}
