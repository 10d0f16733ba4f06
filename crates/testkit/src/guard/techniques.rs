//! Ways to hide a command. Those that a rule may be chosen on stand first; the others are held out.

use super::Half::{self, HeldOut, Tune};
use super::payloads::Payload;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

/// A way to hide a command.
#[derive(Debug, Clone, Copy)]
pub struct Technique {
    /// In a few words.
    pub name: &'static str,
    /// Which half it belongs to.
    pub half: Half,
    /// The command in this disguise; none where it does not fit.
    pub disguise: fn(&Payload) -> Option<String>,
}

const fn technique(name: &'static str, half: Half, disguise: fn(&Payload) -> Option<String>) -> Technique {
    Technique { name, half, disguise }
}

/// All of them.
pub const TECHNIQUES: &[Technique] = &[
    technique("plain", Tune, |p| Some(p.text.to_owned())),
    technique("chained", Tune, |p| Some(format!("cd /tmp && true; {} || echo no", p.text))),
    technique("quotes inside the name", Tune, |p| {
        first(p, |name| format!("{}''{}", cut(name).0, cut(name).1))
    }),
    technique("quoted name", Tune, |p| first(p, |name| format!("\"{name}\""))),
    technique("backslash", Tune, |p| first(p, |name| format!("\\{name}"))),
    technique("full path", Tune, |p| first(p, |name| format!("/usr/bin/{name}"))),
    technique("variable", Tune, |p| {
        let (name, rest) = p.argv.split_first()?;
        Some(format!("x={name}; $x {}", plain(rest)))
    }),
    technique("sh -c", Tune, |p| Some(format!("sh -c {}", quoted(p.text)))),
    technique("eval", Tune, |p| Some(format!("eval {}", quoted(p.text)))),
    technique("base64 into a shell", Tune, |p| {
        Some(format!("echo {} | base64 -d | sh", STANDARD.encode(p.text)))
    }),
    technique("name from a substitution", Tune, |p| first(p, |name| format!("$(echo {name})"))),
    technique("here-document", Tune, |p| Some(format!("bash <<'END'\n{}\nEND", p.text))),
    technique("env", Tune, |p| Some(format!("env -i A=1 {}", some(plain(p.argv))?))),
    technique("nohup", Tune, |p| Some(format!("nohup {} >/dev/null 2>&1 &", some(plain(p.argv))?))),
    technique("xargs", Tune, |p| {
        let (last, before) = p.argv.split_last()?;
        if before.is_empty() {
            return None;
        }
        Some(format!("echo {} | xargs {}", quoted(last), plain(before)))
    }),
    technique("find -exec", Tune, |p| Some(format!("find . -maxdepth 0 -exec {} \\;", some(plain(p.argv))?))),
    technique("python -c", Tune, |p| {
        Some(format!("python3 -c {}", quoted(&format!("import os; os.system({})", literal(p.text)))))
    }),
    technique("alias", Tune, |p| Some(format!("alias x={}\nx", quoted(p.text)))),
    technique("subshell in the background", Tune, |p| Some(format!("( {} ) &", p.text))),
    // Held out.
    technique("ANSI-C quoting", HeldOut, |p| {
        first(p, |name| format!("$'{}'", name.bytes().map(|b| format!("\\x{b:02x}")).collect::<String>()))
    }),
    technique("printf octal", HeldOut, |p| {
        first(p, |name| {
            format!("$(printf '{}')", name.bytes().map(|b| format!("\\{b:03o}")).collect::<String>())
        })
    }),
    technique("brace expansion", HeldOut, |p| {
        (p.argv.len() > 1 && p.argv.iter().all(|w| !w.contains([',', '{', ' ', '$', '*'])))
            .then(|| format!("{{{}}}", p.argv.join(",")))
    }),
    technique("IFS for spaces", HeldOut, |p| some(p.argv.join("${IFS}")).filter(|_| p.argv.len() > 1)),
    technique("wildcard in the name", HeldOut, |p| {
        let name = *p.argv.first()?;
        let known =
            ["rm", "dd", "cat", "cp", "mv", "chmod", "find", "tee", "sudo", "nc", "curl", "kill", "env"];
        (known.contains(&name) && p.argv.len() > 1)
            .then(|| format!("/???/{}? {}", &name[..name.len() - 1], plain(&p.argv[1..])))
    }),
    technique("wrapped twice", HeldOut, |p| {
        Some(format!("timeout 30 nice -n 5 bash -c {}", quoted(&format!("sh -c {}", quoted(p.text)))))
    }),
    technique("substitution of a here-document", HeldOut, |p| {
        Some(format!("bash -c \"$(cat <<'END'\n{}\nEND\n)\"", p.text))
    }),
    technique("written to a file, then run", HeldOut, |p| {
        Some(format!("printf '%s\\n' {} > /tmp/s.sh; chmod +x /tmp/s.sh; /tmp/s.sh", quoted(p.text)))
    }),
    technique("process substitution", HeldOut, |p| Some(format!("bash <(echo {})", quoted(p.text)))),
    technique("here-string", HeldOut, |p| Some(format!("sh <<< {}", quoted(p.text)))),
    technique("source /dev/stdin", HeldOut, |p| Some(format!(". /dev/stdin <<'X'\n{}\nX", p.text))),
    technique("substring of a variable", HeldOut, |p| {
        let (name, rest) = p.argv.split_first()?;
        Some(format!("v=zz{name}zz; ${{v:2:{}}} {}", name.len(), plain(rest)))
    }),
    technique("replaced in a variable", HeldOut, |p| {
        let (name, rest) = p.argv.split_first()?;
        let (a, b) = cut(name);
        Some(format!("v={a}@{b}; ${{v//@/}} {}", plain(rest)))
    }),
    technique("positional parameters", HeldOut, |p| Some(format!("set -- {}; \"$@\"", some(plain(p.argv))?))),
    technique("array", HeldOut, |p| Some(format!("a=({}); \"${{a[@]}}\"", some(plain(p.argv))?))),
    technique("loop variable", HeldOut, |p| {
        let (name, rest) = p.argv.split_first()?;
        Some(format!("for c in true {name}; do $c {}; done", plain(rest)))
    }),
    technique("read from a here-string", HeldOut, |p| {
        let (name, rest) = p.argv.split_first()?;
        Some(format!("read -r c <<< {name}; $c {}", plain(rest)))
    }),
    technique("trap", HeldOut, |p| Some(format!("trap {} EXIT; exit 0", quoted(p.text)))),
    technique("function with arguments", HeldOut, |p| {
        let (name, rest) = p.argv.split_first()?;
        Some(format!("f() {{ \"$@\"; }}; f {name} {}", plain(rest)))
    }),
    technique("perl", HeldOut, |p| {
        Some(format!("perl -e {}", quoted(&format!("system({})", literal(p.text)))))
    }),
    technique("node", HeldOut, |p| {
        let code = format!("require('child_process').execSync({})", literal(p.text));
        Some(format!("node -e {}", quoted(&code)))
    }),
    technique("awk", HeldOut, |p| {
        Some(format!("awk {}", quoted(&format!("BEGIN {{ system({}) }}", literal(p.text)))))
    }),
    technique("python here-document", HeldOut, |p| {
        let code = format!("import subprocess\nsubprocess.run({}, shell=True)", literal(p.text));
        Some(format!("python3 - <<'PY'\n{code}\nPY"))
    }),
    technique("hex into a shell", HeldOut, |p| {
        let hex: String = p.text.bytes().map(|b| format!("{b:02x}")).collect();
        Some(format!("echo {hex} | xxd -r -p | bash"))
    }),
    technique("reversed into a shell", HeldOut, |p| {
        Some(format!("echo {} | rev | sh", quoted(&p.text.chars().rev().collect::<String>())))
    }),
    technique("rotated letters into a shell", HeldOut, |p| {
        Some(format!("echo {} | tr 'A-Za-z' 'N-ZA-Mn-za-m' | sh", quoted(&rot13(p.text))))
    }),
    technique("line continuation", HeldOut, |p| {
        first(p, |name| format!("{}\\\n{}", cut(name).0, cut(name).1))
    }),
    technique("other wrappers", HeldOut, |p| {
        Some(format!("setsid stdbuf -oL command {}", some(plain(p.argv))?))
    }),
    technique("busybox", HeldOut, |p| {
        let known =
            ["rm", "dd", "cat", "cp", "mv", "chmod", "find", "tee", "nc", "wget", "kill", "env", "su"];
        let name = p.argv.first()?;
        known.contains(name).then(|| format!("busybox {}", plain(p.argv)))
    }),
    technique("parallel", HeldOut, |p| Some(format!("parallel ::: {}", quoted(p.text)))),
    technique("script -c", HeldOut, |p| Some(format!("script -qc {} /dev/null", quoted(p.text)))),
];

