//! Clouds, with stand-ins that are held to the vendors' published interfaces and run commands for real.

use crate::bench::Bench;
use crate::stories;
use ralph_testkit::fake_daytona::FakeDaytona;
use ralph_testkit::fake_e2b::FakeE2b;
use ralph_testkit::fake_vercel::FakeVercel;
use serde_json::json;

fn daytona() -> (FakeDaytona, Bench) {
    let cloud = FakeDaytona::start().unwrap();
    let vars = [("DAYTONA_API_URL", cloud.url()), ("DAYTONA_API_KEY", cloud.key().to_owned())];
    let bench = Bench::new("daytona", &vars.each_ref().map(|(n, v)| (*n, v.as_str())), json!({}));
    (cloud, bench)
}

fn e2b() -> (FakeE2b, Bench) {
    let cloud = FakeE2b::start().unwrap();
    let vars = [
        ("E2B_API_URL", cloud.url()),
        ("E2B_SANDBOX_URL", cloud.url()),
        ("E2B_API_KEY", cloud.key().to_owned()),
    ];
    let bench = Bench::new("e2b", &vars.each_ref().map(|(n, v)| (*n, v.as_str())), json!({}));
    (cloud, bench)
}

fn vercel() -> (FakeVercel, Bench) {
    let cloud = FakeVercel::start().unwrap();
    let vars = [
        ("VERCEL_SANDBOX_API_URL", cloud.url()),
        ("VERCEL_TOKEN", cloud.token().to_owned()),
        ("VERCEL_TEAM_ID", FakeVercel::TEAM.to_owned()),
        ("VERCEL_PROJECT_ID", FakeVercel::PROJECT.to_owned()),
    ];
    let bench = Bench::new("vercel", &vars.each_ref().map(|(n, v)| (*n, v.as_str())), json!({}));
    (cloud, bench)
}

macro_rules! stories_of {
    ($name:ident) => {
        mod $name {
            use super::*;

            #[test]
            fn works_to_a_proven_end() {
                let (_cloud, bench) = super::$name();
                stories::to_a_proven_end(&bench);
            }

            #[test]
            fn a_killed_run_goes_on_in_its_machine() {
                let (_cloud, bench) = super::$name();
                stories::killed_and_resumed(&bench, &bench.env.path("waiting"));
            }

            #[test]
            fn a_machine_that_is_destroyed_is_made_again() {
                let (_cloud, bench) = super::$name();
                stories::destroyed_in_the_middle(&bench, &bench.env.path("waiting"));
            }

            #[test]
            fn the_machine_of_a_cancelled_run_rests() {
                let (_cloud, bench) = super::$name();
                stories::cancelled_and_kept(&bench, &bench.env.path("waiting"));
            }
        }
    };
}

stories_of!(daytona);
stories_of!(e2b);
stories_of!(vercel);
