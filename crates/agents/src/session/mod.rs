//! What the kinds of agent share whose model the engine calls itself: where they may write, how long output is shown,
//! how a prompt is cut for a provider's cache, which model answers, what it all cost and when it must end.

pub(crate) mod call;
pub(crate) mod capture;
pub(crate) mod confine;
pub(crate) mod deadline;
pub(crate) mod prompt;
pub(crate) mod spend;

pub use spend::Pricing;
