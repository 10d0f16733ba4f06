//! The process itself: signals, memory, its log and its environment.

pub(crate) mod fault;
pub(crate) mod log;
pub(crate) mod own_code;
pub(crate) mod server_env;
pub(crate) mod signals;
pub(crate) mod terminal;
