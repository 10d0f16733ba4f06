//! The folders of runs and of `ralph` itself.

pub mod artifacts;
pub mod layout;
pub mod machine;
pub mod plain;
pub(crate) mod ralph_files;
pub mod registry;
pub mod shown;
pub mod snapshot;
pub(crate) mod stamp;
