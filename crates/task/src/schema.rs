//! JSON Schemas of the files that users write, derived from the types that parse them. Compiled only with the feature
//! `schema`; the program embeds the files of `schemas/` that `scripts/generate` writes.
//!
//! `schema_parts` adds what serde doesn't know (aliases, what a story must contain).

use crate::config::{ConfigFile, ModelsFile};
use crate::dialect::frontmatter::Frontmatter;
use crate::dialect::plan::prd_tasks::TasksJson;
use crate::dialect::ralph_json::RalphJson;
use ralph_loop_protocol::schema::{Published, file};

/// Every schema of a typed file that users write.
pub fn all() -> Vec<Published> {
    vec![
        file::<ConfigFile>(
            "config",
            ".ralph/config.json",
            "The configuration of a repo or a user. Every key is optional.",
        ),
        file::<ModelsFile>(
            "models",
            "models.yaml",
            "Model profiles of a user or a repo. Every key is optional.",
        ),
        file::<Frontmatter>(
            "frontmatter",
            "frontmatter of ralph_task.md",
            "The YAML between the two lines of dashes at the top of a ralph_task.md.",
        ),
        file::<RalphJson>("ralph", "ralph.json, version 2", "One task with typed acceptance criteria."),
        file::<TasksJson>(
            "tasks",
            "tasks.json of a plan",
            "The stories of a plan and the commands that check them.",
        ),
    ]
}
