//! The JSON Schemas against the code: the same keys, the same kinds, the same refusals.

mod checker;

use crate::RALPH;
use checker::problems;
use ralph_loop_task::config::{AgentConfig, ConfigFile, ModelsFile};
use ralph_loop_task::dialect::diagnostic::Lines;
use ralph_loop_task::dialect::plan::prd_tasks::{Story, TasksJson};
use ralph_loop_task::dialect::ralph_json::{BudgetSection, Entry, GitSection, KINDS, RalphJson, Repository};
use ralph_loop_task::dialect::{Dialect, Findings, TaskTexts, frontmatter, parse};
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: impl AsRef<Path>) -> String {
    let path = root().join(path);
    std::fs::read_to_string(&path).unwrap_or_else(|e| panic!("{}: {e}", path.display()))
}

fn schema(name: &str) -> Value {
    serde_json::from_str(&read(format!("schemas/{name}.schema.json"))).unwrap()
}

fn keys(value: &Value) -> BTreeSet<String> {
    value.as_object().unwrap().keys().cloned().collect()
}

/// Every key that the code reads, with aliases, from its message about an unknown one.
fn keys_of<T: serde::de::DeserializeOwned>() -> BTreeSet<String> {
    let error = serde_json::from_str::<T>(r#"{"-": 0}"#).err().expect("`-` is refused").to_string();
    error.split('`').skip(3).step_by(2).map(str::to_owned).collect()
}

#[track_caller]
fn valid(schema: &Value, value: &Value) {
    let found = problems(schema, schema, value, "");
    assert!(found.is_empty(), "{found:#?}\n{value:#}");
}

#[track_caller]
fn assert_refused(schema: &Value, value: &Value) {
    assert!(!problems(schema, schema, value, "").is_empty(), "{value:#}");
}

/// The frontmatter of a task as JSON, read by the code.
fn frontmatter_json(text: &str) -> Value {
    let split = frontmatter::split(text).unwrap();
    let mut found = Findings::of("ralph_task.md");
    let (front, _) = frontmatter::read(text, &split, &Lines::new(text), &mut found).unwrap();
    without_null(serde_json::to_value(front).unwrap())
}

fn without_null(value: Value) -> Value {
    match value {
        Value::Object(map) => {
            map.into_iter().filter(|(_, v)| !v.is_null()).map(|(k, v)| (k, without_null(v))).collect()
        }
        other => other,
    }
}

#[test]
fn the_configuration_has_exactly_the_keys_of_the_code() {
    let schema = schema("config");
    assert_eq!(keys(&schema["properties"]), keys_of::<ConfigFile>());
    let agent = AgentConfig {
        model: Some("m".into()),
        model_argv: vec!["--model".into()],
        env: [("A".to_owned(), "b".to_owned())].into(),
        script: Some("s".into()),
        profile: Some("p".into()),
        fallback_profile: Some("p".into()),
        max_tokens_per_iteration: Some(1),
        system_prompt: Some("s".into()),
        max_repairs: 1,
        disable_default_tools: true,
        ..AgentConfig::command("a", &["a"])
    };
    let mut known = keys(&serde_json::to_value(&agent).unwrap());
    known.extend(["timeout", "model_profile", "model_profile_fallback"].map(String::from));
    assert_eq!(keys(&schema["$defs"]["agent"]["properties"]), known);
    let verifier = json!({
        "name": "t", "command_argv": ["true"], "expect": { "output": { "pattern": "x" } },
        "metric": { "pattern": "p99 ([0-9]+)", "better": "lower", "target": 50.0 },
    });
    let whole = json!({ "version": 1, "agents": [agent], "verifiers": [verifier] });
    valid(&schema, &whole);
    let read = ConfigFile::parse(&whole.to_string()).unwrap();
    let written = serde_json::to_value(&read.verifiers.as_ref().unwrap()[0]).unwrap();
    let mut known = keys(&written);
    known.insert("timeout".into());
    assert_eq!(keys(&schema["$defs"]["verifier"]["properties"]), known);
}

#[test]
fn schema_and_code_refuse_the_same_configuration() {
    let schema = schema("config");
    for bad in [
        json!({ "max_iteration": 1 }),
        json!({ "version": 2 }),
        json!({ "max_iterations": 0 }),
        json!({ "max_wall_time_minutes": 0 }),
        json!({ "max_cost_usd_estimate": -1 }),
        json!({ "agents": [{ "name": "a b", "command_argv": ["a"] }] }),
        json!({ "agents": [{ "name": "a", "command_argv": ["a"], "x": 1 }] }),
        json!({ "agents": [{ "name": "a", "command_argv": ["a"], "timeout_seconds": 0 }] }),
        json!({ "verifiers": [{ "name": "t", "expect": { "file_exists": {} } }] }),
        json!({ "verifiers": [{ "name": "t", "expect": { "file_exists": { "path": "a", "paht": "b" } } }] }),
        json!({ "completion": "never" }),
        json!({ "completion_promise": "<x>" }),
        json!({ "stuck_detection": { "treshold": 1 } }),
        json!({ "stuck_detection": { "weights": { "cycles": 0.5 } } }),
        json!({ "stuck_detection": { "weights": { "cycle": 1.5 } } }),
    ] {
        assert!(ConfigFile::parse(&bad.to_string()).is_err(), "{bad}");
        assert_refused(&schema, &bad);
    }
    for good in [
        json!({}),
        json!({ "modals": [{ "name": "a", "command_argv": ["a"] }], "modal_priority": ["a"], "modal_selection": "priority" }),
        json!({ "verifiers": [{ "name": "f", "expect": { "file_contains": { "path": "a", "pattern": "b" } } }] }),
        json!({ "stuck_detection": { "window": 8, "plan_similarity": 0.9, "weights": { "cycle": 0.5, "churn": 0 } } }),
        json!({ "completion": "claim", "setup_commands": ["a", ["b", "c"]], "deadline": "2026-11-15T12:00:00Z" }),
    ] {
        ConfigFile::parse(&good.to_string()).unwrap();
        valid(&schema, &good);
    }
}

#[test]
fn schema_defaults_match_the_code() {
    let usual = ConfigFile::default().resolve();
    let schema = schema("config");
    let named: Vec<_> = schema["properties"]
        .as_object()
        .unwrap()
        .iter()
        .filter(|(_, p)| p.get("default").is_some())
        .collect();
    assert!(named.len() > 10, "{named:?}");
    for (key, property) in named {
        let file = json!({ key: property["default"] }).to_string();
        assert_eq!(ConfigFile::parse(&file).unwrap().resolve(), usual, "{file}");
    }
}

#[test]
fn model_profile_schema_matches_the_code() {
    let schema = schema("models");
    assert_eq!(keys(&schema["properties"]), keys_of::<ModelsFile>());
    let of = |name: &str| &schema["$defs"][name]["properties"];
    let whole = json!({ "default": "a", "fallback": "zai/glm-5", "prices_file": "p.json", "profiles": { "a": {
        "litellm_model": "x/y", "max_output_tokens": 1, "temperature": 0.5, "tags": ["t"],
        "base_url": "http://127.0.0.1:1/v1", "api_key_env": "A_1", "wire": "openai-responses",
        "prices": { "input": 1.0, "output": 2.0, "cache_read": 0.1, "cache_write": 1.2 },
        "timeouts": { "connect": 1, "first_byte": 2, "stall": 3 }, "max_retries": 0,
    } } });
    valid(&schema, &whole);
    let read = ModelsFile::parse(&whole.to_string()).unwrap();
    let mut written = serde_json::to_value(&read).unwrap();
    written["profiles"]["a"].as_object_mut().unwrap().remove("name");
    assert_eq!(written, whole, "JSON is YAML too, and nothing is lost");
    assert_eq!(keys(&written["profiles"]["a"]), keys(of("profile")));
    assert_eq!(keys(&written["profiles"]["a"]["prices"]), keys(of("prices")));
    assert_eq!(keys(&written["profiles"]["a"]["timeouts"]), keys(of("timeouts")));
    for (key, bad) in [
        ("litellm_model", json!("")),
        ("max_output_tokens", json!(0)),
        ("temperature", json!(2.5)),
        ("base_url", json!("ftp://x")),
        ("base_url", json!("https://a@b")),
        ("api_key_env", json!("my-key")),
        ("wire", json!("chat")),
        ("prices", json!({ "input": 1 })),
        ("prices", json!({ "input": -1, "output": 1 })),
        ("timeouts", json!({ "stall": 0 })),
        ("max_retries", json!(21)),
        ("nonsense", json!(1)),
    ] {
        let mut file = json!({ "profiles": { "a": { "litellm_model": "x/y" } } });
        valid(&schema, &file);
        file["profiles"]["a"][key] = bad;
        assert!(ModelsFile::parse(&file.to_string()).is_err(), "{file}");
        assert_refused(&schema, &file);
    }
    for bad in [json!({ "profile": {} }), json!({ "profiles": { "a": {} } })] {
        assert!(ModelsFile::parse(&bad.to_string()).is_err(), "{bad}");
        assert_refused(&schema, &bad);
    }
    let example = ModelsFile::parse(&self::read("examples/config/models.yaml")).unwrap();
    let example = serde_json::to_value(&example).unwrap();
    let mut example = without_null(example);
    for profile in example["profiles"].as_object_mut().unwrap().values_mut() {
        profile.as_object_mut().unwrap().remove("name");
    }
    valid(&schema, &example);
}

#[test]
fn ralph_json_has_exactly_the_keys_and_kinds_of_the_code() {
    let schema = schema("ralph");
    let text = || Some("x".to_owned());
    let whole = RalphJson {
        schema: text(),
        version: Some(2),
        task: "x".into(),
        ticket_id: text(),
        repository: Some(Repository { url: text(), branch: text(), working_dir: text() }),
        git: Some(GitSection {
            feature_branch: text(),
            commit_author: text(),
            commit_email: text(),
            create_pr: Some(true),
            pr_title: text(),
            pr_body_template: text(),
        }),
        acceptance_criteria: vec![Entry { kind: "pr_approved".into(), ..Entry::default() }],
        max_iterations: Some(1),
        budget: Some(BudgetSection {
            max_tokens: Some(1),
            max_cost_usd: Some(ralph_loop_protocol::money::Usd::from_dollars(1.0)),
            max_wall_time_minutes: Some(1.0),
        }),
        context_files: vec!["x".into()],
        rules: vec!["x".into()],
        setup_commands: vec![ralph_loop_task::config::CommandLine::Shell("x".into())],
        protected_paths: vec!["x".into()],
        tests: Some(ralph_loop_task::config::TestsPolicy::Free),
        require_proof: Some(ralph_loop_task::config::RequiredProof::Independent),
        mode: Some(ralph_loop_task::config::Mode::Guided),
    };
    let value = serde_json::to_value(&whole).unwrap();
    valid(&schema, &value);
    assert_eq!(keys(&schema["properties"]), keys(&value));
    for section in ["repository", "git", "budget"] {
        assert_eq!(keys(&schema["properties"][section]["properties"]), keys(&value[section]), "{section}");
    }
    let criterion = &schema["$defs"]["criterion"];
    let kinds: Vec<&str> = KINDS.iter().map(|(kind, _)| *kind).collect();
    assert_eq!(criterion["properties"]["type"]["enum"], json!(kinds));
    for (kind, needed) in KINDS {
        let mut entry = json!({ "type": kind });
        for key in *needed {
            assert_refused(&schema, &json!({ "task": "t", "acceptance_criteria": [entry] }));
            entry[*key] = json!("x");
        }
        if *kind == "command_output" {
            assert_refused(&schema, &json!({ "task": "t", "acceptance_criteria": [entry] }));
            entry["contains"] = json!("x");
        }
        let whole = json!({ "task": "t", "acceptance_criteria": [entry] });
        valid(&schema, &whole);
        parse(Dialect::RalphJson, &TaskTexts::new("ralph.json", whole.to_string())).unwrap();
    }
    for bad in [
        json!({}),
        json!({ "task": "" }),
        json!({ "task": "t", "tasks": 1 }),
        json!({ "task": "t", "version": 1 }),
        json!({ "task": "t", "max_iterations": 0 }),
        json!({ "task": "t", "git": { "branch": "x" } }),
        json!({ "task": "t", "acceptance_criteria": [{ "type": "file_exist", "path": "x" }] }),
    ] {
        assert!(parse(Dialect::RalphJson, &TaskTexts::new("ralph.json", bad.to_string())).is_err(), "{bad}");
        assert_refused(&schema, &bad);
    }
}

#[test]
fn tasks_json_has_exactly_the_keys_of_the_code() {
    let schema = schema("tasks");
    let story = Story { id: "a".into(), title: "t".into(), priority: Some(1), ..Story::default() };
    let whole = TasksJson { schema: Some("x".into()), user_stories: vec![story], ..TasksJson::default() };
    let value = serde_json::to_value(&whole).unwrap();
    valid(&schema, &value);
    assert_eq!(keys(&schema["properties"]), keys(&value));
    assert_eq!(
        keys(&schema["properties"]["userStories"]["items"]["properties"]),
        keys(&value["userStories"][0])
    );
    let story = json!({ "id": "a", "title": "t", "passes": false, "acceptanceCriteria": ["x"] });
    for (key, bad) in
        [("passes", json!("no")), ("id", json!("a b")), ("title", json!("")), ("pases", json!(true))]
    {
        let mut story = story.clone();
        story[key] = bad;
        let bad = json!({ "userStories": [story] });
        assert!(parse(Dialect::Plan, &TaskTexts::new("tasks.json", bad.to_string())).is_err(), "{bad}");
        assert_refused(&schema, &bad);
    }
    assert_refused(&schema, &json!({ "userStories": [] }));
    valid(&schema, &json!({ "userStories": [story] }));
}

#[test]
fn the_frontmatter_has_exactly_the_keys_of_the_code() {
    let schema = schema("frontmatter");
    assert_eq!(keys(&schema["properties"]), keys_of::<frontmatter::Frontmatter>());
    let providers = ralph_loop_task::dialect::ralph_task_md::PROVIDERS;
    assert_eq!(schema["properties"]["sandbox_provider"]["enum"], json!(providers));
    let empty = serde_json::to_value(frontmatter::Resources::default()).unwrap();
    assert_eq!(keys(&schema["properties"]["sandbox_resources"]["properties"]), keys(&empty));
    let empty = serde_json::to_value(frontmatter::PrSection::default()).unwrap();
    assert_eq!(keys(&schema["properties"]["pr"]["properties"]), keys(&empty));
    let good = json!({ "test_command": "x", "max_iterations": 1, "max_wall_time_minutes": 1, "max_tokens_total": 1 });
    valid(&schema, &good);
    let mut unknown = good.clone();
    unknown["test_commands"] = json!("x");
    assert_refused(&schema, &unknown);
    for needed in keys(&good) {
        let mut less = good.clone();
        less.as_object_mut().unwrap().remove(&needed);
        assert_refused(&schema, &less);
    }
}

#[test]
fn schema_has_exactly_the_event_kinds() {
    let source = read("crates/protocol/src/event/kind.rs");
    let (_, body) = source.split_once("fn kind(&self)").unwrap();
    let (body, _) = body.split_once("\n    }\n").unwrap();
    let in_code: BTreeSet<String> = body
        .lines()
        .filter_map(|line| Some(line.split_once("=> \"")?.1.split('"').next()?.to_owned()))
        .filter(|kind| kind != "unknown")
        .collect();
    assert!(in_code.len() > 30, "{in_code:?}");
    let schema = schema("events");
    let in_schema: BTreeSet<String> = schema["oneOf"]
        .as_array()
        .unwrap()
        .iter()
        .map(|kind| kind["properties"]["kind"]["const"].as_str().unwrap().to_owned())
        .collect();
    assert_eq!(in_code, in_schema);
}

/// Copies an example into a fresh repo.
fn example<'a>(env: &'a TestEnv, name: &str) -> TestRepo<'a> {
    let repo = TestRepo::new(env, name, &[]);
    let mut open = vec![PathBuf::new()];
    let from = root().join("examples").join(name);
    while let Some(folder) = open.pop() {
        std::fs::create_dir_all(repo.dir.join(&folder)).unwrap();
        for entry in std::fs::read_dir(from.join(&folder)).unwrap().flatten() {
            let path = folder.join(entry.file_name());
            if entry.path().is_dir() {
                open.push(path);
            } else {
                std::fs::copy(entry.path(), repo.dir.join(&path)).unwrap();
            }
        }
    }
    repo.git(&["add", "-A", ".", ":!.ralph"]);
    repo.git(&["commit", "-q", "-m", "the example"]);
    repo
}

