//! The commands, one file each. A command gets its arguments, the folder it works in and where to print.

pub mod archive;
pub mod completions;
pub mod control;
pub mod convert;
pub mod demo;
pub mod deploy;
pub mod diagnose;
pub mod doctor;
pub mod home;
pub mod init;
pub mod lint;
pub mod list;
pub mod logs;
pub mod man;
pub mod models;
pub mod notify;
pub mod probe;
pub mod restore;
pub mod resume;
pub mod run;
pub mod sandbox;
pub mod schema;
pub mod show;
pub mod status;

use crate::args::{Cli, Command};
use crate::error::CommandError;
use crate::host;
use crate::output::Out;
use ralph_domain::control::Control;

/// Runs the chosen command and returns the exit code.
pub fn run(args: Cli, out: &Out) -> Result<u8, CommandError> {
    let folder = host::folder(args.project_dir.as_deref())?;
    let Some(command) = args.command else { return home::run(&folder, out) };
    match command {
        Command::Sandbox(args) => sandbox::run(args, out),
        Command::Run(args) => run::run(*args, &folder, out),
        Command::Resume(args) => resume::run(args, &folder, out),
        Command::Pause(args) => control::simple(&args, Control::Pause, &folder, out),
        Command::Rotate(args) => control::simple(&args, Control::Rotate, &folder, out),
        Command::Stop(args) => control::simple(&args, Control::Stop, &folder, out),
        Command::Cancel(args) => control::cancel(&args, &folder, out),
        Command::Skip(args) => control::skip(args, &folder, out),
        Command::Cooldown(args) => control::cooldown(args, &folder, out),
        Command::Model(args) => control::model(args, &folder, out),
        Command::Edit(args) => control::edit(args, &folder, out),
        Command::Approve(args) => control::approve(&args, &folder, out),
        Command::Note(args) => control::text(args, |text| Control::Note { text }, &folder, out),
        Command::Guardrail(args) => control::text(args, |text| Control::Guardrail { text }, &folder, out),
        Command::Nudge(args) => control::text(args, |text| Control::Nudge { text }, &folder, out),
        Command::Status(args) => status::run(args, &folder, out),
        Command::Logs(args) => logs::run(args, &folder, out),
        Command::Show(args) => show::run(args, &folder, out),
        Command::List(args) => list::run(args, &folder, out),
        Command::Init(args) => init::run(args, &folder, out),
        Command::Lint(args) => lint::run(args, &folder, out),
        Command::Convert(args) => convert::run(args, &folder, out),
        Command::Archive(args) => archive::run(args, &folder, out),
        Command::Schema(args) => schema::run(args, &folder, out),
        Command::Doctor(args) => doctor::run(args, &folder, out),
        Command::Probe(args) => probe::run(args, &folder, out),
        Command::Models(args) => models::run(args, &folder, out),
        Command::Notify(args) => notify::run(args, &folder, out),
        Command::Restore(args) => restore::run(args, &folder, out),
        Command::Diagnose(args) => diagnose::run(args, &folder, out),
        Command::Deploy(args) => deploy::run(args, &folder, out),
        Command::Demo(args) => demo::run(args, &folder, out),
        Command::Completions(args) => completions::run(args, &folder, out),
        Command::Man(args) => man::run(args, &folder, out),
    }
}
