//! Every screen as people see it, in three sizes with its styles, and without colours; and what keys do.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod fixture;
mod frames;
mod journeys;
