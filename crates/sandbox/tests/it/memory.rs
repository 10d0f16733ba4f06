//! The sandbox and the workspace in memory.

use crate::common::{refused, run, sh};
use jiff::Timestamp;
use ralph_loop_domain::ports::{
    CheckpointRequest, ExecEnd, ExecRequest, Sandbox as _, SandboxError, Workspace as _, WriteMode,
};
use ralph_loop_domain::repo::protect::ProtectedKind;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_sandbox::{MemoryExit, MemorySandbox, MemoryWorkspace};
use std::path::Path;

fn words(text: &str) -> ExecRequest {
    ExecRequest::new(text.split(' ').map(String::from).collect())
}

#[test]
fn files_and_built_in_commands() {
    let s = MemorySandbox::default();
    assert_eq!(s.kind(), "memory");
    s.write(Path::new("src/a.rs"), b"fn a() {}\nfn b() {}\n", WriteMode::Replace).unwrap();
    s.write(Path::new("./src/a.rs"), b"end", WriteMode::Append).unwrap();
    assert_eq!(s.list(Path::new("")).unwrap(), ["src"]);
    assert_eq!(s.list(Path::new("src")).unwrap(), ["a.rs"]);
    for (command, code, stdout) in [
        ("true", 0, ""),
        ("false", 1, ""),
        ("test -f src/a.rs", 0, ""),
        ("test -f src", 1, ""),
        ("cat src/a.rs", 0, "fn a() {}\nfn b() {}\nend"),
        ("cat none", 1, ""),
        ("grep b src/a.rs", 0, "fn b() {}\n"),
        ("grep zzz src/a.rs", 1, ""),
        ("grep b none", 2, ""),
    ] {
        let output = run(&s, &words(command));
        assert_eq!(
            (output.outcome.end, output.stdout.as_str()),
            (ExecEnd::Exited(code), stdout),
            "{command}"
        );
    }
    assert!(matches!(refused(&s, &sh("echo")), SandboxError::CannotStart { .. }));
    assert!(matches!(refused(&s, &ExecRequest::new(vec![])), SandboxError::CannotStart { .. }));
    for bad in ["/etc/passwd", "../x", ".git/config"] {
        assert!(matches!(s.read(Path::new(bad)), Err(SandboxError::OutsideWorkspace(_))), "{bad}");
    }
    let write = |path: &str| s.write(Path::new(path), b"", WriteMode::Replace).unwrap_err().to_string();
    assert_eq!(write("src"), "cannot write `src`: it is a folder");
    assert_eq!(write("src/a.rs/x"), "cannot write `src/a.rs/x`: Not a directory");
    let kept = s.snapshot();
    s.remove(Path::new("src/a.rs")).unwrap();
    s.remove(Path::new("src/a.rs")).unwrap();
    assert_eq!(s.read(Path::new("src/a.rs")).unwrap(), None);
    s.restore(kept);
    assert!(s.read(Path::new("src/a.rs")).unwrap().is_some());
}

#[test]
fn commands_of_the_test_come_first() {
    let s = MemorySandbox::new(|request, files| {
        (request.argv[0] == "make").then(|| {
            files.set("made", "yes");
            MemoryExit { code: 3, stdout: b"made\n".to_vec(), stderr: b"warned\n".to_vec() }
        })
    });
    let output = run(&s, &words("make all"));
    assert_eq!((output.outcome.end, output.stderr.as_str()), (ExecEnd::Exited(3), "warned\n"));
    assert_eq!(run(&s, &words("cat made")).stdout, "yes");
    let other_root = s.with_root(Path::new("/clean")).unwrap();
    assert_eq!(other_root.root(), Path::new("/clean"));
    assert_eq!(other_root.read(Path::new("made")).unwrap(), None);
}

fn checkpoint(w: &mut MemoryWorkspace, iteration: u32) -> ralph_loop_domain::ports::Checkpoint {
    let agent = AgentName::from("stub");
    let at = Timestamp::UNIX_EPOCH;
    w.checkpoint(&CheckpointRequest {
        iteration,
        agent: &agent,
        message: "work",
        parts: &[],
        at,
        on_branch: false,
        redactor: None,
    })
    .unwrap()
}

