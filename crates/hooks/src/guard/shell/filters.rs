//! What common programs print, where that follows from their arguments and what is piped into them.

use super::Shell;
use super::expand::ansi_c;
use crate::guard::rules;
use crate::guard::value::{Field, Taint, UNKNOWN, Value};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, STANDARD_NO_PAD};

/// Programs whose output comes from the network.
const FETCH: &[&str] = &[
    "curl", "wget", "fetch", "aria2c", "http", "https", "httpie", "lynx", "w3m", "links", "nc", "ncat",
    "socat", "ftp", "tftp", "scp", "telnet",
];
/// Programs that turn what nobody can read into something else.
const DECODE: &[&str] = &[
    "openssl", "gpg", "gunzip", "zcat", "bzcat", "xzcat", "bunzip2", "unxz", "uudecode", "base32", "basenc",
    "zstd", "zstdcat", "lz4", "age", "ccrypt",
];

/// Programs that turn a text into another one.
const TURNS: &[&str] = &[
    "sed", "gsed", "awk", "gawk", "mawk", "cut", "head", "tail", "fold", "paste", "column", "m4", "bc", "dc",
    "sort", "od", "jq", "iconv", "grep",
];
/// Languages that print what they like.
const INTERPRETERS: &[&str] =
    &["python", "perl", "ruby", "node", "php", "lua", "awk", "gawk", "mawk", "pypy", "deno", "bun"];

impl Shell<'_> {
    /// What a program prints. What it writes to a file named by an option is remembered.
    pub(super) fn output(&mut self, name: &str, args: &[Field], stdin: &Value) -> Value {
        let has = |flags: &[&str]| args.iter().any(|arg| flags.contains(&arg.text.as_str()));
        let taint = args.iter().fold(stdin.taint, |taint, arg| taint.and(arg.taint));
        match name {
            "echo" => echo(args),
            "printf" => printf(args),
            "cat" | "tac" if args.iter().all(|arg| arg.text.starts_with('-') && arg.text != "-") => {
                stdin.clone()
            }
            "cat" => {
                let mut out = Value::default();
                for arg in args.iter().filter(|arg| !arg.text.starts_with('-')) {
                    let path = self.path(&arg.text);
                    let content = if path == "/dev/stdin" { stdin.clone() } else { self.content(&path) };
                    out.push(&content);
                }
                out
            }
            "tee" => {
                for arg in args.iter().filter(|arg| !arg.text.starts_with('-')) {
                    let path = self.path(&arg.text);
                    if self.files.len() < 64 {
                        self.files.insert(path, stdin.clone());
                    }
                }
                stdin.clone()
            }
            "base64" if has(&["-d", "-D", "--decode", "-di"]) => {
                decoded(self.input(args, stdin), from_base64)
            }
            "xxd" if args.iter().any(|arg| arg.text.starts_with("-r") || arg.text.starts_with("-p")) => {
                decoded(self.input(args, stdin), from_hex)
            }
            "rev" => changed(self.input(args, stdin), |text| {
                text.lines().map(|line| line.chars().rev().collect::<String>() + "\n").collect()
            }),
            "tr" => tr(args, stdin),
            "which" | "type" => self.place_of(args.last()),
            "realpath" | "readlink" => {
                Value::known(args.last().map(|arg| self.path(&arg.text)).unwrap_or_default())
            }
            "cp" | "ln" | "mv" => {
                self.renamed(args);
                Value::default()
            }
            "dirname" => {
                let text = args.first().map(|arg| self.path(&arg.text)).unwrap_or_default();
                let text = text.rsplit_once('/').map_or("", |(folder, _)| folder);
                Value::known(if text.is_empty() { "/" } else { text })
            }
            "basename" => {
                let text = args.first().map(|arg| arg.text.clone()).unwrap_or_default();
                Value::known(text.rsplit('/').next().unwrap_or_default())
            }
            _ if FETCH.contains(&name) => {
                let taint = Taint { fetched: true, ..taint };
                self.fetched_files(name, args);
                Value::unknown(taint)
            }
            _ if DECODE.contains(&name) => Value::unknown(Taint { decoded: true, ..taint }),
            "gzip" | "bzip2" | "xz"
                if args.iter().any(|arg| arg.text.starts_with('-') && arg.text.contains('d')) =>
            {
                Value::unknown(Taint { decoded: true, ..taint })
            }
            _ if packs(name, args) => Value::unknown(Taint { archive: true, ..taint }),
            "pgrep" | "pidof" if args.iter().any(|arg| rules::is_others(&arg.text)) => Value::known("0\n"),
            // A text that was known and is not any more, and whatever a program of another language prints: as a command it is hidden.
            _ if INTERPRETERS.contains(&name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.'))
                || TURNS.contains(&name) && stdin.is_known() && !stdin.text.is_empty() =>
            {
                Value::unknown(Taint { decoded: true, ..taint })
            }
            _ => Value::unknown(taint),
        }
    }

    /// A program of the machine under another name.
    fn renamed(&mut self, args: &[Field]) {
        let paths: Vec<&Field> = args.iter().filter(|arg| !arg.text.starts_with('-')).collect();
        if let [from, to] = paths.as_slice()
            && ["/bin/", "/usr/bin/", "/sbin/", "/usr/sbin/", "/usr/local/bin/"]
                .iter()
                .any(|place| from.text.starts_with(place))
        {
            self.aliases.insert(to.text.clone(), from.text.clone());
            self.aliases.insert(format!("./{}", to.text), from.text.clone());
        }
    }

    /// Where a program lies: the guard's own is known.
    pub(super) fn place_of(&self, name: Option<&Field>) -> Value {
        let name = name.map(|arg| arg.text.clone()).unwrap_or_default();
        let own = self.places.own.iter().find(|own| own.rsplit('/').next() == Some(name.as_str()));
        Value::known(own.cloned().unwrap_or(name))
    }

    /// What a filter reads: the file that it names, or what is piped into it.
    fn input(&self, args: &[Field], stdin: &Value) -> Value {
        let file = args.iter().rev().find(|arg| !arg.text.starts_with('-'));
        match file {
            Some(file) => self.content(&self.path(&file.text)),
            None => stdin.clone(),
        }
    }

    /// Files that a program writes with what the network sends.
    fn fetched_files(&mut self, name: &str, args: &[Field]) {
        let mut names = Vec::new();
        for (at, arg) in args.iter().enumerate() {
            let text = arg.text.as_str();
            let next = || args.get(at + 1).map(|arg| arg.text.clone());
            match text {
                "-o" | "--output" | "-O" | "--output-document" if name != "curl" || text != "-O" => {
                    names.extend(next())
                }
                _ if text.starts_with("--output=") || text.starts_with("--output-document=") => {
                    names.extend(text.split_once('=').map(|(_, file)| file.to_owned()));
                }
                _ if text.starts_with('-')
                    && !text.starts_with("--")
                    && text.ends_with(['o', 'O'])
                    && text.len() > 2 =>
                {
                    names.extend(next().filter(|next| !next.contains("://")));
                }
                _ if text.contains("://") => {
                    names.extend(
                        text.split(['?', '#'])
                            .next()
                            .and_then(|url| url.rsplit('/').next())
                            .map(str::to_owned),
                    );
                }
                _ => {}
            }
        }
        for file in names.into_iter().filter(|file| !file.is_empty() && file != "-").take(16) {
            let path = self.path(&file);
            self.files.insert(path, Value::unknown(Taint { fetched: true, ..Taint::default() }));
        }
    }
}

