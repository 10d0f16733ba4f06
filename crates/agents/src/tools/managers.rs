//! The process and browser managers for programs that want them without an agent: the same that back the built-in tools.

use super::browser::{Browsers, PageInput, PageView, Shot};
use super::halt::Halt;
use super::process::{ProcessStart, Processes, Ready, Signal};
use ralph_domain::outcome::ErrorCode;
use ralph_domain::ports::{BrowserInfo, ProcessInfo, Sandbox};
use ralph_domain::text;
use std::path::PathBuf;
use std::time::{Duration, Instant};

/// Longest wait for a process to be ready, unless told.
const READY: Duration = Duration::from_secs(60);

/// A manager could not do what was asked; the message is made for a model or a person to act on.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{message}")]
pub struct ManagerError {
    /// `PROCESS_FAILED` or `BROWSER_FAILED`.
    pub code: ErrorCode,
    /// What went wrong, and what helps.
    pub message: String,
}

impl ManagerError {
    fn process(message: String) -> Self {
        Self { code: ErrorCode::ProcessFailed, message }
    }
    fn browser(message: String) -> Self {
        Self { code: ErrorCode::BrowserFailed, message }
    }
}

/// A process that is to be started.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NewProcess {
    /// Its name; one of the same name ends first.
    pub name: String,
    /// The command, as for a shell.
    pub command: String,
    /// The folder below the sandbox's root that it runs in.
    pub cwd: PathBuf,
    /// Variables added to its environment.
    pub env: Vec<(String, String)>,
    /// A text or regular expression that it prints when it is ready.
    pub ready_signal: Option<String>,
    /// Longest wait for that; a minute unless told.
    pub ready_timeout: Duration,
}

impl NewProcess {
    /// A process with every default.
    pub fn new(name: impl Into<String>, command: impl Into<String>) -> Self {
        Self {
            name: name.into(),
            command: command.into(),
            cwd: PathBuf::new(),
            env: Vec::new(),
            ready_signal: None,
            ready_timeout: READY,
        }
    }

    /// Ready once it prints this.
    #[must_use]
    pub fn ready_signal(mut self, signal: impl Into<String>) -> Self {
        self.ready_signal = Some(signal.into());
        self
    }
}

/// Long-running commands by name: one per name, the whole process group ends (asked first, killed after 5 seconds), nothing
/// outlives the manager.
#[derive(Debug, Default)]
pub struct ProcessManager {
    all: Processes,
}

impl ProcessManager {
    /// Starts a process and waits until it is ready: its signal, or an address in its output, or a moment without trouble.
    pub fn start(&self, sandbox: &dyn Sandbox, process: &NewProcess) -> Result<ProcessInfo, ManagerError> {
        let NewProcess { name, command, cwd, env, ready_signal, ready_timeout } = process.clone();
        let signal = ready_signal.as_deref().map(Signal::new);
        let start = ProcessStart { name, command, cwd, env, signal };
        let (view, _) = self.all.start(start, sandbox).map_err(ManagerError::process)?;
        let ready = self.all.wait(&view, ready_signal.is_some(), ready_timeout, &Halt::default());
        let (listed, output) = self.all.output(&process.name).map_err(ManagerError::process)?;
        let said = text::tail_lines(output.trim_end(), 20);
        match ready {
            Ready::Yes => Ok(listed.into()),
            Ready::Ended(end) => Err(ManagerError::process(format!(
                "`{}` {} before it was ready; last output:\n{said}",
                process.name,
                end.words()
            ))),
            Ready::NotYet | Ready::Halted(_) => Err(ManagerError::process(format!(
                "`{}` was not ready after {}; it still runs; last output:\n{said}",
                process.name,
                text::duration(ready_timeout)
            ))),
        }
    }

    /// Ends a process.
    pub fn stop(&self, name: &str) -> Result<(), ManagerError> {
        self.all.stop(name).map(|_| ()).map_err(ManagerError::process)
    }

    /// The last lines that a process printed.
    pub fn output(&self, name: &str, lines: usize) -> Result<String, ManagerError> {
        let (_, output) = self.all.output(name).map_err(ManagerError::process)?;
        Ok(text::tail_lines(output.trim_end(), lines).to_owned())
    }

