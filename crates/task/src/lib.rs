//! The input of a run: a task in one of four [`dialect`]s, judged by one [`mod@lint`]er, and a [`config`]uration;
//! both frozen into one [`spec::RunSpec`].
//!
//! Parsing never opens a file: texts come in, values and diagnostics with positions go out. Ambiguous input is an
//! error that says how to fix it.

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