/// Whether a program prints many files in one.
fn packs(name: &str, args: &[Field]) -> bool {
    let words = || args.iter().map(|arg| arg.text.as_str());
    let letters = |at: usize, text: &str| match text.strip_prefix('-') {
        Some(letters) if !text.starts_with("--") => letters.to_owned(),
        None if at == 0 => text.to_owned(),
        _ => String::new(),
    };
    let prints = || words().any(|word| word == "-" || word == "/dev/stdout");
    match name {
        "tar" | "bsdtar" | "gtar" => {
            let flags: String = words().enumerate().map(|(at, word)| letters(at, word)).collect();
            let creates = flags.contains('c') || words().any(|word| word == "--create");
            let file = flags.contains('f') || words().any(|word| word.starts_with("--file"));
            creates && (!file || prints())
        }
        "zip" => prints(),
        "cpio" | "pax" => {
            words().any(|word| word.starts_with("-o") || word == "--create" || word.starts_with("-w"))
        }
        "git" => {
            let verb = words().find(|word| !word.starts_with('-'));
            verb == Some("archive")
                && !words().any(|word| word.starts_with("-o") || word.starts_with("--output"))
                || verb == Some("bundle") && prints()
        }
        _ => false,
    }
}

fn echo(args: &[Field]) -> Value {
    let flags = args.iter().take_while(|arg| {
        arg.text.len() > 1 && arg.text.starts_with('-') && arg.text[1..].bytes().all(|b| b"neE".contains(&b))
    });
    let (count, escapes) = flags.fold((0, false), |(n, e), arg| (n + 1, e || arg.text.contains('e')));
    let mut out = super::builtins::joined_value(&args[count..]);
    if escapes {
        out.text = ansi_c(&out.text);
    }
    if !args[..count].iter().any(|flag| flag.text.contains('n')) {
        out.text.push('\n');
    }
    out
}

