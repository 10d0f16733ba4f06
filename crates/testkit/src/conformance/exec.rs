//! Checks a command's input, environment and output.

use super::fixture::{eq, wrong};
use super::{Check, Fault, Fixture, Need};
use ralph_loop_domain::ports::{ExecEnd, ExecRequest, Stdin};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "exec: the exit code comes back", needs: &[], run: exit_code },
    Check { name: "exec: output comes back whole", needs: &[], run: output },
    Check { name: "exec: streams are separate", needs: &[Need::SeparateStderr], run: streams },
    Check { name: "exec: arguments arrive as they are", needs: &[], run: arguments },
    Check { name: "exec: a command runs in its folder", needs: &[], run: folder },
    Check { name: "exec: variables arrive as they are", needs: &[], run: variables },
    Check { name: "exec: stdin is empty unless given", needs: &[], run: empty_stdin },
    Check { name: "exec: stdin arrives whole", needs: &[Need::Stdin], run: stdin },
    Check { name: "exec: a missing program is an error", needs: &[], run: missing_program },
    Check { name: "exec: a folder outside is refused", needs: &[], run: folder_outside },
];

fn exit_code(fixture: &Fixture<'_>) -> Result<(), Fault> {
    for code in [0, 1, 7, 126, 127, 255] {
        let done = fixture.exec(&fixture.sh(&format!("exit {code}"))?)?;
        eq("the end", done.outcome.end, ExecEnd::Exited(code))?;
    }
    let done = fixture.exec(&fixture.sh("kill -TERM $$")?)?;
    eq("the code of a command that a signal ended", done.outcome.end.code(), Some(143))
}

fn output(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let text = fixture.run("i=0; while [ $i -lt 3000 ]; do echo line $i; i=$((i+1)); done; printf 'ü∆'")?;
    let mut wanted: String = (0..3000).map(|i| format!("line {i}\n")).collect();
    wanted.push_str("ü∆");
    eq("length", text.len(), wanted.len())?;
    eq("output", text, wanted)?;
    let done = fixture.exec(&fixture.sh("head -c 5000000 /dev/zero")?)?;
    eq("bytes", done.sink.stdout.len(), 5_000_000)?;
    let done = fixture.exec(&fixture.sh("printf '\\000\\001\\377\\n\\r'")?)?;
    eq("binary output", done.sink.stdout, b"\0\x01\xff\n\r".to_vec())
}

fn streams(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let done = fixture.exec(&fixture.sh("printf out; printf err >&2; printf put")?)?;
    eq("stdout", done.stdout(), "output".to_owned())?;
    eq("stderr", done.stderr(), "err".to_owned())
}

fn arguments(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let odd = ["", "a b", "$HOME", "`id`", "'", "\"", "\\", "*", "-n", "ü\n∆", "--", ";true", "%s"];
    let mut request = fixture.sh("for a; do printf '[%s]' \"$a\"; done")?;
    request.argv.push("sh".to_owned());
    request.argv.extend(odd.map(String::from));
    let wanted: String = odd.iter().map(|a| format!("[{a}]")).collect();
    eq("arguments", fixture.exec(&request)?.stdout(), wanted)
}

fn folder(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let root = fixture.run("cd .. && pwd -P")?;
    eq("the root", root.trim_end(), &fixture.sandbox().root().display().to_string())?;
    fixture.run("mkdir -p 'sub dir/ü'")?;
    let mut request = fixture.sh("pwd -P")?;
    request.cwd = request.cwd.join("sub dir/ü");
    let wanted = fixture.sandbox().root().join(&request.cwd);
    eq("the folder", fixture.exec(&request)?.stdout().trim_end(), &wanted.display().to_string())
}

fn variables(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let mut request = fixture.sh("printf '%s|%s|%s' \"$A_ONE\" \"$B_TWO\" \"${PATH:+path}\"")?;
    request.env = vec![
        ("A_ONE".to_owned(), "x y $HOME 'q' \"d\" `z`".to_owned()),
        ("B_TWO".to_owned(), "ü\nline".to_owned()),
    ];
    eq("variables", fixture.exec(&request)?.stdout(), "x y $HOME 'q' \"d\" `z`|ü\nline|path".to_owned())?;
    eq("they are gone afterwards", fixture.run("echo \"${A_ONE-none}\"")?.trim(), "none")
}

fn empty_stdin(fixture: &Fixture<'_>) -> Result<(), Fault> {
    eq("bytes on stdin", fixture.run("wc -c")?.trim(), "0")
}

fn stdin(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let mut request = fixture.sh("cat")?;
    request.stdin = Stdin::Bytes(b"one\n\0\xff two".to_vec());
    eq("stdin", fixture.exec(&request)?.sink.stdout, b"one\n\0\xff two".to_vec())?;
    let mut request = fixture.sh("wc -c")?;
    request.stdin = Stdin::Bytes(vec![b'x'; 3_000_000]);
    eq("bytes on stdin", fixture.exec(&request)?.stdout().trim(), "3000000")?;
    // Unread input is harmless.
    let mut request = fixture.sh("exit 3")?;
    request.stdin = Stdin::Bytes(vec![b'x'; 3_000_000]);
    eq("the end", fixture.exec(&request)?.outcome.end, ExecEnd::Exited(3))
}

fn missing_program(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let request = ExecRequest::new(vec!["ralph-no-such-program".to_owned(), "x".to_owned()]);
    match fixture.exec(&request) {
        // A shell-only backend reports it like a shell.
        Err(Fault::Wrong(text)) if text.contains("ralph-no-such-program") => Ok(()),
        Ok(done) if done.outcome.end == ExecEnd::Exited(127) => Ok(()),
        Ok(done) => wrong(format!("it ended with {:?}", done.outcome.end)),
        Err(fault) => Err(fault),
    }
}

fn folder_outside(fixture: &Fixture<'_>) -> Result<(), Fault> {
    for outside in ["..", "/etc", "a/../.."] {
        let mut request = fixture.sh("echo ran")?;
        request.cwd = outside.into();
        if fixture.exec(&request).is_ok() {
            return wrong(format!("a command ran in `{outside}`"));
        }
    }
    Ok(())
}
