//! The files and messages of `init`.

use super::*;

fn nothing() -> Environment {
    Environment::new(Default::default(), "/")
}

#[test]
fn a_profile_is_written_with_the_tests_that_are_found_and_can_be_read_again() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("Cargo.toml"), "").unwrap();
    let draft = draft(&nothing(), Profile::Claude, folder.path()).unwrap();
    let text = serde_json::to_string_pretty(&draft.file).unwrap();
    assert_eq!(ConfigFile::parse(&text).unwrap(), draft.file);
    insta::assert_snapshot!(text, @r#"
    {
      "version": 1,
      "agents": [
        {
          "name": "claude",
          "kind": "cli",
          "command_argv": [
            "claude",
            "-p",
            "--output-format",
            "stream-json",
            "--verbose",
            "--dangerously-skip-permissions"
          ],
          "prompt_mode": "stdin",
          "output_format": "claude-stream-json",
          "timeout_seconds": 1800,
          "idle_timeout_seconds": 600,
          "empty_retries": 2,
          "rate_limit_detection": {},
          "model_argv": [
            "--model",
            "{{model}}"
          ],
          "env": {
            "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1"
          }
        }
      ],
      "verifiers": [
        {
          "name": "tests",
          "command_argv": [
            "cargo",
            "test"
          ],
          "run_when": "on_change",
          "timeout_seconds": 1800
        }
      ],
      "max_iterations": 30,
      "max_wall_time_minutes": 120.0,
      "max_cost_usd_estimate": 10.0
    }
    "#);
}

#[test]
fn without_tests_the_key_is_left_out_and_the_next_step_says_how() {
    let folder = tempfile::tempdir().unwrap();
    let draft = draft(&nothing(), Profile::Command, folder.path()).unwrap();
    assert!(draft.file.verifiers.is_none());
    let object = object(
        Profile::Command,
        Path::new("/r/.ralph/config.json"),
        &draft,
        &next_steps(Profile::Command, &draft, folder.path(), true),
    );
    insta::assert_json_snapshot!(object, @r#"
    {
      "agents": [
        "my-agent"
      ],
      "also_found": [],
      "imported_from": null,
      "next": [
        "put the command of your agent into `command_argv`; it gets the prompt on stdin",
        "say how the result is checked: \"verifiers\": [{\"name\": \"tests\", \"command_argv\": [\"make\", \"test\"]}]",
        "write the task and its checks to `PROMPT.md`, or run `ralph init --task`",
        "`ralph run` starts the loop"
      ],
      "profile": "command",
      "verifiers": [],
      "written": "/r/.ralph/config.json"
    }
    "#);
}

#[test]
fn the_older_format_is_taken_over_under_its_new_names() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::create_dir(folder.path().join(".ralf")).unwrap();
    let old = r#"{"modals":[{"name":"mine","command_argv":["mine"]}],"modal_priority":["mine"],"max_iterations":7,
        "verifiers":[{"name":"lint","command_argv":["lint"]}]}"#;
    std::fs::write(folder.path().join(".ralf/config.json"), old).unwrap();
    let kept = draft(&nothing(), Profile::Auto, folder.path()).unwrap();
    assert_eq!(agent_names(&kept), ["mine"]);
    assert_eq!(kept.file.max_iterations, Some(7));
    let text = serde_json::to_string(&kept.file).unwrap();
    assert!(text.contains("\"agent_priority\"") && !text.contains("modal"), "{text}");
    let named = draft(&nothing(), Profile::Codex, folder.path()).unwrap();
    assert_eq!(agent_names(&named), ["codex"]);
    assert_eq!(named.file.agent_priority, None);
    std::fs::write(folder.path().join(".ralf/config.json"), "{\n  \"modal\": 1\n}").unwrap();
    assert!(draft(&nothing(), Profile::Auto, folder.path()).unwrap_err().message.contains("config.json:2:"));
}