    /// All of them, also those that have ended since the last [`Self::cleanup`].
    pub fn list(&self) -> Vec<ProcessInfo> {
        self.all.list().into_iter().map(Into::into).collect()
    }

    /// The process of this name.
    pub fn get(&self, name: &str) -> Option<ProcessInfo> {
        self.list().into_iter().find(|one| one.name == name)
    }

    /// Lets go of what is idle for five minutes or has ended; servers that get requests stay.
    pub fn cleanup(&self) {
        self.all.tidy(Instant::now());
    }

    /// Ends them all.
    pub fn stop_all(&self) {
        self.all.end_all();
    }
}

/// What of a page is to be seen.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PageShot<'a> {
    /// The window.
    Window,
    /// The whole page.
    FullPage,
    /// One element, by its CSS selector.
    Element(&'a str),
}

/// Something that is done with a page.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum PageAction<'a> {
    /// Clicks the element.
    Click(&'a str),
    /// Puts a text into the field.
    Type(&'a str, &'a str),
    /// Scrolls by so many pixels.
    Scroll(i64),
    /// Moves the mouse over the element.
    Hover(&'a str),
}

/// A page as it is seen.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct PageSight {
    /// Address, title, errors of its console, text.
    pub text: String,
    /// A PNG, in base64.
    pub png_base64: String,
    /// Width and height of the picture in the page.
    pub size: (u32, u32),
}

impl From<PageView> for PageSight {
    fn from(view: PageView) -> Self {
        let (png_base64, width, height) = view.picture;
        Self { text: view.text, png_base64, size: (width, height) }
    }
}

/// Browsers by name: real headless Chromium in the sandbox, errors of the console kept, nothing outlives the manager.
#[derive(Debug, Default)]
pub struct BrowserManager {
    all: Browsers,
}

impl BrowserManager {
    /// Keeps profiles in this folder where the sandbox has none of its own; `/tmp` unless told.
    pub fn in_folder(folder: impl Into<PathBuf>) -> Self {
        let mut all = Browsers::default();
        all.temp = folder.into();
        Self { all }
    }

    /// Opens an address in the browser of this name, which is started where it is not there.
    pub fn open(&self, sandbox: &dyn Sandbox, name: &str, url: &str) -> Result<PageSight, ManagerError> {
        let seen = self.all.open(name, url, sandbox, &Halt::default());
        seen.map(Into::into).map_err(ManagerError::browser)
    }

    /// A picture of what a browser shows.
    pub fn screenshot(&self, name: &str, shot: PageShot<'_>) -> Result<PageSight, ManagerError> {
        let shot = match shot {
            PageShot::Window => Shot::Window,
            PageShot::FullPage => Shot::FullPage,
            PageShot::Element(selector) => Shot::Element(selector),
        };
        self.all.shoot(name, shot, &Halt::default()).map(Into::into).map_err(ManagerError::browser)
    }

    /// Does something with the page, and looks at what came of it.
    pub fn interact(&self, name: &str, action: PageAction<'_>) -> Result<PageSight, ManagerError> {
        let pixels = if let PageAction::Scroll(pixels) = action { pixels.to_string() } else { String::new() };
        let (action, selector, value) = match action {
            PageAction::Click(selector) => ("click", Some(selector), None),
            PageAction::Type(selector, text) => ("type", Some(selector), Some(text)),
            PageAction::Scroll(_) => ("scroll", None, Some(pixels.as_str())),
            PageAction::Hover(selector) => ("hover", Some(selector), None),
        };
        let input = PageInput { action, selector, value, position: None };
        self.all.touch(name, input, &Halt::default()).map(Into::into).map_err(ManagerError::browser)
    }

    /// Those that are open.
    pub fn list(&self) -> Vec<BrowserInfo> {
        self.all.list()
    }

    /// Closes a browser.
    pub fn close(&self, name: &str) -> Result<(), ManagerError> {
        self.all.close(name).map_err(ManagerError::browser)
    }

    /// Closes them all.
    pub fn close_all(&self) {
        self.all.end_all();
    }
}
