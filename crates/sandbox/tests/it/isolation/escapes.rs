//! Every known escape, tried by a program in the sandbox.

use crate::common;
use ralph_loop_sandbox::escapes::{self, AttemptResult};
use ralph_loop_sandbox::isolation::detect;
use ralph_loop_task::config::Isolation;

fn holds(isolation: Isolation, name: &str) {
    let report = detect(&ralph_loop_testkit::vars());
    if !report.works(name) {
        println!("skipped: no {name} here");
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let (kind, rows) = escapes::try_all(
        isolation,
        &dir.path().join("try"),
        std::path::Path::new(common::PROBE),
        &ralph_loop_testkit::vars(),
    )
    .unwrap();
    assert_eq!(kind, name);
    for row in &rows {
        println!(
            "{:16} {:10} {:10} without: {}",
            row.name,
            row.expected.word(),
            row.seen.word(),
            row.without.word()
        );
    }
    let wrong: Vec<&str> = rows.iter().filter(|row| !row.ok()).map(|row| row.name).collect();
    assert!(wrong.is_empty(), "{wrong:?}");
    let controls = rows.iter().filter(|row| row.without == AttemptResult::Escaped).count();
    assert!(controls >= 10, "{controls} controls");
}

#[test]
fn namespaces_hold() {
    holds(Isolation::Bwrap, "bwrap");
}

#[test]
fn landlock_holds_where_it_can() {
    holds(Isolation::Landlock, "landlock");
}
