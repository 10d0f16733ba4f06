//! The terminal: taken over and always restored, drawn without flicker, read by a thread that can pause.
#![allow(clippy::disallowed_methods, reason = "the one place of this crate that writes to the terminal")]

use super::Inbound;
use crate::view::Drawn;
use ralph_loop_app::AppError;
use ratatui::Frame;
use ratatui::Terminal;
use ratatui::backend::CrosstermBackend;
use ratatui::crossterm::event::{
    self, DisableBracketedPaste, DisableMouseCapture, EnableBracketedPaste, EnableMouseCapture,
};
use ratatui::crossterm::terminal::{
    BeginSynchronizedUpdate, EndSynchronizedUpdate, EnterAlternateScreen, LeaveAlternateScreen,
    disable_raw_mode, enable_raw_mode,
};
use ratatui::crossterm::{cursor, execute, queue};
use std::io::{BufWriter, IsTerminal as _, Stdout, Write as _};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Once};
use std::time::Duration;

/// Polling interval for pausing the key thread; keys are read immediately.
const LOOK: Duration = Duration::from_millis(120);
/// Consecutive errors that mean the terminal is gone.
const FAILURES: u32 = 100;
/// Frame size written at once.
const FRAME: usize = 256 * 1024;

/// Set after a panic on any thread: the terminal is restored and drawing stops.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// Whether we hold the terminal. Restoring twice would overwrite what was printed in between.
static TAKEN: AtomicBool = AtomicBool::new(false);

pub fn is_broken() -> bool {
    BROKEN.load(Ordering::Acquire)
}

/// Whether both ends are a terminal.
pub fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// The terminal while we hold it.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

fn failed(error: &std::io::Error) -> AppError {
    AppError::environment(format!("cannot use this terminal: {error}"))
        .hint("`ralph status` and `ralph attach --json` need none")
}

impl Screen {
    /// Takes over the terminal; restored on drop and on panic.
    pub fn open() -> Result<Self, AppError> {
        static HOOK: Once = Once::new();
        HOOK.call_once(|| {
            let before = std::panic::take_hook();
            std::panic::set_hook(Box::new(move |info| {
                BROKEN.store(true, Ordering::Release);
                give_back();
                before(info);
            }));
        });
        take().map_err(|e| failed(&e))?;
        let writer = BufWriter::with_capacity(FRAME, std::io::stdout());
        let terminal = Terminal::new(CrosstermBackend::new(writer)).map_err(|e| {
            give_back();
            failed(&e)
        })?;
        Ok(Self { terminal })
    }

    /// Columns and lines.
    pub fn size(&self) -> (u16, u16) {
        self.terminal.size().map_or((80, 24), |size| (size.width, size.height))
    }

    /// Draws one frame, atomically if the terminal supports it.
    pub fn draw(&mut self, frame: impl FnOnce(&mut Frame<'_>) -> Drawn) -> Result<Drawn, AppError> {
        self.frame(frame).map_err(|e| failed(&e))
    }

    fn frame(&mut self, frame: impl FnOnce(&mut Frame<'_>) -> Drawn) -> std::io::Result<Drawn> {
        let mut drawn = Drawn::default();
        queue!(self.terminal.backend_mut(), BeginSynchronizedUpdate)?;
        self.terminal.draw(|f| drawn = frame(f))?;
        execute!(self.terminal.backend_mut(), EndSynchronizedUpdate)?;
        Ok(drawn)
    }

    /// Lends the terminal and takes it back.
    pub fn lend<T>(&mut self, to: impl FnOnce() -> T) -> T {
        give_back();
        let done = to();
        // A failure shows at the next frame.
        let _ = take();
        let _ = self.terminal.clear();
        done
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        give_back();
    }
}

fn take() -> std::io::Result<()> {
    TAKEN.store(true, Ordering::Release);
    enable_raw_mode()?;
    execute!(std::io::stdout(), EnterAlternateScreen, EnableMouseCapture, EnableBracketedPaste)
}

fn give_back() {
    if !TAKEN.swap(false, Ordering::AcqRel) {
        return;
    }
    let mut out = std::io::stdout();
    let _ = execute!(
        out,
        EndSynchronizedUpdate,
        DisableBracketedPaste,
        DisableMouseCapture,
        LeaveAlternateScreen,
        cursor::Show
    );
    let _ = disable_raw_mode();
    let _ = out.flush();
}

pub struct Input {
    wish: Arc<AtomicBool>,
    rests: Arc<AtomicBool>,
}

impl Input {
    pub fn start(to: Sender<Inbound>) -> Self {
        let (wish, rests) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let input = Self { wish: wish.clone(), rests: rests.clone() };
        std::thread::spawn(move || {
            let mut failed = 0;
            // A single error doesn't mean the end of the terminal.
            while failed < FAILURES {
                if wish.load(Ordering::Acquire) {
                    rests.store(true, Ordering::Release);
                    std::thread::park_timeout(LOOK);
                    continue;
                }
                rests.store(false, Ordering::Release);
                let heard = event::poll(LOOK).and_then(|is| is.then(event::read).transpose());
                match heard {
                    Ok(None) => failed = 0,
                    Ok(Some(event)) => {
                        failed = 0;
                        if to.send(Inbound::Terminal(event)).is_err() {
                            return;
                        }
                    }
                    Err(_) => {
                        failed += 1;
                        std::thread::park_timeout(LOOK);
                    }
                }
            }
        });
        input
    }

    /// Calls `while_paused` without reading keys.
    pub fn paused<T>(&self, while_paused: impl FnOnce() -> T) -> T {
        self.wish.store(true, Ordering::Release);
        for _ in 0..20 {
            if self.rests.load(Ordering::Acquire) {
                break;
            }
            std::thread::park_timeout(LOOK / 4);
        }
        let done = while_paused();
        self.wish.store(false, Ordering::Release);
        done
    }
}
