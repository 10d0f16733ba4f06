//! A run on a terminal: a line for every step, and below them one live line that says what goes on now.

use crate::fault::Boundaries;
use crate::output::{Out, Sign};
use ralph_core::{LiveStatus, Observer};
use ralph_domain::describe::{Tone, describe};
use ralph_domain::event::{Event, EventBody};
use ralph_domain::ports::Stream;
use ralph_domain::sanitize;
use ralph_domain::state::{RunState, Stage};
use ralph_domain::text::{clock, duration};
use std::time::Duration;

/// Shows a run on stderr.
pub struct Terminal {
    out: Out,
    boundaries: Boundaries,
    frame: usize,
    drawn: bool,
    last_wait_line: Duration,
}

/// A wait is told at least this often where no live line can be drawn.
const WAIT_LINE: Duration = Duration::from_secs(60);

impl Terminal {
    /// On this output.
    pub fn new(out: Out, boundaries: Boundaries) -> Self {
        Self { out, boundaries, frame: 0, drawn: false, last_wait_line: Duration::ZERO }
    }

    fn shows_steps(&self) -> bool {
        !self.out.quiet && (self.out.live || self.out.verbose)
    }

    fn erase(&mut self) {
        if self.drawn {
            self.out.erase();
            self.drawn = false;
        }
    }
}

impl Drop for Terminal {
    fn drop(&mut self) {
        self.erase();
    }
}

impl Observer for Terminal {
    fn event(&mut self, state: &RunState, event: &Event) {
        if matches!(event.body, EventBody::WaitStarted { .. }) {
            self.last_wait_line = Duration::ZERO;
        }
        // What a person must know before money is spent is told in any case.
        let warns = matches!(&event.body, EventBody::Notice { message } if message.starts_with("warning: "));
        if !self.shows_steps() && (!warns || self.out.quiet) {
            return;
        }
        let Some((tone, sentence)) = describe(event) else { return };
        self.erase();
        let line = match &event.body {
            // What was seen is told in the line that follows where it matters; the log has it all.
            EventBody::IterationEnded { .. } => {
                let short = sentence.split_once(" (").map_or(sentence.as_str(), |(short, _)| short);
                format!(
                    "  {} {}",
                    self.out.err(Tone::Muted, self.out.sign(Sign::Note)),
                    self.out.err(tone, short)
                )
            }
            EventBody::RunCreated { title, .. } => {
                format!(
                    "{} {}  {}",
                    self.out.strong("ralph"),
                    title,
                    self.out.err(Tone::Muted, &format!("run {}", state.spec.run_id))
                )
            }
            EventBody::IterationStarted { .. } => {
                format!("{} {sentence}", self.out.err(Tone::Plain, self.out.sign(Sign::Now)))
            }
            // The end is told by the summary.
            EventBody::Finished { .. } | EventBody::NeedsHuman { .. } => return,
            _ => {
                let sign = match tone {
                    Tone::Good => Sign::Good,
                    Tone::Bad => Sign::Bad,
                    Tone::Attention => Sign::Wait,
                    Tone::Plain | Tone::Muted => Sign::Note,
                };
                let text = if tone == Tone::Muted { self.out.err(tone, &sentence) } else { sentence };
                format!("  {} {text}", self.out.err(tone, self.out.sign(sign)))
            }
        };
        self.out.say(line);
    }

    fn live(&mut self, state: &RunState, live: &LiveStatus<'_>) {
        let now = match crate::signals::came() {
            true => "suspending: the session is being closed · Ctrl-C again asks to end the run for good"
                .to_owned(),
            // Made safe before it is cut to the width: what is not seen takes no room.
            false => sanitize::line(&now_line(state, live)).into_owned(),
        };
        if !self.out.live {
            // Waits are long: without a live line they are still told now and then.
            if self.out.verbose && state.wait.is_some() && live.elapsed >= self.last_wait_line + WAIT_LINE {
                self.last_wait_line = live.elapsed;
                self.out.say(format!("  {} {now}", self.out.sign(Sign::Wait)));
            }
            return;
        }
        let frames = self.out.spinner();
        self.frame = (self.frame + 1) % frames.len();
        let budgets = &state.spec.settings.budgets;
        let number = state.iterations.current.as_ref().map_or(state.iterations.count, |c| c.iteration);
        let cost = if state.spending.totals.cost > ralph_domain::money::Usd::ZERO {
            format!(" · {} of {}", state.spending.totals.cost, budgets.max_cost)
        } else {
            String::new()
        };
        let tail = format!("  iteration {number}/{}{cost}", budgets.max_iterations);
        let width = columns().saturating_sub(3 + tail.chars().count());
        let mut now: String = now.chars().take(width).collect();
        if now.chars().count() == width && width > 1 {
            now.pop();
            now.push('…');
        }
        self.out.redraw(&format!(
            "{} {now}{}",
            self.out.err(Tone::Plain, frames[self.frame]),
            self.out.err(Tone::Muted, &tail)
        ));
        self.drawn = true;
    }

    fn output(&mut self, _stream: Stream, _bytes: &[u8]) {}

    fn ends_for_good(&mut self) -> bool {
        self.erase();
        crate::signals::asks_for_the_end(&self.out)
    }

    fn boundary(&mut self, name: &str) {
        self.boundaries.pass(name);
    }
}

/// One sentence that is always true.
fn now_line(state: &RunState, live: &LiveStatus<'_>) -> String {
    if let Some(wait) = &state.wait {
        return match wait.until {
            Some(until) => {
                let left = Duration::try_from(until.duration_since(live.now)).unwrap_or_default();
                format!(
                    "{} · goes on in {} ({})",
                    wait.reason,
                    duration(Duration::from_secs(left.as_secs())),
                    until.strftime("%H:%M:%S UTC")
                )
            }
            None => format!("{} · `ralph resume` goes on", wait.reason),
        };
    }
    match &state.iterations.current {
        Some(current) if current.stage == Stage::Working => {
            let mut text = format!("{} is working · {}", current.agent, clock(live.elapsed));
            if let Some(silent) = live.silent.filter(|s| s.as_secs() >= 2) {
                text.push_str(&format!(
                    " · last output {} ago",
                    duration(Duration::from_secs(silent.as_secs()))
                ));
            }
            if !live.activity.is_empty() {
                text.push_str(&format!(" · {}", live.activity));
            }
            text
        }
        Some(_) => format!("checking {} · {}", live.activity, clock(live.elapsed)),
        None => format!("final check: {} · {}", live.activity, clock(live.elapsed)),
    }
}

fn columns() -> usize {
    crate::terminal::columns().or_else(crate::output::stderr_columns).unwrap_or(80)
}
