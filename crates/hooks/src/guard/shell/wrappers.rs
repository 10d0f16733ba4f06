//! Programs that start another one: what they start is looked at as if it stood there alone.

use super::Shell;
use super::invoke::quoted_words;
use crate::guard::category::{Category, Refusal};
use crate::guard::value::{Field, UNKNOWN, Value, joined};

/// How many of its own arguments a wrapper has before the command.
pub(super) struct Wrapper {
    name: &'static str,
    /// Options that take the next word.
    values: &'static [&'static str],
    /// Words of its own before the command.
    own: usize,
}

pub(super) const fn wrapper(name: &'static str, values: &'static [&'static str], own: usize) -> Wrapper {
    Wrapper { name, values, own }
}

const WRAPPERS: &[Wrapper] = &[
    wrapper("nohup", &[], 0),
    wrapper("command", &[], 0),
    wrapper("builtin", &[], 0),
    wrapper("exec", &["-a"], 0),
    wrapper("time", &["-f", "-o"], 0),
    wrapper("nice", &["-n", "--adjustment"], 0),
    wrapper("ionice", &["-c", "-n", "-p"], 0),
    wrapper("chrt", &["-p"], 1),
    wrapper("taskset", &["-c"], 1),
    wrapper("timeout", &["-k", "-s", "--signal", "--kill-after"], 1),
    wrapper("gtimeout", &["-k", "-s"], 1),
    wrapper("setsid", &[], 0),
    wrapper("stdbuf", &["-i", "-o", "-e"], 0),
    wrapper("unbuffer", &[], 0),
    wrapper("busybox", &[], 0),
    wrapper("toybox", &[], 0),
    wrapper("strace", &["-o", "-e", "-p", "-s"], 0),
    wrapper("ltrace", &["-o", "-e"], 0),
    wrapper("setarch", &[], 1),
    wrapper("linux32", &[], 0),
    wrapper("linux64", &[], 0),
    wrapper("eatmydata", &[], 0),
    wrapper("proxychains", &[], 0),
    wrapper("torsocks", &[], 0),
    wrapper("faketime", &[], 1),
    wrapper("xvfb-run", &["-s", "-n", "-e", "-f", "-p", "-w", "--server-args"], 0),
    wrapper("dbus-run-session", &[], 0),
    wrapper("systemd-run", &["-p", "-u", "--unit", "--property"], 0),
    wrapper("systemd-inhibit", &[], 0),
    wrapper("unshare", &[], 0),
    wrapper("fakeroot", &[], 0),
    wrapper("runuser", &["-u"], 0),
    wrapper("sudo", &["-u", "-g", "-C", "-h", "-p", "-U", "-r", "-t"], 0),
    wrapper("doas", &["-u", "-C"], 0),
    wrapper("pkexec", &["--user"], 0),
    wrapper("cross-env", &[], 0),
    wrapper("dotenv", &["-e", "-c", "-f"], 0),
    wrapper("npx", &["-p", "--package", "-c", "--call"], 0),
    wrapper("bunx", &[], 0),
    wrapper("pnpx", &[], 0),
    wrapper("uvx", &["--from", "--with"], 0),
    wrapper("rlwrap", &[], 0),
    wrapper("winpty", &[], 0),
    wrapper("flock", &["-w", "-E"], 1),
    wrapper("chronic", &[], 0),
    wrapper("caffeinate", &[], 0),
    wrapper("coproc", &[], 0),
];

const XARGS_VALUES: &[&str] =
    &["-n", "-P", "-I", "-d", "-L", "-s", "-a", "-E", "--max-args", "--max-procs", "--delimiter"];
const PARALLEL_VALUES: &[&str] = &["-j", "--jobs", "-N", "--delay", "--timeout", "--colsep", "-I"];
const SSH_VALUES: &[&str] =
    &["-p", "-i", "-l", "-o", "-F", "-J", "-L", "-R", "-D", "-b", "-c", "-e", "-m", "-S", "-W"];

/// `poetry run x`: the name and the word after which the command stands.
const RUNNERS: &[(&str, &str)] = &[
    ("poetry", "run"),
    ("uv", "run"),
    ("pipenv", "run"),
    ("hatch", "run"),
    ("pdm", "run"),
    ("rye", "run"),
    ("bundle", "exec"),
    ("pnpm", "exec"),
    ("pnpm", "dlx"),
    ("yarn", "exec"),
    ("yarn", "dlx"),
    ("npm", "exec"),
    ("direnv", "exec"),
    ("mise", "exec"),
    ("asdf", "exec"),
    ("nix-shell", "--run"),
];

impl Shell<'_> {
    /// Looks at what a wrapper starts; true where nothing else is to be said of it.
    pub(super) fn wrapped(&mut self, name: &str, args: &[Field], stdin: &Value) -> bool {
        if let Some(found) = WRAPPERS.iter().find(|wrapper| wrapper.name == name) {
            let inner = after_options(args, found);
            // Who becomes somebody else does that whatever is started then.
            if ["sudo", "doas", "pkexec"].contains(&name) {
                self.rules(name, args, stdin, &format!("{name} {}", joined(args)));
            }
            if name == "command" && args.first().is_some_and(|arg| ["-v", "-V"].contains(&arg.text.as_str()))
            {
                return true;
            }
            if let Some(script) = option(args, &["-c", "--call"]).filter(|_| ["npx", "flock"].contains(&name))
            {
                self.run_text(&script.value(), &script.text);
            }
            if let Some(from) =
                inner.first().filter(|from| from.text.contains("://") && !name.starts_with("cross"))
            {
                let why = "It runs what the network sends.";
                self.refuse(Refusal::new(Category::RemoteCode, joined(args), why), &from.text);
            }
            self.run_words(inner, stdin);
            return true;
        }
        if let Some((_, verb)) =
            RUNNERS.iter().find(|(runner, verb)| *runner == name && args.iter().any(|arg| arg.text == *verb))
        {
            let at = args.iter().position(|arg| arg.text == *verb).map_or(args.len(), |at| at + 1);
            let rest = &args[at..];
            let from = rest.iter().position(|arg| !arg.text.starts_with('-')).unwrap_or(rest.len());
            // The folder whose settings are taken.
            let from = if name == "direnv" { (from + 1).min(rest.len()) } else { from };
            self.run_words(&rest[from..], stdin);
            return true;
        }
        match name {
            "env" => self.env(args, stdin),
            "xargs" => self.xargs(args, stdin),
            "parallel" => self.parallel(args, stdin),
            "find" | "fd" => self.find(args),
            "watch" | "entr" | "concurrently" | "ssh" | "su" | "script" => self.lines(name, args),
            "start-stop-daemon" => self.daemon(args),
            _ if name == "ld.so" || name.starts_with("ld-") && name.contains(".so") => {
                let values = &["--library-path", "--preload", "--argv0", "--inhibit-rpath", "--audit"];
                self.run_words(after_options(args, &wrapper("ld.so", values, 0)), stdin);
                true
            }
            _ => {
                self.options_that_run(name, args, stdin);
                false
            }
        }
    }

    /// `env` alone prints the environment, which is the rules' to judge.
    fn env(&mut self, args: &[Field], stdin: &Value) -> bool {
        let mut at = 0;
        while let Some(arg) = args.get(at) {
            match arg.text.as_str() {
                "-u" | "--unset" | "-C" | "--chdir" => at += 2,
                "-S" | "--split-string" => {
                    let rest = quoted_words(args.get(at + 2..).unwrap_or_default());
                    if let Some(line) = args.get(at + 1) {
                        self.split_line(&line.text, &rest);
                    }
                    return true;
                }
                text if text.starts_with("-S") || text.starts_with("--split-string=") => {
                    let line = text.strip_prefix("--split-string=").unwrap_or(&text[2..]);
                    self.split_line(line, &quoted_words(&args[at + 1..]));
                    return true;
                }
                text if text.starts_with('-') => at += 1,
                text if text.contains('=') && !text.starts_with('/') => {
                    let (name, value) = text.split_once('=').unwrap_or((text, ""));
                    self.assigned_value(name, value, text);
                    at += 1;
                }
                _ => break,
            }
        }
        if at < args.len() {
            self.run_words(&args[at..], stdin);
            return true;
        }
        false
    }

    /// `env -S` takes a line apart as a shell would, and adds the words after it.
    fn split_line(&mut self, line: &str, rest: &str) {
        self.run_text(&Value::known(format!("env {line} {rest}")), line);
    }

    /// `-x PROGRAM -- ARGUMENTS`.
    fn daemon(&mut self, args: &[Field]) -> bool {
        let program = option(args, &["-x", "--exec", "-a", "--startas"]).cloned();
        let rest = args.iter().position(|arg| arg.text == "--").map_or(args.len(), |at| at + 1);
        let words: Vec<Field> = program.into_iter().chain(args[rest..].iter().cloned()).collect();
        self.run_words(&words, &Value::default());
        true
    }

    fn xargs(&mut self, args: &[Field], stdin: &Value) -> bool {
        let found = wrapper("xargs", XARGS_VALUES, 0);
        let inner = after_options(args, &found);
        // Options after the command are the command's own.
        let own = &args[..args.len() - inner.len()];
        let listed = option(own, &["-a", "--arg-file"]).map(|file| self.content(&self.path(&file.text)));
        let stdin = listed.as_ref().unwrap_or(stdin);
        let joined_mark =
            own.iter().find_map(|arg| arg.text.strip_prefix("-I").filter(|mark| !mark.is_empty()));
        let replace = option(own, &["-I", "-i", "--replace"]).map(|arg| arg.text.clone());
        let replace = joined_mark.map(str::to_owned).or(replace);
        let mut words: Vec<Field> = inner.to_vec();
        if words.is_empty() {
            words.push(Field::plain("echo"));
        }
        let given: Vec<Field> = match stdin.is_known() {
            true => stdin
                .text
                .split(|c: char| c.is_whitespace() || c == '\0')
                .filter(|text| !text.is_empty())
                .take(64)
                .map(|text| Field { taint: stdin.taint, ..Field::plain(unquoted(text)) })
                .collect(),
            false => vec![Field { text: UNKNOWN.to_string(), glob: false, taint: stdin.taint }],
        };
        match replace {
            Some(mark) => {
                let line = stdin.text.trim().to_owned();
                for word in &mut words {
                    word.text = word.text.replace(&mark, &line);
                    word.taint = word.taint.and(stdin.taint);
                }
            }
            None => words.extend(given),
        }
        self.run_words(&words, &Value::default());
        true
    }

    fn parallel(&mut self, args: &[Field], stdin: &Value) -> bool {
        let at = args.iter().position(|arg| arg.text.starts_with(":::")).unwrap_or(args.len());
        let command = after_options(&args[..at], &wrapper("parallel", PARALLEL_VALUES, 0)).to_vec();
        let given: Vec<Field> = match args.get(at + 1..) {
            Some(rest) => rest.to_vec(),
            None => stdin.text.lines().take(64).map(Field::plain).collect(),
        };
        for one in given {
            let mut words = command.clone();
            match words.is_empty() {
                true => drop(self.run_text(&one.value(), &one.text)),
                false => {
                    let placed = words.iter().any(|word| word.text.contains("{}"));
                    words.iter_mut().for_each(|word| word.text = word.text.replace("{}", &one.text));
                    if !placed {
                        words.push(one);
                    }
                    self.run_line(&words);
                }
            }
        }
        true
    }

    /// `-exec` and its like; what `-delete` removes is the rules' to judge.
    fn find(&mut self, args: &[Field]) -> bool {
        let starts = ["-exec", "-execdir", "-ok", "-okdir", "-x", "--exec", "-X"];
        let root = args.iter().find(|arg| !arg.text.starts_with('-')).cloned();
        let mut at = 0;
        while let Some(found) = args[at..].iter().position(|arg| starts.contains(&arg.text.as_str())) {
            let from = at + found + 1;
            let to = args[from..]
                .iter()
                .position(|arg| [";", "+"].contains(&arg.text.as_str()))
                .map_or(args.len(), |n| from + n);
            let mut words = args[from..to].to_vec();
            for word in &mut words {
                // What is found lies below the folder that is searched.
                let below =
                    root.as_ref().map(|root| format!("{}/{UNKNOWN}", root.text.trim_end_matches('/')));
                word.text = word.text.replace("{}", &below.unwrap_or_else(|| UNKNOWN.to_string()));
            }
            if let (Some(first), Some(root)) = (words.first(), &root)
                && first.text == "rm"
            {
                // Without a bound of its own, everything below goes.
                words.push(root.clone());
                let narrowed = args.iter().any(|arg| {
                    ["-name", "-iname", "-path", "-mtime", "-maxdepth", "-regex", "-type"]
                        .contains(&arg.text.as_str())
                });
                if narrowed {
                    words.pop();
                }
            }
            self.run_words(&words, &Value::default());
            at = to.min(args.len());
        }
        false
    }

    /// Programs that hand a line to a shell.
    fn lines(&mut self, name: &str, args: &[Field]) -> bool {
        match name {
            "watch" => {
                let inner = after_options(args, &wrapper("watch", &["-n", "--interval"], 0)).to_vec();
                self.run_line(&inner);
            }
            "entr" => {
                let inner = after_options(args, &wrapper("entr", &[], 0)).to_vec();
                self.run_words(&inner, &Value::default());
            }
            "concurrently" => {
                for arg in args.iter().filter(|arg| !arg.text.starts_with('-') && arg.text.contains(' ')) {
                    self.run_text(&arg.value(), &arg.text);
                }
            }
            "script" | "su" => {
                let script =
                    args.windows(2).find(|pair| pair[0].text.starts_with('-') && pair[0].text.ends_with('c'));
                let long = args.iter().find_map(|arg| arg.text.strip_prefix("--command="));
                if let Some([_, script]) = script {
                    let script = script.clone();
                    self.run_text(&script.value(), &script.text);
                } else if let Some(script) = long {
                    self.run_text(&Value::known(script), script);
                }
                // Becoming somebody is the rules' to judge.
                return name == "script";
            }
            _ => {
                let inner = after_options(args, &wrapper("ssh", SSH_VALUES, 1)).to_vec();
                let proxy = args
                    .iter()
                    .find_map(|arg| arg.text.split_once("ProxyCommand=").map(|(_, line)| line.to_owned()));
                if let Some(proxy) = proxy {
                    self.run_text(&Value::known(proxy.clone()), &proxy);
                }
                if !inner.is_empty() {
                    self.run_line(&inner);
                }
                return false;
            }
        }
        true
    }
}

/// The words after a wrapper's own.
pub(super) fn after_options<'a>(args: &'a [Field], wrapper: &Wrapper) -> &'a [Field] {
    let mut at = 0;
    while let Some(arg) = args.get(at) {
        let text = arg.text.as_str();
        let assigns = text.split_once('=').is_some_and(|(name, _)| {
            !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
        });
        match text {
            "--" => {
                at += 1;
                break;
            }
            _ if wrapper.values.contains(&text) => at += 2,
            _ if text.starts_with('-') && text.len() > 1 => at += 1,
            _ if assigns => at += 1,
            _ => break,
        }
    }
    args.get(at + wrapper.own..).unwrap_or_default()
}

/// The word after one of these options, or after its `=`.
pub(super) fn option<'a>(args: &'a [Field], names: &[&str]) -> Option<&'a Field> {
    let at = args.iter().position(|arg| names.contains(&arg.text.as_str()))?;
    args.get(at + 1)
}

/// `xargs` reads quotes.
fn unquoted(text: &str) -> String {
    text.chars().filter(|c| !matches!(c, '\'' | '"' | '\\')).collect()
}
