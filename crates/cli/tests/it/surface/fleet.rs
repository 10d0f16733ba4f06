//! More than one machine, through the real binary and a real Postgres: whoever is killed, frozen or told to end, a run is driven
//! once, and the code host's counts say so.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

mod elsewhere;
mod failover;
mod net;
mod page;
mod people;
mod record;
mod sandboxes;
mod server;
mod take_over;
mod triggers;
mod wire;
mod workers;
mod world;
