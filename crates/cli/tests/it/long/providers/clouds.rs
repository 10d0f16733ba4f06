//! Clouds, as fakes that follow the vendors' published interfaces and really run commands.

use crate::long::providers::fixture::Fixture;
use crate::long::providers::stories;
use ralph_loop_testkit::TestEnv;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::fake_daytona::FakeDaytona;
use ralph_loop_testkit::fake_e2b::{FakeE2b, Fault};
use ralph_loop_testkit::fake_vercel::FakeVercel;
use serde_json::json;

fn daytona() -> (FakeDaytona, Fixture) {
    let cloud = FakeDaytona::start().unwrap();
    let vars = [("DAYTONA_API_URL", cloud.url()), ("DAYTONA_API_KEY", cloud.key().to_owned())];
    let fixture = Fixture::new("daytona", &vars.each_ref().map(|(n, v)| (*n, v.as_str())), json!({}));
    (cloud, fixture)
}

fn e2b() -> (FakeE2b, Fixture) {
    let cloud = FakeE2b::start().unwrap();
    let vars = [
        ("E2B_API_URL", cloud.url()),
        ("E2B_SANDBOX_URL", cloud.url()),
        ("E2B_API_KEY", cloud.key().to_owned()),
    ];
    let fixture = Fixture::new("e2b", &vars.each_ref().map(|(n, v)| (*n, v.as_str())), json!({}));
    (cloud, fixture)
}

fn vercel() -> (FakeVercel, Fixture) {
    let cloud = FakeVercel::start().unwrap();
    let vars = [
        ("VERCEL_SANDBOX_API_URL", cloud.url()),
        ("VERCEL_TOKEN", cloud.token().to_owned()),
        ("VERCEL_TEAM_ID", FakeVercel::TEAM.to_owned()),
        ("VERCEL_PROJECT_ID", FakeVercel::PROJECT.to_owned()),
    ];
    let fixture = Fixture::new("vercel", &vars.each_ref().map(|(n, v)| (*n, v.as_str())), json!({}));
    (cloud, fixture)
}

macro_rules! stories_of {
    ($name:ident) => {
        mod $name {
            use super::*;

            #[test]
            fn run_is_proven() {
                let (_cloud, fixture) = super::$name();
                stories::assert_proven(&fixture);
            }

            #[test]
            fn pull_request_says_checks_were_not_watched() {
                let (_cloud, fixture) = super::$name();
                stories::pull_request_says_unwatched(&fixture);
            }

            #[test]
            fn killed_run_resumes_in_its_machine() {
                let (_cloud, fixture) = super::$name();
                stories::kill_and_resume(&fixture, &fixture.env.path("waiting"));
            }

            #[test]
            fn destroyed_machine_is_recreated() {
                let (_cloud, fixture) = super::$name();
                stories::destroy_during_session(&fixture, &fixture.env.path("waiting"));
            }

            #[test]
            fn git_commits_as_the_user() {
                let (_cloud, fixture) = super::$name();
                stories::commits_as_the_user(&fixture);
            }

            #[test]
            fn cancelled_run_keeps_its_machine_stopped() {
                let (_cloud, fixture) = super::$name();
                stories::cancel_keeps_sandbox(&fixture, &fixture.env.path("waiting"));
            }
        }
    };
}

stories_of!(daytona);
stories_of!(e2b);
stories_of!(vercel);

#[test]
fn flag_overrides_the_provider_of_task_and_variable() {
    let (cloud, fixture) = e2b();
    let task = "---\ntask_id: t-1\ntest_command: grep -q done part.txt\nmax_iterations: 3\nmax_wall_time_minutes: 5\n\
        max_cost_usd_estimate: 1\nsandbox_provider: e2b\n---\n# Task: The part\n\nWrite it.\n\n## Success criteria\n\
        - [ ] M1.1 `part.txt` is there\n  - verify: `test -f part.txt`\n\
        - [ ] M1.2 it says done\n  - verify: `grep -q done part.txt`\n";
    let script = "echo done > part.txt; [ ! -e ralph_task.md ] || sed -i 's/- \\[ \\]/- [x]/' ralph_task.md; \
        echo '<promise>COMPLETE</promise>'";
    let repo = fixture.repo(Fixture::shell_agent(script), "grep -q done part.txt");
    let config: serde_json::Value = serde_json::from_str(&repo.read(".ralph/config.json")).unwrap();
    let mut config = config;
    config.as_object_mut().unwrap().remove("sandbox");
    repo.config(&config);
    repo.write("ralph_task.md", task);
    repo.git(&["add", "-A"]);
    repo.git(&["commit", "-q", "-m", "a task"]);
    let by_task = fixture.ralph(&repo, &["run", "--json", "ralph_task.md"]);
    assert_eq!(cloud.made(), 2, "one to work in, one for the proof: {by_task:?}");
    by_task.exits(0);
    let mut command = fixture.command(&repo, &["run", "--json", "PROMPT.md"]);
    ralph_loop_testkit::TestEnv::finish(command.env("RALPH_DEFAULT_PROVIDER", "e2b")).exits(0);
    assert_eq!(cloud.made(), 4);
    let mut command = fixture.command(&repo, &["run", "--json", "--isolation", "none", "--new", "PROMPT.md"]);
    ralph_loop_testkit::TestEnv::finish(command.env("RALPH_DEFAULT_PROVIDER", "e2b")).exits(0);
    assert_eq!(cloud.made(), 4, "a local isolation setting selects this machine");
    let mut command = fixture.command(&repo, &["run", "--new", "PROMPT.md"]);
    let refused = ralph_loop_testkit::TestEnv::finish(command.env("RALPH_DEFAULT_PROVIDER", "e3b")).exits(2);
    assert!(refused.stderr.contains("RALPH_DEFAULT_PROVIDER"), "{}", refused.stderr);
}

