//! Command lines as a shell reads them, as far as it takes to see which programs and files they lead to.

use std::iter::Peekable;
use std::str::Chars;

/// A simple command, and the folder that it runs in as far as `cd` says so.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Simple {
    pub(crate) words: Vec<String>,
    pub(crate) folder: String,
    /// Whether its failure decides nothing: `… || true`, `… | cat`, `… &`.
    pub(crate) swallowed: bool,
    /// Whether somebody reads what it prints: `$(…)`, `… | grep`.
    pub(crate) captured: bool,
    /// Whether the next command reads what it prints.
    pub(crate) piped: bool,
    /// Files that it reads as its input: `sh < x`.
    pub(crate) inputs: Vec<String>,
    /// Files that it prints into: `x > out.txt`.
    pub(crate) outputs: Vec<String>,
}

/// Words that stand before a command and change nothing about it.
const KEYWORDS: &[&str] =
    &["if", "then", "else", "elif", "do", "while", "until", "!", "exec", "command", "builtin", "{", "}"];

enum Token {
    Word(String),
    /// A file behind `<`.
    Input(String),
    /// A file behind `>`.
    Output(String),
    /// `;`, `&&`, `||`, `|`, `&`, a line's end.
    End(&'static str),
    /// With whether somebody reads what is printed there.
    Open(bool),
    Close,
}

/// Files that a command reads and prints into.
#[derive(Default)]
struct Files {
    inputs: Vec<String>,
    outputs: Vec<String>,
}

/// The simple commands of a line, or of a whole script, that is started in `folder`.
pub(crate) fn commands(text: &str, folder: &str) -> Vec<Simple> {
    let (mut found, mut words, mut files) = (Vec::new(), Vec::new(), Files::default());
    let mut folders = vec![(folder.to_owned(), false)];
    let finish = |(words, files): (&mut Vec<String>, &mut Files),
                  folders: &mut Vec<(String, bool)>,
                  end: &str,
                  found: &mut Vec<Simple>| {
        let (words, Files { inputs, outputs }) = (std::mem::take(words), std::mem::take(files));
        let skip = words.iter().take_while(|w| KEYWORDS.contains(&w.as_str())).count();
        let words = words[skip..].to_vec();
        if words.is_empty() {
            return;
        }
        let (here, read) = folders.last().cloned().unwrap_or_default();
        if let [cd, to, ..] = words.as_slice()
            && matches!(cd.as_str(), "cd" | "pushd")
        {
            if let Some(last) = folders.last_mut()
                && let Some(to) = join(&here, to)
            {
                last.0 = to;
            }
            return;
        }
        found.push(Simple {
            words,
            folder: here,
            swallowed: matches!(end, "|" | "||" | "&"),
            captured: read || end == "|",
            piped: end == "|",
            inputs,
            outputs,
        });
    };
    for token in tokens(text) {
        match token {
            Token::Word(word) => words.push(word),
            Token::Input(file) => files.inputs.push(file),
            Token::Output(file) => files.outputs.push(file),
            Token::End(end) => finish((&mut words, &mut files), &mut folders, end, &mut found),
            Token::Open(read) => {
                finish((&mut words, &mut files), &mut folders, "", &mut found);
                let (here, outer) = folders.last().cloned().unwrap_or_default();
                folders.push((here, outer || read));
            }
            Token::Close => {
                finish((&mut words, &mut files), &mut folders, "", &mut found);
                if folders.len() > 1 {
                    folders.pop();
                }
            }
        }
    }
    finish((&mut words, &mut files), &mut folders, "", &mut found);
    found
}

fn tokens(text: &str) -> Vec<Token> {
    let mut out = Vec::new();
    let mut word: Option<String> = None;
    let mut letters = text.chars().peekable();
    // A word after `<` or `>` is a file that is read or written, not an argument.
    let mut redirected = None;
    let mut ticks = false;
    let push = |word: &mut Option<String>, redirected: &mut Option<char>, out: &mut Vec<Token>| {
        if let Some(word) = word.take() {
            match redirected.take() {
                Some('<') => out.push(Token::Input(word)),
                // `2>&1`
                Some('>') if word.chars().all(|c| c.is_ascii_digit()) => {}
                Some('>') => out.push(Token::Output(word)),
                Some(_) => {}
                None => out.push(Token::Word(word)),
            }
        }
    };
    while let Some(c) = letters.next() {
        match c {
            '\'' => {
                let quoted: String = letters.by_ref().take_while(|c| *c != '\'').collect();
                word.get_or_insert_default().push_str(&quoted);
            }
            '"' => {
                let (quoted, inner) = double_quoted(&mut letters);
                if inner.is_empty() || !quoted.is_empty() {
                    word.get_or_insert_default().push_str(&quoted);
                }
                // What runs in `"$(…)"` prints into the word.
                for line in inner {
                    push(&mut word, &mut redirected, &mut out);
                    out.push(Token::Open(true));
                    out.extend(tokens(&line));
                    out.push(Token::Close);
                }
            }
            '\\' => match letters.next() {
                Some('\n') | None => {}
                Some(c) => word.get_or_insert_default().push(c),
            },
            '#' if word.is_none() => {
                while letters.peek().is_some_and(|c| *c != '\n') {
                    letters.next();
                }
            }
            '$' if letters.peek() == Some(&'(') => {
                letters.next();
                push(&mut word, &mut redirected, &mut out);
                out.push(Token::Open(true));
            }
            '(' | ')' | '`' => {
                push(&mut word, &mut redirected, &mut out);
                ticks = if c == '`' { !ticks } else { ticks };
                let closes = c == ')' || (c == '`' && !ticks);
                out.push(if closes { Token::Close } else { Token::Open(c == '`') });
            }
            ';' | '&' | '|' | '\n' => {
                let double = letters.peek() == Some(&c);
                if c == '&' && redirected.is_some() {
                    // `2>&1`
                    continue;
                }
                push(&mut word, &mut redirected, &mut out);
                if double {
                    letters.next();
                }
                out.push(Token::End(match (c, double) {
                    ('&', true) => "&&",
                    ('|', true) => "||",
                    ('&', false) => "&",
                    ('|', false) => "|",
                    _ => ";",
                }));
            }
            '<' | '>' => {
                // A number in front belongs to it.
                if word.as_ref().is_some_and(|w| w.chars().all(|c| c.is_ascii_digit())) {
                    word = None;
                }
                push(&mut word, &mut redirected, &mut out);
                // `<<` and `<(…)` name no file.
                let file = c == '<' && !matches!(letters.peek(), Some('<' | '(' | '&'));
                redirected = Some(match (file && redirected.is_none(), c) {
                    (true, _) => '<',
                    (false, '>') => '>',
                    // `<<`, `<(…)`
                    (false, _) => ' ',
                });
            }
            c if c.is_whitespace() => push(&mut word, &mut redirected, &mut out),
            c => word.get_or_insert_default().push(c),
        }
    }
    push(&mut word, &mut redirected, &mut out);
    out
}

/// The rest of a word in double quotes, and the lines that run in it: `$(…)`, `` `…` ``.
fn double_quoted(letters: &mut Peekable<Chars<'_>>) -> (String, Vec<String>) {
    let (mut quoted, mut inner) = (String::new(), Vec::new());
    while let Some(c) = letters.next() {
        match c {
            '"' => break,
            '\\' => quoted.extend(letters.next()),
            '`' => inner.push(letters.by_ref().take_while(|c| *c != '`').collect()),
            '$' if letters.peek() == Some(&'(') => {
                letters.next();
                let mut depth = 1;
                let mut line = String::new();
                for c in letters.by_ref() {
                    depth += i32::from(c == '(') - i32::from(c == ')');
                    if depth == 0 {
                        break;
                    }
                    line.push(c);
                }
                inner.push(line);
            }
            c => quoted.push(c),
        }
    }
    (quoted, inner)
}

/// Options of a program that passes on to another, with whether each takes a value of its own.
fn options_with_values(program: &str) -> &'static [&'static str] {
    match program {
        "env" => &["-u", "--unset", "-C", "--chdir"],
        "timeout" => &["-s", "--signal", "-k", "--kill-after"],
        "nice" => &["-n", "--adjustment"],
        "xargs" => &["-n", "-P", "-I", "-L", "-s", "-d", "-a", "-E"],
        "stdbuf" => &["-i", "-o", "-e"],
        "ionice" => &["-c", "-n"],
        "flock" => &["-w", "--timeout", "-E", "--conflict-exit-code"],
        "sudo" | "doas" => &["-u", "--user", "-g", "--group"],
        "chrt" | "numactl" => &["-N", "-m"],
        _ => &[],
    }
}

