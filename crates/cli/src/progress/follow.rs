//! Follows a run from outside, for `logs -f` and `attach`.

use crate::output::{Out, Sign};
use crate::process::signals;
use crate::progress::live_text::LivePrinter;
use crate::progress::session_lines::{SessionLine, SessionLines};
use crate::text::table::{columns, fit, wrap};
use ralph_loop_app::App;
use ralph_loop_core::CancelToken;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_core::handle::RunHandle;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_journal::journal::tail::JournalLine;
use ralph_loop_journal::live::stream::StreamItem;
use ralph_loop_protocol::describe::{Tone, describe_in, details};
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::event::EventBody;
use std::sync::Arc;
use std::time::Duration;

/// Polling interval.
const LOOK: Duration = Duration::from_millis(200);

/// How much of a session is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SessionDetail {
    /// One line per tool call, and the agent's last sentences.
    Lines,
    /// Everything: all text, output of checks.
    Everything,
}

/// Prints lines, with a heading for each new day.
#[derive(Debug)]
pub struct Printer {
    raw: bool,
    day: String,
    detail: SessionDetail,
    live: LivePrinter,
    session: SessionLines,
}

/// Columns before an event's text.
const INDENT: usize = 12;

impl Printer {
    /// As text, or as journal lines.
    pub fn new(raw: bool, detail: SessionDetail) -> Self {
        let (live, session) = (LivePrinter::default(), SessionLines::default());
        Self { raw, day: String::new(), detail, live, session }
    }

    /// Prints one item.
    pub fn item(&mut self, item: &StreamItem, out: &Out) {
        match item {
            StreamItem::Event(line) => {
                self.live.end(out);
                if !self.raw && matches!(line.event.body, EventBody::SessionEnded { .. }) {
                    let said = self.session.end();
                    said.iter().for_each(|said| print_session_line(said, out));
                }
                self.print(line, out);
            }
            StreamItem::Live(record) if self.raw => out.value(record),
            StreamItem::Live(record) if self.detail == SessionDetail::Lines => {
                self.session.take(&record.body).iter().for_each(|line| print_session_line(line, out));
            }
            StreamItem::Live(record) => self.live.print(record, out),
            StreamItem::Missed(_) if self.raw || self.detail == SessionDetail::Lines => {}
            StreamItem::Missed(records) => self.live.missed(*records, out),
        }
    }

    /// Ends an open line of live text.
    pub fn end(&mut self, out: &Out) {
        self.live.end(out);
    }

    /// Prints an event that has text.
    fn print(&mut self, line: &JournalLine, out: &Out) {
        if self.raw {
            out.json_line(&line.text);
            return;
        }
        let zone = crate::process::terminal::zone();
        let Some((tone, sentence)) = describe_in(&line.event, Some(&zone)) else { return };
        let at = line.event.at.to_zoned(zone);
        let day = at.strftime("%Y-%m-%d (%Z)").to_string();
        if day != self.day {
            out.line(out.out(Tone::Muted, &day));
            self.day = day;
        }
        let sign = match tone {
            Tone::Good => Sign::Good,
            Tone::Bad => Sign::Bad,
            Tone::Attention if matches!(line.event.body, EventBody::NeedsHuman { .. }) => Sign::NeedsYou,
            Tone::Attention => Sign::Wait,
            Tone::Plain => Sign::Now,
            Tone::Muted => Sign::Note,
        };
        let time = out.out(Tone::Muted, &at.strftime("%H:%M:%S").to_string());
        let sign = out.sign(sign);
        // Symbols differ in width; align the text.
        let pad = " ".repeat(3usize.saturating_sub(crate::text::table::width(sign)));
        for (n, part) in wrap(&sentence, columns().saturating_sub(INDENT)).iter().enumerate() {
            let part = if tone == Tone::Muted { out.out(tone, part) } else { part.clone() };
            match n {
                0 => out.line(format!("{time} {}{pad}{part}", out.out(tone, sign))),
                _ => out.line(format!("{:INDENT$}{part}", "")),
            }
        }
        for line in details(&line.event) {
            muted(&line, out);
        }
    }
}

fn print_session_line(line: &SessionLine, out: &Out) {
    match line {
        SessionLine::Did(what) => muted(&format!("> {what}"), out),
        SessionLine::Said(sentence) => {
            wrap(sentence, columns().saturating_sub(INDENT)).iter().for_each(|line| muted(line, out));
        }
    }
}

/// A line below an event's text.
fn muted(line: &str, out: &Out) {
    let line = fit(&sanitize::line(line), columns().saturating_sub(INDENT));
    out.line(format!("{:INDENT$}{}", "", out.out(Tone::Muted, &line)));
}

/// Waits between reads and decides when to stop.
pub struct FollowTimer {
    clock: SystemClock,
    cancel: Arc<CancelToken>,
    handle: RunHandle,
    id: String,
    looks: u32,
    told: bool,
}

impl FollowTimer {
    pub fn new(app: &App, entry: &Registration) -> Self {
        Self {
            clock: SystemClock::default(),
            cancel: signals::install(),
            handle: app.handle(entry),
            id: entry.run_id.to_string(),
            looks: 0,
            told: false,
        }
    }

    /// Waits; returns true when the user wants to stop.
    pub fn pause(&mut self, out: &Out) -> bool {
        let left = self.wait();
        self.looks += 1;
        // Once a second: is it still driven? It may resume later, so only report it.
        if self.looks.is_multiple_of(5) {
            let idle = !self.handle.is_driven();
            if idle && !self.told {
                out.say(format!(
                    "not running; run `ralph resume {}` to continue it (Ctrl-C leaves)",
                    self.id
                ));
            }
            self.told = idle;
        }
        left
    }

    /// Like [`Self::pause`], without reporting the driver.
    pub fn wait(&mut self) -> bool {
        self.clock.pause(LOOK);
        self.cancel.get().is_some() || crate::output::reader_gone()
    }

    pub fn is_driven(&self) -> bool {
        self.handle.is_driven()
    }
}
