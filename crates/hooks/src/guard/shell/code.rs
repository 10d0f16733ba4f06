//! Programs of other languages on a command line (`python -c`, `node -e`, `awk`): their texts and what they call, without
//! reading the language itself.

use super::Shell;
use super::filters::{from_base64, from_hex};
use super::invoke::quoted_words;
use crate::guard::category::{Category, Refusal};
use crate::guard::rules;
use crate::guard::value::{Field, UNKNOWN, Value};

/// Interpreters, and the options that take code.
const INTERPRETERS: &[(&str, &[&str])] = &[
    ("python", &["-c"]),
    ("pypy", &["-c"]),
    ("perl", &["-e", "-E", "-ne", "-pe", "-le", "-lne", "-i.bak"]),
    ("ruby", &["-e", "-ne", "-pe"]),
    ("node", &["-e", "-p", "--eval", "--print", "-pe"]),
    ("nodejs", &["-e", "-p"]),
    ("deno", &["eval"]),
    ("bun", &["-e", "--eval", "-p"]),
    ("php", &["-r"]),
    ("lua", &["-e"]),
    ("osascript", &["-e"]),
    ("rscript", &["-e"]),
    ("julia", &["-e", "-E"]),
    ("elixir", &["-e"]),
    ("groovy", &["-e"]),
    ("tclsh", &[]),
    ("expect", &["-c"]),
    ("emacs", &["--eval"]),
];
const AWKS: &[&str] = &["awk", "gawk", "mawk", "nawk"];
/// Calls that start a program or a shell.
const STARTS: &[&str] = &[
    "system",
    "popen",
    "subprocess",
    "exec",
    "spawn",
    "child_process",
    "shell_exec",
    "passthru",
    "pty.",
    "Open3",
    "%x",
    "qx",
    "do shell script",
    "Popen",
    "check_output",
    "os.posix",
    "`",
    "Bun.$",
    "Deno.Command",
    "zx",
    "Kernel",
    "syscall",
    "run(",
    "cmd =",
    "getline",
    "|",
];
/// Calls that take code.
const EVALS: &[&str] =
    &["exec(", "eval(", "eval ", "Function(", "compile(", "__import__", "instance_eval", "loadstring"];
/// Calls that fetch.
const FETCHES: &[&str] = &[
    "urlopen",
    "urllib",
    "requests.",
    "httpx",
    "fetch(",
    "http.get",
    "https.get",
    "LWP",
    "Net::HTTP",
    "open-uri",
    "file_get_contents(\"http",
    "file_get_contents('http",
    "URI.open",
    "aiohttp",
];
/// Calls that decode.
const DECODES: &[&str] = &[
    "b64decode",
    "atob",
    "base64",
    "unhexlify",
    "fromhex",
    "decode(",
    "unpack",
    "zlib",
    "marshal",
    "codecs",
];
/// Calls that remove.
const REMOVES: &[&str] = &[
    "rmtree",
    "unlink",
    "rmSync",
    "rmdir",
    "rm(",
    "remove(",
    "removeSync",
    "FileUtils",
    "rimraf",
    "emptyDir",
];
/// Literals of a program that are looked at.
const LITERALS_MAX: usize = 64;

