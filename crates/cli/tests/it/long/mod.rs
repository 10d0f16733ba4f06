//! Tests that take minutes: torture, fuzzing, real agents, containers and clouds.

pub(crate) mod cases;
pub(crate) mod fuzz;
pub(crate) mod handover_torture;
pub(crate) mod parallel_torture;
pub(crate) mod providers;
pub(crate) mod real_agents;
pub(crate) mod real_story;
pub(crate) mod torture;