#[test]
fn the_events_of_real_runs_are_valid() {
    let env = TestEnv::new(RALPH);
    let schema = schema("events");
    let mut seen = BTreeSet::new();
    let check = |repo: &TestRepo<'_>, seen: &mut BTreeSet<String>| {
        for event in repo.events() {
            valid(&schema, &event);
            seen.insert(event["kind"].as_str().unwrap().to_owned());
        }
    };
    for name in ["ralph_task", "ralph_json", "plan", "prompt"] {
        let repo = example(&env, name);
        repo.run(&[]).exits(0);
        check(&repo, &mut seen);
    }
    let repo = TestRepo::with_task(&env);
    let limited = "echo 'rate limit exceeded' >&2; exit 1";
    repo.configure(
        &[repo.agent("tired", limited), repo.agent("idle", "echo x > scratch.txt; echo nothing")],
        "false",
        &json!({ "max_iterations": 6, "on_stuck": "fail" }),
    );
    repo.run(&[]).exits(1);
    check(&repo, &mut seen);
    assert!(seen.len() > 14, "{seen:?}");
}

#[test]
fn the_proof_has_exactly_the_keys_and_kinds_of_the_code() {
    let schema = schema("proof");
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(
        &env,
        "repo",
        &[("PROMPT.md", "# Task\n"), ("tests/test_a.py", "def test_a():\n    assert x\n"), ("data", "1\n")],
    );
    let promise = "echo '<promise>COMPLETE</promise>'";
    let weaken = format!("echo 'x = 1  # noqa' > part.py; echo pass > tests/test_a.py; {promise}");
    repo.configure(
        &[repo.agent("stub", &weaken)],
        "test -f part.py && grep -q pass tests/test_a.py && echo '3 passed in 0.1s'",
        &json!({ "max_iterations": 1 }),
    );
    repo.run(&["--tests", "free"]).exits(0);
    let proof: Value = serde_json::from_str(&repo.run_file("proof.json")).unwrap();
    valid(&schema, &proof);
    let mut known = keys(&schema["properties"]);
    known.remove("hint");
    // The level could not be higher without the originals, so nothing says why.
    known.remove("reason");
    // The task lists no criteria.
    known.remove("criteria");
    // No user file was part of the check.
    known.remove("beside");
    // The user wasn't asked.
    known.remove("question");
    known.remove("approved_by");
    assert_eq!(keys(&proof), known);
    let mut check = keys(&schema["$defs"]["check"]["properties"]);
    for of_a_failure in ["why", "failing", "last_lines"] {
        check.remove(of_a_failure);
    }
    assert_eq!(keys(&proof["checks"][0]), check);
    assert_eq!(keys(&proof["agents"]["stub"]), keys(&schema["$defs"]["agent"]["properties"]));
}

