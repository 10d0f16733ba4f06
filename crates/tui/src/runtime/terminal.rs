//! The terminal itself: taken over and given back whatever happens, drawn without flicker, read by a thread that can rest.
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

/// Longest rest of the thread that reads keys; a key itself is read at once.
const LOOK: Duration = Duration::from_millis(120);
/// Errors one after the other at which the terminal is taken for gone.
const FAILURES: u32 = 100;
/// Bytes of a frame that are written in one go.
const FRAME: usize = 256 * 1024;

/// Something has panicked, in whatever thread: the terminal is given back, and nothing is drawn on it any more.
static BROKEN: AtomicBool = AtomicBool::new(false);

/// The terminal is ours. Given back twice, what was printed in between would be written over.
static TAKEN: AtomicBool = AtomicBool::new(false);

/// Whether something has panicked.
pub fn is_broken() -> bool {
    BROKEN.load(Ordering::Acquire)
}

/// Whether both ends are a terminal.
pub fn is_there() -> bool {
    std::io::stdin().is_terminal() && std::io::stdout().is_terminal()
}

/// The terminal while it is ours.
pub struct Screen {
    terminal: Terminal<CrosstermBackend<BufWriter<Stdout>>>,
}

fn failed(error: &std::io::Error) -> AppError {
    AppError::environment(format!("cannot use this terminal: {error}"))
        .hint("`ralph status` and `ralph attach --json` need none")
}

impl Screen {
    /// Takes the terminal over. Given back when dropped, and when something panics.
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

    /// Draws one frame, all at once where the terminal can.
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

    /// Lends the terminal to somebody else, and takes it back.
    pub fn lend<T>(&mut self, to: impl FnOnce() -> T) -> T {
        give_back();
        let done = to();
        // What cannot be taken back shows at the next frame.
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

/// The thread that reads keys.
pub struct Input {
    wish: Arc<AtomicBool>,
    rests: Arc<AtomicBool>,
}

impl Input {
    /// Starts it.
    pub fn start(to: Sender<Inbound>) -> Self {
        let (wish, rests) = (Arc::new(AtomicBool::new(false)), Arc::new(AtomicBool::new(false)));
        let input = Self { wish: wish.clone(), rests: rests.clone() };
        std::thread::spawn(move || {
            let mut failed = 0;
            // One error is none of the terminal's end: who stops reading at it leaves a screen that hears no key.
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

    /// Does something while nobody reads keys here.
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
