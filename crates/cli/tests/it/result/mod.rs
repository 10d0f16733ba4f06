//! Handing over, and telling people.

pub(crate) mod action;
pub(crate) mod handover;
pub(crate) mod notify;
