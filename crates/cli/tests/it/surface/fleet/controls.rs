//! Controls reach a run on any machine, and only its worker drives it.

use crate::surface::fleet::cluster::{PARTS, World};
use ralph_loop_fleet::letters;
use ralph_loop_fleet::mirror::Mirror;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_protocol::control::{Control, Letter};
use ralph_loop_testkit::env::until;

#[test]
fn control_reaches_a_run_on_another_machine_once() {
    let Some(world) = World::new("sleep 600") else { return };
    let run = world.add("word");
    let mut driver = world.spawn(0, &["--once", run.as_str()], None);
    let kinds =
        || world.events(&run).iter().map(|e| e["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    until("the session", || kinds().contains(&"iteration_started".to_owned()).then_some(()));
    let letter = Letter { id: "x1".into(), from: "ana via web".into(), control: Control::Cancel };
    for _ in 0..2 {
        world.fleet.wait(letters::send(world.fleet.pool(), run.as_str(), &letter)).unwrap();
    }
    driver.wait().unwrap();
    assert_eq!(kinds().iter().filter(|kind| *kind == "control_received").count(), 1);
    assert_eq!(world.find(&run).status, "over");
}

#[test]
fn server_shows_a_remote_run_but_cannot_drive_it() {
    let Some(world) = World::new(PARTS) else { return };
    let run = world.add("show");
    world.drive(0, &run);
    let home = StateHome::at(&world.home.path("state/ralph"));
    let mut mirror = Mirror::default();
    let runtime = tokio_runtime();
    let shown = runtime.block_on(async {
        let fleet = ralph_loop_fleet::Fleet::connect(&world.postgres.url, 2).await.unwrap();
        mirror.turn(&fleet, &home, &Default::default(), &world.files()).await.unwrap()
    });
    assert_eq!(shown, std::slice::from_ref(&run));
    let folder = world.home.path("home");
    let seen = world.home.ralph(&folder, &["status", run.as_str(), "--json"]).exits(0);
    assert!(seen.stdout.contains("done"), "{}", seen.stdout);
    let refused = world.home.ralph(&folder, &["resume", run.as_str()]).exits(2);
    assert!(refused.stderr.contains("belongs to a fleet"), "{}", refused.stderr);
}

fn tokio_runtime() -> ralph_loop_fleet::db::Runtime {
    ralph_loop_fleet::db::runtime().unwrap()
}
