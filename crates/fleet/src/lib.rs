//! More than one machine: any number of workers over one Postgres.
//!
//! - [`lease`]: one row with an epoch says which process may drive a run.
//! - [`seal`]: a run's journal in Postgres. An append is one statement that checks epoch and head, and refuses a replaced holder.
//! - [`store`] and [`keeper`]: an artifact store keeps what would vanish with a machine. [`bring`] lets another worker resume.
//! - [`worker`]: takes runs by label, capacity and fairness. [`dispatch`] never decides which process may drive.
//! - [`enrol`]: admits and revokes workers. [`grant`] gives a run the secrets that it needs.
//! - [`trigger`], [`delivery`], [`schedule`] and [`occasion`]: runs that issues, comments and schedules start.
//! - [`mirror`], [`files`], [`result`] and [`output`]: let a server show the runs of other machines.

#[macro_use]
mod row;

pub mod bring;
pub mod db;
pub mod delivery;
pub mod dispatch;
pub mod drive;
pub mod enrol;
pub mod error;
pub mod files;
pub mod grant;
pub mod keeper;
pub mod lease;
pub mod letters;
pub mod login;
pub mod mirror;
pub mod occasion;
pub mod output;
mod pack;
pub mod result;
pub mod runs;
pub mod schedule;
mod schema;
pub mod seal;
pub mod store;
pub mod trigger;
pub mod worker;
pub mod workers;

pub use db::Fleet;
pub use error::FleetError;