/// Runs on Daytona with these settings of repo and user; returns the first creation request.
fn daytona_create_request(repo_says: serde_json::Value, user_says: &serde_json::Value) -> serde_json::Value {
    let (cloud, mut fixture) = daytona();
    fixture.sandbox = repo_says;
    fixture.env.user_config(user_says);
    let script = "echo done > part.txt; echo '<promise>COMPLETE</promise>'";
    let repo = fixture.repo(Fixture::shell_agent(script), "grep -q done part.txt");
    fixture.ralph(&repo, &["run", "--json", "--yes"]).exits(0);
    let seen = cloud.seen().into_iter().find(|seen| seen.line == "POST /sandbox").unwrap();
    serde_json::from_str(&seen.body).unwrap()
}

#[test]
fn daytona_builds_the_default_image_in_any_size() {
    let asked = daytona_create_request(json!({"vcpu": 2, "memory_gib": 4, "disk_gib": 8}), &json!({}));
    let built = asked["buildInfo"]["dockerfileContent"].as_str().unwrap();
    assert_eq!(built, include_str!("../../../../../../images/ralph/Dockerfile"));
    assert!(!built.lines().any(|line| line.starts_with("COPY ") && !line.contains("--from=")), "no context");
    assert_eq!((&asked["cpu"], &asked["memory"], &asked["disk"]), (&json!(2), &json!(4), &json!(8)));
}

#[test]
fn daytona_uses_a_custom_image_and_shared_volumes() {
    let own = "FROM debian:12\nRUN apt-get update && apt-get install -y git\n";
    let volumes = json!({"sandbox": {"volumes": {"cargo": "/cache"}}});
    let asked = daytona_create_request(json!({ "image": own }), &volumes);
    assert_eq!(asked["buildInfo"]["dockerfileContent"], own);
    assert_eq!(asked["volumes"], json!([{"volumeId": "vol-cargo", "mountPath": "/cache"}]));
    let asked = daytona_create_request(json!({"image": "debian:12"}), &json!({}));
    assert_eq!(asked["buildInfo"]["dockerfileContent"], "FROM debian:12\n");
}

#[test]
fn daytona_starts_from_a_snapshot_with_its_own_size() {
    let asked = daytona_create_request(json!({"snapshot": "team-base"}), &json!({}));
    assert_eq!((&asked["snapshot"], &asked["buildInfo"]), (&json!("team-base"), &serde_json::Value::Null));
    let (cloud, mut fixture) = daytona();
    fixture.sandbox = json!({"snapshot": "team-base", "vcpu": 2});
    let repo = fixture.repo(Fixture::shell_agent("true"), "true");
    let refused = fixture.ralph(&repo, &["run", "--yes"]).exits(4);
    assert!(refused.stderr.contains("name a snapshot of that size"), "{}", refused.stderr);
    assert_eq!(cloud.made(), 0);
}

/// A run that keeps its machine, as the user sees it.
fn kept_machine(fixture: &Fixture) -> (ralph_loop_testkit::TestRepo<'_>, String, String) {
    let script = "echo done > part.txt; echo '<promise>COMPLETE</promise>'";
    let repo = fixture.repo(Fixture::shell_agent(script), "grep -q done part.txt");
    let done = fixture.ralph(&repo, &["run", "--json", "--keep-sandbox"]).exits(0).json();
    let (run, id) =
        (done["run_id"].as_str().unwrap().to_owned(), done["sandboxes"][0].as_str().unwrap().to_owned());
    fixture.ralph(&repo, &["show", &run]).exits(0);
    (repo, run, id)
}

