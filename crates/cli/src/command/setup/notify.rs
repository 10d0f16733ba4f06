//! `ralph notify`: tests notification channels.

use crate::error::CommandError;
use crate::output::Out;
use crate::text::table::{Cell, Table, columns};
use ralph_loop_app::config::notify;
use ralph_loop_app::read::find;
use ralph_loop_app::{App, NotifyRequest};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::{Clock as _, Notification, Notifier as _, Occasion};
use ralph_loop_notify::ChannelNotifier;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::money::Cost;
use ralph_loop_protocol::outcome::ErrorCode;
use serde_json::json;
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph notify test")]
pub struct NotifyArgs {
    /// What to do.
    #[command(subcommand)]
    pub command: NotifyCommand,
}

#[derive(Debug, clap::Subcommand)]
pub enum NotifyCommand {
    /// Send a test message through every channel
    Test(TestArgs),
}

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph notify test
  ralph notify test --notify desktop
Exits with 4 if a message fails, 2 if no channel is configured.")]
pub struct TestArgs {
    /// Add a channel: slack, desktop, command:LINE
    #[arg(long, value_name = "WAY", value_parser = notify::parse)]
    pub notify: Vec<NotifyRequest>,
}

pub fn run(args: NotifyArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let NotifyCommand::Test(args) = args.command;
    let top = find::top(folder);
    let env = &app.environment().with_dotenv(&top)?;
    let notifiers = notify::chosen(env, &args.notify)?;
    if notifiers.is_empty() {
        return Err(CommandError::environment("no notification is configured").code(ErrorCode::InvalidInput).hint(
            "set SLACK_WEBHOOK_URL, or name one under `notify` in your own `~/.config/ralph/config.json` (docs/CONFIG.md)",
        ));
    }
    let redactor = env.redactor(&top);
    let message = test_message();
    let sent =
        |notifier: &ChannelNotifier| notifier.send(&message).map_err(|why| redactor.text(&why).into_owned());
    let results: Vec<(ChannelNotifier, Result<(), String>)> = notifiers
        .into_iter()
        .map(|notifier| {
            let result = sent(&notifier);
            (notifier, result)
        })
        .collect();
    let all = results.iter().all(|(_, result)| result.is_ok());
    if out.json {
        let rows: Vec<_> = results
            .iter()
            .map(|(notifier, result)| {
                json!({
                    "name": notifier.name(),
                    "kind": notifier.kind(),
                    "on": notifier.occasions().collect::<Vec<_>>(),
                    "ok": result.is_ok(),
                    "why": result.as_ref().err(),
                })
            })
            .collect();
        out.value(&json!({ "notifiers": rows }));
    } else {
        print(&results, out);
    }
    Ok(if all { 0 } else { 4 })
}

fn print(results: &[(ChannelNotifier, Result<(), String>)], out: &Out) {
    let mut table = Table::new(2);
    for (notifier, result) in results {
        let on: Vec<&str> = notifier.occasions().map(Occasion::as_str).collect();
        let (tone, word) = match result {
            Ok(()) => (Tone::Good, "sent".to_owned()),
            Err(why) => (Tone::Bad, format!("failed: {why}")),
        };
        table.row([Cell::new(notifier.name()), Cell::new(on.join(", ")), Cell::toned(tone, word)]);
    }
    for line in table.lines(columns(), out) {
        out.line(line);
    }
}

fn test_message() -> Notification {
    let at = SystemClock::default().now();
    Notification {
        id: format!("test-{}", at.as_millisecond()),
        at,
        occasion: Occasion::Success,
        run_id: RunId::from("test"),
        title: "a test message".into(),
        text: "This is a test. Notifications of your runs arrive here.".into(),
        hint: None,
        pr_url: None,
        iterations: 0,
        cost: Cost::default(),
    }
}
