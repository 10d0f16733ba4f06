//! What the final check stands on: a checkout that nobody meddles with, surroundings that are those of the start, and
//! words for what differs from the workspace.

mod by_content;
pub(crate) mod counts;
pub(crate) mod difference;
pub(crate) mod environment;
pub(crate) mod findings;
pub(crate) mod harness;
mod harness_facts;
mod ignored;
pub(crate) mod installed_marks;
mod places;
mod plain_settings;
mod planted;
pub(crate) mod put_back;
mod read_by_tests;
mod relinked;
mod renamed_tests;
pub(crate) mod results;
pub(crate) mod surroundings;
pub(crate) mod watched;
