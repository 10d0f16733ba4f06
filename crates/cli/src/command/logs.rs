//! `ralph logs`: what happened, in words, as raw events, or as the agent printed it.

mod output;

use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::signals;
use crate::table::{columns, wrap};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use ralph_app::App;
use ralph_app::journal_lines::{Line, Lines};
use ralph_core::CancelFlag;
use ralph_core::clock::SystemClock;
use ralph_core::handle::RunHandle;
use ralph_domain::describe::{Tone, describe};
use ralph_domain::event::{Event, EventBody};
use ralph_domain::ports::Clock as _;
use ralph_journal::registry::Registration;
use std::collections::VecDeque;
use std::os::fd::AsFd as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Sentences shown unless told otherwise.
const SENTENCES: usize = 200;
/// Time between two looks at the journal.
const LOOK: Duration = Duration::from_millis(200);

/// What happened, one sentence per event. Times are UTC.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph logs -f                 follow the run of this folder until it is over
  ralph logs k3f9 -n 20         the last 20 sentences
  ralph logs -o --iteration 3   what the agent printed in iteration 3
  ralph logs --events --from 40 raw events, from number 40 on")]
pub struct LogsArgs {
    /// The run; the latest of this folder if left out.
    pub run: Option<String>,
    /// Go on with what comes, until the run is over.
    #[arg(short, long)]
    pub follow: bool,
    /// Only this iteration.
    #[arg(long, value_name = "N")]
    pub iteration: Option<u32>,
    /// The agent's raw output; of the latest iteration unless one is named.
    #[arg(short = 'o', long, conflicts_with_all = ["events", "from"])]
    pub agent_output: bool,
    /// Raw events, one JSON object per line (also with `--json`).
    #[arg(long)]
    pub events: bool,
    /// From the event with this number on.
    #[arg(long, value_name = "SEQ")]
    pub from: Option<u64>,
    /// Only the last N lines; 0 shows all (sentences: 200 unless told otherwise).
    #[arg(short = 'n', long, value_name = "N")]
    pub lines: Option<usize>,
}

/// Runs the command.
pub fn run(args: LogsArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let LogsArgs { run, follow, iteration, agent_output, events, from, lines: last } = args;
    let facts = app.facts(folder, run.as_deref())?;
    if agent_output {
        let wanted = output::Wanted { iteration, last, follow };
        return output::print(app, &facts, wanted, out);
    }
    let raw = events || out.json;
    let mut filter = Filter { iteration, current: None, raw };
    let mut lines = Lines::new(&facts.entry.run_dir().events(), from.unwrap_or(0));
    let most = match last {
        Some(0) => usize::MAX,
        Some(n) => n,
        None if raw || from.is_some() => usize::MAX,
        None => SENTENCES,
    };
    let mut shown: VecDeque<Line> = VecDeque::new();
    let mut earlier = 0;
    lines.poll(&mut |line| {
        if filter.wants(&line.event) {
            shown.push_back(line);
            if shown.len() > most {
                shown.pop_front();
                earlier += 1;
            }
        }
    })?;
    if earlier > 0 && last.is_none() {
        out.say(out.err(Tone::Muted, &format!("… {earlier} earlier lines (`-n 0` shows all)")));
    }
    let mut printer = Printer { raw, day: String::new() };
    shown.iter().for_each(|line| printer.print(line, out));
    drop(shown);
    if !follow {
        return Ok(0);
    }
    let mut watch = Watch::new(app, &facts.entry);
    while !lines.over && !watch.pause(out) {
        lines.poll(&mut |line| {
            if filter.wants(&line.event) {
                printer.print(&line, out);
            }
        })?;
    }
    Ok(0)
}

/// Which events are shown.
#[derive(Debug)]
struct Filter {
    iteration: Option<u32>,
    current: Option<u32>,
    raw: bool,
}

impl Filter {
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

/// Prints lines; in words, with a heading for each new day.
#[derive(Debug)]
struct Printer {
    raw: bool,
    day: String,
}

impl Printer {
    fn print(&mut self, line: &Line, out: &Out) {
        if self.raw {
            out.line(&line.text);
            return;
        }
        let Some((tone, sentence)) = describe(&line.event) else { return };
        let day = line.event.at.strftime("%Y-%m-%d").to_string();
        if day != self.day {
            out.line(out.out(Tone::Muted, &format!("{day} (UTC)")));
            self.day = day;
        }
        let sign = match tone {
            Tone::Good => Sign::Good,
            Tone::Bad => Sign::Bad,
            Tone::Attention => Sign::Wait,
            Tone::Plain => Sign::Now,
            Tone::Muted => Sign::Note,
        };
        let time = out.out(Tone::Muted, &line.event.at.strftime("%H:%M:%S").to_string());
        let sign = out.sign(sign);
        // Signs differ in width; the sentences still begin in one column.
        let pad = " ".repeat(3usize.saturating_sub(crate::table::width(sign)));
        for (n, part) in wrap(&sentence, columns().saturating_sub(12)).iter().enumerate() {
            let part = if tone == Tone::Muted { out.out(tone, part) } else { part.clone() };
            match n {
                0 => out.line(format!("{time} {}{pad}{part}", out.out(tone, sign))),
                _ => out.line(format!("            {part}")),
            }
        }
    }
}

/// Waits between two looks, and knows when to stop waiting.
struct Watch {
    clock: SystemClock,
    cancel: Arc<CancelFlag>,
    handle: RunHandle,
    id: String,
    looks: u32,
    told: bool,
}

impl Watch {
    fn new(app: &App, entry: &Registration) -> Self {
        Self {
            clock: SystemClock::default(),
            cancel: signals::install(),
            handle: app.handle(entry),
            id: entry.run_id.to_string(),
            looks: 0,
            told: false,
        }
    }

    /// Lets a moment pass; true where nobody wants to see more.
    fn pause(&mut self, out: &Out) -> bool {
        self.clock.pause(LOOK);
        self.looks += 1;
        // Once a second: is anybody still at work? It may go on later, so that is said and not an end.
        if self.looks.is_multiple_of(5) {
            let idle = !self.handle.is_driven();
            if idle && !self.told {
                out.say(format!(
                    "no process drives this run; `ralph resume {}` goes on (Ctrl-C leaves)",
                    self.id
                ));
            }
            self.told = idle;
        }
        self.cancel.get().is_some() || reader_gone()
    }
}

/// Whether whoever read stdout has closed it (`ralph logs -f | head`).
fn reader_gone() -> bool {
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let closed = PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL;
    nix::poll::poll(&mut fds, PollTimeout::ZERO).is_ok_and(|n| n > 0)
        && fds[0].revents().is_some_and(|r| r.intersects(closed))
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_domain::id::Seq;

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
    fn what_only_the_engine_needs_is_left_to_the_raw_view() {
        let started = event("\"kind\":\"driver_started\",\"pid\":1");
        let mut words = Filter { iteration: None, current: None, raw: false };
        assert!(!words.wants(&started));
        assert!(Filter { raw: true, ..words }.wants(&started));
    }
}