#[test]
fn receipt_result_and_inbox_of_a_real_run_are_valid() {
    use ralph_loop_protocol::control::{Control, Letter};
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.configure(
        &[repo.agent("stub", "echo x > part.txt; echo '<promise>COMPLETE</promise>'")],
        "true",
        &json!({ "max_iterations": 1 }),
    );
    let ended = repo.run(&[]).exits(0);
    let result: Value = serde_json::from_str(ended.stdout.lines().last().unwrap()).unwrap();
    let of_result = schema("result");
    valid(&of_result, &result);
    let read: ralph_loop_protocol::outcome::RunResult = serde_json::from_value(result.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), result, "nothing is lost on the way");
    assert_refused(&of_result, &json!({ "success": "yes" }));

    let receipt: Value = serde_json::from_str(&repo.run_file("iterations/1/receipt.json")).unwrap();
    let of_receipt = schema("receipt");
    valid(&of_receipt, &receipt);
    let read: ralph_loop_protocol::money::receipt::Receipt = serde_json::from_value(receipt.clone()).unwrap();
    assert_eq!(serde_json::to_value(&read).unwrap(), receipt, "nothing is lost on the way");
    for (key, bad) in [("version", json!(2)), ("verdict", json!("fine")), ("prompt", json!("x"))] {
        let mut receipt = receipt.clone();
        receipt[key] = bad;
        assert_refused(&of_receipt, &receipt);
    }

    let of_control = schema("control");
    let control = Control::Cooldown { agent: "a".into(), seconds: 3 };
    let letter = Letter { id: "1".into(), from: "ana via cli".into(), control };
    let mut letter = serde_json::to_value(letter).unwrap();
    valid(&of_control, &letter);
    letter["control"] = json!("explode");
    assert_refused(&of_control, &letter);
}

