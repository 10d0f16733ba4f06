//! What every route shares: extractors, middleware, errors, the page.

pub(crate) mod connections;
pub mod extract;
pub(crate) mod layers;
pub mod network;
pub mod page;
pub mod problem;