/// The command behind `env`, `timeout`, `xargs` and their like, and behind variables that are set for it; with the folder that
/// `env -C` names.
pub(crate) fn behind(words: &[String], folder: &str) -> (Vec<String>, String) {
    let (mut words, mut folder) = (words.to_vec(), folder.to_owned());
    for _ in 0..16 {
        let set = words.iter().take_while(|w| is_assignment(w)).count();
        words.drain(..set);
        let Some(first) = words.first() else { break };
        let name = program_name(first);
        // Those that take a word of their own before the command.
        let takes_one = matches!(name, "timeout" | "flock" | "taskset" | "chrt" | "faketime");
        let passes = takes_one
            || matches!(
                name,
                "env"
                    | "nice"
                    | "nohup"
                    | "time"
                    | "stdbuf"
                    | "setsid"
                    | "xargs"
                    | "ionice"
                    | "exec"
                    | "prlimit"
                    | "setarch"
                    | "numactl"
                    | "chronic"
                    | "tini"
                    | "dumb-init"
                    | "sudo"
                    | "doas"
                    | "xvfb-run"
                    | "dbus-run-session"
            );
        if !passes {
            break;
        }
        let (name, valued) = (name.to_owned(), options_with_values(name));
        words.remove(0);
        while let Some(option) = words.first().filter(|w| w.starts_with('-') && w.len() > 1).cloned() {
            words.remove(0);
            if name == "env" && matches!(option.as_str(), "-S" | "--split-string") {
                let line = if words.is_empty() { String::new() } else { words.remove(0) };
                words.splice(..0, line.split_whitespace().map(str::to_owned));
                break;
            }
            if valued.contains(&option.as_str()) && !words.is_empty() {
                let value = words.remove(0);
                if name == "env" && matches!(option.as_str(), "-C" | "--chdir") {
                    folder = join(&folder, &value).unwrap_or(folder);
                }
            }
        }
        if takes_one && !words.is_empty() {
            words.remove(0);
        }
    }
    (words, folder)
}

