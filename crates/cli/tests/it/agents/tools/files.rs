//! Commands and files.

use crate::agents::tools::support::{Stage, calls, fine, refused, root, says};
use serde_json::json;
use std::os::unix::fs::symlink;

#[test]
fn commands_return_the_output_tail_and_keep_all_of_it() {
    let stage = Stage::new();
    let result = stage.call("exec", json!({"command": "seq 1 200; echo problem >&2; exit 3"}));
    let text = fine(&result);
    let log = stage.folder().join("tool-1.log");
    assert!(text.starts_with("exit code 3 after "), "{text}");
    assert!(
        text.contains(&format!("[last 50 of 201 lines; the whole output is in {}]", log.display())),
        "{text}"
    );
    assert!(text.contains("\n200\n") && text.contains("problem") && !text.contains("\n150\n"), "{text}");
    let whole = std::fs::read_to_string(&log).unwrap();
    assert!(whole.contains("\n150\n") && whole.contains("problem"), "{whole}");
    // The log can be read with the tools.
    let read = stage.call("readFile", json!({"path": log.to_str().unwrap(), "offset": 10, "limit": 2}));
    assert!(fine(&read).contains("10\n11\n"), "{}", read.text);
}

#[test]
fn commands_take_folder_timeout_and_shell() {
    let stage = Stage::new();
    stage.write("sub/x", "");
    let played = stage.play(vec![
        calls(&[
            ("exec", json!({"command": "pwd; [[ a == a ]] && echo bash", "cwd": "sub"})),
            ("exec", json!({"command": "sleep 100", "timeout": 1})),
            ("exec", json!({"command": "true", "cwd": "../.."})),
            ("exec", json!({"command": "true", "cwd": "missing"})),
            ("exec", json!({"command": ""})),
            ("exec", json!({"command": "setsid sleep 1000 >/dev/null 2>&1 & echo left"})),
        ]),
        says("ok"),
    ]);
    let text = |at: usize| played.result(1, at).text;
    assert_eq!(
        text(0).lines().skip(1).collect::<Vec<_>>(),
        [root(&stage).join("sub").to_str().unwrap(), "bash"]
    );
    assert!(text(1).starts_with("stopped after ") && text(1).contains("startProcess"), "{}", text(1));
    assert!(refused(&played.result(1, 2)).contains("leads out"), "{}", text(2));
    assert!(refused(&played.result(1, 3)).contains("missing"), "{}", text(3));
    assert!(refused(&played.result(1, 4)).contains("`command` is empty"), "{}", text(4));
    assert!(text(5).contains("left 1 process behind"), "{}", text(5));
    assert_eq!(played.report.survivors, 1);
    assert!(!stage.folder().join("tool-1.log").exists(), "what was shown whole needs no log");
    let ends: Vec<(u32, bool, Option<i32>)> =
        played.told.finished.iter().map(|end| (end.number, end.ok, end.exit_code)).collect();
    assert!(ends.contains(&(1, true, Some(0))) && ends.contains(&(2, false, None)), "{ends:?}");
}

#[test]
fn independent_calls_run_in_parallel_and_answer_in_order() {
    let stage = Stage::new();
    // Each waits for the other, so run sequentially they would never end.
    let meet = |mine: &str, other: &str| {
        let script = format!("touch {mine}; until [ -e {other} ]; do sleep 0.01; done; echo {mine}");
        ("exec", json!({"command": script, "timeout": 60}))
    };
    let played = stage.play(vec![calls(&[meet("a", "b"), meet("b", "a")]), says("ok")]);
    for (at, name) in ["a", "b"].iter().enumerate() {
        let result = played.result(1, at);
        assert_eq!(result.id, format!("call-{at}"));
        assert!(fine(&result).ends_with(&format!("{name}\n")) && result.text.starts_with("exit code 0"));
    }
}

#[test]
fn writes_keep_their_order_between_commands() {
    let stage = Stage::new();
    let put = |text: &str| ("writeFile", json!({"path": "d/f", "content": text}));
    let show = || ("exec", json!({"command": "cat d/f"}));
    let played = stage.play(vec![
        calls(&[
            put("one"),
            show(),
            put("two"),
            ("editFile", json!({"path": "d/f", "old": "two", "new": "three"})),
            show(),
        ]),
        says("ok"),
    ]);
    assert!(played.result(1, 1).text.ends_with("\none") && played.result(1, 4).text.ends_with("\nthree"));
    assert_eq!(stage.read("d/f"), "three");
    assert_eq!(played.result(1, 3).text, "edited `d/f` at line 1");
}

