//! Fleets, through the real binary and a real Postgres: whichever worker is killed, frozen or stopped, a run is driven once, as
//! the code host's counts show.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

mod cluster;
mod controls;
mod failover;
mod mixed_machines;
mod net;
mod page;
mod record;
mod sandboxes;
mod server;
mod take_over;
mod triggers;
mod wire;
mod workers;
