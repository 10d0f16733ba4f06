//! `ralph logs`: a run's events as text or JSON, or the agent's output.

mod output;

use crate::error::CommandError;
use crate::output::Out;
use crate::progress::follow::{FollowTimer, Printer, SessionDetail};
use ralph_loop_app::App;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_journal::JournalError;
use ralph_loop_journal::live::LivePayload;
use ralph_loop_journal::live::stream::{RunStream, StreamItem, StreamStart};
use ralph_loop_protocol::describe::{Tone, describe};
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::id::Seq;
use std::collections::VecDeque;
use std::path::Path;

/// Default number of lines.
const SENTENCES: usize = 200;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph logs -f                 follow this folder's run
  ralph logs -f --live          include everything the agent prints
  ralph logs -o --iteration 3   show the agent's work in iteration 3")]
pub struct LogsArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
    /// Follow the run until it ends
    #[arg(short, long)]
    pub follow: bool,
    /// Include agent text, tool calls and check output
    #[arg(long, conflicts_with = "agent_output")]
    pub live: bool,
    /// Show only this iteration
    #[arg(long, value_name = "N")]
    pub iteration: Option<u32>,
    /// Show what the agent said and did
    #[arg(short = 'o', long, conflicts_with_all = ["events", "from"])]
    pub agent_output: bool,
    /// Print the agent's output byte by byte
    #[arg(long, requires = "agent_output")]
    pub raw: bool,
    /// Print raw events, one JSON object per line
    #[arg(long)]
    pub events: bool,
    /// Start at this event number
    #[arg(long, value_name = "SEQ")]
    pub from: Option<u64>,
    /// Show only the last N lines, 0 for all
    #[arg(short = 'n', long, value_name = "N")]
    pub lines: Option<usize>,
}

pub fn run(args: LogsArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let LogsArgs { run, follow, live, iteration, agent_output, raw: unsafe_bytes, events, from, lines: last } =
        args;
    let facts = app.facts(folder, run.as_deref())?;
    if agent_output {
        let wanted = output::OutputSelection { iteration, last, follow, raw: unsafe_bytes };
        return output::print(app, &facts, wanted, out);
    }
    let raw = events || out.json;
    let detail = if live || raw { SessionDetail::Everything } else { SessionDetail::Lines };
    let with_session = live || (follow && !raw);
    let mut story = LogSelection::open(&facts, from, with_session, Filter { iteration, current: None, raw })?;
    let most = match last {
        Some(0) => usize::MAX,
        Some(n) => n,
        None if raw || from.is_some() => usize::MAX,
        None => SENTENCES,
    };
    let mut shown: VecDeque<StreamItem> = VecDeque::new();
    let (mut lines, mut earlier) = (0, 0);
    while story.poll(&mut |item| {
        lines += usize::from(is_line(&item, detail));
        shown.push_back(item);
        while lines > most
            && let Some(gone) = shown.pop_front()
        {
            let line = usize::from(is_line(&gone, detail));
            lines -= line;
            earlier += line;
        }
    })? {}
    if earlier > 0 && last.is_none() {
        out.say(out.err(Tone::Muted, &format!("… {earlier} earlier lines (`-n 0` shows all)")));
    }
    let mut printer = Printer::new(raw, detail);
    shown.iter().for_each(|item| printer.item(item, out));
    drop(shown);
    printer.end(out);
    if !follow {
        return Ok(0);
    }
    let mut watch = FollowTimer::new(app, &facts.entry);
    while !story.over && !watch.pause(out) {
        while story.poll(&mut |item| printer.item(&item, out))? {}
    }
    printer.end(out);
    Ok(0)
}

/// Whether an item is a complete line, not a piece of one.
fn is_line(item: &StreamItem, detail: SessionDetail) -> bool {
    match item {
        StreamItem::Live(record) if detail == SessionDetail::Lines => {
            matches!(record.body, LivePayload::ToolCall { .. } | LivePayload::Activity { .. })
        }
        _ => true,
    }
}

/// The requested events.
struct LogSelection {
    stream: RunStream,
    filter: Filter,
    /// Whether the end of the run was read.
    over: bool,
}

impl LogSelection {
    fn open(
        facts: &RunSnapshot,
        from: Option<u64>,
        live: bool,
        filter: Filter,
    ) -> Result<Self, JournalError> {
        let start = from.filter(|n| *n > 0).map_or(StreamStart::Beginning, |n| StreamStart::From(Seq(n)));
        let stream = RunStream::open(&facts.entry.run_dir(), start)?;
        let stream = if live { stream } else { stream.events_only() };
        Ok(Self { stream, filter, over: facts.state.result.finished.is_some() })
    }

    /// Passes new items on; returns false if there were none.
    fn poll(&mut self, each: &mut dyn FnMut(StreamItem)) -> Result<bool, JournalError> {
        let items = self.stream.poll()?;
        let any = !items.is_empty();
        for item in items {
            if let StreamItem::Event(line) = &item {
                self.over |= matches!(line.event.body, EventBody::Finished { .. });
            }
            if self.filter.takes(&item) {
                each(item);
            }
        }
        Ok(any)
    }
}

#[derive(Debug)]
struct Filter {
    iteration: Option<u32>,
    current: Option<u32>,
    raw: bool,
}

impl Filter {
    fn takes(&mut self, item: &StreamItem) -> bool {
        match item {
            StreamItem::Event(line) => self.wants(&line.event),
            StreamItem::Live(record) => self.iteration.is_none_or(|n| n == record.iteration),
            StreamItem::Missed(_) => true,
        }
    }

    fn wants(&mut self, event: &Event) -> bool {
        if let EventBody::IterationStarted { iteration, .. } = &event.body {
            self.current = Some(*iteration);
        }
        let within = self.iteration.is_none() || self.iteration == self.current;
        if matches!(event.body, EventBody::IterationEnded { .. } | EventBody::IterationVoided { .. }) {
            self.current = None;
        }
        within && (self.raw || describe(event).is_some())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn event(json: &str) -> Event {
        let text = format!("{{\"seq\":1,\"at\":\"2026-11-15T12:00:00Z\",{json}}}");
        serde_json::from_str(&text).unwrap()
    }

    #[test]
    fn one_iteration_is_everything_from_its_start_to_its_end() {
        let start = |n: u32| {
            event(&format!(
                "\"kind\":\"iteration_started\",\"iteration\":{n},\"attempt\":1,\"agent\":\"a\",\"prompt\":\"x\""
            ))
        };
        let notice = event("\"kind\":\"notice\",\"message\":\"m\"");
        let end =
            |n: u32| event(&format!("\"kind\":\"iteration_voided\",\"iteration\":{n},\"reason\":\"r\""));
        let story = [
            notice.clone(),
            start(1),
            notice.clone(),
            end(1),
            notice.clone(),
            start(2),
            notice.clone(),
            end(2),
            notice,
        ];
        let mut filter = Filter { iteration: Some(2), current: None, raw: false };
        let shown: Vec<bool> = story.iter().map(|e| filter.wants(e)).collect();
        assert_eq!(shown, [false, false, false, false, false, true, true, true, false]);
        assert_eq!(story[0].seq, Seq(1));
    }

    #[test]
    fn engine_events_appear_only_in_the_raw_view() {
        let started = event("\"kind\":\"driver_started\",\"pid\":1");
        let mut words = Filter { iteration: None, current: None, raw: false };
        assert!(!words.wants(&started));
        assert!(Filter { raw: true, ..words }.wants(&started));
    }
}
