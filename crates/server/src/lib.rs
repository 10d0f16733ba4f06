//! `ralph serve`: many runs, many users, one dashboard.
//!
//! The server doesn't run the loop: each run is a detached process. [`live`] watches the records of all runs
//! on this machine, [`index`] keeps a disposable row of each, [`scheduler`] decides which run starts next,
//! [`people`] holds users and roles, [`routes`] the REST API, [`stream`] WebSockets and server-sent events.

pub mod audit;
pub mod auth;
pub mod fleet;
pub mod home;
pub mod http;
pub mod index;
pub mod live;
pub mod metrics;
#[cfg(feature = "schema")]
pub mod openapi;
mod options;
mod otlp;
pub mod people;
mod readiness;
mod rebuild;
pub mod routes;
pub mod row;
pub mod scheduler;
pub mod secrets;
mod serve;
pub mod server;
pub mod stream;

pub use audit::{Verified, verify_audit};
pub use http::network::Network;
pub use options::{DemoScenario, DemoStarter, Ready, ServeOptions};
pub use rebuild::{RebuiltIndex, rebuild_index};
pub use scheduler::Limits;
pub use serve::serve;
