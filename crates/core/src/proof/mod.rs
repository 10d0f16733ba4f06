//! Support for the final check: checkouts with an unchanged harness, the original environment, and
//! explanations for what the commit lacks.

pub(crate) mod environment;
pub(crate) mod harness_files;
pub(crate) mod installed_marks;
pub(crate) mod prove_commit;
pub(crate) mod surroundings;
pub(crate) mod unrecorded;
