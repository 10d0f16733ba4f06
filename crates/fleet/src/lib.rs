//! More than one machine: any number of workers over one Postgres.
//!
//! Who may drive a run is one row with an epoch ([`lease`]). The journal of a run is sealed in Postgres ([`seal`]): an append is
//! one statement that checks epoch and head, so whoever was replaced is refused. What a machine would take along when it
//! vanishes lies in an artifact store ([`store`], [`keeper`]); another worker goes on from there ([`bring`]). [`worker`] takes
//! runs by label, capacity and fairness ([`dispatch`], which never decides who may drive), [`enrol`] lets workers in and out, [`grant`] brings a run the secrets that it needs. [`trigger`], [`delivery`], [`schedule`] and [`occasion`] are work that comes by itself. [`mirror`] lets a server show runs of other machines.

#[macro_use]
mod row;

pub mod bring;
pub mod db;
pub mod delivery;
pub mod dispatch;
pub mod drive;
pub mod enrol;
pub mod error;
pub mod grant;
pub mod keeper;
pub mod lease;
pub mod letters;
pub mod login;
pub mod mirror;
pub mod occasion;
mod pack;
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
