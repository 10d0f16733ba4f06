//! Dispatches the parsed command line.

use crate::args::{Cli, Command};
use crate::command::serving::{audit, deploy, hook, index, mcp, sandbox, serve, worker};
use crate::command::setup::{bug_report, completions, doctor, man, models, notify, plugin, probe, trust};
use crate::command::start::{demo, fork, home, resume, run};
use crate::command::steer::{control, diagnose, guardrail};
use crate::command::take::{apply, archive, clean, diff, open, publish, restore};
use crate::command::task::{harness, init, lint, plan, prove, schema};
use crate::command::watch::{attach, cost, list, logs, replay, show, status};
use crate::error::CommandError;
use crate::output::Out;
use clap::CommandFactory as _;
use ralph_loop_app::App;
use ralph_loop_protocol::control::Control;

pub fn dispatch(args: Cli, app: &App, out: &Out) -> Result<u8, CommandError> {
    let folder = app.environment().folder(args.project_dir.as_deref())?;
    let Some(command) = args.command else { return home::run(app, &folder, out) };
    match command {
        Command::Sandbox(args) => sandbox::run(args, app, out),
        Command::Run(args) => run::run(*args, app, &folder, out),
        Command::Resume(args) => resume::run(args, app, &folder, out),
        Command::Fork(args) => fork::run(args, app, &folder, out),
        Command::Replay(args) => replay::run(&args, app, &folder, out),
        Command::Pause(args) => control::simple(&args, Control::Pause, app, &folder, out),
        Command::Rotate(args) => control::simple(&args, Control::Rotate, app, &folder, out),
        Command::Stop(args) => control::simple(&args, Control::Stop, app, &folder, out),
        Command::Cancel(args) => control::cancel(&args, app, &folder, out),
        Command::Skip(args) => control::skip(args, app, &folder, out),
        Command::Cooldown(args) => control::cooldown(args, app, &folder, out),
        Command::Model(args) => control::model(args, app, &folder, out),
        Command::Edit(args) => control::edit(args, app, &folder, out),
        Command::Approve(args) => control::approve(&args, app, &folder, out),
        Command::Note(args) => control::text(args, |text| Control::Note { text }, app, &folder, out),
        Command::Guardrail(args) => {
            let send = |text, run| {
                let letter = control::TextArgs { text, run };
                control::text(letter, |text| Control::Guardrail { text }, app, &folder, out)
            };
            guardrail::run(args, send, app, &folder, out)
        }
        Command::Nudge(args) => control::text(args, |text| Control::Nudge { text }, app, &folder, out),
        Command::Tui => home::tui(app, &folder, out),
        Command::Status(args) => status::run(args, app, &folder, out),
        Command::Logs(args) => logs::run(args, app, &folder, out),
        Command::Attach(args) => attach::run(args, app, &folder, out),
        Command::Show(args) => show::run(args, app, &folder, out),
        Command::Diff(args) => diff::run(args, app, &folder, out),
        Command::Apply(args) => apply::run(args, app, &folder, out),
        Command::Publish(args) => publish::run(args, app, &folder, out),
        Command::Open(args) => open::run(args, app, &folder, out),
        Command::Clean(args) => clean::run(args, app, &folder, out),
        Command::Cost(args) => cost::run(&args, app, out),
        Command::List(args) => list::run(args, app, &folder, out),
        Command::Init(args) => init::run(args, app, &folder, out),
        Command::Lint(args) => lint::run(args, app, &folder, out),
        Command::Harness(args) => harness::run(&args, app, &folder, out),
        Command::Prove(args) => prove::run(args, app, &folder, out),
        Command::Archive(args) => archive::run(args, app, &folder, out),
        Command::Schema(args) => schema::run(args, &folder, out),
        Command::Doctor(args) => doctor::run(args, app, &folder, out),
        Command::BugReport(args) => bug_report::run(args, app, &folder, out),
        Command::Trust(args) => trust::run(args, app, &folder, out),
        Command::Probe(args) => probe::run(args, app, &folder, out),
        Command::Models(args) => models::run(args, app, &folder, out),
        Command::Notify(args) => notify::run(args, app, &folder, out),
        Command::Restore(args) => restore::run(args, app, &folder, out),
        Command::Diagnose(args) => diagnose::run(args, app, &folder, out),
        Command::Serve(args) => serve::run(&args, app, &folder, out),
        Command::Worker(args) => worker::run(&args, app, out),
        Command::Index(args) => index::run(&args, app, &folder, out),
        Command::Audit(args) => audit::run(&args, app, out),
        Command::Deploy(args) => deploy::run(args, app, &folder, out),
        Command::Demo(args) => demo::run(args, app, &folder, out),
        Command::Plan(args) => plan::run(args, app, &folder, out),
        Command::Plugin(args) => plugin::run(args, app, out),
        Command::Mcp(args) => mcp::run(args, app, &folder, out),
        Command::Hook(args) => hook::run(&args, app),
        Command::Completions(args) => completions::run(args, Cli::command(), out),
        Command::Man(args) => man::run(args, Cli::command(), &folder, out),
    }
}