#[test]
fn examples_and_init_files_are_valid() {
    let of = |name: &str, path: &str| valid(&schema(name), &serde_json::from_str(&read(path)).unwrap());
    of("ralph", "examples/ralph_json/ralph.json");
    of("tasks", "examples/plan/ralph/tasks.json");
    for name in ["ralph_task", "ralph_json", "plan", "prompt"] {
        of("config", &format!("examples/{name}/.ralph/config.json"));
    }
    valid(&schema("frontmatter"), &frontmatter_json(&read("examples/ralph_task/ralph_task.md")));

    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[("Cargo.toml", "")]);
    for flag in ["--task", "--json-task", "--plan", "--prompt"] {
        repo.ralph(&["init", flag, "--profile", "codex", "--force"]).exits(0);
    }
    let json = |path: &str| serde_json::from_str(&repo.read(path)).unwrap();
    valid(&schema("ralph"), &json("ralph.json"));
    valid(&schema("tasks"), &json("ralph/tasks.json"));
    valid(&schema("config"), &json(".ralph/config.json"));
    valid(&schema("frontmatter"), &frontmatter_json(&repo.read("ralph_task.md")));
}

#[test]
fn action_schema_accepts_exactly_the_actions() {
    let contract = schema("actions");
    let all = json!({
        "summary": "what was done",
        "actions": [
            {"type": "run", "command": "npm test", "cwd": "web", "timeout_s": 900},
            {"type": "patch", "path": "src/foo.ts", "patch": "--- a\n+++ b\n"},
            {"type": "write", "path": ".ralph/guardrails.md", "append": true, "content": "x"},
            {"type": "commit", "message": "m", "paths": ["src/foo.ts"]},
            {"type": "rotate", "reason": "r"},
            {"type": "pause", "reason": "r"},
            {"type": "stop_success", "reason": "r"},
            {"type": "stop_failure", "reason": "r"}
        ],
        "claims": {"checkboxes_checked": ["M1.1"], "milestones_completed": ["M1"]}
    });
    valid(&contract, &all);
    for bad in [
        json!({"actions": []}),
        json!({"summary": "s", "actions": [{"type": "shell", "command": "x"}]}),
        json!({"summary": "s", "actions": [{"type": "write", "path": "/etc/passwd", "content": "x"}]}),
        json!({"summary": "s", "actions": [{"type": "run", "command": "x", "sudo": true}]}),
        json!({"summary": "s", "actions": [], "done": true}),
    ] {
        assert_refused(&contract, &bad);
    }
}

#[test]
fn the_command_prints_the_files_of_the_repository() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::new(&env, "repo", &[]);
    for (name, file) in [
        ("ralph.json", "ralph"),
        ("tasks.json", "tasks"),
        ("config.json", "config"),
        ("frontmatter", "frontmatter"),
        ("events", "events"),
        ("proof", "proof"),
        ("actions", "actions"),
        ("diagnosis", "diagnosis"),
        ("receipt", "receipt"),
        ("result", "result"),
        ("control", "control"),
        ("view", "view"),
    ] {
        let printed = repo.ralph(&["schema", name]).exits(0);
        assert_eq!(printed.stdout, read(format!("schemas/{file}.schema.json")));
        assert!(repo.ralph(&["schema"]).exits(0).stdout.contains(name));
        assert_eq!(repo.ralph(&["schema", name, "--json"]).exits(0).json(), schema(file));
    }
    assert!(repo.ralph(&["schema", "event"]).exits(2).stderr.contains("did you mean `events`?"));
}
