//! Sessions of kind `actions` with real files and commands.

use crate::model::{Fake, Session};
use ralph_loop_agents::actions::patch::{Patched, apply};
use ralph_loop_domain::ports::{SessionReport, StopCause};
use ralph_loop_protocol::event::SessionEnd;
use ralph_loop_sandbox::{LocalOptions, LocalSandbox};
use serde_json::{Value, json};
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

pub const TESTS: &[(&str, fn())] = &[
    (
        "commands_really_run_and_their_whole_output_is_kept",
        commands_really_run_and_their_whole_output_is_kept,
    ),
    ("links_that_lead_out_are_refused", links_that_lead_out_are_refused),
    ("a_command_that_takes_too_long_fails", a_command_that_takes_too_long_fails),
    ("the_end_of_the_sessions_time_ends_a_command", the_end_of_the_sessions_time_ends_a_command),
    ("cancel_ends_a_command_at_once", cancel_ends_a_command_at_once),
    ("patches_work_on_real_files_and_keep_their_mode", patches_work_on_real_files_and_keep_their_mode),
    ("a_planted_link_in_the_records_is_not_followed", a_planted_link_in_the_records_is_not_followed),
    ("git_diffs_apply_as_git_would", git_diffs_apply_as_git_would),
];

/// A workspace, files outside of it, and a folder for records.
struct Machine {
    _dir: tempfile::TempDir,
    work: PathBuf,
    outside: PathBuf,
    records: PathBuf,
    sandbox: LocalSandbox,
}

fn machine() -> Machine {
    let dir = tempfile::tempdir().unwrap();
    let [work, outside, records] = ["work", "outside", "records"].map(|name| dir.path().join(name));
    for folder in [&work, &outside, &records] {
        std::fs::create_dir(folder).unwrap();
    }
    std::fs::write(outside.join("secret"), "untouched").unwrap();
    let run = format!("actions-{}", std::process::id());
    let sandbox = LocalSandbox::start(&work, LocalOptions::new(run, &ralph_loop_testkit::vars())).unwrap();
    Machine { _dir: dir, work, outside, records, sandbox }
}

impl Machine {
    fn session(&self) -> Session {
        Session { folder: self.records.clone(), ..Session::default() }
    }
    fn play(&self, session: &mut Session, actions: Value) -> SessionReport {
        let answer = json!({ "summary": "s", "actions": actions }).to_string();
        session.play(&Fake::says(&[&answer]), &self.sandbox)
    }
    /// Asserts that nothing outside has changed.
    #[track_caller]
    fn assert_outside_untouched(&self) {
        let names: Vec<_> =
            std::fs::read_dir(&self.outside).unwrap().map(|e| e.unwrap().file_name()).collect();
        assert_eq!(names, ["secret"]);
        assert_eq!(read(&self.outside.join("secret")), "untouched");
    }
}

