//! The hooks as an agent CLI calls them: an event in, an answer out.
#![allow(clippy::disallowed_methods, reason = "tests start git")]

use ralph_loop_hooks::{Cli, HookContext, HookEvent, answer};
use serde_json::{Value, json};
use std::path::Path;
use std::process::Command;

/// A user's machine with a project.
struct Machine {
    dir: tempfile::TempDir,
    vars: Vec<(String, String)>,
}

impl Machine {
    fn new() -> Self {
        let dir = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(dir.path().join("home")).unwrap();
        std::fs::create_dir_all(dir.path().join("project/.ralph")).unwrap();
        let home = dir.path().join("home").display().to_string();
        let path = std::env::var("PATH").unwrap_or_default();
        let vars = vec![("HOME".into(), home), ("PATH".into(), path), ("RALPH_RUN".into(), "r-1".into())];
        Self { dir, vars }
    }

    fn set(&mut self, name: &str, value: &str) {
        self.vars.retain(|(known, _)| known != name);
        self.vars.push((name.into(), value.into()));
    }

    fn project(&self) -> std::path::PathBuf {
        self.dir.path().join("project")
    }

    fn write(&self, name: &str, text: &str) {
        let path = self.dir.path().join(name);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(path, text).unwrap();
    }

    fn git(&self, args: &[&str]) {
        let mut command = Command::new("git");
        command
            .args(["-c", "user.name=t", "-c", "user.email=t@example.org"])
            .args(args)
            .current_dir(self.project());
        let done = command.output().unwrap();
        assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    }

    fn hook(&self, event: HookEvent, rest: Value) -> Value {
        self.hook_for(event, Cli::Claude, rest)
    }

    fn hook_for(&self, event: HookEvent, cli: Cli, rest: Value) -> Value {
        let mut input = json!({"session_id": "s1", "cwd": self.project(), "hook_event_name": "PostToolUse"});
        input.as_object_mut().unwrap().extend(rest.as_object().unwrap().clone());
        let context = HookContext {
            vars: self.vars.iter().cloned().collect(),
            cwd: self.project(),
            program: Some("/usr/local/bin/ralph".into()),
        };
        let out = answer(event, cli, input.to_string().as_bytes(), &context).stdout;
        if out.is_empty() { Value::Null } else { serde_json::from_str(&out).unwrap() }
    }

    /// Marks a loop of this run as active here, with this session.
    fn active(&mut self, commits: bool, plan: bool) {
        self.marked(commits, plan, json!({"pid": 1}));
    }

    /// The same, for this process.
    fn marked(&mut self, commits: bool, plan: bool, process: Value) {
        let plan = plan.then(
            || json!({"tasks": "ralph/tasks.json", "progress": "ralph/progress.txt", "progress_bytes": 5}),
        );
        let mut marker = json!({"run_id": "r-1", "iteration": 2, "attempt": 1, "commits": commits, "plan": plan, "timestamp": "x", "mode": "autonomous"});
        marker.as_object_mut().unwrap().extend(process.as_object().unwrap().clone());
        self.write("project/.ralph/active.json", &marker.to_string());
        for (name, value) in [("RALPH_RUN", "r-1"), ("RALPH_ITERATION", "2"), ("RALPH_ATTEMPT", "1")] {
            self.set(name, value);
        }
    }

    fn command(&self, command: &str) -> Value {
        self.hook(HookEvent::PreToolUse, json!({"tool_name": "Bash", "tool_input": {"command": command}}))
    }
}

const TASKS: &str = r#"{"project":"P","branchName":"b","description":"d","verifyCommands":["true"],"userStories":[
 {"id":"US-001","title":"One","acceptanceCriteria":["x"],"priority":1,"passes":true,"notes":"done","dependsOn":[]},
 {"id":"US-002","title":"Two","acceptanceCriteria":["x"],"priority":2,"passes":false,"notes":"","dependsOn":["US-001"]}]}"#;

