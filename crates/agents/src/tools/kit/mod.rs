//! The built-in tools, one per file, and their context.

#[cfg(feature = "browser")]
mod browser_tools;
mod done;
mod edit_file;
mod exec;
#[cfg(feature = "browser")]
mod interact;
mod list_files;
mod process_tools;
mod read_file;
#[cfg(feature = "browser")]
mod screenshot;
mod start_process;
mod write_file;

use super::args::Args;
#[cfg(feature = "browser")]
use super::browser::Browsers;
use super::halt::Halt;
use super::path_rules::PathRules;
use super::process::Processes;
use ralph_loop_domain::model::{Image, ToolSpec};
use ralph_loop_domain::ports::{Sandbox, Stream};
use ralph_loop_domain::redact::Redactor;
use serde_json::{Value, json};
use std::path::Path;

pub(crate) trait Tool: Send + Sync {
    fn spec(&self) -> ToolSpec;
    /// Whether a call may run in parallel with others of the same reply.
    fn beside_others(&self) -> bool {
        false
    }
    /// Its target, in one line.
    fn what(&self, args: &Args<'_>) -> String;
    /// Calls the tool. The model reads the error.
    fn call(&self, args: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String>;
}

pub(crate) struct ToolContext<'a> {
    pub(crate) sandbox: &'a dyn Sandbox,
    pub(crate) path_rules: PathRules<'a>,
    pub(crate) halt: &'a Halt,
    pub(crate) processes: &'a Processes,
    #[cfg(feature = "browser")]
    pub(crate) browsers: &'a Browsers,
    pub(crate) redactor: &'a Redactor,
    /// The iteration's folder on the host.
    pub(crate) folder: &'a Path,
    /// Where the summary of finished work goes.
    pub(crate) done_file: &'a Path,
    /// The call's number in the session, from 1.
    pub(crate) number: u32,
    /// Receives a command's output.
    pub(crate) printed: &'a (dyn Fn(Stream, &[u8]) + Sync),
}

#[derive(Debug, Default)]
pub(crate) struct ToolOutcome {
    pub(crate) text: String,
    /// One line for display; default: the first line of the text.
    pub(crate) line: String,
    pub(crate) images: Vec<Image>,
    pub(crate) exit_code: Option<i32>,
    /// Whether it is shown as a failure, though the tool itself worked (a command's exit code).
    pub(crate) failed: bool,
    /// Processes that a command left behind.
    pub(crate) survivors: u32,
    /// The summary of `done`.
    pub(crate) done: Option<String>,
}

impl ToolOutcome {
    pub(crate) fn text(text: impl Into<String>) -> Self {
        Self { text: text.into(), ..Self::default() }
    }
}

/// All of them, in display order.
pub(crate) fn all() -> Vec<Box<dyn Tool>> {
    let mut tools: Vec<Box<dyn Tool>> = vec![
        Box::new(exec::Exec),
        Box::new(start_process::StartProcess),
        Box::new(process_tools::StopProcess),
        Box::new(process_tools::GetProcessOutput),
        Box::new(process_tools::ListProcesses),
        Box::new(read_file::ReadFile),
        Box::new(write_file::WriteFile),
        Box::new(edit_file::EditFile),
        Box::new(list_files::ListFiles),
    ];
    #[cfg(feature = "browser")]
    tools.extend([
        Box::new(browser_tools::OpenBrowser) as Box<dyn Tool>,
        Box::new(screenshot::Screenshot),
        Box::new(interact::Interact),
        Box::new(browser_tools::CloseBrowser),
    ]);
    tools.push(Box::new(done::Done));
    tools
}

/// Only `done`, for sessions with the caller's own tools.
pub(crate) fn only_done() -> Vec<Box<dyn Tool>> {
    vec![Box::new(done::Done)]
}

fn spec(name: &str, description: &str, properties: Value, required: &[&str]) -> ToolSpec {
    ToolSpec {
        name: name.to_owned(),
        description: description.to_owned(),
        input_schema: json!({
            "type": "object",
            "properties": properties,
            "required": required,
            "additionalProperties": false,
        }),
    }
}
