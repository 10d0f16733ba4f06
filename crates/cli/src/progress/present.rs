//! A foreground run: a line per step, and a live status line below.

use crate::output::{Out, Sign};
use crate::process::fault::Boundaries;
use crate::progress::session_lines::{SessionLine, SessionLines};
use crate::text::table::{fit, fit_words, width, wrap};
use crate::text::words::{age, left};
use ralph_loop_core::{Observer, SessionProgress};
use ralph_loop_domain::ports::Stream;
use ralph_loop_domain::state::{RunState, Stage};
use ralph_loop_journal::live::LivePayload;
use ralph_loop_protocol::describe::{Tone, describe_in, details_unless};
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::clock;
use ralph_loop_protocol::event::{Event, EventBody};
use std::collections::BTreeMap;
use std::time::Duration;

/// Shows a run on stderr.
pub struct Terminal {
    out: Out,
    boundaries: Boundaries,
    frame: usize,
    drawn: bool,
    session: SessionLines,
    next_wait_line: Duration,
    wait_gap: Duration,
    /// Protected paths reported last, and their iteration.
    protected: Option<(u32, String)>,
    /// The lines of each check's last failure.
    failures: BTreeMap<String, Vec<String>>,
}

/// Interval of wait messages without a live line, growing with the wait.
const WAIT_LINE: (Duration, Duration) = (Duration::from_secs(60), Duration::from_secs(16 * 60));
/// Indents of steps, session lines and check output.
const STEP: usize = 4;
const SESSION: usize = 6;
/// Line limit for an agent's sentence.
const SAID_LINES: usize = 2;

impl Terminal {
    pub fn new(out: Out, boundaries: Boundaries) -> Self {
        let session = SessionLines::default();
        let (next_wait_line, wait_gap) = (Duration::ZERO, WAIT_LINE.0);
        Self {
            out,
            boundaries,
            frame: 0,
            drawn: false,
            session,
            next_wait_line,
            wait_gap,
            protected: None,
            failures: BTreeMap::new(),
        }
    }

    /// Without a terminal, session details are shown only when attached or verbose.
    fn shows_session(&self) -> bool {
        !self.out.quiet && (self.out.live || self.out.verbose)
    }

    fn erase(&mut self) {
        if self.drawn {
            self.out.erase();
            self.drawn = false;
        }
    }

    /// A sentence after its symbol, wrapped on a terminal.
    fn say_step(
        &mut self,
        (tone, sign): (Tone, Sign),
        indent: usize,
        sentence: &str,
        text_tone: Option<Tone>,
    ) {
        let sign = self.out.sign(sign);
        let lines = self.broken(sentence, indent + width(sign) + 1);
        for (n, line) in lines.iter().enumerate() {
            let line = text_tone.map_or_else(|| line.clone(), |tone| self.out.err(tone, line));
            match n {
                0 => self.out.say(format!("{:indent$}{} {line}", "", self.out.err(tone, sign))),
                _ => self.out.say(format!("{:1$}{line}", "", indent + width(sign) + 1)),
            }
        }
    }

    fn broken(&self, text: &str, indent: usize) -> Vec<String> {
        match self.out.live {
            true => wrap(text, columns().saturating_sub(indent).max(20)),
            false => vec![text.to_owned()],
        }
    }

    fn say_session(&mut self, state: &RunState, line: &SessionLine) {
        self.erase();
        let room = columns().saturating_sub(SESSION).max(20);
        let lines = match line {
            SessionLine::Did(what) if self.out.live => vec![fit_words(&sanitize::line(what), room)],
            SessionLine::Did(what) => vec![what.clone()],
            SessionLine::Said(sentence) => {
                let agent = state.iterations.current.as_ref().map_or("agent", |c| c.agent.as_str());
                let mut lines = self.broken(&format!("{agent}: {sentence}"), SESSION);
                if lines.len() > SAID_LINES {
                    let rest = lines.split_off(SAID_LINES - 1).join(" ");
                    lines.push(fit_words(&rest, room));
                }
                lines
            }
        };
        for line in lines {
            self.out.say(format!("{:SESSION$}{}", "", self.out.err(Tone::Muted, &line)));
        }
    }