#[test]
fn the_guard_refuses_in_the_format_of_each_cli() {
    let machine = Machine::new();
    assert_eq!(machine.command("cargo test"), Value::Null);
    let denied = machine.command("rm -rf /");
    let said = &denied["hookSpecificOutput"];
    assert_eq!((&said["permissionDecision"], &said["hookEventName"]), (&json!("deny"), &json!("PreToolUse")));
    assert_eq!(denied.as_object().unwrap().len(), 1, "codex runs a command whose answer has other keys");
    let gemini = machine.hook_for(
        HookEvent::PreToolUse,
        Cli::Gemini,
        json!({"tool_name": "run_shell_command", "tool_input": {"command": "rm -rf ~"}}),
    );
    assert_eq!(gemini["decision"], "deny");
}

#[test]
fn the_guard_leaves_your_own_sessions_alone() {
    let mut machine = Machine::new();
    machine.set("RALPH_RUN", "");
    assert_eq!(machine.command("rm -rf /"), Value::Null);
}

#[test]
fn unreadable_events_are_refused_by_the_guard_only() {
    let machine = Machine::new();
    let context =
        HookContext { vars: machine.vars.iter().cloned().collect(), cwd: machine.project(), program: None };
    for bad in [&b""[..], b"{", b"[]", b"{\"tool_name\": 7}", b"{}"] {
        let guard = answer(HookEvent::PreToolUse, Cli::Claude, bad, &context).stdout;
        assert!(guard.contains("\"deny\""), "{guard}");
        let stop = answer(HookEvent::Stop, Cli::Claude, bad, &context).stdout;
        assert!(!stop.contains("block"), "{stop}");
    }
}

#[test]
fn a_link_in_the_repo_does_not_open_a_login() {
    let machine = Machine::new();
    machine.write("home/.ssh/id_rsa", "key");
    std::os::unix::fs::symlink(machine.dir.path().join("home/.ssh"), machine.project().join("docs")).unwrap();
    assert_ne!(machine.command("cat docs/id_rsa"), Value::Null);
    assert_ne!(machine.command("echo x >> docs/authorized_keys"), Value::Null);
    let tool = |name: &str| {
        let input =
            json!({"tool_name": name, "tool_input": {"file_path": machine.project().join("docs/id_rsa")}});
        machine.hook(HookEvent::PreToolUse, input)
    };
    assert_ne!(tool("Read"), Value::Null);
    assert_ne!(tool("Write"), Value::Null);
    machine.write("project/readme/a.md", "hello");
    assert_eq!(machine.command("cat readme/a.md && echo x > readme/b.md"), Value::Null);
}

#[test]
fn only_the_users_own_file_allows_what_the_guard_refuses() {
    let mut machine = Machine::new();
    let rules = r#"{"allow": [{"command": "npm publish *"}]}"#;
    machine.write("project/.config/ralph/guard.json", rules);
    let inside = machine.project().join(".config").display().to_string();
    machine.set("XDG_CONFIG_HOME", &inside);
    assert_ne!(machine.command("npm publish --access public"), Value::Null, "a repo has no word in it");
    machine.set("XDG_CONFIG_HOME", "");
    machine.write("home/.config/ralph/guard.json", rules);
    assert_eq!(machine.command("npm publish --access public"), Value::Null);
    assert_ne!(machine.command("sudo ls"), Value::Null);
    machine.write("home/.config/ralph/guard.json", "{");
    assert_ne!(
        machine.command("npm publish --access public"),
        Value::Null,
        "rules that cannot be read allow nothing"
    );
    assert!(machine.command("ls")["systemMessage"].as_str().unwrap().contains("guard.json"));
}