/// `printf` as far as `%s`, `%b`, `%d`, `%%` and escapes go; the format is used again while there are arguments.
pub(super) fn printf(args: &[Field]) -> Value {
    let args = match args.first() {
        Some(first) if first.text == "--" => &args[1..],
        _ => args,
    };
    let Some((format, values)) = args.split_first() else { return Value::default() };
    let mut out = Value { text: String::new(), taint: super::builtins::joined_value(args).taint };
    let format = ansi_c(&format.text);
    let mut values = values.iter().take(64);
    let mut next = values.next();
    loop {
        let mut letters = format.chars().peekable();
        let mut used = false;
        while let Some(c) = letters.next() {
            if c != '%' {
                out.text.push(c);
                continue;
            }
            while letters.peek().is_some_and(|c| c.is_ascii_digit() || "-+ #.".contains(*c)) {
                letters.next();
            }
            match letters.next() {
                Some('%') => out.text.push('%'),
                Some(kind) => {
                    used = true;
                    let value = next.map(|field| field.text.as_str()).unwrap_or_default();
                    match kind {
                        'b' => out.text.push_str(&ansi_c(value)),
                        _ => out.text.push_str(value),
                    }
                    next = values.next();
                }
                None => out.text.push('%'),
            }
        }
        if !used || next.is_none() {
            return out;
        }
    }
}

fn changed(input: Value, change: impl Fn(&str) -> String) -> Value {
    match input.is_known() {
        true => Value { text: change(&input.text), taint: input.taint },
        false => input,
    }
}

/// A decoded text; one that cannot be decoded here is hidden.
fn decoded(input: Value, decode: impl Fn(&str) -> Option<String>) -> Value {
    let text = if input.is_known() { decode(&input.text) } else { None };
    match text {
        Some(text) => Value { text, taint: input.taint },
        None => Value { text: UNKNOWN.to_string(), taint: Taint { decoded: true, ..input.taint } },
    }
}

pub(super) fn from_base64(text: &str) -> Option<String> {
    let bare: String = text.chars().filter(|c| !c.is_whitespace()).collect();
    let bytes =
        STANDARD.decode(&bare).or_else(|_| STANDARD_NO_PAD.decode(bare.trim_end_matches('='))).ok()?;
    String::from_utf8(bytes).ok()
}

pub(super) fn from_hex(text: &str) -> Option<String> {
    let digits: Vec<u8> = text
        .chars()
        .filter(|c| !c.is_whitespace())
        .map(|c| c.to_digit(16).map(|d| d as u8))
        .collect::<Option<_>>()?;
    let bytes = digits.chunks(2).filter(|pair| pair.len() == 2).map(|pair| pair[0] << 4 | pair[1]).collect();
    String::from_utf8(bytes).ok()
}

/// `tr` with sets of letters and ranges, `-d` too.
fn tr(args: &[Field], stdin: &Value) -> Value {
    let delete = args.iter().any(|arg| arg.text == "-d");
    let sets: Vec<Vec<char>> =
        args.iter().filter(|arg| !arg.text.starts_with('-')).map(|arg| letters(&arg.text)).collect();
    changed(stdin.clone(), |text| {
        let turn =
            |c: char| match (sets.first().and_then(|from| from.iter().position(|f| *f == c)), sets.get(1)) {
                (Some(_), _) if delete => None,
                (Some(at), Some(to)) => to.get(at).or(to.last()).copied(),
                _ => Some(c),
            };
        text.chars().filter_map(turn).collect()
    })
}

fn letters(set: &str) -> Vec<char> {
    let set = set.replace("[:lower:]", "a-z").replace("[:upper:]", "A-Z").replace("[:space:]", " \t\n");
    let letters: Vec<char> = ansi_c(&set).chars().collect();
    let (mut out, mut at) = (Vec::new(), 0);
    while at < letters.len() && out.len() < 512 {
        if at + 2 < letters.len() && letters[at + 1] == '-' && letters[at] <= letters[at + 2] {
            out.extend((letters[at]..=letters[at + 2]).take(128));
            at += 3;
        } else {
            out.push(letters[at]);
            at += 1;
        }
    }
    out
}
