//! The terminal UI on a real terminal (tmux): from an empty repo to a proven branch, and after every key the screen says what
//! `ralph status --json` says.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

mod on_a_server;
mod status_match;
mod tmux;

use crate::RALPH;
use crate::long::real_agents::machine::{Machine, programs};
use ralph_loop_testkit::model_server::{Action, ModelServer, Script, Turn};
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};
use status_match::Session;
use tmux::Tmux;

/// An agent that answers in the Spec Studio, reviews, and works, depending on its prompt.
const AGENT: &str = r#"
prompt=$(cat)
case "$prompt" in
*"You review a task"*)
  echo '{"findings":[{"severity":"blocker","text":"Unclear what the file must contain","section":"Acceptance","line":"part.txt holds the word done"}]}' ;;
*"You help a developer"*)
  printf 'I understand.\n```draft\n# Write the part\n\n## Task\n\nWrite part.txt at the top.\n\n## Acceptance\n\n- part.txt exists\n\n## Constraints\n\n- nothing else changes\n\n## Verification\n\n```sh\ngrep -q done part.txt\n```\n```\n' ;;
*)
  printf '\033]0;owned\007working on it\n'
  echo done > part.txt
  echo '<promise>COMPLETE</promise>' ;;
esac
"#;

fn config(agents: &[Value]) -> Value {
    json!({
        "agents": agents,
        "verifiers": [{ "name": "tests", "command_argv": ["sh", "-c", "grep -q done part.txt"] }],
        "max_iterations": 5,
    })
}

#[test]
fn from_an_empty_repo_to_a_proven_branch() {
    let env = TestEnv::new(RALPH);
    env.user_config(&json!({ "isolation": "none" }));
    let repo = TestRepo::new(&env, "repo", &[]);
    repo.config(&config(&[repo.agent("one", AGENT), repo.agent("two", AGENT)]));
    // The configuration is hand-written, so the user knows it.
    repo.ralph(&["trust", "--yes"]).exits(0);
    let Some(tmux) = Tmux::start(&env, &repo.dir, RALPH, "", (120, 40)) else { return };
    let tmux = Session::new(tmux, &repo);
    tmux.shows("What should be done?");
    tmux.types("Write the part");
    tmux.key("C-p");
    tmux.shows("Spec Studio");
    tmux.shows("I understand.");
    tmux.shows("Write part.txt at the top.");
    tmux.until("the whole answer", |screen| !screen.contains("answering for"));
    tmux.key("C-v");
    tmux.shows("Unclear what the file must contain");
    tmux.key("Enter");
    tmux.key("f");
    tmux.shows("writes it and goes to Start");
    tmux.shows("fails now, as it should");
    tmux.key("w");
    tmux.shows("Enter starts the run");
    assert!(repo.read("PROMPT.md").contains("- part.txt holds the word done"), "{}", repo.read("PROMPT.md"));
    tmux.key("Enter");
    tmux.shows("proven, independent");
    tmux.agrees();
    let status = repo.ralph(&["status", "--json"]).exits(0).json();
    assert_eq!(
        (status["status"].as_str(), status["branch"].as_str()),
        (Some("done"), Some("ralph/write-the-part"))
    );
    for (key, seen) in [
        ("t", "Timeline"),
        ("2", "working on it"),
        ("3", "grep -q done"),
        ("4", "part.txt"),
        ("6", "passed tests"),
    ] {
        tmux.key(key);
        tmux.shows(seen);
    }
    assert_ne!(tmux.title(), "owned", "what an agent prints never reaches the terminal");
    tmux.key("?");
    tmux.shows("Keys: Run");
    tmux.key("Escape");
    // Sent together, the two would be read as one key.
    tmux.until("the sheet is closed", |screen| !screen.contains("Keys: Run"));
    tmux.key("q");
    tmux.shows("Runs of this repo");
    tmux.key("C-c");
    tmux.shows("left with 0");
    assert!(!repo.git(&["log", "--oneline", "ralph/write-the-part"]).is_empty());
    let threads = std::fs::read_dir(repo.dir.join(".ralph/spec/threads")).unwrap().count();
    let drafts = std::fs::read_dir(repo.dir.join(".ralph/spec/drafts")).unwrap().count();
    assert_eq!((threads, drafts), (1, 1));
}