#[test]
fn context_alerts_come_once_per_threshold_and_session() {
    let mut machine = Machine::new();
    let path = machine.dir.path().join("t.jsonl");
    let told = |machine: &Machine, tokens: u64| {
        let line =
            json!({"type": "assistant", "message": {"usage": {"input_tokens": tokens, "output_tokens": 0}}});
        std::fs::write(&path, format!("{line}\n")).unwrap();
        let said = machine.hook(HookEvent::PostToolUse, json!({"transcript_path": path}));
        said["hookSpecificOutput"]["additionalContext"].as_str().map(str::to_owned)
    };
    assert_eq!(told(&machine, 90_000), None);
    assert!(told(&machine, 100_000).unwrap().starts_with("Context: 100k of 200k tokens used (50 %)"));
    assert_eq!(told(&machine, 110_000), None, "once each");
    for tokens in [120_000, 140_000, 160_000, 180_000] {
        assert!(told(&machine, tokens).is_some(), "{tokens}");
        assert_eq!(told(&machine, tokens), None, "{tokens}");
    }
    machine.hook(HookEvent::SessionStart, json!({"source": "compact"}));
    assert!(told(&machine, 190_000).unwrap().contains("90 %") || told(&machine, 190_000).is_none());
    machine.hook(HookEvent::SessionStart, json!({"source": "startup"}));
    machine.set("CLAUDE_CONTEXT_WINDOW", "1000000");
    assert_eq!(told(&machine, 190_000), None, "another window");
    assert_eq!(machine.hook(HookEvent::PostToolUse, json!({"transcript_path": "/nonexistent"})), Value::Null);
}

#[test]
fn your_own_session_in_the_same_folder_is_never_blocked() {
    let mut machine = Machine::new();
    machine.write("project/ralph/tasks.json", "broken");
    assert_eq!(machine.hook(HookEvent::Stop, json!({})), Value::Null, "no loop");
    machine.active(true, true);
    machine.set("RALPH_RUN", "");
    assert_eq!(machine.hook(HookEvent::Stop, json!({})), Value::Null, "a person's session");
    machine.set("RALPH_RUN", "r-0");
    assert_eq!(machine.hook(HookEvent::Stop, json!({})), Value::Null, "a session of another run");
    machine.set("RALPH_RUN", "r-1");
    machine.set("RALPH_ITERATION", "1");
    assert_eq!(
        machine.hook(HookEvent::Stop, json!({})),
        Value::Null,
        "a session that the loop has left behind"
    );
}

#[test]
fn a_loop_session_is_blocked_with_the_exact_reason_once_each() {
    let mut machine = Machine::new();
    machine.git(&["init", "-q"]);
    machine.git(&["commit", "-q", "--allow-empty", "-m", "start"]);
    machine.write("project/ralph/tasks.json", &TASKS.replace("\"notes\":\"done\"", "\"notes\":\"\""));
    machine.write("project/ralph/progress.txt", "12345");
    machine.active(true, true);
    let reason = |value: &Value| value["reason"].as_str().unwrap_or_default().to_owned();
    let first = machine.hook(HookEvent::Stop, json!({"stop_hook_active": false}));
    assert_eq!(first["decision"], "block");
    assert!(reason(&first).contains("story US-001 has `passes: true` and empty `notes`"), "{first}");
    let same = machine.hook(HookEvent::Stop, json!({"stop_hook_active": true}));
    assert_eq!(same["decision"], Value::Null, "never twice for the same reason: {same}");
    assert!(same["systemMessage"].is_string());
    // The next turn of the same session counts from zero.
    machine.write("project/ralph/tasks.json", TASKS);
    let progress = machine.hook(HookEvent::Stop, json!({"stop_hook_active": false}));
    assert!(reason(&progress).contains("`ralph/progress.txt` has no entry of this session"), "{progress}");
    machine.write("project/ralph/progress.txt", "12345\nUS-001 done\n");
    let commit = machine.hook(HookEvent::Stop, json!({"stop_hook_active": true}));
    assert!(
        reason(&commit).contains("uncommitted changes") && reason(&commit).contains("`ralph/"),
        "{commit}"
    );
    machine.git(&["add", "-A", "--", "ralph"]);
    machine.git(&["commit", "-qm", "feat"]);
    assert_eq!(machine.hook(HookEvent::Stop, json!({"stop_hook_active": true})), Value::Null);
}

