//! Opens the terminal UI on a capable terminal.

use crate::error::CommandError;
use crate::output::Out;
use crate::process::fault;
use crate::process::signals;
use ralph_loop_app::App;
use ralph_loop_tui::Opening;
use ralph_loop_tui::remote::Server;
use std::path::Path;

/// Whether the user can see and use it.
pub fn fits(app: &App, out: &Out) -> bool {
    !out.json && out.live && out.asks() && ralph_loop_tui::can_open(app.environment())
}

/// Opens it, optionally on one run; afterwards reports what continues.
pub fn open(app: &App, folder: &Path, run: Option<&str>, out: &Out) -> Result<(), CommandError> {
    show(app, folder, Opening { attach: run.map(str::to_owned), ..Opening::default() }, out)
}

/// Opens it on a server's run.
pub fn open_on(app: &App, folder: &Path, run: &str, server: &Server, out: &Out) -> Result<(), CommandError> {
    let server = Some(server.clone());
    show(app, folder, Opening { attach: Some(run.to_owned()), server, ..Opening::default() }, out)
}

fn show(app: &App, folder: &Path, opening: Opening, out: &Out) -> Result<(), CommandError> {
    signals::install();
    let opening = Opening { mono: !out.has_colour(), ascii: !out.has_unicode(), ..opening };
    let opening = Opening { fault: fault::inject_from_env(app.environment().vars(), "tui."), ..opening };
    let left = ralph_loop_tui::run(app, folder, &opening, &signals::closes)?;
    left.lines.iter().for_each(|line| out.say(line));
    Ok(())
}
