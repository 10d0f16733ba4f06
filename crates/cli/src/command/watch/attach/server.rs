//! `ralph attach --server`.

use super::AttachArgs;
use crate::error::CommandError;
use crate::output::Out;
use crate::process::signals;
use crate::progress::follow::{Printer, SessionDetail};
use crate::terminal_ui;
use ralph_loop_app::trust::repo_file;
use ralph_loop_app::{App, Environment};
use ralph_loop_journal::live::stream::StreamItem;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::display::view::RunView;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_tui::remote::{Server, ServerAddress, ServerStream};
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Duration;

/// Longest time between polls.
const PACE: Duration = Duration::from_millis(500);
/// Polls without news before checking whether the run is driven.
const QUIET: u32 = 4;

/// Shows the run and returns its exit code.
pub(super) fn run(
    args: &AttachArgs,
    url: &str,
    app: &App,
    folder: &Path,
    out: &Out,
) -> Result<u8, CommandError> {
    let token = token(args, url, app.environment(), folder)?;
    let server = Server::new(ServerAddress::new(url, &token, args.unencrypted)?, app.environment());
    let run = match &args.run {
        Some(run) => run.clone(),
        None => server.newest()?,
    };
    if !args.plain && terminal_ui::fits(app, out) {
        // Report an unreachable server before taking over the screen.
        server.view(&run)?;
        terminal_ui::open_on(app, folder, &run, &server, out)?;
        return Ok(code(server.view(&run)?.as_ref()).unwrap_or(130));
    }
    lines(&server, &run, out)
}

/// The server's token; the owner's only if the server is on this machine.
fn token(args: &AttachArgs, url: &str, env: &Environment, folder: &Path) -> Result<String, CommandError> {
    if let Some(file) = &args.token_file {
        let path = folder.join(file);
        let bytes = repo_file::read_own(&path).map_err(|e| {
            CommandError::usage(format!("cannot read the token `{}`: {e}", path.display()))
                .hint("pass a file that contains only the token")
        })?;
        return Ok(String::from_utf8_lossy(&bytes).into_owned());
    }
    if let Some(token) = env.vars().filled("RALPH_SERVER_TOKEN") {
        return Ok(token);
    }
    if ServerAddress::is_here(url) {
        let kept = env.state_home()?.path().join("server/token");
        if let Some(token) = env.vars().filled("RALPH_SERVE_TOKEN") {
            return Ok(token);
        }
        if let Ok(bytes) = repo_file::read_own(&kept) {
            return Ok(String::from_utf8_lossy(&bytes).into_owned());
        }
    }
    Err(CommandError::usage(format!("no token for {}", one_line(url, 200)))
        .hint("pass `--token-file FILE` or set RALPH_SERVER_TOKEN; the server's admin creates tokens"))
}

/// The run's exit code; `None` while it continues.
fn code(view: Option<&RunView>) -> Option<u8> {
    let view = view?;
    match (&view.finished, &view.needs) {
        (Some(end), _) => Some(end.reason.exit_code()),
        (None, Some(_)) => Some(3),
        (None, None) if !view.driven => Some(1),
        (None, None) => None,
    }
}

fn lines(server: &Server, run: &str, out: &Out) -> Result<u8, CommandError> {
    signals::install();
    let mut stream = ServerStream::new(server, run)?;
    let mut printer = Printer::new(out.json, SessionDetail::Lines);
    let (mut over, mut quiet) = (false, 0);
    loop {
        let left = stream.follow(PACE, &mut |items| {
            quiet = if items.is_empty() { quiet + 1 } else { 0 };
            for item in &items {
                over |= matches!(item, StreamItem::Event(line) if matches!(line.event.body, EventBody::Finished { .. }));
                printer.item(item, out);
            }
            match over || signals::came() || quiet >= QUIET {
                true => ControlFlow::Break(()),
                false => ControlFlow::Continue(()),
            }
        })?;
        if signals::came() {
            printer.end(out);
            let at = server.address().shown();
            out.say(format!("run {run} continues; run `ralph attach {run} --server {at}` to watch it again"));
            return Ok(130);
        }
        // Reconnect if the server closed the connection; output isn't repeated.
        if over || left {
            quiet = 0;
            let view = server.view(run)?;
            if let Some(code) = code(view.as_ref()) {
                printer.end(out);
                if let Some(needs) = view.and_then(|view| view.needs) {
                    out.say(format!("needs you: {}", one_line(&needs.message, 400)));
                }
                return Ok(code);
            }
        } else {
            std::thread::park_timeout(PACE);
        }
    }
}
