//! What the final check stands on: checkouts whose harness stays as it was, the surroundings of the start, and words for what
//! the commit lacks.

pub(crate) mod environment;
pub(crate) mod harness_files;
pub(crate) mod installed_marks;
pub(crate) mod surroundings;
pub(crate) mod unrecorded;
