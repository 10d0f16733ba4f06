//! Snapshots of every screen in three sizes, with and without colors, and the effects of keys.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fixture;
mod frames;
mod journeys;
