//! What agents with engine-made model calls share: write rules, output excerpts, prompt caching, model choice, cost
//! and time limits.

pub(crate) mod call;
pub(crate) mod capture;
pub(crate) mod confine;
pub(crate) mod deadline;
pub(crate) mod prompt;
pub(crate) mod spend;

pub use spend::Pricing;
