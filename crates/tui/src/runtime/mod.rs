//! The runtime around the model: terminal, keys, clock, effect threads.

mod checks;
mod command;
mod feed;
mod look;
mod on_server;
mod pager;
mod perform;
mod runs;
mod setup;
mod spec;
mod start;
mod tabs;
mod terminal;
mod watch;

use crate::keys::Chord;
use crate::model::Model;
use crate::msg::{Effect, Msg};
use crate::remote::Server;
use crate::update::update;
use crate::view::view;
use crate::widget::theme::{Depth, Theme};
use perform::Performer;
use ralph_loop_app::{App, AppError, Environment};
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ratatui::crossterm::event::{Event, KeyEventKind, MouseButton, MouseEventKind};
use std::path::Path;
use std::sync::mpsc::Receiver;
use std::time::{Duration, Instant};
use terminal::{Input, Screen};

/// Tick interval: ages are shown in seconds, and signals must be noticed.
const TICK: Duration = Duration::from_secs(1);
/// Longest time for handling messages before a frame.
const TAKING: Duration = Duration::from_millis(6);

/// What to open.
#[derive(Debug, Clone, Default)]
pub struct Opening {
    /// Watch only this run.
    pub attach: Option<String>,
    /// The server of the run.
    pub server: Option<Server>,
    /// No colors.
    pub mono: bool,
    /// ASCII symbols.
    pub ascii: bool,
    /// Tests: a part that should fail, `tui.frame` or `tui.thread`.
    #[doc(hidden)]
    pub fault: Option<String>,
}

/// The result of leaving.
#[derive(Debug, Clone, Default)]
pub struct Left {
    /// Lines for the shell about what continues.
    pub lines: Vec<String>,
}

/// Input of the main thread.
pub(crate) enum Inbound {
    Msg(Msg),
    /// A message whose sender waits until it is handled.
    Batch(Msg, std::sync::mpsc::Sender<()>),
    Terminal(Event),
    Page(String),
}

/// Whether this terminal is usable.
pub fn can_open(env: &Environment) -> bool {
    let dumb = env.vars().get("TERM").is_none_or(|term| term.is_empty() || term == "dumb");
    !dumb && terminal::is_there()
}

/// Runs the terminal UI; `stop` requests the end.
pub fn run(app: &App, folder: &Path, opening: &Opening, stop: &dyn Fn() -> bool) -> Result<Left, AppError> {
    let app = App::new(app.environment().clone().with_face("tui"));
    let env = app.environment().clone();
    let clock = SystemClock::default();
    let mut screen = Screen::open()?;
    let mut model = Model::new(theme(&env, opening), screen.size(), clock.now(), env.zone());
    model.repo.path = look::shown_path(&env, &ralph_loop_app::read::find::top(folder));
    let (sender, inbound) = std::sync::mpsc::channel();
    let input = Input::start(sender.clone());
    model.server = opening.server.as_ref().map(|server| server.address().shown());
    let performer = Performer::new(app, folder, opening.server.clone(), sender);
    draw(&mut screen, &mut model)?;
    let first = match &opening.attach {
        Some(run) => {
            model.attached = true;
            model.screen = crate::data::Screen::Run;
            run_open(&mut model, run)
        }
        None => vec![Effect::LookAround],
    };
    performer.all(first);
    performer.all(vec![Effect::ListRuns]);
    while model.left.is_none() && !stop() {
        turn(&inbound, &mut model, &mut screen, &performer, &input, &clock)?;
        fail_here(opening.fault.as_deref());
        if terminal::is_broken() {
            return Err(AppError::environment("the terminal UI has failed in one of its parts")
                .cause("the error is printed above; runs continue without the UI")
                .hint("open it again; `ralph list` and `ralph attach` show the runs"));
        }
        draw(&mut screen, &mut model)?;
    }
    Ok(Left { lines: model.left.take().unwrap_or_default() })
}

/// Fails on purpose, to test that the terminal is restored.
#[allow(clippy::panic, reason = "the test of what a panic leaves behind")]
fn fail_here(fault: Option<&str>) {
    match fault {
        Some("tui.frame") => panic!("a fault that was asked for"),
        Some("tui.thread") => {
            let _ = std::thread::spawn(|| panic!("a fault that was asked for")).join();
        }
        _ => {}
    }
}

fn run_open(model: &mut Model, run: &str) -> Vec<Effect> {
    crate::screen::run::open(model, run)
}

fn draw(screen: &mut Screen, model: &mut Model) -> Result<(), AppError> {
    let drawn = screen.draw(|frame| view(model, frame))?;
    model.hits = drawn.hits;
    model.run.height = drawn.height;
    Ok(())
}

/// Waits for input and handles it; returns when a frame is due.
fn turn(
    inbound: &Receiver<Inbound>,
    model: &mut Model,
    screen: &mut Screen,
    performer: &Performer,
    input: &Input,
    clock: &SystemClock,
) -> Result<(), AppError> {
    let first = inbound.recv_timeout(TICK).ok();
    performer.all(update(model, Msg::Tick(clock.now())));
    let begun = Instant::now();
    let mut next = first;
    while let Some(one) = next {
        match one {
            Inbound::Msg(msg) => performer.all(update(model, msg)),
            Inbound::Batch(msg, taken) => {
                performer.all(update(model, msg));
                // The sender is gone if another run is watched.
                let _ = taken.send(());
            }
            Inbound::Terminal(event) => {
                if let Some(msg) = message(&event) {
                    performer.all(update(model, msg));
                }
            }
            Inbound::Page(text) => {
                let shown = input.paused(|| pager::show(screen, performer.environment(), &text));
                if let Err(problem) = shown {
                    performer.all(update(model, Msg::Failed(problem)));
                }
            }
        }
        next = if begun.elapsed() < TAKING { inbound.try_recv().ok() } else { None };
    }
    Ok(())
}

fn message(event: &Event) -> Option<Msg> {
    match event {
        Event::Key(key) if key.kind != KeyEventKind::Release => Some(Msg::Key(chord(key))),
        Event::Paste(text) => Some(Msg::Paste(text.clone())),
        Event::Resize(columns, lines) => Some(Msg::Resize(*columns, *lines)),
        Event::Mouse(mouse) => match mouse.kind {
            MouseEventKind::Down(MouseButton::Left) => Some(Msg::Click(mouse.column, mouse.row)),
            MouseEventKind::ScrollUp => Some(Msg::Wheel(-1)),
            MouseEventKind::ScrollDown => Some(Msg::Wheel(1)),
            _ => None,
        },
        _ => None,
    }
}

/// Normalizes a key: Shift shows in the character.
fn chord(key: &ratatui::crossterm::event::KeyEvent) -> Chord {
    use ratatui::crossterm::event::{KeyCode, KeyModifiers};
    let held = match key.code {
        KeyCode::Char(_) => key.modifiers - KeyModifiers::SHIFT,
        KeyCode::BackTab => KeyModifiers::SHIFT,
        _ => key.modifiers,
    };
    (key.code, held)
}

fn theme(env: &Environment, opening: &Opening) -> Theme {
    let vars = env.vars();
    let fine = vars.get("COLORTERM").is_some_and(|kind| kind == "truecolor" || kind == "24bit");
    let depth = match (opening.mono, fine) {
        (true, _) => Depth::Mono,
        (false, true) => Depth::True,
        (false, false) => Depth::Sixteen,
    };
    let background = vars.get("COLORFGBG").and_then(|both| both.rsplit(';').next()?.parse::<u8>().ok());
    let light = background.is_some_and(|color| color == 7 || color == 15);
    Theme { depth, light, unicode: !opening.ascii }
}
