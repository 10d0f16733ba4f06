//! Handover and notifications.

pub(crate) mod action;
pub(crate) mod handover;
pub(crate) mod notify;
