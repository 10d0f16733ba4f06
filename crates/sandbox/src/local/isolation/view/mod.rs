//! Which files a sandboxed command sees.

pub(super) mod caches;
pub(super) mod git;
pub(super) mod same_path;
pub(super) mod sockets;
pub(super) mod system;
pub(super) mod tools;
pub(super) mod trail;
pub(super) mod versions;
