//! The database's machine is lost, and its standby takes its place.

use crate::surface::fleet::cluster::{PARTS, World};
use crate::surface::serve::client::request;
use ralph_loop_fleet::Fleet;
use ralph_loop_testkit::env::until;

#[test]
fn synchronous_standby_loses_no_sealed_event() {
    let waits = "if [ $RALPH_ITERATION = 2 ]; then touch \"$HOME/second\"; while [ ! -f \"$HOME/go\" ]; do sleep 0.05; done; fi";
    let Some(world) = World::with_wire(&format!("{waits}\n{PARTS}")) else { return };
    let mut world = world.with_lease(60);
    let through = world.wire.as_ref().unwrap().url();
    let served = world.serve(&[("RALPH_DB_URL", &through)]);
    let ready = || request(served.port, "GET", "/readyz", &[], None);
    let warns = || ready().is(200).json()["warning"].as_str().map(str::to_owned);
    assert!(warns().is_some_and(|said| said.contains("synchronous standby")));
    let standby = world.postgres.standby();
    until("a probe that sees the standby", || warns().is_none().then_some(()));

    let (run, issue) = world.add_of_issue("fail");
    let mut driver = world.spawn(0, &["--once", run.as_str()], None);
    until("the second session", || world.machines[0].path("home/second").exists().then_some(()));
    let before = world.events(&run);
    world.postgres.crash();
    world.wire.as_ref().unwrap().redirect(&standby.socket());
    standby.promote();
    world.fleet = Fleet::open(&standby.url).unwrap();
    let _gone = std::mem::replace(&mut world.postgres, standby);
    let after = world.events(&run);
    assert_eq!(after[..before.len()], before[..], "everything that was sealed is there");
    std::fs::write(world.machines[0].path("home/go"), "").unwrap();
    assert!(driver.wait().unwrap().success(), "{}", world.log(0));
    world.assert_done_once(&run, issue);
    let epochs = world.events(&run).iter().filter(|event| event["epoch"].is_u64()).count();
    assert_eq!(
        epochs,
        before.iter().filter(|event| event["epoch"].is_u64()).count(),
        "no other worker took it over"
    );
    // The server continues with the new one, which has no standby.
    until("the server", || (ready().status == 200).then_some(()));
    let lacks_standby = || warns().is_some_and(|said| said.contains("synchronous standby"));
    until("the warning", || lacks_standby().then_some(()));
    served.row_when(run.as_str(), "the end", |row| row["status"] == "done");
}