#[test]
fn files_are_read_and_listed_and_missing_ones_are_errors() {
    let stage = Stage::new();
    stage.write("src/main.rs", "fn main() {}\n");
    stage.write("src/deep/lib.rs", "");
    stage.write("node_modules/x/y.rs", "");
    stage.write(".ralph/state.json", "");
    stage.write("picture.bin", "");
    std::fs::write(stage.path("picture.bin"), [0xff, 0xfe, 0]).unwrap();
    let played = stage.play(vec![
        calls(&[
            ("readFile", json!({"path": "src/main.rs"})),
            ("readFile", json!({"path": "src/mian.rs"})),
            ("readFile", json!({"path": "picture.bin"})),
            ("readFile", json!({"path": "src"})),
            ("listFiles", json!({})),
            ("listFiles", json!({"pattern": "**/*.rs"})),
            ("listFiles", json!({"path": "src", "recursive": true})),
            ("listFiles", json!({"pattern": "*.zig"})),
        ]),
        says("ok"),
    ]);
    let text = |at: usize| played.result(1, at).text;
    assert_eq!(text(0), "[`src/main.rs`, 1 line]\nfn main() {}\n");
    assert_eq!(refused(&played.result(1, 1)), "there is no file `src/mian.rs`; did you mean `src/main.rs`?");
    assert!(refused(&played.result(1, 2)).contains("not text"));
    assert!(refused(&played.result(1, 3)).contains("folder"), "{}", text(3));
    assert_eq!(text(4), "node_modules/\npicture.bin\nsrc/");
    assert_eq!(text(5), "src/main.rs\nsrc/deep/lib.rs");
    assert_eq!(text(6), "deep/\nmain.rs\ndeep/lib.rs");
    assert_eq!(text(7), "nothing found");
}

#[test]
fn tools_stay_in_the_workspace_and_off_protected_files() {
    let mut stage = Stage::new();
    stage.protected = vec!["tests/**".into(), "Makefile".into()];
    let outside = tempfile::tempdir().unwrap();
    std::fs::write(outside.path().join("secret"), "secret").unwrap();
    symlink(outside.path(), stage.path("out")).unwrap();
    stage.write("tests/a.rs", "keep");
    stage.write("Makefile", "keep");
    stage.write(".git/config", "keep");
    symlink("tests", stage.path("alias")).unwrap();
    let secret = outside.path().join("secret");
    for path in [
        secret.to_str().unwrap(),
        "/etc/passwd",
        "../x",
        "out/secret",
        ".git/config",
        ".ralph/state.json",
        "tests/a.rs",
        "alias/a.rs",
        "Makefile",
        "a\0b",
        "",
    ] {
        let write = stage.call("writeFile", json!({"path": path, "content": "evil"}));
        refused(&write);
        refused(&stage.call("editFile", json!({"path": path, "old": "keep", "new": "evil"})));
        if !path.contains("a.rs") && path != "Makefile" {
            refused(&stage.call("readFile", json!({"path": path})));
        }
    }
    assert_eq!(std::fs::read_to_string(&secret).unwrap(), "secret");
    for kept in ["tests/a.rs", "Makefile", ".git/config"] {
        assert_eq!(stage.read(kept), "keep", "{kept}");
    }
    fine(&stage.call("readFile", json!({"path": "tests/a.rs"})));
    fine(&stage.call("writeFile", json!({"path": ".ralph/progress.md", "content": "half done"})));
    let inside = root(&stage).join("inside.txt");
    fine(&stage.call("writeFile", json!({"path": inside.to_str().unwrap(), "content": ""})));
}

#[test]
fn secrets_reach_neither_the_model_nor_the_log() {
    use crate::agents::tools::support::Script;
    use ralph_loop_domain::redact::Redactor;
    let stage = Stage::new();
    let script = Script::of(vec![
        calls(&[(
            "exec",
            json!({"command": "for i in $(seq 100); do echo key=hush-hush-$((12340+5)); done"}),
        )]),
        says("ok"),
    ]);
    let redactor = std::sync::Arc::new(Redactor::new([("TOKEN", "hush-hush-12345")]));
    let agent = stage.agent(&script).with_redactor(redactor);
    stage.session(&agent, "the task");
    let shown = script.results(1)[0].text.clone();
    let kept = std::fs::read_to_string(stage.folder().join("tool-1.log")).unwrap();
    for text in [shown, kept] {
        assert!(text.contains("key=") && !text.contains("hush-hush-12345"), "{text}");
    }
}
