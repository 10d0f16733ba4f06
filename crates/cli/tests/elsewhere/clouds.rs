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