#[test]
fn a_malformed_plan_blocks_with_the_name_of_the_field() {
    let mut machine = Machine::new();
    machine.write("project/ralph/progress.txt", "123456");
    machine.active(false, true);
    for (from, to, field) in [
        ("\"project\":\"P\",", "", "`project`"),
        ("\"branchName\":\"b\"", "\"branchName\":\" \"", "`branchName`"),
        ("\"description\":\"d\",", "", "`description`"),
        (
            "\"acceptanceCriteria\":[\"x\"],\"priority\":1",
            "\"acceptanceCriteria\":[],\"priority\":1",
            "US-001 has no `acceptanceCriteria`",
        ),
        ("\"priority\":2,", "", "US-002 has no `priority`"),
        ("\"passes\":false,", "", "US-002 has no `passes`"),
        ("\"title\":\"One\"", "\"title\":\"\"", "US-001 has no `title`"),
        ("\"id\":\"US-002\"", "\"id\":\"US 2\"", "`id` US 2"),
        ("\"id\":\"US-002\"", "\"id\":\"US-001\"", "two stories have the `id` US-001"),
        (
            "\"dependsOn\":[\"US-001\"]",
            "\"dependsOn\":[\"US-002\"]",
            "`dependsOn` of story US-002 names the story itself",
        ),
        ("\"dependsOn\":[\"US-001\"]", "\"dependsOn\":[\"US-9\"]", "`dependsOn` of story US-002 names US-9"),
    ] {
        let plan = TASKS.replacen(from, to, 1);
        assert_ne!(plan, TASKS, "{from}");
        machine.write("project/ralph/tasks.json", &plan);
        let said = machine.hook(HookEvent::Stop, json!({"stop_hook_active": false}));
        assert!(said["reason"].as_str().unwrap_or_default().contains(field), "{field}: {said}");
    }
    machine.write(
        "project/ralph/tasks.json",
        r#"{"project":"P","branchName":"b","description":"d","userStories":[]}"#,
    );
    let said = machine.hook(HookEvent::Stop, json!({"stop_hook_active": false}));
    assert!(said["reason"].as_str().unwrap_or_default().contains("`userStories`"), "{said}");
}

#[test]
fn a_session_is_blocked_three_times_at_most() {
    let mut machine = Machine::new();
    machine.write("project/ralph/progress.txt", "123456");
    machine.active(false, true);
    let mut blocked = 0;
    for number in 0..20 {
        machine.write("project/ralph/tasks.json", &format!("{{ \"broken{number}\": 1 }}"));
        let said = machine.hook(HookEvent::Stop, json!({"stop_hook_active": number > 0}));
        blocked += u32::from(said["decision"] == "block");
    }
    assert_eq!(blocked, 3);
}

#[test]
fn a_session_starts_with_the_next_story_and_the_progress_file() {
    let mut machine = Machine::new();
    let told = |machine: &Machine| {
        let said = machine.hook(HookEvent::SessionStart, json!({"source": "startup"}));
        said["hookSpecificOutput"]["additionalContext"].as_str().map(str::to_owned)
    };
    assert_eq!(told(&machine), None, "nothing of ralph's is here");
    machine.write("project/ralph/tasks.json", TASKS);
    let own = told(&machine).unwrap();
    assert!(
        own.starts_with(
            "This project has a ralph plan. 1 of 2 stories in `ralph/tasks.json` pass. Next is US-002: Two."
        ),
        "{own}"
    );
    machine.active(true, true);
    let looped = told(&machine).unwrap();
    assert!(
        looped.starts_with("You are iteration 2 of a ralph loop.") && looped.contains("`ralph/progress.txt`"),
        "{looped}"
    );
}

/// The plugin shim's answer with a folder of programs before the usual ones.
fn shim(machine: &Machine, event: &str, programs: &str) -> Value {
    let shim = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../plugin/hooks/ralph-hook");
    let mut command = Command::new("/bin/sh");
    command.arg(&shim).arg(event).env_clear().envs(machine.vars.iter().cloned());
    command.env("PATH", format!("{programs}:/usr/bin:/bin")).env("CLAUDE_PROJECT_DIR", machine.project());
    let out = command.stdin(std::process::Stdio::null()).output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    assert!(text.lines().count() <= 1, "{text}");
    serde_json::from_str(&text).unwrap_or_default()
}

