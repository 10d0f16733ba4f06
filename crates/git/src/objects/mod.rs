//! Git's own files: objects, refs and the index.

pub(crate) mod files;
pub(crate) mod index;
pub(crate) mod oid;
pub(crate) mod private_index;
pub(crate) mod refs;
pub(crate) mod user_index;
pub(crate) mod writer;
