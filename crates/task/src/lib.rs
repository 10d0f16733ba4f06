//! What a run is asked for: a task in one of four [`dialect`]s, judged by one [`mod@lint`]er, and a [`config`]uration;
//! both frozen into one [`spec::RunSpec`].
//!
//! Reading never opens a file: texts come in, values and diagnostics with their places go out. What cannot be read
//! unambiguously is an error that says what fixes it.

pub mod budget;
pub mod command_line;
pub mod config;
pub mod criterion;
pub mod dialect;
pub mod lint;
#[cfg(feature = "schema")]
pub mod schema;
#[cfg(feature = "schema")]
mod schema_parts;
pub mod spec;
mod type_words;
mod yaml;
