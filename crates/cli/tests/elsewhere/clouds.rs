//! Clouds, with stand-ins that are held to the vendors' published interfaces and run commands for real.

use crate::fixture::Fixture;
use crate::stories;
use ralph_testkit::fake_daytona::FakeDaytona;
use ralph_testkit::fake_e2b::FakeE2b;
use ralph_testkit::fake_vercel::FakeVercel;
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
            fn works_to_a_proven_end() {
                let (_cloud, fixture) = super::$name();
                stories::to_a_proven_end(&fixture);
            }

            #[test]
            fn a_killed_run_goes_on_in_its_machine() {
                let (_cloud, fixture) = super::$name();
                stories::killed_and_resumed(&fixture, &fixture.env.path("waiting"));
            }

            #[test]
            fn a_machine_that_is_destroyed_is_made_again() {
                let (_cloud, fixture) = super::$name();
                stories::destroyed_in_the_middle(&fixture, &fixture.env.path("waiting"));
            }

            #[test]
            fn git_commits_as_the_user() {
                let (_cloud, fixture) = super::$name();
                stories::commits_as_the_user(&fixture);
            }

            #[test]
            fn the_machine_of_a_cancelled_run_rests() {
                let (_cloud, fixture) = super::$name();
                stories::cancelled_and_kept(&fixture, &fixture.env.path("waiting"));
            }
        }
    };
}

stories_of!(daytona);
stories_of!(e2b);
stories_of!(vercel);

#[test]
fn a_task_and_a_variable_choose_the_provider_and_a_flag_stands_above() {
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
    ralph_testkit::TestEnv::finish(command.env("RALPH_DEFAULT_PROVIDER", "e2b")).exits(0);
    assert_eq!(cloud.made(), 4);
    let mut command = fixture.command(&repo, &["run", "--json", "--isolation", "none", "--new", "PROMPT.md"]);
    ralph_testkit::TestEnv::finish(command.env("RALPH_DEFAULT_PROVIDER", "e2b")).exits(0);
    assert_eq!(cloud.made(), 4, "whoever says how this machine fences means this machine");
    let mut command = fixture.command(&repo, &["run", "--new", "PROMPT.md"]);
    let refused = ralph_testkit::TestEnv::finish(command.env("RALPH_DEFAULT_PROVIDER", "e3b")).exits(2);
    assert!(refused.stderr.contains("RALPH_DEFAULT_PROVIDER"), "{}", refused.stderr);
}

/// Runs on Daytona with these words of repo and user; what the vendor was asked to make first.
fn asked_of_daytona(repo_says: serde_json::Value, user_says: &serde_json::Value) -> serde_json::Value {
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
fn daytona_builds_our_image_in_any_size_unless_told_otherwise() {
    let asked = asked_of_daytona(json!({"vcpu": 2, "memory_gib": 4, "disk_gib": 8}), &json!({}));
    let built = asked["buildInfo"]["dockerfileContent"].as_str().unwrap();
    assert_eq!(built, include_str!("../../../../images/ralph/Dockerfile"));
    assert!(!built.lines().any(|line| line.starts_with("COPY ") && !line.contains("--from=")), "no context");
    assert_eq!((&asked["cpu"], &asked["memory"], &asked["disk"]), (&json!(2), &json!(4), &json!(8)));
}

#[test]
fn daytona_takes_an_image_of_ones_own_and_shares_volumes() {
    let own = "FROM debian:12\nRUN apt-get update && apt-get install -y git\n";
    let volumes = json!({"sandbox": {"volumes": {"cargo": "/cache"}}});
    let asked = asked_of_daytona(json!({ "image": own }), &volumes);
    assert_eq!(asked["buildInfo"]["dockerfileContent"], own);
    assert_eq!(asked["volumes"], json!([{"volumeId": "vol-cargo", "mountPath": "/cache"}]));
    let asked = asked_of_daytona(json!({"image": "debian:12"}), &json!({}));
    assert_eq!(asked["buildInfo"]["dockerfileContent"], "FROM debian:12\n");
}

#[test]
fn daytona_starts_from_a_snapshot_which_has_a_size_of_its_own() {
    let asked = asked_of_daytona(json!({"snapshot": "team-base"}), &json!({}));
    assert_eq!((&asked["snapshot"], &asked["buildInfo"]), (&json!("team-base"), &serde_json::Value::Null));
    let (cloud, mut fixture) = daytona();
    fixture.sandbox = json!({"snapshot": "team-base", "vcpu": 2});
    let repo = fixture.repo(Fixture::shell_agent("true"), "true");
    let refused = fixture.ralph(&repo, &["run", "--yes"]).exits(4);
    assert!(refused.stderr.contains("name a snapshot of that size"), "{}", refused.stderr);
    assert_eq!(cloud.made(), 0);
}