#[test]
fn cleanup_stops_waiting_for_a_silent_cloud_and_names_it() {
    let (cloud, fixture) = e2b();
    let (repo, run, id) = kept_machine(&fixture);
    cloud.fail("GET /v2/sandboxes", Fault::Drip(std::time::Duration::from_millis(50)));
    let mut command = fixture.command(&repo, &["clean", "--older-than", "0d", "--yes", "--json"]);
    let slow = TestEnv::finish(command.env("RALPH_PROVIDER_SECONDS", "2")).exits(1).json();
    let problem = slow["problems"][0].as_str().unwrap();
    assert!(problem.contains("e2b did not answer within 2 seconds") && problem.contains(&id), "{slow}");
    assert!(
        !fixture.env.path("state/ralph/workspaces").join(&run).exists(),
        "what is here is cleaned up: {slow}"
    );
    assert!(cloud.asked(&id).is_some());
    // The machine is known, and is removed once the cloud answers.
    let done = fixture.ralph(&repo, &["clean", "--older-than", "0d", "--yes", "--json"]).exits(0).json();
    assert_eq!((&done["problems"], cloud.asked(&id)), (&json!([]), None), "{done}");
    let third = fixture.ralph(&repo, &["clean", "--older-than", "0d", "--yes", "--json"]).exits(0).json();
    assert_eq!(third["runs"], json!([]), "nothing is left of it: {third}");
}

#[test]
fn machine_of_an_unconfigured_cloud_is_reported() {
    let (cloud, fixture) = e2b();
    let (repo, _, id) = kept_machine(&fixture);
    let mut command =
        fixture.env.ralph_command(&repo.dir, &["clean", "--older-than", "0d", "--yes", "--json"]);
    let left = TestEnv::finish(command.env("DOCKER_HOST", "ssh://nowhere")).exits(1).json();
    let problem = left["problems"][0].as_str().unwrap();
    assert!(problem.contains(&id) && problem.contains("e2b is not configured here"), "{left}");
    assert!(cloud.asked(&id).is_some());
}

/// Cloud answers are untrusted: whatever they contain, the command ends with an error, and the next one works.
#[test]
fn malformed_and_endless_cloud_answers_end_in_errors() {
    let (cloud, fixture) = e2b();
    let script = "echo done > part.txt; echo '<promise>COMPLETE</promise>'";
    let repo = fixture.repo(Fixture::shell_agent(script), "grep -q done part.txt");
    let nested = "[".repeat(200_000);
    let ids = json!({"sandboxID": ["a"], "templateID": 7, "envdVersion": null}).to_string();
    let steering = json!({"message": "\u{1b}]52;c;bWFya2Vk\u{7}\u{202e}\r\nmarked"}).to_string();
    let frames = [&[0_u8, 0xff, 0xff, 0xff, 0xff][..], b"{}"].concat();
    for (part, fault) in [
        ("GET /v2/sandboxes", Fault::Endless),
        ("GET /v2/sandboxes", Fault::Instead(nested.into_bytes())),
        ("GET /v2/sandboxes", Fault::Instead(b"{\"a\": 1}".to_vec())),
        ("GET /v2/sandboxes", Fault::Instead(vec![0xff; 4096])),
        ("POST /sandboxes", Fault::Endless),
        ("POST /sandboxes", Fault::Instead(ids.into_bytes())),
        ("POST /sandboxes", Fault::Answer(400, Vec::new(), steering)),
        ("Process/Start", Fault::Instead(frames)),
        ("Process/Start", Fault::Endless),
    ] {
        cloud.fail(part, fault);
        let done = fixture.ralph(&repo, &["run", "--new"]).exits(4);
        let told = format!("{}{}", done.stdout, done.stderr);
        assert!(!told.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{part}: {told}");
        assert!(told.contains("e2b") && told.len() < 20_000, "{part}: {} bytes: {}", told.len(), done.stderr);
    }
    fixture.ralph(&repo, &["run", "--new", "--json"]).exits(0);
}

/// Ctrl-C stops waiting for a slow cloud.
#[test]
fn ctrl_c_stops_waiting_for_a_silent_cloud() {
    let (cloud, fixture) = e2b();
    let repo = fixture.repo(Fixture::shell_agent("true"), "true");
    cloud.fail("POST /sandboxes", Fault::Drip(std::time::Duration::from_millis(50)));
    let child = fixture.spawn(&repo, &["run", "--new"]);
    until("the call", || cloud.seen().iter().any(|seen| seen.line == "POST /sandboxes").then_some(()));
    TestEnv::finish(fixture.env.command("kill", &repo.dir).args(["-INT", &child.id().to_string()])).exits(0);
    TestEnv::wait(child).exits(130);
}
