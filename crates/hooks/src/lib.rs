//! What `ralph hook EVENT` answers in a session of an agent CLI.
//!
//! A CLI starts the binary at every event with a JSON object on stdin; [`answer`] returns what goes to stdout.
//!
//! - `pre-tool-use`: the [`guard`] refuses dangerous commands and files. It fails closed, in sessions that `ralph` started.
//! - `post-tool-use`: the [`context`] monitor alerts a session whose context window fills up.
//! - `stop`: the [`stop`] gate keeps a session of a loop from ending with a broken plan or uncommitted work.
//! - `session-start`: the [`session`] learns which story is next and where the memory is.
//!
//! All but the guard fail open, with a reason.

pub mod context;
mod event;
pub mod guard;
mod input;
mod marker;
mod memory;
mod project;
mod reply;
pub mod session;
pub mod stop;
mod transcript;

pub use event::{Cli, HookEvent};
pub use reply::Reply;

use input::HookInput;
use project::Project;
use ralph_loop_domain::vars::Vars;
use std::path::PathBuf;

/// The process that a hook runs in.
#[derive(Debug, Clone)]
pub struct HookContext {
    pub vars: Vars,
    pub cwd: PathBuf,
    /// The `ralph` binary.
    pub program: Option<PathBuf>,
}

/// The largest event. A CLI sends the complete text of a file that it writes.
pub const INPUT_MAX: u64 = 32 * 1024 * 1024;

pub fn answer(event: HookEvent, cli: Cli, bytes: &[u8], context: &HookContext) -> Reply {
    if event == HookEvent::PreToolUse && context.vars.filled("RALPH_RUN").is_none() {
        return Reply::pass();
    }
    let input = match HookInput::parse(bytes) {
        Ok(input) => input,
        Err(why) if event == HookEvent::PreToolUse => {
            return Reply::deny(
                cli,
                &format!("ralph's guard couldn't read the tool call ({why}), so it refuses it."),
            );
        }
        Err(why) => return Reply::warn(&format!("can't read the event: {why}")),
    };
    let project = Project::find(&input, context);
    match event {
        HookEvent::PreToolUse => guarded(cli, &input, &project, context),
        HookEvent::PostToolUse => context::answer(&input, context),
        HookEvent::Stop => stop::answer(&input, &project, context),
        HookEvent::SessionStart => session::answer(&input, &project, context),
        HookEvent::SessionEnd => {
            memory::forget(&input, context);
            Reply::pass()
        }
    }
}

/// The guard acts only in sessions that `ralph` started: their environment names the run.
fn guarded(cli: Cli, input: &HookInput, project: &Project, context: &HookContext) -> Reply {
    let Some(tool) = &input.tool_name else {
        return Reply::deny(cli, "ralph's guard got no tool name, so it refuses the call.");
    };
    let (allow, problem) = project.allow_rules(context);
    let guard = guard::Guard::new(project.path_rules(context), allow);
    match guard.judge_in_time(tool, &input.tool_input) {
        Some(refusal) => Reply::deny(cli, &refusal.message()),
        None => problem.map_or_else(Reply::pass, |problem| Reply::warn(&problem)),
    }
}
