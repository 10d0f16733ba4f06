//! What a run writes for users and for its next session.

pub(crate) mod append_only;
pub(crate) mod changelog;
pub(crate) mod file_stamp;
pub(crate) mod guardrails;
pub(crate) mod integrity;
pub(crate) mod kept_alive;
pub(crate) mod log_tail;
pub(crate) mod plan_progress;
pub(crate) mod receipt;
pub(crate) mod recorder;
pub(crate) mod resources;
pub(crate) mod sandboxes;
pub(crate) mod task_book;
