//! What every route shares: extractors, middleware, errors, the page.

pub mod extract;
pub(crate) mod layers;
pub mod page;
pub mod problem;