#[test]
fn checkpoints_can_be_repeated() {
    let s = MemorySandbox::default();
    s.files(|files| files.set("a", "1\n2\n"));
    let mut w = MemoryWorkspace::new(&s);
    let baseline = w.begin(&["tests".to_owned()]).unwrap();
    assert_eq!(w.begin(&[]).unwrap(), baseline);
    assert_eq!(checkpoint(&mut w, 1).commit, None);
    s.files(|files| {
        files.set("a", "1\n3\n4\n");
        files.set("b", "x");
        files.set("bin", [0, 1]);
    });
    let first = checkpoint(&mut w, 1);
    assert!(first.commit.is_some() && !first.reused);
    let lines: Vec<_> = first.files.iter().map(|f| (f.path.as_str(), f.status, f.added, f.removed)).collect();
    assert_eq!(lines, [("a", 'M', Some(2), Some(1)), ("b", 'A', Some(1), Some(0)), ("bin", 'A', None, None)]);
    // Another process of the same run.
    let mut w = MemoryWorkspace::new(&s);
    w.reopen(&baseline).unwrap();
    let again = checkpoint(&mut w, 1);
    assert!(again.reused);
    assert_eq!((&again.commit, &again.tree, &again.files), (&first.commit, &first.tree, &first.files));
    let next = checkpoint(&mut w, 2);
    assert_eq!((next.commit, next.files.len(), next.reused), (None, 0, false));
    assert_eq!(w.tree().unwrap(), first.tree);
    s.files(|files| files.remove("b"));
    let third = checkpoint(&mut w, 2);
    assert_eq!(third.files[0].status, 'D');
    let to = third.commit.unwrap();
    assert_eq!(w.changes(baseline.tree.as_str(), to.as_str()).unwrap().len(), 2);
    let patch = String::from_utf8(w.patch(baseline.start.as_str(), to.as_str(), 1000).unwrap()).unwrap();
    assert!(patch.contains("-2\n+3\n+4\n"), "{patch}");
    assert_eq!(w.patch(baseline.start.as_str(), to.as_str(), 5).unwrap().len(), 5);
    assert_eq!(w.changes("nonsense", to.as_str()).unwrap_err().reason, "there is no such tree or commit");
    // A clean checkout has what was committed, not the present files.
    s.files(|files| files.set("later", ""));
    w.checkout_clean(&to, Path::new("/clean")).unwrap();
    let clean = s.with_root(Path::new("/clean")).unwrap();
    assert_eq!(clean.list(Path::new("")).unwrap(), ["a", "bin"]);
    assert_eq!(
        w.checkout_clean(&baseline.start, Path::new("/clean")).unwrap_err().reason,
        "the folder is not empty"
    );
}

#[test]
fn protected_paths_are_compared_with_the_start() {
    let s = MemorySandbox::default();
    s.files(|files| {
        files.set("tests/a", "1");
        files.set("tests/b", "1");
        files.set("src/c", "1");
    });
    let mut w = MemoryWorkspace::new(&s);
    w.begin(&["tests".to_owned()]).unwrap();
    assert_eq!(w.protected_changes().unwrap(), []);
    s.files(|files| {
        files.set("tests/a", "2");
        files.remove("tests/b");
        files.set("tests/new", "");
        files.set("src/c", "2");
    });
    let kinds: Vec<_> = w.protected_changes().unwrap().into_iter().map(|c| (c.path, c.change)).collect();
    let expected = [
        ("tests/a".to_owned(), ProtectedKind::Changed),
        ("tests/b".to_owned(), ProtectedKind::Removed),
        ("tests/new".to_owned(), ProtectedKind::Added),
    ];
    assert_eq!(kinds, expected);
    for path in ["tests/a", "tests/b", "tests/new"] {
        w.accept_protected(path).unwrap();
    }
    assert_eq!(w.protected_changes().unwrap(), []);
    s.files(|files| files.remove("tests/new"));
    assert_eq!(w.protected_changes().unwrap()[0].change, ProtectedKind::Removed);
    assert_eq!(w.moved_refs().unwrap(), []);
}
