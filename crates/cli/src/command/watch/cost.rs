//! `ralph cost`: totals what runs on this machine cost.

use crate::error::CommandError;
use crate::output::Out;
use crate::parse::age;
use crate::text::table::{Cell, Table, columns};
use crate::text::words::{home_path, short_count};
use ralph_loop_app::App;
use ralph_loop_app::read::costs;
use ralph_loop_app::read::costs::CostsBy;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::{count, duration};
use ralph_loop_protocol::money::Cost;
use std::path::Path;
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph cost                          show the last seven days by agent
  ralph cost --since 24h --by repo
Sessions without a known price are counted, not estimated.")]
pub struct CostArgs {
    /// How far back to look: 12h, 7d, 4w
    #[arg(long, value_name = "AGE", default_value = "7d", value_parser = age)]
    pub since: Duration,
    /// Group by
    #[arg(long, value_enum, default_value_t = By::Agent)]
    pub by: By,
}

/// Grouping of costs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum By {
    /// The agent
    Agent,
    /// The model
    Model,
    /// The repo
    Repo,
}

pub fn run(args: &CostArgs, app: &App, out: &Out) -> Result<u8, CommandError> {
    let now = SystemClock::default().now();
    let since = now.checked_sub(args.since).unwrap_or(now);
    let by = match args.by {
        By::Agent => CostsBy::Agent,
        By::Model => CostsBy::Model,
        By::Repo => CostsBy::Repo,
    };
    let costs = costs::costs(app.environment(), since, by)?;
    if out.json {
        out.value(&costs);
        return Ok(0);
    }
    let span = duration(args.since);
    if costs.rows.is_empty() {
        out.line(format!("no session ended in the last {span}"));
        return Ok(0);
    }
    let mut table = Table::new(0).indent(2);
    for row in &costs.rows {
        let name = if by == CostsBy::Repo { home_path(Path::new(&row.name)) } else { row.name.clone() };
        let tokens =
            row.tokens.map_or_else(|| "tokens unknown".to_owned(), |n| format!("{} tokens", short_count(n)));
        table.row([
            name.into(),
            row.cost.to_string().into(),
            count(usize::try_from(row.sessions).unwrap_or(usize::MAX), "session").into(),
            count(row.runs, "run").into(),
            Cell::toned(Tone::Muted, tokens),
        ]);
    }
    let sum = match costs.cost {
        Cost::UNKNOWN => "an unknown amount".to_owned(),
        sum => sum.to_string(),
    };
    out.line(format!("{sum} in {}, the last {span}", count(costs.runs, "run")));
    table.lines(columns(), out).iter().for_each(|line| out.line(line));
    if costs.unknown_sessions > 0 {
        let sessions = count(usize::try_from(costs.unknown_sessions).unwrap_or(usize::MAX), "session");
        out.line(format!("  {sessions} of unknown cost not included"));
    }
    if costs.cached_tokens > 0 {
        let saved = costs.saved_usd.map(|saved| format!(", saved {saved}")).unwrap_or_default();
        let (cached, all) = (short_count(costs.cached_tokens), short_count(costs.prompt_tokens));
        out.line(format!("  {cached} of {all} tokens of prompts read from the providers' caches{saved}"));
    }
    Ok(0)
}
