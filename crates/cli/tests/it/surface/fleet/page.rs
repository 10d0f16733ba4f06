//! Fleet runs on the dashboard: queued, removed from the queue, and finished.

use crate::surface::fleet::cluster::{PARTS, World};
use crate::surface::serve::machine::Served;
use ralph_loop_fleet::mirror::Mirror;
use ralph_loop_fleet::seal::{Line, PostgresSeal};
use ralph_loop_fleet::{lease, runs, seal};
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_journal::journal::seal::SealSource as _;
use ralph_loop_protocol::id::RunId;
use ralph_loop_sandbox::LeaseClock;
use ralph_loop_testkit::env::until;
use serde_json::{Value, json};
use std::sync::Arc;
use std::time::Duration;

const REPO: &str = "https://host.invalid/o/r.git";

fn ids(served: &Served) -> Vec<String> {
    let page = served.get("/runs?limit=500").is(200).json();
    page["runs"].as_array().unwrap().iter().map(|row| row["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn queued_run_is_shown_and_can_be_removed() {
    let Some(world) = World::new(PARTS) else { return };
    let served = world.serve(&[]);
    let body = |text: &str| json!({ "repo": REPO, "text": text, "verify": ["true"], "labels": ["gpu"] });
    let send = |key: &str, body: &Value| {
        served.send(&served.token, "POST", "/runs", &[("Idempotency-Key", key)], Some(body))
    };
    let linted = served.post("/lint", &json!({ "repo": REPO, "text": "Write three parts" })).is(200).json();
    assert!(linted["findings"].is_array(), "{linted}");
    let made = send("k1", &body("One")).is(201).json();
    let run = made["id"].as_str().unwrap().to_owned();
    assert_eq!(send("k1", &body("One")).is(200).json()["id"], run.as_str(), "at once");
    send("k1", &body("Another")).is(422);
    let shown = served.get(&format!("/runs/{run}")).is(200).json();
    assert_eq!((shown["row"]["status"].as_str(), shown["view"].is_null()), (Some("queued"), true), "{shown}");
    assert!(shown["row"]["now"].as_str().unwrap().contains("worker"), "{shown}");
    assert_eq!(shown["actions"], json!(["cancel"]));
    served.row_when(&run, "the list", |row| row["status"] == "queued");
    // A restarted server, which first reads all records, still shows it.
    served.stop();
    let served = world.serve(&[]);
    let ready =
        || crate::surface::serve::client::request(served.port, "GET", "/readyz", &[], None).is(200).json();
    until("all records", || (ready()["all_records_read"] == true).then_some(()));
    served.row_when(&run, "the list", |row| row["status"] == "queued");
    served.send(&served.token, "DELETE", &format!("/runs/{run}"), &[], None).is(204);
    assert_eq!(world.find(&RunId::parse(&run).unwrap()).status, "over");
    until("the list without it", || (!ids(&served).contains(&run)).then_some(()));
    served.get(&format!("/runs/{run}")).is(404);
    // It was created once and removed: the same request doesn't create it again.
    let again = served.send(&served.token, "POST", "/runs", &[("Idempotency-Key", "k1")], Some(&body("One")));
    again.is(404);
    // Another client removes one.
    let other = served.post("/runs", &body("Two")).is(201).json()["id"].as_str().unwrap().to_owned();
    served.row_when(&other, "the list", |row| row["status"] == "queued");
    assert!(world.fleet.wait(runs::take_out(world.fleet.pool(), &other)).unwrap());
    until("the list without it", || (!ids(&served).contains(&other)).then_some(()));
}

#[test]
fn finished_run_is_deleted_and_accepts_no_control() {
    let Some(world) = World::new(PARTS) else { return };
    let run = world.add("dele");
    world.drive(0, &run);
    let served = world.serve(&[]);
    served.row_when(run.as_str(), "the end", |row| row["status"] == "done");
    let refused =
        served.control(run.as_str(), json!({ "kind": "budget", "max_iterations": 9 })).is(409).json();
    assert!(refused["hint"].as_str().unwrap().contains("new one"), "{refused}");
    served.control(run.as_str(), json!({ "kind": "diagnose" })).is(409);
    assert_eq!(served.get(&format!("/runs/{run}")).is(200).json()["actions"], json!([]));
    let kept =
        || std::fs::read_dir(world.store.join("runs").join(run.as_str())).into_iter().flatten().count();
    assert!(kept() > 0, "what a machine must not take along is in the store");
    served.send(&served.token, "DELETE", &format!("/runs/{run}"), &[], None).is(204);
    let objects =
        ralph_loop_fleet::store::ArtifactStore::at(&world.store.display().to_string(), &Default::default());
    assert_eq!(objects.unwrap().list(&format!("runs/{run}")).unwrap(), []);
    let pool = world.fleet.pool();
    assert_eq!(world.fleet.wait(runs::find(pool, run.as_str())).unwrap(), None);
    served.stop();
    let served = world.serve(&[]);
    let other = world.add("next");
    world.drive(0, &other);
    served.row_when(other.as_str(), "another run", |row| row["status"] == "done");
    assert_eq!(ids(&served), [other.to_string()], "it did not come back");
}

/// The copies of a server.
fn copies(world: &World) -> (StateHome, Vec<RunId>) {
    let home = StateHome::at(&world.home.path("state/ralph"));
    let runtime = ralph_loop_fleet::db::runtime().unwrap();
    let changed = runtime.block_on(async {
        let fleet = ralph_loop_fleet::Fleet::connect(&world.postgres.url, 2).await.unwrap();
        Mirror::default().turn(&fleet, &home, &Default::default(), &world.files()).await.unwrap()
    });
    (home, changed)
}

#[test]
fn journal_copy_replaces_any_older_copy() {
    let Some(world) = World::new(PARTS) else { return };
    let run = world.add("copy");
    world.drive(0, &run);
    let sealed = world.fleet.wait(seal::read_from(world.fleet.pool(), run.as_str(), 0)).unwrap();
    let (home, changed) = copies(&world);
    assert_eq!(changed, std::slice::from_ref(&run));
    let file = home.record(&run).events();
    assert_eq!(std::fs::read(&file).unwrap(), sealed);
    let first = sealed.iter().position(|byte| *byte == b'\n').unwrap() + 1;
    // From an earlier try that started from scratch; cut in the middle of a line; longer than the record.
    let earlier =
        [&b"{\"seq\":1,\"kind\":\"of an earlier try\"}\n"[..], &sealed[first..first + 100]].concat();
    for before in [earlier, sealed[..first + 10].to_vec(), [&sealed[..], b"{}\n"].concat()] {
        std::fs::write(&file, before).unwrap();
        copies(&world);
        assert_eq!(std::fs::read(&file).unwrap(), sealed);
    }
}

#[test]
fn unreadable_run_hides_no_other() {
    let Some(world) = World::new(PARTS) else { return };
    let pool = world.fleet.pool();
    let (good, odd) = (world.add("good"), world.add("oddd"));
    world.drive(0, &good);
    // As if started by a much newer version.
    let held = world.fleet.wait(lease::take(pool, odd.as_str(), "w9/1", Duration::from_secs(60))).unwrap();
    assert!(world.fleet.wait(seal::append(pool, &held, 0, b"{\"seq\":1}\n")).unwrap());
    let clock = Arc::new(LeaseClock::start(Duration::from_secs(60)).unwrap());
    let line = world.fleet.wait(Line::open(world.fleet.pool())).unwrap();
    let sealed = PostgresSeal::new(world.fleet.clone(), held, clock, Duration::from_secs(5), line);
    sealed.keep_spec(b"{\"of\": \"tomorrow\"}").unwrap();
    let (home, changed) = copies(&world);
    assert_eq!(changed, std::slice::from_ref(&good));
    assert!(ralph_loop_journal::folder::registry::find(&home, &good).is_some());
    assert!(ralph_loop_journal::folder::registry::find(&home, &odd).is_none());
}
