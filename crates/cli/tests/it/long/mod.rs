//! What takes minutes by nature: torture, fuzzing, real agents, containers and clouds.

pub(crate) mod elsewhere;
pub(crate) mod fuzz;
pub(crate) mod handover_torture;
pub(crate) mod neighbours_torture;
pub(crate) mod real_agents;
pub(crate) mod real_story;
pub(crate) mod torture;
