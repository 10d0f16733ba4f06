//! Many runs, many people, one page: `ralph serve`.
//!
//! The server has no loop of its own. A run is a detached process; [`live`] watches the records of all runs of this machine,
//! whoever started them, and [`index`] keeps one row of each, which can be thrown away. [`scheduler`] decides whose turn it is.
//! [`people`] says who may do what, [`routes`] is the REST interface, [`stream`] the WebSockets and server-sent events. What somebody does becomes a letter in
//! the inbox of a run, with their name, and a line in the [`audit`] log.

pub mod audit;
pub mod auth;
pub mod extract;
pub mod fleet;
mod fleet_secrets;
mod fleet_work;
pub mod home;
pub mod index;
mod layers;
pub mod live;
pub mod metrics;
#[cfg(feature = "schema")]
pub mod openapi;
mod options;
mod otlp;
pub mod page;
pub mod people;
pub mod problem;
mod rebuild;
pub mod routes;
pub mod row;
pub mod scheduler;
pub mod secrets;
mod serve;
pub mod server;
pub mod stream;

pub use options::{Ready, ServeOptions};
pub use rebuild::{RebuiltIndex, rebuild_index};
pub use scheduler::Limits;
pub use serve::serve;
