//! The sandbox in which a repo's git filters run: without network, and without what belongs to agents.

use crate::environment::Environment;
use ralph_loop_domain::ports::{ExecEnd, ExecRequest, ExecSink, Sandbox as _, StopCause, Stream};
use ralph_loop_git::FilterRoom;
use ralph_loop_sandbox::{IsolationSpec, LocalOptions, LocalSandbox, isolation};
use ralph_loop_task::config::Isolation;
use std::ops::ControlFlow;
use std::time::Duration;

const LONGEST: Duration = Duration::from_secs(600);
const SAID_MAX: usize = 4096;

/// Lets git filters run in this environment's sandbox.
pub(crate) fn use_sandbox(env: &Environment) {
    let program = env.helper_program().map(ToOwned::to_owned);
    let hidden = env.state_home().ok().map(|home| home.path().to_owned());
    ralph_loop_git::set_filter_sandbox(move |room| {
        let mut spec = IsolationSpec::new(room.folder.with_extension("home"));
        spec.hidden = hidden.iter().cloned().collect();
        spec.programs = room.programs.to_vec();
        let isolation = isolation::detect(room.vars).choose(Isolation::Auto, spec)?;
        let mut options = LocalOptions::new("filters", room.vars);
        options.guard_exe.clone_from(&program);
        options.isolation = isolation;
        run(room, options)
    });
}

fn run(room: &FilterRoom<'_>, options: LocalOptions) -> Result<(), String> {
    let sandbox = LocalSandbox::start(room.folder, options).map_err(|e| e.to_string())?;
    let mut request = ExecRequest::new(room.argv.iter().map(|word| (*word).to_owned()).collect());
    request.timeout = Some(LONGEST);
    let mut said = Said::default();
    let done = sandbox.exec(&request, &mut said).map_err(|e| e.to_string())?;
    match done.end {
        ExecEnd::Exited(0) => Ok(()),
        end => {
            let text = String::from_utf8_lossy(&said.0).into_owned();
            let text = ralph_loop_protocol::display::sanitize::block(&text).trim().replace('\n', "; ");
            Err(if text.is_empty() { format!("it ended with {end:?}") } else { text })
        }
    }
}

/// The last words of a command.
#[derive(Default)]
struct Said(Vec<u8>);

impl ExecSink for Said {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        self.0.extend_from_slice(bytes);
        let over = self.0.len().saturating_sub(SAID_MAX);
        self.0.drain(..over);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}
