//! `writeFile`: a whole file.

use super::{Tool, ToolContext, ToolOutcome, spec};
use crate::tools::args::Args;
use crate::tools::path_rules::PathAccess;
use ralph_loop_domain::model::ToolSpec;
use ralph_loop_domain::ports::WriteMode;
use ralph_loop_protocol::display::text;
use serde_json::json;

pub(super) struct WriteFile;

impl Tool for WriteFile {
    fn spec(&self) -> ToolSpec {
        spec(
            "writeFile",
            "Write a whole file of the workspace, replacing an existing one and making its folders. For a small change \
             of a large file use editFile.",
            json!({
                "path": { "type": "string", "minLength": 1, "description": "Path relative to the workspace" },
                "content": { "type": "string", "description": "The whole content" },
            }),
            &["path", "content"],
        )
    }
    fn what(&self, args: &Args<'_>) -> String {
        args.str("path").to_owned()
    }
    fn call(&self, args: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let (given, content) = (args.str("path"), args.str("content"));
        let path = context.path_rules.file(given, PathAccess::Write)?;
        context
            .sandbox
            .write(&path, content.as_bytes(), WriteMode::Replace)
            .map_err(|error| error.to_string())?;
        Ok(ToolOutcome::text(format!("wrote `{given}`, {}", text::count(content.len(), "byte"))))
    }
}
