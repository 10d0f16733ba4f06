//! The plan format: `tasks.json` with its stories.

pub mod plan_edit;
pub mod plan_order;
pub mod prd_tasks;
