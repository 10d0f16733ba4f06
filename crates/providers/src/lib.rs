//! Clients of cloud sandboxes: [`Daytona`], [`E2b`], [`Vercel`].
//!
//! Each uses its vendor's API for lifecycle and files. Commands work the same everywhere: a small script starts the
//! command with a watch, further scripts wait for its output (see `exec`). So output is exact to the byte, standard
//! error is separate, a timeout ends the whole tree, and a command whose client died is ended, independent of the
//! vendor's way to run commands.

mod cloud;
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
