//! One program with its arguments: what it really starts, and what the rules say of it.

use super::Shell;
use crate::guard::category::{Category, Refusal};
use crate::guard::rules::{self, Call};
use crate::guard::value::{Field, Taint, UNKNOWN, Value, joined};
use crate::guard::wild;

/// Programs that read a script: from `-c`, a file, or what is piped into them.
const SHELLS: &[&str] = &["sh", "bash", "zsh", "dash", "ksh", "mksh", "ash", "fish", "rbash", "tcsh", "csh"];
/// Programs that fetch the command which they run.
const RUNNERS: &[&str] = &["npx", "bunx", "uvx", "pnpx", "pnpm", "yarn", "npm", "bun", "uv", "pipx"];
/// Names that a wildcard may stand for.
const NAMED: &[&str] = &[
    "rm", "dd", "cat", "cp", "mv", "chmod", "chown", "find", "tee", "sudo", "su", "nc", "curl", "wget",
    "kill", "env", "sh", "bash", "python3", "perl", "git", "ssh", "scp", "shred", "mkfs", "base64", "pkill",
    "killall", "crontab", "mount", "nmap", "printenv", "node", "ruby", "truncate", "ln", "xargs", "nohup",
];

impl Shell<'_> {
    /// Looks at a command; what it prints, as far as that is known.
    pub(super) fn invoke(&mut self, mut argv: Vec<Field>, stdin: &Value) -> Value {
        if argv.is_empty() || !self.step(&joined(&argv)) {
            return Value::default();
        }
        if argv[0].text.is_empty() && argv.len() > 1 && !argv[0].taint.secret {
            // An empty expansion is no word.
            argv.remove(0);
        }
        let words = joined(&argv);
        if self.hidden_name(&argv, &words) {
            return Value::default();
        }
        let name = program_name(&argv[0]);
        if let Some(body) = self.functions.get(&argv[0].text).cloned() {
            let before = self.positional.replace(argv.split_off(1));
            let out = self.call_body(&name, &body, stdin);
            self.positional = before;
            return out;
        }
        if let Some(alias) = self.aliases.get(&argv[0].text).cloned()
            && !self.calling.contains(&name)
        {
            self.calling.push(name);
            let rest = quoted_words(&argv[1..]);
            let out = self.script(&format!("{alias} {rest}"), stdin);
            self.calling.pop();
            return out;
        }
        let args = argv.split_off(1);
        let last = args.last().unwrap_or(&argv[0]).clone();
        self.vars.insert("_".to_owned(), vec![last]);
        if let Some(out) = self.builtin(&name, &args, stdin) {
            return out;
        }
        if RUNNERS.contains(&name.as_str()) {
            self.rules(&name, &args, stdin, &words);
        }
        if self.wrapped(&name, &args, stdin) {
            if name == "command" && args.first().is_some_and(|arg| arg.text == "-v") {
                return self.place_of(args.last());
            }
            return Value::unknown(stdin.taint);
        }
        if SHELLS.contains(&name.as_str()) {
            return self.run_shell(&args, stdin, &words);
        }
        if self.run_written(&argv[0].text, &words) {
            return Value::default();
        }
        self.run_code(&name, &args, stdin, &words);
        self.hidden_in_arguments(&name, &args);
        self.rules(&name, &args, stdin, &words);
        self.output(&name, &args, stdin)
    }

    /// Shows a program to the rules.
    pub(super) fn rules(&mut self, name: &str, args: &[Field], stdin: &Value, words: &str) {
        if self.is_over() {
            return;
        }
        let refusal = {
            let resolve = |text: &str| self.path(text);
            let variable = |name: &str| {
                let known = self.vars.get(name).and_then(|fields| fields.first());
                known.map(|field| field.text.clone())
            };
            let call = Call {
                name,
                args,
                stdin,
                words,
                places: self.places,
                resolve: &resolve,
                variable: &variable,
            };
            rules::judge(&call)
        };
        self.judged(refusal, words);
    }

    /// A name that was fetched or decoded says nothing of what would run.
    fn hidden_name(&mut self, argv: &[Field], words: &str) -> bool {
        let name = &argv[0];
        if name.text.contains(UNKNOWN) && (name.taint.fetched || name.taint.decoded) {
            let why = "What would run is hidden.";
            self.refuse(Refusal::new(Category::RemoteCode, words, why), words);
            return true;
        }
        false
    }

    /// `sh`, `bash` and their like.
    fn run_shell(&mut self, args: &[Field], stdin: &Value, words: &str) -> Value {
        let mut at = 0;
        let mut interactive = false;
        while let Some(arg) = args.get(at) {
            let text = arg.text.as_str();
            match text {
                "--" => {
                    at += 1;
                    break;
                }
                "-o" | "+o" | "-O" | "+O" | "--rcfile" | "--init-file" => at += 2,
                "-s" | "-" => return self.run_text(stdin, words),
                _ if text.starts_with("--") => at += 1,
                _ if text.starts_with(['-', '+']) && text.len() > 1 => {
                    interactive |= text.contains('i');
                    if text.contains('c') {
                        let script = args.get(at + 1).map(Field::value).unwrap_or_default();
                        let rest = args.get(at + 3..).unwrap_or_default().to_vec();
                        let before = self.positional.replace(rest);
                        let zero = args.get(at + 2).cloned().unwrap_or_else(|| Field::plain("bash"));
                        let zero = std::mem::replace(&mut self.zero, zero);
                        let out = self.run_text(&script, words);
                        (self.positional, self.zero) = (before, zero);
                        return out;
                    }
                    at += 1;
                }
                _ => break,
            }
        }
        match args.get(at) {
            Some(file) => {
                if !self.run_written(&file.text, words) && file.taint.fetched {
                    self.run_text(&Value::unknown(file.taint), words);
                }
                Value::unknown(Taint::default())
            }
            None if interactive && !stdin.text.is_empty() => {
                let why = "It gives a shell to whoever is at the other end.";
                self.refuse(Refusal::new(Category::ReverseShell, words, why), words);
                Value::default()
            }
            None => self.run_text(stdin, words),
        }
    }

    /// Walks a text that would be run.
    pub(super) fn run_text(&mut self, script: &Value, words: &str) -> Value {
        if !script.is_known() && (script.taint.fetched || script.taint.decoded) {
            let why = match script.taint.fetched {
                true => "It runs what the network sends.",
                false => "It runs what nobody can read here.",
            };
            self.refuse(Refusal::new(Category::RemoteCode, words, why), words);
            return Value::default();
        }
        // Nothing is known of it: a script of the project, most likely.
        if script.text.trim_matches([UNKNOWN, '\n', ' ']).is_empty() {
            return Value::unknown(Taint::default());
        }
        self.script(&script.text.replace(UNKNOWN, "${UNKNOWN_PART}"), &Value::default())
    }

    /// Walks a file that this command has written or fetched; false where it has not.
    pub(super) fn run_written(&mut self, file: &str, words: &str) -> bool {
        let path = match file.contains('/') {
            true => self.path(file),
            false => self.path(&format!("./{file}")),
        };
        if file == "/dev/stdin" || !self.files.contains_key(&path) || self.calling.contains(&path) {
            return false;
        }
        let content = self.content(&path);
        self.calling.push(path);
        self.run_text(&content, words);
        self.calling.pop();
        true
    }
}

/// The name of a program without its folder; what a wildcard in it stands for.
pub(super) fn program_name(field: &Field) -> String {
    // An unset variable in a name leaves nothing there.
    let text: String = field.text.chars().filter(|c| *c != UNKNOWN).collect();
    let base = text.rsplit('/').next().unwrap_or(&text);
    let base = base.strip_suffix(".exe").unwrap_or(base).to_lowercase();
    if !field.glob {
        return base;
    }
    let found = NAMED.iter().find(|name| wild::matches(&base, name));
    found.map_or(base, |name| (*name).to_owned())
}

/// Words as a shell would read them again.
pub(super) fn quoted_words(fields: &[Field]) -> String {
    let word = |field: &Field| format!("'{}'", field.text.replace('\'', r"'\''"));
    fields.iter().map(word).collect::<Vec<_>>().join(" ")
}
