//! `ralph models`: what it lists, and one real call to a scripted server.

use crate::RALPH;
use ralph_loop_testkit::model_server::{Action, ModelServer, Script};
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};

const KEY: &str = "canary-key-4711-abc";

fn models(env: &TestEnv, repo: &TestRepo<'_>, args: &[&str], key: bool) -> Finished {
    let mut command = env.ralph_command(&repo.dir, &[&["models"], args].concat());
    if key {
        command.env("TEAM_PROXY_KEY", KEY);
    }
    TestEnv::finish(&mut command)
}

fn row<'a>(list: &'a Value, name: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|row| row["name"] == name).unwrap()
}

#[test]
fn models_list_shows_server_and_key_name_but_not_the_key() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write(
        ".ralph/models.yaml",
        "default: team\nprofiles:\n  team:\n    litellm_model: litellm_proxy/glm-4.7\n    base_url: http://127.0.0.1:4000\n    api_key_env: TEAM_PROXY_KEY\n",
    );
    repo.ralph(&["trust", "--yes"]).exits(0);
    let listed = models(&env, &repo, &["--json"], true).exits(0);
    let list = listed.json();
    let team = row(&list, "team");
    assert_eq!(
        (&team["server"], &team["key_variable"], &team["key_set"], &team["default"], &team["from"]),
        (&json!("127.0.0.1:4000"), &json!("TEAM_PROXY_KEY"), &json!(true), &json!(true), &json!("repo"))
    );
    assert_eq!(team["prices"]["input"], 0.6);
    let cheap = row(&list, "default-cheap");
    assert_eq!((&cheap["key_variable"], &cheap["from"]), (&json!("ZAI_API_KEY"), &json!("built-in")));
    let shown = models(&env, &repo, &[], true).exits(0);
    assert!(shown.stdout.contains("team (default)") && shown.stdout.contains("api.z.ai"), "{}", shown.stdout);
    for said in [&listed.stdout, &shown.stdout, &shown.stderr] {
        assert!(!said.contains(KEY));
    }
}

#[test]
fn models_check_calls_the_model_and_reports_the_error() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let server = ModelServer::start().unwrap();
    server.script("say", Script::turns([Action::text("ok")]));
    let profile = |name: &str, scenario: &str| {
        let base = server.base_url(scenario, "check");
        format!(
            "  {name}: {{litellm_model: zai/glm-4.7, base_url: '{base}/v1', api_key_env: TEAM_PROXY_KEY}}\n"
        )
    };
    let yaml = format!("default: good\nprofiles:\n{}{}", profile("good", "say"), profile("locked", "auth"));
    repo.write(".ralph/models.yaml", &yaml);
    let waits = models(&env, &repo, &["check"], true).exits(3);
    assert!(waits.stderr.contains("your key TEAM_PROXY_KEY to be sent to"), "{}", waits.stderr);
    assert!(server.requests("say", "check").is_empty(), "nothing was sent");
    repo.ralph(&["trust", "--yes"]).exits(0);
    let good = models(&env, &repo, &["check"], true).exits(0);
    assert!(good.stdout.contains("good: zai/glm-4.7 at 127.0.0.1:"), "{}", good.stdout);
    let json = models(&env, &repo, &["check", "good", "--json"], true).exits(0).json();
    assert_eq!((&json["success"], &json["tokens"]["cached"]), (&json!(true), &json!(800)));
    let locked = models(&env, &repo, &["check", "locked"], true).exits(4);
    assert!(locked.stderr.contains("answered 401"), "{}", locked.stderr);
    assert!(locked.stderr.contains("next: check TEAM_PROXY_KEY"), "{}", locked.stderr);
    let missing = models(&env, &repo, &["check", "good"], false).exits(4);
    assert!(missing.stderr.contains("TEAM_PROXY_KEY is not set"), "{}", missing.stderr);
    let unknown = models(&env, &repo, &["check", "goood"], true).exits(2);
    assert!(unknown.stderr.contains("did you mean `good`?"), "{}", unknown.stderr);
    for said in [&good.stdout, &locked.stderr, &missing.stderr] {
        assert!(!said.contains(KEY));
    }
}

#[test]
fn cloned_repo_cannot_redirect_a_model_key() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write(
        "config/models.yaml",
        "profiles:\n  x: {litellm_model: openai/x, base_url: 'https://evil.example/v1'}\n",
    );
    let refused = models(&env, &repo, &["check", "x"], true).exits(3);
    assert!(
        refused.stderr.contains("your key OPENAI_API_KEY to be sent to `https://evil.example/v1`"),
        "{}",
        refused.stderr
    );
    let list = models(&env, &repo, &["--json"], true).exits(0).json();
    assert_eq!(row(&list, "x")["key_variable"], Value::Null, "it has no key before that is allowed");
    assert!(refused.stderr.contains("put this profile into your own models.yaml"), "{}", refused.stderr);
}
