//! The terminal UI, where there is a terminal that can show it; whoever calls it prints what it always printed elsewhere.

use crate::error::CommandError;
use crate::output::Out;
use crate::signals;
use ralph_app::App;
use ralph_tui::Opening;
use std::path::Path;

/// Whether somebody is there who can see it and use it.
pub fn fits(app: &App, out: &Out) -> bool {
    !out.json && out.live && out.asks() && ralph_tui::can_open(app.environment())
}

/// Opens it; with a run, on that alone. Comes back when it is left, and says what goes on.
pub fn open(app: &App, folder: &Path, run: Option<&str>, out: &Out) -> Result<(), CommandError> {
    signals::install();
    let opening =
        Opening { attach: run.map(str::to_owned), mono: !out.has_colour(), ascii: !out.has_unicode() };
    let left = ralph_tui::run(app, folder, &opening, &signals::came)?;
    left.lines.iter().for_each(|line| out.say(line));
    Ok(())
}
