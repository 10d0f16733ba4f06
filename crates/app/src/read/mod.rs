//! Reading runs: finding, listing and describing them, without driving any.

pub mod costs;
pub mod facts;
pub mod find;
pub mod list;
pub mod now;
pub mod phrases;
pub mod seen;
pub mod status;
pub mod taking_home;
pub mod timeline;
pub mod transcript;
