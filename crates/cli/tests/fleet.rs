//! More than one machine, through the real binary and a real Postgres: whoever is killed, frozen or told to end, a run is driven
//! once, and the code host's counts say so.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::disallowed_methods,
    reason = "a test fails by panicking, and starts processes"
)]

#[allow(dead_code, reason = "shared with the tests of one server")]
#[path = "serve/client.rs"]
mod client;
#[path = "fleet/elsewhere.rs"]
mod elsewhere;
#[path = "fleet/failover.rs"]
mod failover;
#[allow(dead_code, reason = "shared with the tests of one server")]
#[path = "serve/machine.rs"]
mod machine;
#[path = "fleet/net.rs"]
mod net;
#[path = "fleet/page.rs"]
mod page;
#[path = "fleet/people.rs"]
mod people;
#[path = "fleet/record.rs"]
mod record;
#[path = "fleet/sandboxes.rs"]
mod sandboxes;
#[path = "fleet/server.rs"]
mod server;
#[path = "fleet/take_over.rs"]
mod take_over;
#[path = "fleet/triggers.rs"]
mod triggers;
#[path = "fleet/wire.rs"]
mod wire;
#[path = "fleet/workers.rs"]
mod workers;
#[path = "fleet/world.rs"]
mod world;

const RALPH: &str = env!("CARGO_BIN_EXE_ralph");
