//! `ralph doctor`: checks everything a run needs here, and names the reason and the fix for what is missing.

mod agents;
mod code_host;
mod configuration;
mod machine;
mod programs;
mod repo;
mod task;

use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::text::table::{columns, wrap};
use ralph_loop_app::agents::scratch::Scratch;
use ralph_loop_app::read::find;
use ralph_loop_app::task::lint::checks::join;
use ralph_loop_app::{App, Assumptions, ErrorKind, Overrides, RunRequest, SilentReporter, TaskInput};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::count;
use serde::Serialize;
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph doctor
  ralph doctor --json
Changes nothing and calls no model. Exits with 4 if something required is missing.")]
pub struct DoctorArgs {
    /// Folder of the plan [default: ralph]
    #[arg(long, value_name = "DIR")]
    pub ralph_dir: Option<PathBuf>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Area {
    Machine,
    Repo,
    Agents,
    Configuration,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum Status {
    Ok,
    Warn,
    Missing,
}

#[derive(Debug, Clone, Serialize)]
struct DoctorCheck {
    area: Area,
    name: String,
    status: Status,
    message: String,
    why: Option<String>,
    fix: Option<String>,
}

impl DoctorCheck {
    fn ok(area: Area, name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { area, name: name.into(), status: Status::Ok, message: message.into(), why: None, fix: None }
    }
    fn warn(area: Area, name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status: Status::Warn, ..Self::ok(area, name, message) }
    }
    fn missing(area: Area, name: impl Into<String>, message: impl Into<String>) -> Self {
        Self { status: Status::Missing, ..Self::ok(area, name, message) }
    }
    fn why(mut self, why: impl Into<String>) -> Self {
        self.why = Some(why.into());
        self
    }
    fn fix(mut self, fix: impl Into<String>) -> Self {
        self.fix = Some(fix.into());
        self
    }
}

pub fn run(args: DoctorArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let checks = all_checks(app, folder, args.ralph_dir.as_deref());
    let missing = checks.iter().filter(|c| c.status == Status::Missing).count();
    if out.json {
        out.value(&serde_json::json!({ "ok": missing == 0, "checks": checks }));
    } else {
        print(&checks, missing, out);
    }
    Ok(if missing == 0 { 0 } else { 4 })
}

/// The checks as plain lines, for a bug report.
pub fn lines(app: &App, folder: &Path) -> String {
    let word = |status| match status {
        Status::Ok => "ok",
        Status::Warn => "note",
        Status::Missing => "missing",
    };
    let checks = all_checks(app, folder, None);
    let lines = checks.iter().map(|c| format!("{:?}: {}: {}: {}", c.area, word(c.status), c.name, c.message));
    lines.collect::<Vec<_>>().join("\n")
}

fn all_checks(app: &App, folder: &Path, plan: Option<&Path>) -> Vec<DoctorCheck> {
    let top = find::top(folder);
    // A run also reads the repo's `.env`, so its keys count.
    let with_dotenv = app.environment().with_dotenv(&top);
    let env = with_dotenv.as_ref().unwrap_or(app.environment());
    let scratch = Scratch::new(env, "doctor");
    let mut checks = machine::checks(env, folder, scratch.as_ref().err());
    let (config_checks, file) = configuration::files(env, &top);
    let (task_checks, task) = task::checks(env, folder, &top, plan);
    let task_found = task.is_some();
    let task = task.unwrap_or_default();
    checks.extend(repo::checks(env, folder, task.repo_url.as_deref()));
    let wanted = file.publish.is_some();
    let mut assumptions = Assumptions::default();
    let file = join(env, (&top, folder), file, task.settings, &Overrides::default(), &mut assumptions);
    checks.extend(code_host::checks(env, folder, &file, task.repo_url.as_deref(), wanted));
    checks.extend(task.repo_url.as_deref().filter(|_| !wanted).and_then(|url| code_host::pushes(&file, url)));
    checks.extend(agents::checks(env, &top, &file, &task.models));
    checks.extend(config_checks);
    checks.extend(with_dotenv.as_ref().err().map(|error| {
        let check = DoctorCheck::missing(Area::Configuration, ".env", &error.message);
        check.why("a run does not start before").fix(error.hint.clone().unwrap_or_default())
    }));
    checks.extend(configuration::checks(env, &top, file, &assumptions));
    checks.extend(task_checks);
    checks.extend(configuration::trust(app, folder));
    if checks.iter().all(|check| check.status != Status::Missing) {
        checks.extend(refused(app, folder, task_found));
    }
    checks
}

/// Why `ralph run` would refuse, if no check here says it.
fn refused(app: &App, folder: &Path, task_found: bool) -> Option<DoctorCheck> {
    let task = if task_found { TaskInput::Found } else { TaskInput::Text("Check the setup.\n".into()) };
    let request = RunRequest { task, ..RunRequest::in_folder(folder) };
    let error = app.prepare(&request, &SilentReporter).err()?;
    // Permissions and the command that checks the result have their own checks.
    if matches!(error.kind, ErrorKind::NeedsPerson | ErrorKind::NothingChecks | ErrorKind::Stopped) {
        return None;
    }
    let check = DoctorCheck::missing(Area::Configuration, "run", &error.message);
    let check = match &error.cause {
        Some(cause) => check.why(cause),
        None => check,
    };
    Some(check.fix(error.next()))
}

fn print(checks: &[DoctorCheck], missing: usize, out: &Out) {
    let areas = [
        (Area::Machine, "Machine"),
        (Area::Repo, "Repo"),
        (Area::Agents, "Agents"),
        (Area::Configuration, "Configuration"),
    ];
    for (n, (area, title)) in areas.into_iter().enumerate() {
        if n > 0 {
            out.line("");
        }
        out.line(out.out(Tone::Muted, title));
        for check in checks.iter().filter(|c| c.area == area) {
            print_check(check, out);
        }
    }
    let warnings = checks.iter().filter(|c| c.status == Status::Warn).count();
    out.line("");
    out.line(match (missing, warnings) {
        (0, 0) => format!("{} everything a run needs is here", out.out(Tone::Good, out.sign(Sign::Good))),
        (0, n) => format!(
            "{} everything a run needs is here, with {} to read",
            out.out(Tone::Good, out.sign(Sign::Good)),
            count(n, "note")
        ),
        _ => {
            let names: Vec<&str> =
                checks.iter().filter(|c| c.status == Status::Missing).map(|c| c.name.as_str()).collect();
            format!("{} missing: {}", out.out(Tone::Bad, out.sign(Sign::Bad)), names.join(", "))
        }
    });
}

fn print_check(check: &DoctorCheck, out: &Out) {
    let (sign, tone, word) = match check.status {
        Status::Ok => (Sign::Good, Tone::Good, ""),
        Status::Warn => (Sign::Open, Tone::Attention, "note: "),
        Status::Missing => (Sign::Bad, Tone::Bad, "missing: "),
    };
    let sign = out.sign(sign);
    let pad = " ".repeat(3usize.saturating_sub(crate::text::table::width(sign)));
    let room = columns().saturating_sub(7);
    let text = format!("{}: {word}{}", check.name, check.message);
    for (n, line) in wrap(&text, room).iter().enumerate() {
        out.line(if n == 0 {
            format!("  {}{pad}{line}", out.out(tone, sign))
        } else {
            format!("     {line}")
        });
    }
    if let Some(why) = &check.why {
        wrap(why, room).iter().for_each(|l| out.line(format!("     {}", out.out(Tone::Muted, l))));
    }
    for (n, line) in check.fix.iter().flat_map(|fix| wrap(fix, room.saturating_sub(5))).enumerate() {
        out.line(if n == 0 {
            format!("     {} {line}", out.out(Tone::Plain, "fix:"))
        } else {
            format!("          {line}")
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_has_failure_cause_and_fix() {
        let check = DoctorCheck::missing(Area::Agents, "claude", "not installed")
            .why("an agent does the work")
            .fix("npm install -g x");
        insta::assert_json_snapshot!(check, @r#"
        {
          "area": "agents",
          "name": "claude",
          "status": "missing",
          "message": "not installed",
          "why": "an agent does the work",
          "fix": "npm install -g x"
        }
        "#);
    }
}
