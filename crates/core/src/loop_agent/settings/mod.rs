//! What a caller sets, and its validation.

pub(super) mod builder;
pub(super) mod frozen;
pub(super) mod options;
pub(super) mod refused;
pub(super) mod source;
