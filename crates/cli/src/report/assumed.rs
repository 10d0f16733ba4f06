//! A run's assumptions in three lines: agents, check, place.

use ralph_loop_app::{Assumptions, PlaceRequest};
use ralph_loop_domain::installed::has_all_of;
use ralph_loop_task::config::{CommandLine, Isolation, Settings, join_argv};

/// Labels and texts of the lines.
pub fn lines(found: &Assumptions, settings: &Settings, place: &PlaceRequest) -> [(&'static str, String); 3] {
    [
        ("agents", agents(found, settings)),
        ("check", check(found, settings)),
        ("place", place_words(settings, place)),
    ]
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

fn check(found: &Assumptions, settings: &Settings) -> String {
    let Some(first) = found.checks.first() else {
        let commands: Vec<String> = settings.required().map(|check| check.command_line()).collect();
        return commands.join("; ");
    };
    let mut words = shown(&first.argv);
    let setup = found.setup.iter().map(CommandLine::display);
    let due = |command: &String| {
        settings.sandbox.provider().is_elsewhere() || !has_all_of(command, found.installed.iter())
    };
    let setup: Vec<String> = setup.filter(due).collect();
    if !setup.is_empty() {
        words.push_str(&format!(", in a clean checkout after {}", setup.join("; ")));
    }
    words.push_str(&format!(" (from {}; `--verify CMD` chooses)", first.source));
    if let Some(other) = found.checks.get(1) {
        words.push_str(&format!("; also found: {}", shown(&other.argv)));
    }
    words
}

/// A command as typed in a shell.
fn shown(argv: &[String]) -> String {
    match argv {
        [shell, flag, command] if shell == "sh" && flag == "-c" => command.clone(),
        argv => join_argv(argv),
    }
}

fn place_words(settings: &Settings, place: &PlaceRequest) -> String {
    let provider = settings.sandbox.provider();
    let sandboxed = match settings.isolation {
        _ if provider.is_elsewhere() => format!("in a sandbox of {}", provider.as_str()),
        Isolation::None => "without a sandbox".to_owned(),
        _ => "sandboxed".to_owned(),
    };
    match place {
        PlaceRequest::InPlace if settings.isolation == Isolation::None => {
            format!("this folder, {sandboxed}")
        }
        PlaceRequest::InPlace => {
            format!("a copy of this folder, {sandboxed}; its files appear here after each iteration")
        }
        PlaceRequest::Worktree => format!("a separate worktree, {sandboxed}"),
        PlaceRequest::Clone { from, .. } => format!("a clone of {from}, {sandboxed}"),
    }
}