/// Whether a word sets a variable for the command behind it.
pub(crate) fn is_assignment(word: &str) -> bool {
    word.split_once('=').is_some_and(|(name, _)| {
        !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_')
    })
}

/// The last part of a program's path.
pub(crate) fn program_name(program: &str) -> &str {
    program.rsplit('/').next().unwrap_or(program)
}

/// Whether a program is a shell.
pub(crate) fn is_shell(program: &str) -> bool {
    matches!(program_name(program), "sh" | "bash" | "dash" | "zsh" | "ksh" | "ash")
}

/// A path as seen from the top of the repo; `None` where it leads out, or nobody knows where to.
pub(crate) fn join(folder: &str, path: &str) -> Option<String> {
    if path.starts_with(['/', '~']) || path.contains(['$', '*', '`']) {
        return None;
    }
    let mut parts: Vec<&str> = folder.split('/').filter(|p| !p.is_empty() && *p != ".").collect();
    for part in path.split('/') {
        match part {
            "" | "." => {}
            ".." => {
                parts.pop()?;
            }
            part => parts.push(part),
        }
    }
    Some(parts.join("/"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn said(line: &str) -> Vec<String> {
        let shown = |c: Simple| format!("{}:{}", c.folder, c.words.join(" "));
        commands(line, "").into_iter().map(shown).collect()
    }

    #[test]
    fn lines_are_read_as_a_shell_reads_them() {
        assert_eq!(
            said("cd sub && sh 'a b.sh' # no\n(cd x; ./y) ; z"),
            ["sub:sh a b.sh", "sub/x:./y", "sub:z"]
        );
        assert_eq!(said("if ! make -s test >log 2>&1; then exit 1; fi"), [":make -s test", ":exit 1", ":fi"]);
        assert_eq!(
            said("x=$(sh inner.sh) run \"$x\""),
            [":x=", ":sh inner.sh", ":run $x"].map(str::to_owned)
        );
        let ends: Vec<bool> = commands("a | b || c && d", "").into_iter().map(|c| c.swallowed).collect();
        assert_eq!(ends, [true, true, false, false]);
    }

    #[test]
    fn what_passes_on_is_passed_by() {
        let behind = |line: &str| {
            let words: Vec<String> = line.split(' ').map(str::to_owned).collect();
            let (words, folder) = super::behind(&words, "");
            format!("{folder}:{}", words.join(" "))
        };
        assert_eq!(behind("env -i A=1 timeout -k 5 60 bash x.sh"), ":bash x.sh");
        assert_eq!(behind("env -C sub sh x.sh"), "sub:sh x.sh");
        assert_eq!(behind("B=2 nice -n 5 xargs -n 1 ./run"), ":./run");
        assert_eq!(behind("make test"), ":make test");
    }

    #[test]
    fn paths_that_lead_out_are_nobodys() {
        assert_eq!(join("a/b", "../c").as_deref(), Some("a/c"));
        assert_eq!(join("", "./x").as_deref(), Some("x"));
        assert_eq!(join("a", "../../c"), None);
        assert_eq!(join("", "/etc/x"), None);
        assert_eq!(join("", "$X/y"), None);
    }
}