#[test]
fn run_is_steered_detached_and_attached() {
    let env = TestEnv::new(RALPH);
    env.user_config(&json!({ "isolation": "none" }));
    let repo = TestRepo::with_task(&env);
    let gate = env.path("gate");
    let again = env.path("again");
    // The first session ends without a promise, once the gate is open; the second does the work.
    let script = format!(
        "if [ -e {again} ]; then echo done > part.txt; echo '<promise>COMPLETE</promise>'; exit; fi\n\
         echo waiting; while [ ! -e {gate} ]; do sleep 0.05; done; touch {again}; echo 'not done yet'",
        again = again.display(),
        gate = gate.display()
    );
    repo.config(&config(&[repo.agent("one", &script)]));
    repo.ralph(&["trust", "--yes"]).exits(0);
    let Some(tmux) = Tmux::start(&env, &repo.dir, RALPH, "", (100, 30)) else { return };
    let tmux = Session::new(tmux, &repo);
    tmux.shows("start a run of PROMPT.md");
    tmux.key("Enter");
    tmux.shows("Enter starts the run");
    tmux.key("Enter");
    tmux.shows("working");
    tmux.agrees();
    tmux.key("n");
    tmux.types("the staging database is read-only");
    tmux.key("Enter");
    tmux.shows("note: accepted");
    tmux.key("p");
    tmux.shows("pause: accepted");
    for key in ["2", "3", "4", "5", "6", "1"] {
        tmux.key(key);
    }
    tmux.resize((80, 24));
    tmux.agrees();
    tmux.key("C-c");
    tmux.shows("continues; run `ralph attach");
    tmux.shows("left with 0");
    let status = repo.ralph(&["status", "--json"]).exits(0).json();
    assert_eq!(status["driven"], true, "{status}");
    tmux.types(&format!("{RALPH} attach; echo attach left $?"));
    tmux.key("Enter");
    tmux.shows("iteration 1/5");
    std::fs::write(&gate, "").unwrap();
    tmux.shows("paused");
    tmux.agrees();
    tmux.key("p");
    tmux.shows("proven, independent");
    tmux.agrees();
    tmux.key("q");
    tmux.shows("attach left 0");
    let notes: Vec<Value> = repo.events_named("control_received");
    assert!(
        notes.iter().all(|event| event["from"].as_str().is_some_and(|from| from.ends_with("via tui"))),
        "{notes:?}"
    );
}

#[test]
fn repo_requests_ask_the_user_and_no_starts_nothing() {
    let env = TestEnv::new(RALPH);
    env.user_config(&json!({ "isolation": "none" }));
    let repo = TestRepo::with_task(&env);
    let mut asks = config(&[repo.agent("one", AGENT)]);
    asks["allowed_hosts"] = json!(["a.example"]);
    repo.config(&asks);
    let Some(tmux) = Tmux::start(&env, &repo.dir, RALPH, "", (100, 30)) else { return };
    let tmux = Session::new(tmux, &repo);
    tmux.shows("next:");
    tmux.key("C-r");
    tmux.shows("Enter starts the run");
    tmux.key("Enter");
    tmux.shows("This repository asks for:");
    tmux.shows("network access to `a.example`");
    tmux.key("n");
    tmux.shows("Enter starts the run");
    assert_eq!(repo.ralph(&["list", "--json"]).exits(0).json(), json!([]));
    tmux.key("Enter");
    tmux.shows("This repository asks for:");
    tmux.key("y");
    tmux.shows("proven, independent");
    tmux.agrees();
}

#[test]
fn dumb_terminal_gets_plain_text() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let plain = repo.ralph(&[]).exits(0);
    assert!(plain.stdout.contains("next:") && !plain.stdout.contains('\u{1b}'), "{plain:?}");
    let Some(tmux) = Tmux::start(&env, &repo.dir, &format!("TERM=dumb {RALPH}"), "", (100, 30)) else {
        return;
    };
    tmux.shows("left with 0");
    tmux.shows("next:");
}

#[test]
fn panic_restores_the_terminal() {
    for fault in ["tui.frame", "tui.thread"] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        let vars = format!("RALPH_FAULT={fault}");
        let Some(tmux) = Tmux::start(&env, &repo.dir, RALPH, &vars, (100, 30)) else { return };
        tmux.shows("a fault that was asked for");
        tmux.shows("left with ");
        assert!(!tmux.screen().contains("left with 0"), "{fault}: {}", tmux.screen());
        assert_eq!(tmux.modes(), "0 1 0", "{fault}: the shell's own screen, its cursor, no mouse");
        // Line mode and echo are restored.
        tmux.types("stty -a | grep -o ' icanon' ; echo typed-$((40 + 2))");
        tmux.key("Enter");
        tmux.shows("typed-42");
        tmux.shows(" icanon");
    }
}

