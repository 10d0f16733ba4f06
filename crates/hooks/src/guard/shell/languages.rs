//! Words of other languages: how they start programs, fetch, decode and remove, and what their texts are.

/// Interpreters, and the options that take code.
pub(super) const INTERPRETERS: &[(&str, &[&str])] = &[
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
pub(super) const AWKS: &[&str] = &["awk", "gawk", "mawk", "nawk"];
/// Calls that start a program or a shell.
pub(super) const STARTS: &[&str] = &[
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
    "shell-command",
    "call-process",
    "start-process",
    "cmd =",
    "getline",
    "|",
];
/// Calls that take code.
pub(super) const EVALS: &[&str] = &[
    "exec(",
    "eval(",
    "eval ",
    "Function(",
    "compile(",
    "__import__",
    "instance_eval",
    "loadstring",
    "(eval)",
];
/// Calls that fetch.
pub(super) const FETCHES: &[&str] = &[
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
pub(super) const DECODES: &[&str] = &[
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
    "pack(\"H",
    "pack('H",
];
/// Calls that remove.
pub(super) const REMOVES: &[&str] = &[
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
    "remove_tree",
    "rm_rf",
    "rm_r",
    "remove_dir_all",
    "Remove-Item",
];
/// Calls that write.
pub(super) const WRITES: &[&str] = &["write", "'w", "\"w", "'a", "\"a", "append", "\">", "'>"];
/// The home folder, as languages call it. White space is left out.
pub(super) const HOMES: &[&str] = &[
    "Path.home()",
    "os.homedir()",
    "homedir()",
    "require(\"os\").homedir()",
    "require('os').homedir()",
    "process.env.HOME",
    "Dir.home",
    "$ENV{HOME}",
    "ENV[\"HOME\"]",
    "ENV['HOME']",
    "environ[\"HOME\"]",
    "environ['HOME']",
    "getenv(\"HOME\")",
    "getenv('HOME')",
    "env.get(\"HOME\")",
    "env.get('HOME')",
    "expanduser(\"~\")",
    "expanduser('~')",
    "System.user_home()",
];
/// Literals of a program that are looked at.
pub(super) const LITERALS_MAX: usize = 64;

/// Code with texts put together that are added to each other: `'sys' + 'tem'`.
pub(super) fn glued(code: &str) -> String {
    let mut out = code.to_owned();
    for quote in ['\'', '"'] {
        for between in ["+", " + ", ".", " . ", " "] {
            // A single space joins texts in Python only; elsewhere it is an error.
            out = out.replace(&format!("{quote}{between}{quote}"), "");
        }
    }
    out
}

/// Whether the home folder is named without anything below it.
pub(super) fn names_whole_home(code: &str) -> bool {
    let bare: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    HOMES.iter().any(|home| {
        bare.match_indices(home).any(|(at, _)| {
            let rest = &bare[at + home.len()..];
            let joined =
                [",'", ",\"", ",`", "+", "/", "}/", ".joinpath(", ".join(", ".'", ".\"", ")/", "),'", "),\""];
            !joined.iter().any(|join| rest.starts_with(join))
        })
    })
}

pub(super) fn is_assignment(text: &str) -> bool {
    text.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')
    })
}

pub(super) fn dumps_environment(code: &str) -> bool {
    let bare: String = code.chars().filter(|c| !c.is_whitespace()).collect();
    if ["process.env", "os.environ"].contains(&bare.as_str()) || bare.contains("inENVIRON") {
        return true;
    }
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
pub(super) fn literals(code: &str) -> Vec<String> {
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
pub(super) fn lists(code: &str) -> Vec<String> {
    code.split('[')
        .skip(1)
        .filter_map(|rest| rest.split_once(']'))
        .map(|(list, _)| list.to_owned())
        .take(16)
        .collect()
}
