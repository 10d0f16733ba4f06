//! Clients of cloud sandboxes: [`Daytona`], [`E2b`], [`Vercel`].
//!
//! Each speaks its vendor's wire for lifecycle and files. Commands go the same way everywhere: a small script starts the
//! command beside a watch, further scripts wait for its output (see `exec`). So output is exact to the byte, standard error
//! stands apart, a time-out ends the whole tree, and a command whose client died is ended, whatever the vendor's own way of
//! running commands can or cannot do.

mod error;
mod exec;
mod http;
mod machine;
mod paths;
mod preview;
mod price;
mod sandbox;
mod script;
mod sweep;

pub mod daytona;
pub mod e2b;
pub mod vercel;

pub use daytona::{Daytona, DaytonaOptions};
pub use e2b::{E2b, E2bOptions};
pub use error::ProviderError;
pub use price::Prices;
pub use sweep::sweep;
pub use vercel::{Vercel, VercelOptions};