#[test]
fn no_color_is_respected() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let Some(tmux) = Tmux::start(&env, &repo.dir, RALPH, "NO_COLOR=1", (100, 30)) else { return };
    tmux.shows("Agents");
    let colored = tmux.colored();
    // 39 is the default color.
    let color = regex_lite::Regex::new(r"[\[;](3[0-7]|38|9[0-7])[;m]").unwrap();
    assert!(!color.is_match(&colored), "{colored:?}");
}

/// The model's sessions in the Studio, in the review and at work.
fn story() -> Script {
    let draft = "I read the Makefile. Shall the greeting be in English?\n```draft\n# Greet the world\n\n## Task\n\nMake hello.txt with a greeting.\n\n## Acceptance\n\n- hello.txt exists\n\n## Constraints\n\n- nothing else changes\n\n## Verification\n\n```sh\ngrep -q shell-ran hello.txt\n```\n```\n";
    let findings = r#"{"findings":[{"severity":"blocker","text":"Unclear what the file must contain","section":"Acceptance","line":"hello.txt holds the line shell-ran"}]}"#;
    let work = [
        Action::write("hello.txt", "hello from the scripted model\n"),
        Action::shell("echo shell-ran >> hello.txt && cat hello.txt"),
        Action::text("All work is finished.\n\n<promise>COMPLETE</promise>"),
    ];
    let said = |text: &str| vec![Turn::from(Action::text(text))];
    Script::sessions([said(draft), said(findings), work.into_iter().map(Turn::from).collect()])
}

/// From an empty repo through the Studio, the review and Finalize to a proven branch, with a real CLI on the scripted server.
#[test]
fn from_an_empty_repo_to_a_proven_branch_with_a_real_cli() {
    let Some(programs) = programs() else { return };
    let server = ModelServer::start().unwrap();
    server.script("story", story());
    let machine = Machine::new("claude", &programs);
    machine.env.user_config(&json!({ "isolation": "none" }));
    let repo = machine.repo("repo");
    repo.git(&["rm", "--quiet", "PROMPT.md"]);
    repo.git(&["commit", "--quiet", "-m", "an empty repo"]);
    repo.ralph(&["trust", "--yes"]).exits(0);
    let command = machine.command(&repo, &server.base_url("story", "claude"), &[]);
    let vars: Vec<(String, String)> = command
        .get_envs()
        .filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value?.to_str()?.to_owned())))
        .collect();
    let Some(tmux) = Tmux::start_with(&machine.env, &repo.dir, RALPH, &vars, (120, 40)) else { return };
    let tmux = Session::new(tmux, &repo);
    tmux.shows("claude");
    tmux.shows("describe the task in a sentence");
    tmux.types("Greet the world");
    tmux.key("C-p");
    tmux.shows("I read the Makefile.");
    tmux.shows("Make hello.txt with a greeting.");
    // The draft is shown while the answer streams; it can be reviewed afterwards.
    tmux.until("the review round", |screen| {
        let open = screen.contains("Round 1");
        if !open {
            tmux.key("C-v");
        }
        open
    });
    tmux.shows("Unclear what the file must contain");
    tmux.key("Enter");
    tmux.key("f");
    tmux.shows("fails now, as it should");
    tmux.shows("writes it and goes to Start");
    tmux.key("w");
    tmux.shows("Enter starts the run");
    assert!(repo.read("PROMPT.md").contains("- hello.txt holds the line shell-ran"));
    tmux.key("Enter");
    tmux.shows("proven, independent");
    tmux.agrees();
    for (key, seen) in [
        ("t", "claude"),
        ("2", "All work is finished."),
        ("3", "grep -q shell-ran"),
        ("4", "hello.txt"),
        ("5", "claude"),
        ("6", "passed tests"),
        ("1", "claude"),
        ("v", "proof"),
    ] {
        tmux.key(key);
        tmux.shows(seen);
    }
    let status = repo.ralph(&["status", "--json"]).exits(0).json();
    assert_eq!(
        (status["status"].as_str(), status["branch"].as_str()),
        (Some("done"), Some("ralph/greet-the-world"))
    );
    assert!(repo.git(&["show", "ralph/greet-the-world:hello.txt"]).contains("shell-ran"));
}
