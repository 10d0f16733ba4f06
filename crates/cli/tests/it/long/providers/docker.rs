//! Containers of a real engine. Without one, these tests are skipped with the reason.
#![allow(clippy::disallowed_methods, reason = "a test asks what it was started with")]

use crate::long::providers::fixture::Fixture;
use crate::long::providers::stories;
use ralph_loop_testkit::docker::engine;
use serde_json::json;
use std::path::Path;

fn fixture() -> Option<Fixture> {
    let engine = engine()?;
    Some(Fixture::new("docker", &[("DOCKER_HOST", &engine)], json!({"image": "ralph-test:local"})))
}

#[test]
fn run_in_a_container_is_proven() {
    let Some(fixture) = fixture() else { return };
    stories::assert_proven(&fixture);
}

#[test]
fn container_pull_request_says_checks_were_not_watched() {
    let Some(fixture) = fixture() else { return };
    stories::pull_request_says_unwatched(&fixture);
}

#[test]
fn killed_run_resumes_in_its_container() {
    let Some(fixture) = fixture() else { return };
    stories::kill_and_resume(&fixture, Path::new(".ralph/waiting"));
}

#[test]
fn destroyed_container_is_recreated() {
    let Some(fixture) = fixture() else { return };
    stories::destroy_during_session(&fixture, Path::new(".ralph/waiting"));
}

#[test]
fn cancelled_run_keeps_its_container_stopped() {
    let Some(fixture) = fixture() else { return };
    stories::cancel_keeps_sandbox(&fixture, Path::new(".ralph/waiting"));
}

#[test]
fn git_in_a_container_commits_as_the_user() {
    let Some(fixture) = fixture() else { return };
    stories::commits_as_the_user(&fixture);
}

#[test]
fn missing_requirements_are_reported_before_a_container_is_created() {
    let fixture = Fixture::new("docker", &[], json!({}));
    let repo = fixture.repo(Fixture::shell_agent("true"), "true");
    let refused = fixture.ralph(&repo, &["run"]).exits(4);
    assert!(refused.stderr.contains("DOCKER_HOST"), "{}", refused.stderr);
    let refused = fixture.ralph(&repo, &["run", "--provider", "e2b"]).exits(4);
    assert!(refused.stderr.contains("E2B_API_KEY"), "{}", refused.stderr);
    let refused = fixture.ralph(&repo, &["run", "--provider", "dockr"]).exits(2);
    assert!(refused.stderr.contains("docker-sandbox"), "{}", refused.stderr);
    assert!(fixture.runs().is_empty());
}

#[test]
fn agent_missing_from_the_image_is_reported() {
    let Some(fixture) = fixture() else { return };
    let agent = json!({"name": "claude", "command_argv": ["claude", "-p"]});
    let repo = fixture.repo(agent, "true");
    let refused = fixture.ralph(&repo, &["run", "--yes"]).exits(4);
    assert!(
        refused.stderr.contains("`claude`") && refused.stderr.contains("sandbox_image"),
        "{}",
        refused.stderr
    );
    let list = fixture.ralph(&repo, &["sandbox", "list", "--json"]).exits(0).json();
    let fences = fixture.env.path("state").join("ralph/fences");
    let run = std::fs::read_dir(fences).unwrap().flatten().next().unwrap().file_name().into_string().unwrap();
    assert!(!list.to_string().contains(&run), "{list}");
    assert!(fixture.runs().is_empty(), "nothing is left of a run that could not begin");
    assert_eq!(repo.git(&["branch", "--list", "ralph/*"]), "");
    assert_eq!(repo.git(&["worktree", "list"]).lines().count(), 1);
}

#[test]
fn kept_sandbox_stays() {
    let Some(fixture) = fixture() else { return };
    let agent = Fixture::shell_agent("echo done > part.txt; echo '<promise>COMPLETE</promise>'");
    let repo = fixture.repo(agent, "grep -q done part.txt");
    let done = fixture.ralph(&repo, &["run", "--json", "--keep-sandbox"]).exits(0);
    let kept = fixture.sandboxes(&repo);
    assert_eq!(kept.len(), 1, "the one for the proof is gone: {kept:?}");
    assert_eq!(kept[0]["state"], "running");
    assert!(done.stderr.contains("ralph sandbox rm"), "{}", done.stderr);
    let shown = fixture.ralph(&repo, &["show", &fixture.runs()[0]]).exits(0).stdout;
    assert!(shown.contains("docker, image ralph-test:local"), "{shown}");
    assert!(shown.contains(kept[0]["id"].as_str().unwrap()), "{shown}");
}

#[test]
fn agent_in_a_container_reaches_neither_git_nor_the_network() {
    let Some(fixture) = fixture() else { return };
    let script = "git rev-parse HEAD >/dev/null && echo sees-git > part.txt; \
        (echo x > .git/hooks/pre-commit) 2>/dev/null && echo wrote-hook >> part.txt; \
        (echo x > \"$(git rev-parse --git-common-dir)/config\") 2>/dev/null && echo wrote-config >> part.txt; \
        git commit -q --allow-empty -m x 2>/dev/null && echo committed >> part.txt; \
        wget -q -O - http://198.51.100.7/ 2>/dev/null; wget -q -O - http://nowhere.example/ 2>/dev/null; \
        echo '<promise>COMPLETE</promise>'";
    let repo = fixture.repo(Fixture::shell_agent(script), "test -s part.txt");
    let done = fixture.ralph(&repo, &["run", "--json"]).exits(0).json();
    let part = repo.git(&["show", &format!("{}:part.txt", done["ref"].as_str().unwrap())]);
    assert_eq!(part, "sees-git");
    let refused: Vec<_> = fixture.events_named("egress_refused").iter().map(|e| e["host"].clone()).collect();
    assert!(
        refused.contains(&json!("nowhere.example")) && refused.contains(&json!("198.51.100.7")),
        "{refused:?}"
    );
}

#[test]
fn login_is_inside_only_during_a_session_and_renewed_tokens_come_back() {
    let Some(fixture) = fixture() else { return };
    let home = fixture.env.path("home").join(".claude");
    std::fs::create_dir_all(&home).unwrap();
    std::fs::write(home.join(".credentials.json"), r#"{"token":"old"}"#).unwrap();
    std::fs::write(home.join("settings.json"), "{}").unwrap();
    let agent = json!({"name": "claude", "command_argv": ["bin/claude"]});
    let repo = fixture.repo(agent, "grep -q old part.txt && test ! -e ~/.claude/.credentials.json");
    let program = "#!/bin/sh\ncat >/dev/null; cat ~/.claude/.credentials.json > part.txt\n\
        echo '{\"token\":\"new\"}' > ~/.claude/.credentials.json; echo evil > ~/.claude/settings.json\n\
        echo '<promise>COMPLETE</promise>'\n";
    repo.write("bin/claude", program);
    repo.git(&["add", "-A"]);
    repo.git(&["update-index", "--chmod=+x", "bin/claude"]);
    repo.git(&["commit", "-q", "-m", "an agent"]);
    fixture.ralph(&repo, &["run", "--json"]).exits(3);
    fixture.ralph(&repo, &["run", "--json", "--yes"]).exits(0);
    let token = std::fs::read_to_string(home.join(".credentials.json")).unwrap();
    assert_eq!(token.trim(), r#"{"token":"new"}"#);
    assert_eq!(
        std::fs::read_to_string(home.join("settings.json")).unwrap(),
        "{}",
        "settings never come back"
    );
}
