//! Locks on files that others use.

pub(crate) mod left_lock;
pub(crate) mod lock_file;
pub(crate) mod wait_lock;
