//! Fleet runs in containers and clouds: the next worker reuses the sandbox if it can reach it, and otherwise creates a new one.

use crate::surface::fleet::cluster::{PARTS, World};
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::config::ProviderName;
use ralph_loop_testkit::TestEnv;
use ralph_loop_testkit::docker::engine;
use ralph_loop_testkit::fake_daytona::FakeDaytona;
use serde_json::{Value, json};

/// Lease seconds: creating a sandbox is slow on a busy machine.
const LEASE: u32 = 15;

/// The agent of both machines is a script that exists in every sandbox.
fn configure(world: &World, sandbox: &Value) {
    for machine in &world.machines {
        machine.user_config(&json!({
            "agents": [{ "name": "stub", "command_argv": ["sh", "-c", format!("cat > /dev/null\n{PARTS}")] }],
            "local_forge": world.home.path("forge"), "sandbox": sandbox,
            "poll_seconds": 0.05, "baseline": false, "max_iterations": 6,
        }));
    }
}

/// Kills the first machine in its second session and removes its disk, calls `meanwhile`, and lets the other machine finish.
/// Returns the sandboxes of the run, in order.
fn continue_elsewhere(
    world: &World,
    provider: ProviderName,
    name: &str,
    meanwhile: impl FnOnce(&RunId),
) -> Vec<String> {
    let (run, issue) = world.add_changed(name, |request| {
        request.provider = Some(provider);
        request.isolation = None;
    });
    let mut first = world.spawn(0, &["--once", run.as_str()], Some("work.session#2"));
    first.wait().unwrap();
    assert_eq!(world.find(&run).status, "driven", "{}", world.log(0));
    std::fs::remove_dir_all(world.machines[0].path("state")).unwrap();
    meanwhile(&run);
    world.drive(1, &run);
    world.assert_done_once(&run, issue);
    let events = world.events(&run);
    assert!(events.iter().any(|event| event["kind"] == "moved"));
    let iterations = events.iter().filter(|event| event["kind"] == "iteration_ended").count();
    assert_eq!(iterations, 3, "an interrupted session isn't an iteration");
    let ready = events.iter().filter(|event| event["kind"] == "sandbox_ready");
    ready.map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

/// A cloud that both machines can reach.
fn cloud() -> Option<(FakeDaytona, World)> {
    let mut world = World::new("true")?.with_lease(LEASE);
    let cloud = FakeDaytona::start().unwrap();
    for vars in &mut world.vars {
        vars.push(("DAYTONA_API_URL".to_owned(), cloud.url()));
        vars.push(("DAYTONA_API_KEY".to_owned(), cloud.key().to_owned()));
    }
    configure(&world, &json!({}));
    Some((cloud, world))
}

#[test]
fn cloud_machine_is_reused_by_the_next_worker() {
    let Some((cloud, world)) = cloud() else { return };
    let ready = continue_elsewhere(&world, ProviderName::Daytona, "dayt", |_| {});
    assert_eq!(ready.len(), 3, "{ready:?}");
    assert_eq!(ready[0], ready[1], "it was found again");
    assert_eq!(cloud.made(), 2, "one to work in, one for the proof");
    assert_eq!(cloud.left(), Vec::<String>::new(), "nothing is paid for any longer");
}

#[test]
fn lost_cloud_machine_is_recreated() {
    let Some((cloud, world)) = cloud() else { return };
    let ready = continue_elsewhere(&world, ProviderName::Daytona, "dayg", |_| cloud.lose_all());
    assert_eq!(cloud.made(), 3, "{ready:?}");
    assert_eq!(cloud.left(), Vec::<String>::new(), "nothing is paid for any longer");
}

#[test]
fn container_of_another_machine_is_recreated() {
    let Some(world) = World::new("true") else { return };
    let mut world = world.with_lease(LEASE);
    let Some(engine) = engine() else { return };
    for vars in &mut world.vars {
        vars.push(("DOCKER_HOST".to_owned(), engine.clone()));
    }
    configure(&world, &json!({"image": "ralph-test:local"}));
    let containers = |run: &RunId| -> usize {
        let machine = &world.machines[1];
        let mut list = machine.ralph_command(&machine.path("home"), &["sandbox", "list", "--json"]);
        let list = TestEnv::finish(list.env("DOCKER_HOST", &engine)).exits(0).json();
        let all = list["sandboxes"].as_array().unwrap();
        all.iter().filter(|one| one["run"].as_str().is_some_and(|of| of.starts_with(run.as_str()))).count()
    };
    let mut made = None;
    continue_elsewhere(&world, ProviderName::Docker, "cont", |run| {
        assert_eq!(containers(run), 1, "it is still there");
        made = Some(run.clone());
    });
    assert_eq!(containers(&made.unwrap()), 0, "nothing is left of it");
}