fn read(path: &Path) -> String {
    std::fs::read_to_string(path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn commands_really_run_and_their_whole_output_is_kept() {
    let machine = machine();
    std::fs::create_dir(machine.work.join("sub")).unwrap();
    let mut session = machine.session();
    session.config.env.insert("COLOR".into(), "blue".into());
    let report = machine.play(
        &mut session,
        json!([
            { "type": "run", "command": "pwd; echo $COLOR; read x || echo no input", "cwd": "sub" },
            { "type": "run", "command": "i=0; while [ $i -lt 5000 ]; do echo line $i; i=$((i+1)); done" },
            { "type": "run", "command": "kill -9 $$", "continue_on_error": true },
            { "type": "run", "command": "echo oops >&2; exit 7" },
        ]),
    );
    let ends = &session.told.finished;
    assert!(ends[0].ok && ends[0].result.ends_with("work/sub blue no input"), "{:?}", ends[0]);
    assert_eq!(read(&machine.records.join("action-2.log")).lines().count(), 5000);
    let shown = report.response["results"][1]["result"].as_str().unwrap();
    assert!(
        shown.contains("line 0\n")
            && shown.contains("line 4999")
            && shown.contains("all of it: action-2.log")
    );
    assert_eq!(ends[2].exit_code, Some(137));
    assert_eq!((ends[3].exit_code, ends[3].result.as_str()), (Some(7), "exit code 7 oops"));
    assert_eq!(report.end, SessionEnd::Completed);
}

fn links_that_lead_out_are_refused() {
    let machine = machine();
    symlink(&machine.outside, machine.work.join("door")).unwrap();
    symlink(machine.outside.join("secret"), machine.work.join("window")).unwrap();
    symlink("../outside/new", machine.work.join("hatch")).unwrap();
    std::fs::create_dir(machine.work.join(".git")).unwrap();
    symlink(".git", machine.work.join("shed")).unwrap();
    for path in ["door/secret", "door/new", "window", "hatch", "shed/config"] {
        for action in [
            json!({ "type": "write", "path": path, "content": "evil" }),
            json!({ "type": "write", "path": path, "content": "evil", "append": true }),
            json!({ "type": "patch", "path": path, "patch": "@@ -1 +1 @@\n-untouched\n+evil\n" }),
            json!({ "type": "patch", "path": path, "patch": "--- /dev/null\n+++ b/x\n@@ -0,0 +1 @@\n+evil\n".replace('x', path) }),
            json!({ "type": "run", "command": "touch x", "cwd": path }),
        ] {
            let mut session = machine.session();
            machine.play(&mut session, json!([action.clone()]));
            let end = &session.told.finished[0];
            assert!(!end.ok, "{action}: {end:?}");
            machine.assert_outside_untouched();
        }
    }
    assert_eq!(std::fs::read_dir(machine.work.join(".git")).unwrap().count(), 0);
}

fn a_command_that_takes_too_long_fails() {
    let machine = machine();
    let mut session = machine.session();
    let report = machine.play(
        &mut session,
        json!([
            { "type": "run", "command": "sleep 1000 & sleep 1000", "timeout_s": 1, "continue_on_error": true },
            { "type": "write", "path": "after", "content": "x" },
        ]),
    );
    assert_eq!(report.end, SessionEnd::Completed);
    assert_eq!(session.told.finished[0].result, "timed out after 1 s");
    assert_eq!(read(&machine.work.join("after")), "x");
}

fn the_end_of_the_sessions_time_ends_a_command() {
    let machine = machine();
    let mut session = Session { timeout: Duration::from_millis(300), ..machine.session() };
    let report = machine.play(
        &mut session,
        json!([
            { "type": "run", "command": "sleep 1000", "continue_on_error": true },
            { "type": "write", "path": "after", "content": "x" },
        ]),
    );
    assert_eq!(report.end, SessionEnd::TimedOut);
    assert!(!machine.work.join("after").exists());
    assert_eq!(session.told.actions[1]["skipped"], true);
}

fn cancel_ends_a_command_at_once() {
    let machine = machine();
    let mut session = machine.session();
    session.told.stop_on = Some("ready");
    let report = machine.play(
        &mut session,
        json!([
            { "type": "run", "command": "echo ready; sleep 1000" },
            { "type": "stop_success", "reason": "r" },
        ]),
    );
    assert_eq!(report.end, SessionEnd::Stopped { cause: StopCause::Cancelled });
    assert!(!report.wishes.done && report.wishes.claims.is_empty());
    assert_eq!(session.told.finished.len(), 1);
}

fn patches_work_on_real_files_and_keep_their_mode() {
    use std::os::unix::fs::PermissionsExt as _;
    let machine = machine();
    let script = machine.work.join("run.sh");
    std::fs::write(&script, "#!/bin/sh\r\necho one\r\n").unwrap();
    std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut session = machine.session();
    machine.play(
        &mut session,
        json!([
            { "type": "patch", "path": "run.sh", "patch": "--- a/run.sh\n+++ b/run.sh\n@@ -9,2 +9,2 @@\n #!/bin/sh\n-echo one\n+echo two\n" },
            { "type": "patch", "path": "deep/er/new", "patch": "--- /dev/null\n+++ b/deep/er/new\n@@ -0,0 +1 @@\n+x\n" },
            { "type": "patch", "path": "deep/er/new", "patch": "--- a/deep/er/new\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n" },
        ]),
    );
    assert!(session.told.finished.iter().all(|end| end.ok), "{:?}", session.told.finished);
    assert_eq!(read(&script), "#!/bin/sh\r\necho two\r\n");
    assert_eq!(std::fs::metadata(&script).unwrap().permissions().mode() & 0o777, 0o755);
    assert!(!machine.work.join("deep/er/new").exists());
}

fn a_planted_link_in_the_records_is_not_followed() {
    let machine = machine();
    let plant = format!(
        "ln -s {} {}",
        machine.outside.join("secret").display(),
        machine.records.join("action-2.log").display()
    );
    let mut session = machine.session();
    machine.play(
        &mut session,
        json!([{ "type": "run", "command": plant }, { "type": "run", "command": "echo evil" }]),
    );
    machine.assert_outside_untouched();
    assert_eq!(read(&machine.records.join("action-2.log")), "evil\n");
}

fn git_diffs_apply_as_git_would() {
    let machine = machine();
    let mut seed = 1u64;
    let mut next = |below: u64| {
        seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (seed >> 33) % below
    };
    let mut pairs = Vec::new();
    for _ in 0..60 {
        // Few different lines, so that most of them occur several times.
        let old: Vec<String> = (0..next(60)).map(|_| format!("line {}", next(6))).collect();
        let mut new = old.clone();
        for _ in 0..=next(4) {
            let at = next(new.len() as u64 + 1) as usize;
            match next(3) {
                0 => new.insert(at, format!("new {}", next(3))),
                _ if at == new.len() => new.push("end".into()),
                1 => drop(new.remove(at)),
                _ => new[at] = format!("changed {}", next(3)),
            }
        }
        let mut text = |lines: &[String]| match (lines.is_empty(), next(4)) {
            (true, _) => String::new(),
            (false, 0) => lines.join("\n"),
            (false, _) => lines.join("\n") + "\n",
        };
        pairs.push((text(&old), text(&new)));
    }
    for folder in ["a", "b"] {
        std::fs::create_dir(machine.work.join(folder)).unwrap();
    }
    for (n, (old, new)) in pairs.iter().enumerate() {
        std::fs::write(machine.work.join(format!("a/{n}")), old).unwrap();
        std::fs::write(machine.work.join(format!("b/{n}")), new).unwrap();
    }
    let diffs = "for n in a/*; do n=${n#a/}; git diff --no-index --no-prefix a/$n b/$n > $n.diff; done; true";
    let mut session = machine.session();
    machine.play(&mut session, json!([{ "type": "run", "command": diffs }]));
    let mut applied = 0;
    for (n, (old, new)) in pairs.iter().enumerate().filter(|(_, (old, new))| old != new) {
        let diff = read(&machine.work.join(format!("{n}.diff")));
        let name = n.to_string();
        match apply(Path::new(&name), &diff, Some(old.as_bytes())) {
            Ok(Patched::Content(bytes, _)) => assert_eq!(String::from_utf8(bytes).unwrap(), *new, "{diff}"),
            other => panic!("{other:?}: {diff}"),
        }
        applied += 1;
    }
    assert!(applied > 40, "{applied}");
}
