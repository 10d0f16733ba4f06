//! Agents and models, and programs that use `ralph`.

pub(crate) mod embedded;
pub(crate) mod mcp;
pub(crate) mod model_agents;
pub(crate) mod models;
pub(crate) mod tools;
