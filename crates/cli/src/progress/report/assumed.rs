//! A run's assumptions: agents, setup, place. Its checks are listed separately.

use ralph_loop_app::{Assumptions, Workplace};
use ralph_loop_domain::repo::installed::has_all_of;
use ralph_loop_task::config::{CommandLine, Isolation, Settings};

/// Labels and texts of the lines.
pub fn lines(found: &Assumptions, settings: &Settings, place: &Workplace) -> Vec<(&'static str, String)> {
    let mut lines = vec![("agents", agents(found, settings))];
    lines.extend(setup(found, settings).map(|words| ("setup", words)));
    lines.push(("place", place_words(settings, place)));
    lines
}

fn agents(found: &Assumptions, settings: &Settings) -> String {
    let names: Vec<&str> = settings.agents.iter().map(|agent| agent.name.as_str()).collect();
    let mut words = names.join(", ");
    if found.agents {
        words.push_str(" (found on this machine; `--agents A,B` chooses)");
    }
    if !found.absent.is_empty() {
        let absent: Vec<&str> = found.absent.iter().map(|name| name.as_str()).collect();
        words.push_str(&format!("; not installed and left out: {}", absent.join(", ")));
    }
    words
}

/// What a clean checkout needs before its checks.
fn setup(found: &Assumptions, settings: &Settings) -> Option<String> {
    let setup = found.setup.iter().map(CommandLine::display);
    let due = |command: &String| {
        settings.sandbox.provider().is_elsewhere() || !has_all_of(command, found.installed.iter())
    };
    let setup: Vec<String> = setup.filter(due).collect();
    (!setup.is_empty()).then(|| format!("{} before the checks of a clean checkout", setup.join("; ")))
}

fn place_words(settings: &Settings, place: &Workplace) -> String {
    let provider = settings.sandbox.provider();
    let sandboxed = match settings.isolation {
        _ if provider.is_elsewhere() => format!("in a sandbox of {}", provider.as_str()),
        Isolation::None => "without a sandbox".to_owned(),
        _ => "sandboxed".to_owned(),
    };
    match place {
        Workplace::InPlace if settings.isolation == Isolation::None => {
            format!("this folder, {sandboxed}")
        }
        Workplace::InPlace => {
            format!("a copy of this folder, {sandboxed}; its files appear here after each iteration")
        }
        Workplace::Worktree => format!("a separate worktree, {sandboxed}"),
        Workplace::Clone { from, .. } => format!("a clone of {from}, {sandboxed}"),
    }
}