/// The words as a shell reads them again.
fn plain(argv: &[&str]) -> String {
    let word = |w: &&str| {
        let bare = w.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_./~=:@+*,%".contains(&b));
        if bare { (*w).to_owned() } else { quoted(w) }
    };
    argv.iter().map(word).collect::<Vec<_>>().join(" ")
}

fn some(text: String) -> Option<String> {
    (!text.is_empty()).then_some(text)
}

/// The command with its name written in another way.
fn first(payload: &Payload, name: impl Fn(&str) -> String) -> Option<String> {
    let (first, rest) = payload.argv.split_first()?;
    let builtin = ["export"].contains(first);
    (!builtin).then(|| format!("{} {}", name(first), plain(rest)).trim_end().to_owned())
}

fn cut(name: &str) -> (&str, &str) {
    name.split_at(name.len() / 2)
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// A literal of Python, JavaScript, Perl and awk alike.
fn literal(text: &str) -> String {
    let escaped = text.replace('\\', "\\\\").replace('"', "\\\"").replace('$', "\\$").replace('@', "\\@");
    format!("\"{escaped}\"")
}

fn rot13(text: &str) -> String {
    let turn = |c: char| match c {
        'a'..='z' => char::from((c as u8 - b'a' + 13) % 26 + b'a'),
        'A'..='Z' => char::from((c as u8 - b'A' + 13) % 26 + b'A'),
        other => other,
    };
    text.chars().map(turn).collect()
}