impl Shell<'_> {
    /// Looks at the code that an interpreter is given.
    pub(super) fn run_code(&mut self, name: &str, args: &[Field], stdin: &Value, words: &str) {
        if AWKS.contains(&name) {
            let program = args.iter().find(|arg| !arg.text.starts_with('-') && !is_assignment(&arg.text));
            if let Some(program) = program.filter(|p| {
                p.text.contains("system") || p.text.contains("getline") || p.text.contains("| \"")
            }) {
                let code = program.text.clone();
                self.code(&code, words);
            }
            return;
        }
        let base = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
        let Some((_, options)) = INTERPRETERS.iter().find(|(known, _)| *known == base) else { return };
        let mut given = false;
        for (at, arg) in args.iter().enumerate() {
            let text = arg.text.as_str();
            let bundled = text.starts_with('-')
                && !text.starts_with("--")
                && text.len() <= 4
                && text.ends_with(['c', 'e', 'E', 'r', 'p']);
            if options.contains(&text) || bundled && !options.is_empty() {
                if let Some(code) = args.get(at + 1) {
                    given = true;
                    self.code_value(&code.value(), words);
                }
            } else if let Some((_, code)) =
                text.split_once('=').filter(|(option, _)| options.contains(option))
            {
                given = true;
                let code = code.to_owned();
                self.code(&code, words);
            }
        }
        if given {
            return;
        }
        let file = args.iter().find(|arg| !arg.text.starts_with('-') || arg.text == "-");
        match file.map(|file| file.text.clone()) {
            None => self.code_value(stdin, words),
            Some(file) if file == "-" || file == "/dev/stdin" => self.code_value(stdin, words),
            Some(file) => {
                let path = self.path(&file);
                if self.files.contains_key(&path) {
                    let content = self.content(&path);
                    self.code_value(&content, words);
                }
            }
        }
    }

    fn code_value(&mut self, code: &Value, words: &str) {
        if !code.is_known() && (code.taint.fetched || code.taint.decoded) {
            let why = "It runs what nobody can read here.";
            self.refuse(Refusal::new(Category::RemoteCode, words, why), words);
        }
        if code.text.trim_matches(UNKNOWN).len() > 3 {
            let text = code.text.clone();
            self.code(&text, words);
        }
    }

    /// Judges a program by its literals and the names in it.
    fn code(&mut self, code: &str, words: &str) {
        let has = |names: &[&str]| names.iter().any(|name| code.contains(name));
        let refuse =
            |shell: &mut Self, category, why: &str| shell.refuse(Refusal::new(category, code, why), words);
        if has(&["socket", "Socket", "net.connect", "TCPSocket", "fsockopen"])
            && has(&["connect", "Connect", "TCPSocket", "fsockopen"])
            && has(&["dup2", "pty", "spawn", "subprocess", "/bin/sh", "/bin/bash", "exec", "STDIN"])
        {
            refuse(self, Category::ReverseShell, "It gives a shell to a machine far away.");
        }
        if has(FETCHES) && has(EVALS) {
            refuse(self, Category::RemoteCode, "It runs what the network sends.");
        }
        if dumps_environment(code) {
            refuse(self, Category::Environment, "It prints the whole environment, with its keys.");
        }
        let found = literals(code);
        let starts = has(STARTS);
        if has(DECODES) && (has(EVALS) || starts) {
            let mut read = 0;
            for literal in found.iter().filter(|literal| literal.len() >= 8) {
                if let Some(text) = from_base64(literal).or_else(|| from_hex(literal)) {
                    read += 1;
                    self.quiet_script(&text);
                    self.code_inner(&text, words);
                }
            }
            if read == 0 && has(EVALS) {
                refuse(self, Category::RemoteCode, "It runs what nobody can read here.");
            }
        }
        for literal in found.iter().take(LITERALS_MAX) {
            if starts {
                self.quiet_script(literal);
            }
            let path = self.path(literal);
            if literal.starts_with(['/', '~', '.']) && literal.len() < 256 {
                self.judged(rules::reads(&path, words, self.places), words);
                if has(REMOVES) {
                    let danger = self.places.removal(&path);
                    self.judged(danger.map(|(category, why)| Refusal::new(category, words, why)), words);
                } else if has(&["write", "'w", "\"w", "'a", "\"a", "append"]) {
                    self.judged(rules::writes(&path, words, self.places), words);
                }
            }
            self.judged(rules::sql(literal, words), words);
        }
        if starts {
            for list in lists(code) {
                let fields: Vec<Field> = literals(&list).into_iter().map(Field::plain).collect();
                if fields.len() > 1 {
                    self.quiet_script(&quoted_words(&fields));
                }
            }
        }
    }

    /// Code within code, one level.
    fn code_inner(&mut self, code: &str, words: &str) {
        if self.depth < 6 && (code.contains('(') || code.contains(' ')) {
            self.depth += 1;
            for literal in literals(code) {
                self.quiet_script(&literal);
            }
            self.depth -= 1;
        }
        self.judged(rules::sql(code, words), words);
    }

    /// Walks a text that may be a script; one that is none says nothing.
    fn quiet_script(&mut self, text: &str) {
        if self.is_over() || text.len() < 2 {
            return;
        }
        self.script(text, &Value::default());
        if self.refusal.as_ref().is_some_and(|refusal| refusal.category == Category::Unreadable) {
            self.refusal = None;
        }
    }
}

fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

fn dumps_environment(code: &str) -> bool {
    let bare: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    let whole = [
        "os.environ)",
        "dict(os.environ)",
        "os.environ.items()",
        "process.env)",
        "stringify(process.env",
        "putsENV",
        "pENV",
        "%ENV",
        "ENV.to_h",
        "ENV.each",
        "getenv())",
        "$_ENV)",
        "Deno.env.toObject",
        "ENV.inspect",
    ];
    let prints =
        ["print", "console.log", "puts", "echo", "var_dump", "write", "dump", "pENV", "fetch(", "post("];
    whole.iter().any(|word| bare.contains(word)) && prints.iter().any(|word| bare.contains(word))
}

/// All texts in quotes.
fn literals(code: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut letters = code.char_indices().peekable();
    while let Some((start, c)) = letters.next() {
        if !matches!(c, '"' | '\'' | '`') || found.len() >= LITERALS_MAX {
            continue;
        }
        let triple = code[start..].starts_with(&c.to_string().repeat(3));
        let mut text = String::new();
        let mut closed = false;
        if triple {
            letters.next();
            letters.next();
        }
        while let Some((at, inner)) = letters.next() {
            if inner == '\\' {
                text.push(inner);
                text.extend(letters.next().map(|(_, escaped)| escaped));
            } else if inner == c && (!triple || code[at..].starts_with(&c.to_string().repeat(3))) {
                closed = true;
                break;
            } else {
                text.push(inner);
            }
        }
        if triple && closed {
            letters.next();
            letters.next();
        }
        found.push(super::expand::ansi_c(&text));
    }
    found
}

/// All texts in brackets.
fn lists(code: &str) -> Vec<String> {
    code.split('[')
        .skip(1)
        .filter_map(|rest| rest.split_once(']'))
        .map(|(list, _)| list.to_owned())
        .take(16)
        .collect()
}
