//! What `ralph hook <event>` decides inside a session of an agent CLI.
//!
//! A CLI starts the binary at every event of a session, with a JSON object on stdin; [`answer`] reads it and says what goes to
//! stdout. It is called at every tool call, so nothing here is read that is not needed, and the whole command line is never built.
//!
//! - `pre-tool-use`: the [`guard`] says whether a command or a file may be touched. It fails closed.
//! - `post-tool-use`: the [`context`] monitor says when the session's window fills up.
//! - `stop`: the [`stop`] gate keeps a session of a loop from ending with a broken plan or uncommitted work.
//! - `session-start`: the [`session`] is told which story is next and where the memory is.
//!
//! All but the guard fail open, with a reason: they must never be in the way of work.

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

/// What a hook knows of its surroundings.
#[derive(Debug, Clone)]
pub struct Surroundings {
    /// The variables of the process.
    pub vars: Vars,
    /// Its folder.
    pub cwd: PathBuf,
    /// The `ralph` binary.
    pub program: Option<PathBuf>,
}

/// Bytes of an event that are read. A CLI sends the whole text of a file that is written.
pub const INPUT_MAX: u64 = 32 * 1024 * 1024;

/// What a hook answers.
pub fn answer(event: HookEvent, cli: Cli, bytes: &[u8], around: &Surroundings) -> Reply {
    let input = match HookInput::parse(bytes) {
        Ok(input) => input,
        Err(why) if event == HookEvent::PreToolUse => {
            return Reply::deny(
                cli,
                &format!("ralph's guard could not read the tool call ({why}), so it is refused."),
            );
        }
        Err(why) => return Reply::warn(&format!("the event could not be read: {why}")),
    };
    let project = Project::find(&input, around);
    match event {
        HookEvent::PreToolUse => guarded(cli, &input, &project, around),
        HookEvent::PostToolUse => context::answer(&input, around),
        HookEvent::Stop => stop::answer(&input, &project, around),
        HookEvent::SessionStart => session::answer(&input, &project, around),
        HookEvent::SessionEnd => {
            memory::forget(&input, around);
            Reply::pass()
        }
    }
}

fn guarded(cli: Cli, input: &HookInput, project: &Project, around: &Surroundings) -> Reply {
    let Some(tool) = &input.tool_name else {
        return Reply::deny(cli, "ralph's guard was not told which tool this is, so it is refused.");
    };
    let (allow, problem) = project.allow_rules(around);
    let guard = guard::Guard::new(project.places(around), allow);
    match guard.judge_in_time(tool, &input.tool_input) {
        Some(refusal) => Reply::deny(cli, &refusal.message()),
        None => problem.map_or_else(Reply::pass, |problem| Reply::warn(&problem)),
    }
}