    /// Output of a failing check.
    fn say_details(&mut self, event: &Event) {
        let room = columns().saturating_sub(SESSION).max(20);
        let failures = &mut self.failures;
        let lines = details_unless(event, &mut |check, lines| {
            let known = lines.iter().map(|line| without_run(line)).collect::<Vec<_>>();
            failures.insert(check.to_owned(), known.clone()).is_some_and(|before| before == known)
        });
        for line in lines {
            let line = if self.out.live { fit(&sanitize::line(&line), room) } else { line };
            self.out.say(format!("{:SESSION$}{}", "", self.out.err(Tone::Muted, &line)));
        }
    }
}

/// A line without what differs in each run: the number of a panic's thread, and how long a test took.
fn without_run(line: &str) -> String {
    let mut parts = line.split(" (");
    let first = parts.next().unwrap_or_default().to_owned();
    parts.fold(first, |line, part| match part.split_once(')') {
        Some((inside, rest)) if is_number(inside.trim_end_matches(|c: char| "µms ".contains(c))) => {
            line + rest
        }
        _ => line + " (" + part,
    })
}

fn is_number(text: &str) -> bool {
    text.parse::<f64>().is_ok()
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.erase();
    }
}

impl Observer for Terminal {
    fn event(&mut self, state: &RunState, event: &Event) {
        if matches!(event.body, EventBody::WaitStarted { .. }) {
            (self.next_wait_line, self.wait_gap) = WAIT_LINE;
        }
        if self.out.quiet {
            return;
        }
        if matches!(event.body, EventBody::SessionEnded { .. })
            && let Some(said) = self.session.end()
            && self.shows_session()
        {
            self.say_session(state, &said);
        }
        let Some((tone, sentence)) = describe_in(event, Some(&crate::process::terminal::zone())) else {
            return;
        };
        self.erase();
        match &event.body {
            // The following line tells what matters; the log has everything.
            EventBody::IterationEnded { .. } => {
                let short = sentence.split_once(" (").map_or(sentence.as_str(), |(short, _)| short);
                self.say_step((Tone::Muted, Sign::Note), 2, short, Some(tone));
            }
            EventBody::RunCreated { title, .. } => {
                let id = format!("run {}", state.spec.run_id);
                let title = self.broken(title, width(&id) + 8);
                for (n, line) in title.iter().enumerate() {
                    let head = if n == 0 { self.out.strong("ralph") } else { "     ".to_owned() };
                    let id =
                        if n + 1 == title.len() { self.out.err(Tone::Muted, &id) } else { String::new() };
                    self.out.say(format!("{head} {line}  {id}"));
                }
            }
            EventBody::IterationStarted { .. } => {
                self.say_step((Tone::Plain, Sign::Now), 0, &sentence, None);
            }
            // The call was shown, or it isn't a step.
            EventBody::ActionFinished(done) if done.ok || !self.shows_session() => {}
            // The summary reports the end and the result; an internal ref isn't a branch.
            EventBody::Finished { .. } | EventBody::NeedsHuman { .. } => {}
            EventBody::Published { branch, .. } if branch.starts_with("refs/") => {}
            // A second checkpoint of an iteration finds the same.
            EventBody::ProtectedChanged { iteration, .. }
                if self.protected.replace((*iteration, sentence.clone()))
                    == Some((*iteration, sentence.clone())) => {}
            _ => {
                let sign = match tone {
                    Tone::Good => Sign::Good,
                    Tone::Bad => Sign::Bad,
                    Tone::Attention => Sign::Wait,
                    Tone::Plain | Tone::Muted => Sign::Note,
                };
                let text_tone = (tone == Tone::Muted).then_some(tone);
                self.say_step((tone, sign), STEP - 2, &sentence, text_tone);
                self.say_details(event);
            }
        }
    }

