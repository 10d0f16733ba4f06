//! Builtins of a shell that change what the following commands mean.

use super::Shell;
use super::filters;
use super::invoke::quoted_words;
use crate::guard::category::{Category, Refusal};
use crate::guard::rules;
use crate::guard::value::{Field, Taint, UNKNOWN, Value, joined};

impl Shell<'_> {
    /// Does what a builtin does; none where the name is no builtin of this kind.
    pub(super) fn builtin(&mut self, name: &str, args: &[Field], stdin: &Value) -> Option<Value> {
        let words = || format!("{name} {}", joined(args));
        match name {
            "cd" | "pushd" => {
                let to = args.iter().rev().find(|arg| !arg.text.starts_with('-'));
                self.cwd = match to {
                    Some(to) => self.path(&to.text),
                    None if name == "cd" => self.places.home.clone(),
                    None => UNKNOWN.to_string(),
                };
                Some(Value::default())
            }
            "popd" => {
                self.cwd = self.places.cwd.clone();
                Some(Value::default())
            }
            "pwd" => Some(Value::known(format!("{}\n", self.cwd))),
            "shift" => {
                let count = args.first().and_then(|arg| arg.text.parse::<usize>().ok()).unwrap_or(1);
                if let Some(list) = &mut self.positional {
                    list.drain(..count.min(list.len()));
                }
                Some(Value::default())
            }
            ":" | "true" | "false" | "wait" | "exit" | "return" | "break" | "continue" => {
                Some(Value::default())
            }
            "hash" => {
                if let [option, program, name] = args
                    && option.text == "-p"
                {
                    self.aliases.insert(name.text.clone(), program.text.clone());
                }
                Some(Value::default())
            }
            "enable" if args.iter().any(|arg| arg.text.starts_with("-f")) => {
                let why = "It loads code into the shell.";
                self.refuse(Refusal::new(Category::RemoteCode, words(), why), &words());
                Some(Value::default())
            }
            "eval" => Some(self.run_text(&joined_value(args), &words())),
            "source" | "." => Some(self.source(args, stdin, &words())),
            "alias" => {
                for arg in args {
                    if let Some((name, value)) = arg.text.split_once('=') {
                        self.judged(rules::alias(name), &words());
                        self.aliases.insert(name.to_owned(), value.to_owned());
                    }
                }
                Some(Value::default())
            }
            "trap" => {
                if let Some(script) = args.iter().find(|arg| !arg.text.starts_with('-')) {
                    self.run_text(&script.value(), &words());
                }
                Some(Value::default())
            }
            "set" if !args.is_empty() => {
                let at = args.iter().position(|arg| arg.text == "--").map(|at| at + 1);
                let at = at.or_else(|| args.iter().position(|arg| !arg.text.starts_with(['-', '+'])));
                if let Some(at) = at {
                    self.positional = Some(args[at..].to_vec());
                }
                Some(Value::default())
            }
            "mapfile" | "readarray" => {
                let name = args.iter().rev().find(|arg| !arg.text.starts_with('-'));
                let name = name.map_or("MAPFILE", |arg| arg.text.as_str()).to_owned();
                let line = |text: &str| Field { text: text.to_owned(), glob: false, taint: stdin.taint };
                self.vars.insert(name, stdin.text.lines().take(64).map(line).collect());
                Some(Value::default())
            }
            "read" => {
                self.read(args, stdin);
                Some(Value::default())
            }
            "printf" if args.first().is_some_and(|arg| arg.text == "-v") => {
                let value = filters::printf(args.get(2..).unwrap_or_default());
                if let Some(variable) = args.get(1) {
                    self.vars.insert(variable.text.clone(), vec![value.into()]);
                }
                Some(Value::default())
            }
            "export" | "declare" | "typeset" | "local" | "readonly" if assigns(args) => {
                for arg in args {
                    if let Some((name, value)) = arg.text.split_once('=') {
                        self.assigned_value(name, value, &words());
                        let field = Field { text: value.to_owned(), glob: false, taint: arg.taint };
                        self.vars.insert(name.trim_end_matches('+').to_owned(), vec![field]);
                    }
                }
                Some(Value::default())
            }
            "let" => {
                args.iter().for_each(|arg| self.arithmetic(&arg.text));
                Some(Value::default())
            }
            "shopt" | "bind" | "complete" | "umask" | "ulimit" => Some(Value::default()),
            "history" | "fc" => Some(Value::unknown(Taint { secret: true, ..Taint::default() })),
            _ => None,
        }
    }

    /// `. file`, and what is fed to it.
    fn source(&mut self, args: &[Field], stdin: &Value, words: &str) -> Value {
        let Some(file) = args.first() else { return Value::default() };
        let path = self.path(&file.text);
        let content = match path.as_str() {
            "/dev/stdin" | "/proc/self/fd/0" | "/dev/fd/0" => stdin.clone(),
            _ => self.content(&path),
        };
        self.run_text(&content, words)
    }

    /// `read` takes the first line of what is piped into it, word by word.
    fn read(&mut self, args: &[Field], stdin: &Value) {
        let line = stdin.text.lines().next().unwrap_or_default();
        let takes_value = ["-p", "-t", "-n", "-N", "-d", "-u", "-i"];
        let mut names = Vec::new();
        let (mut at, mut array) = (0, false);
        while let Some(arg) = args.get(at) {
            match arg.text.as_str() {
                text if takes_value.contains(&text) => at += 1,
                text if text.starts_with('-') => array |= text.contains('a'),
                name => names.push(name.to_owned()),
            }
            at += 1;
        }
        let field = |text: &str| Field { text: text.to_owned(), glob: false, taint: stdin.taint };
        if array {
            let values = line.split_whitespace().map(field).collect();
            let name = names.pop().unwrap_or_else(|| "REPLY".to_owned());
            self.vars.insert(name, values);
            return;
        }
        if names.is_empty() {
            names.push("REPLY".to_owned());
        }
        let last = names.len() - 1;
        let mut rest = line.trim();
        for (number, name) in names.into_iter().enumerate() {
            let (value, after) = match number == last {
                true => (rest, ""),
                false => rest.split_once(char::is_whitespace).unwrap_or((rest, "")),
            };
            self.vars.insert(name, vec![field(value)]);
            rest = after.trim_start();
        }
    }

    /// The command line that several words are put together to.
    pub(super) fn run_words(&mut self, words: &[Field], stdin: &Value) -> Value {
        match words {
            // One word with spaces is a line for a shell.
            [one] if one.text.contains(char::is_whitespace) => self.run_text(&one.value(), &one.text),
            many => self.invoke(many.to_vec(), stdin),
        }
    }

    /// The same where the program always asks a shell.
    pub(super) fn run_line(&mut self, words: &[Field]) -> Value {
        match words {
            [one] => self.run_text(&one.value(), &one.text),
            many if many.iter().all(|word| !word.text.contains(char::is_whitespace)) => {
                self.run_text(&joined_value(many), &joined(many))
            }
            many => self.run_text(&Value::known(quoted_words(many)), &joined(many)),
        }
    }
}

fn assigns(args: &[Field]) -> bool {
    args.iter().any(|arg| arg.text.contains('=')) || args.iter().any(|arg| !arg.text.starts_with('-'))
}

pub(super) fn joined_value(args: &[Field]) -> Value {
    let taint = args.iter().fold(Taint::default(), |taint, arg| taint.and(arg.taint));
    Value { text: joined(args), taint }
}