#[test]
fn the_plugin_refuses_a_loops_tools_without_the_binary() {
    let mut machine = Machine::new();
    assert!(shim(&machine, "pre-tool-use", "/nonexistent")["systemMessage"].is_string());
    machine.active(true, true);
    let denied = shim(&machine, "pre-tool-use", "/nonexistent");
    assert_eq!(denied["hookSpecificOutput"]["permissionDecision"], "deny");
    assert!(shim(&machine, "stop", "/nonexistent")["systemMessage"].is_string());
}

/// A process's start time and PID namespace.
fn process(pid: u32) -> Value {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).unwrap();
    let began: u64 = stat.rsplit(')').next().unwrap().split_whitespace().nth(19).unwrap().parse().unwrap();
    let namespace = std::fs::read_link("/proc/self/ns/pid").unwrap().display().to_string();
    json!({"pid": pid, "began": began, "pid_namespace": namespace})
}

#[test]
fn stale_marker_blocks_no_session() {
    let mut machine = Machine::new();
    machine.write("project/ralph/tasks.json", "{ broken");
    let held = |machine: &Machine| {
        let stop = machine.hook(HookEvent::Stop, json!({"stop_hook_active": false, "session_id": "other"}));
        let tool = shim(machine, "pre-tool-use", "/nonexistent");
        (stop["decision"] == "block", tool["hookSpecificOutput"]["permissionDecision"] == "deny")
    };
    let alive = process(std::process::id());
    machine.marked(false, true, alive.clone());
    assert_eq!(held(&machine), (true, true), "the loop lives");
    let mut child = Command::new("sleep").arg("600").spawn().unwrap();
    let gone = process(child.id());
    child.kill().unwrap();
    child.wait().unwrap();
    machine.marked(false, true, gone);
    assert_eq!(held(&machine), (false, false), "its process is gone");
    let mut other = alive.clone();
    other["began"] = json!(alive["began"].as_u64().unwrap() + 1);
    machine.marked(false, true, other.clone());
    assert_eq!(held(&machine), (false, false), "another process has its id");
    other["pid_namespace"] = json!("pid:[1]");
    machine.marked(false, true, other);
    assert_eq!(held(&machine), (true, true), "in a sandbox nothing is known of ids outside");
}

#[test]
fn the_plugins_shim_refuses_a_loops_tools_where_the_binary_breaks() {
    use std::os::unix::fs::PermissionsExt as _;
    let mut machine = Machine::new();
    let programs = machine.dir.path().join("bin").display().to_string();
    let program = |machine: &Machine, text: &str| {
        machine.write("bin/ralph", &format!("#!/bin/sh\n{text}\n"));
        let path = machine.dir.path().join("bin/ralph");
        std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    program(&machine, "echo '{\"said\":\"'\"$1 $2\"'\"}'");
    assert_eq!(shim(&machine, "pre-tool-use", &programs)["said"], "hook pre-tool-use");
    program(&machine, "exit 3");
    assert_eq!(shim(&machine, "pre-tool-use", &programs), Value::Null, "a user's session continues");
    machine.active(true, true);
    assert_eq!(shim(&machine, "pre-tool-use", &programs)["hookSpecificOutput"]["permissionDecision"], "deny");
    assert_eq!(shim(&machine, "stop", &programs), Value::Null);
    machine.write("bin/ralph", "#!/bin/sh\nkill -9 $$\n");
    let denied = shim(&machine, "pre-tool-use", &programs);
    assert_eq!(denied["hookSpecificOutput"]["permissionDecision"], "deny");
    machine.write("bin/ralph", "#!/bin/sh\necho '{\"said\":1}'\n");
    assert_eq!(shim(&machine, "pre-tool-use", &programs)["said"], 1, "an answer is handed on");
}
