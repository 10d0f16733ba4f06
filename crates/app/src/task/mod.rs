//! The task of a run: its file, its checks, its linter, its project.

pub(crate) mod hidden;
pub mod lint;
pub mod project;
pub mod task_source;
pub mod task_templates;
