//! `done`: the agent claims that everything is done. The engine then checks.

use super::{Tool, ToolContext, ToolOutcome, spec};
use crate::tools::args::Args;
use ralph_loop_domain::model::ToolSpec;
use ralph_loop_domain::ports::WriteMode;
use ralph_loop_protocol::display::text;
use serde_json::json;

const SUMMARY_MAX: usize = 16 * 1024;

pub(super) struct Done;

impl Tool for Done {
    fn spec(&self) -> ToolSpec {
        spec(
            "done",
            "End this session because the whole task is done. Call it only after you saw the checks pass; they run \
             again.",
            json!({ "summary": { "type": "string", "minLength": 1, "description": "What was done, and how it was checked" } }),
            &["summary"],
        )
    }
    fn what(&self, args: &Args<'_>) -> String {
        args.str("summary").to_owned()
    }
    fn call(&self, args: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let summary = text::head(args.str("summary").trim(), SUMMARY_MAX);
        let content = format!("{summary}\n");
        context
            .sandbox
            .write(context.done_file, content.as_bytes(), WriteMode::Replace)
            .map_err(|error| format!("{} could not be written: {error}", context.done_file.display()))?;
        Ok(ToolOutcome { done: Some(summary.to_owned()), ..ToolOutcome::text("noted; the checks decide") })
    }
}