    fn live(&mut self, state: &RunState, live: &SessionProgress<'_>) {
        let line = match crate::process::signals::came() {
            true => NowLine::new(
                "suspending: the session is being closed".to_owned(),
                "Ctrl-C again asks to end the run for good",
            ),
            false => now_line(state, live),
        };
        // Sanitized before cutting to width, because invisible characters take no room.
        let first = sanitize::line(&line.first).into_owned();
        let now = format!("{first}{}", sanitize::line(&line.rest));
        if !self.out.live {
            // Without a live line, long waits still need messages.
            if !self.out.quiet && state.wait.is_some() && live.elapsed >= self.next_wait_line {
                self.wait_gap = (self.wait_gap * 2).min(WAIT_LINE.1);
                self.next_wait_line = live.elapsed + self.wait_gap;
                self.out.say(format!("  {} {now}", self.out.sign(Sign::Wait)));
            }
            return;
        }
        let frames = self.out.spinner();
        self.frame = (self.frame + 1) % frames.len();
        let budgets = &state.spec.settings.budgets;
        let number = state.iterations.current.as_ref().map_or(state.iterations.count, |c| c.iteration);
        let cost = match state.spending.totals.cost {
            cost if cost.at_least() > ralph_loop_protocol::money::Usd::ZERO => {
                format!(" · {cost} of {}", budgets.max_cost)
            }
            _ => String::new(),
        };
        // Least important first, so that the status sentence keeps most of the line.
        let tails = [
            format!("  iteration {number}/{}{cost}", budgets.max_iterations),
            format!("  {number}/{}", budgets.max_iterations),
        ];
        let room = columns().saturating_sub(3);
        let fits = |tail: &String| width(tail) * 3 <= room && width(&first) + width(tail) <= room;
        let tail = tails.into_iter().find(fits).unwrap_or_default();
        let now = fit_words(&now, room.saturating_sub(width(&tail)));
        self.out.redraw(&format!(
            "{} {now}{}",
            self.out.err(Tone::Plain, frames[self.frame]),
            self.out.err(Tone::Muted, &tail)
        ));
        self.drawn = true;
    }

    fn token(&mut self, text: &str) {
        if self.shows_session() {
            self.session.text(text);
        }
    }

    fn shown(&mut self, state: &RunState, what: &LivePayload) {
        if self.shows_session() {
            for line in self.session.take(what) {
                self.say_session(state, &line);
            }
        }
    }

    fn output(&mut self, _stream: Stream, _bytes: &[u8]) {}

    fn ends_for_good(&mut self) -> bool {
        self.erase();
        crate::process::signals::asks_for_the_end(&self.out)
    }

    fn boundary(&mut self, name: &str) {
        self.boundaries.pass(name);
    }
}

/// A status sentence that is never cut, age included, with optional parts if they fit.
struct NowLine {
    first: String,
    rest: String,
}

impl NowLine {
    fn new(first: String, rest: impl Into<String>) -> Self {
        let rest = rest.into();
        Self { first, rest: if rest.is_empty() { rest } else { format!(" · {rest}") } }
    }
}

fn now_line(state: &RunState, live: &SessionProgress<'_>) -> NowLine {
    if let Some(wait) = &state.wait {
        return match wait.until {
            Some(until) => {
                NowLine::new(format!("waiting, continues in {}", left(until, live.now)), wait.reason.as_str())
            }
            None => NowLine::new(
                wait.reason.clone(),
                format!("run `ralph resume {}` to continue", state.spec.run_id),
            ),
        };
    }
    match &state.iterations.current {
        Some(current) if current.stage == Stage::Working => {
            let mut first = format!("{} is working · {}", current.agent, clock(live.elapsed));
            if let Some(silent) = live.silent {
                first.push_str(&match silent >= live.elapsed {
                    true => " · no output yet".to_owned(),
                    false => format!(" · last output {} ago", age(silent)),
                });
            }
            let pending = ralph_loop_domain::view::pending(state);
            let activity = Some(live.activity.to_owned()).filter(|words| !words.is_empty());
            let rest: Vec<String> = pending.into_iter().chain(activity).collect();
            NowLine::new(first, rest.join(" · "))
        }
        Some(_) => NowLine::new(format!("checking · {}", clock(live.elapsed)), live.activity),
        None => {
            let proving = state.result.proof.as_ref().is_some_and(|proof| proof.proof.is_none());
            let what = match (proving, &state.baseline) {
                (true, _) => "final check",
                (false, None) => "running the baseline checks",
                (false, Some(_)) => {
                    return NowLine::new(format!("{} · {}", live.activity, clock(live.elapsed)), "");
                }
            };
            NowLine::new(format!("{what} · {}", clock(live.elapsed)), live.activity)
        }
    }
}

fn columns() -> usize {
    crate::process::terminal::columns().or_else(crate::output::stderr_columns).unwrap_or(80)
}
