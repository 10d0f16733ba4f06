//! The only module that prints: stdout for answers, stderr for messages; colors by role and never the only
//! signal.
//!
//! Everything is sanitized here: only our own styling reaches the terminal, and one line stays one line.
//! Exceptions are [`Out::own`] (our own text) and [`Out::raw`] (on request).
#![allow(clippy::disallowed_methods, reason = "the home of printing")]

mod fold;
mod marks;

use self::marks::{Ink, inked, rendered};
use crate::error::CommandError;
use crate::text::version;
use crate::text::version::VersionRequest;
use nix::poll::{PollFd, PollFlags, PollTimeout};
use ralph_loop_app::Environment;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::look::{ColorRole, Look};
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::status::Status;
use ralph_loop_task::command_line::join_argv;
use std::io::{IsTerminal as _, Write as _};
use std::os::fd::AsFd as _;
use std::process::ExitCode;

/// When to use colour.
#[derive(Debug, Clone, Copy, PartialEq, Eq, clap::ValueEnum)]
pub enum Color {
    /// On a terminal.
    Auto,
    /// Always.
    Always,
    /// Never.
    Never,
}

/// Output options from the command line.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// One JSON value on stdout.
    pub json: bool,
    /// Only errors.
    pub quiet: bool,
    /// Every step.
    pub verbose: bool,
    pub color: Color,
}

#[derive(Debug, Clone, Copy)]
pub struct Out {
    /// One JSON value on stdout.
    pub json: bool,
    /// Only errors.
    pub quiet: bool,
    /// Every step.
    pub verbose: bool,
    /// stderr is a terminal that can redraw a line.
    pub live: bool,
    asks: bool,
    stdout_color: bool,
    stderr_color: bool,
    unicode: bool,
}

/// A symbol with an ASCII form.
#[derive(Debug, Clone, Copy)]
pub enum Sign {
    /// Passing, done.
    Good,
    /// Failing.
    Bad,
    /// In progress.
    Now,
    /// Not started.
    Open,
    /// Paused.
    Pause,
    /// Waiting for your answer.
    NeedsYou,
    /// Waiting.
    Wait,
    /// A note.
    Note,
}

impl Out {
    pub fn new(args: Style, env: &Environment) -> Self {
        let vars = env.vars();
        let var = |name: &str| vars.is_filled(name);
        let dumb = vars.get("TERM").is_some_and(|t| t == "dumb");
        let wants = |terminal: bool| match args.color {
            Color::Always => true,
            Color::Never => false,
            Color::Auto => !var("NO_COLOR") && (var("CLICOLOR_FORCE") || (terminal && !dumb)),
        };
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"].iter().find_map(|name| vars.filled(name));
        let unicode = !var("RALPH_ASCII")
            && locale.is_none_or(|l| l.to_ascii_lowercase().contains("utf") || l.starts_with("C."));
        Self {
            json: args.json,
            quiet: args.quiet,
            verbose: args.verbose,
            live: std::io::stderr().is_terminal() && !dumb && !args.quiet,
            asks: std::io::stdin().is_terminal() && std::io::stderr().is_terminal(),
            stdout_color: wants(std::io::stdout().is_terminal()),
            stderr_color: wants(std::io::stderr().is_terminal()),
            unicode,
        }
    }

    /// Whether the user can be asked.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Whether stdout uses color.
    pub fn has_colour(&self) -> bool {
        self.stdout_color
    }

    /// Whether symbols may be Unicode.
    pub fn has_unicode(&self) -> bool {
        self.unicode
    }

    pub fn line(&self, text: impl AsRef<str>) {
        // A closed pipe (`| head`) isn't an error.
        let _ = writeln!(std::io::stdout(), "{}", rendered(text.as_ref(), sanitize::line));
    }

    pub fn block(&self, text: impl AsRef<str>) {
        let _ = writeln!(std::io::stdout(), "{}", rendered(text.as_ref(), sanitize::block));
    }

    /// Our own text on stdout, unchanged: a manual page, a shell script, a schema.
    pub fn own(&self, bytes: &[u8]) {
        self.raw(bytes);
    }

    /// Raw bytes on stdout, on request.
    pub fn raw(&self, bytes: &[u8]) {
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
    }

    /// Untrusted text on stdout.
    pub fn text(&self, text: &str) {
        self.raw(sanitize::block(text).as_bytes());
    }

    /// One JSON value on stdout.
    pub fn value(&self, value: &impl serde::Serialize) {
        self.json_line(&serde_json::to_string(value).unwrap_or_default());
    }

    /// A line of existing JSON on stdout.
    pub fn json_line(&self, json: &str) {
        let _ = writeln!(std::io::stdout(), "{}", sanitize::json(json));
    }

    /// A message on stderr unless quiet, wrapped on a terminal.
    pub fn say(&self, text: impl AsRef<str>) {
        self.say_below(0, text);
    }

    /// Like [`Self::say`], with a hanging indent.
    pub fn say_below(&self, column: usize, text: impl AsRef<str>) {
        let columns = crate::process::terminal::columns().or_else(stderr_columns).filter(|_| self.live);
        if self.quiet {
            return;
        }
        match columns {
            Some(columns) => {
                fold::folded(text.as_ref(), columns, column).iter().for_each(|line| self.warn(line));
            }
            None => self.warn(text),
        }
    }

    /// A message on stderr, even if quiet.
    pub fn warn(&self, text: impl AsRef<str>) {
        let _ = writeln!(std::io::stderr(), "{}", rendered(text.as_ref(), sanitize::line));
    }

    /// A question on stderr; the answer follows on the same line.
    pub fn ask(&self, question: &str) {
        draw(&rendered(question, sanitize::line));
    }

    /// Replaces the live line on stderr.
    pub fn redraw(&self, line: &str) {
        draw(&format!("{ERASE}{}", rendered(line, sanitize::line)));
    }

    pub fn redraw_lines(&self, before: usize, lines: &[String]) {
        let mut text = if before > 0 { format!("\u{1b}[{before}A") } else { String::new() };
        for line in lines {
            text.push_str(&format!("{ERASE}{}\n", rendered(line, sanitize::line)));
        }
        draw(&text);
    }

    /// Removes the live line.
    pub fn erase(&self) {
        draw(ERASE);
    }

    /// Prints a three-line error and returns the exit code.
    pub fn fail(&self, error: &CommandError) -> u8 {
        if self.json {
            self.value(&serde_json::json!({ "success": false, "error": error.to_run_error() }));
        }
        let message = crate::process::terminal::local_times(&error.message);
        self.warn(format!("{} {message}", self.err(Tone::Bad, "error:")));
        if let Some(cause) = &error.cause {
            for line in cause.lines() {
                self.warn(format!("  {line}"));
            }
        }
        self.warn(format!("{} {}", self.err(Tone::Plain, "next:"), error.next()));
        error.kind.exit_code()
    }

    pub fn out(&self, tone: Tone, text: &str) -> String {
        paint(self.stdout_color, tone, text)
    }

    pub fn err(&self, tone: Tone, text: &str) -> String {
        paint(self.stderr_color, tone, text)
    }

    pub fn strong(&self, text: &str) -> String {
        if self.stderr_color { inked(Ink::Bold, text) } else { text.to_owned() }
    }

    pub fn sign(&self, sign: Sign) -> &'static str {
        let status = match sign {
            Sign::Good => Status::Done,
            Sign::Bad => Status::Failed,
            Sign::Now => Status::Working,
            Sign::Open => Status::Queued,
            Sign::Pause => Status::Paused,
            Sign::NeedsYou => Status::NeedsYou,
            Sign::Wait => Status::Waiting,
            Sign::Note => return if self.unicode { "·" } else { "-" },
        };
        status.look().sign(self.unicode)
    }

    pub fn spinner(&self) -> &'static [&'static str] {
        if self.unicode {
            &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
        } else {
            &["|", "/", "-", "\\"]
        }
    }

    /// The symbol of a status word.
    pub fn status_sign(&self, status: &str) -> String {
        let (sign, tone) = self.look(status);
        self.out(tone, sign)
    }

    /// Symbol and color of a status word.
    pub fn look(&self, status: &str) -> (&'static str, Tone) {
        let look = Look::of_word(status);
        let tone = match look.role {
            ColorRole::Muted => Tone::Muted,
            ColorRole::Accent => Tone::Plain,
            ColorRole::Attention => Tone::Attention,
            ColorRole::Good => Tone::Good,
            ColorRole::Bad => Tone::Bad,
        };
        (look.sign(self.unicode), tone)
    }
}

fn paint(color: bool, tone: Tone, text: &str) -> String {
    let ink = match tone {
        Tone::Plain => Ink::Cyan,
        Tone::Muted => Ink::Dim,
        Tone::Good => Ink::Green,
        Tone::Attention => Ink::Yellow,
        Tone::Bad => Ink::Red,
    };
    if color { inked(ink, text) } else { text.to_owned() }
}

/// Clears the current line.
const ERASE: &str = "\r\u{1b}[2K";

fn draw(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Prints help, or a three-line usage error; returns the exit code.
pub fn usage(error: &clap::Error, is_command: fn(&str) -> bool) -> ExitCode {
    let text = sanitize::block(&error.render().to_string()).into_owned();
    let wants_json = std::env::args_os().any(|arg| arg == "--json");
    if !error.use_stderr() {
        let help = serde_json::json!({ "help": text }).to_string();
        let text = if wants_json { format!("{}\n", sanitize::json(&help)) } else { text };
        let _ = std::io::stdout().write_all(text.as_bytes());
        return ExitCode::SUCCESS;
    }
    let command = std::env::args().skip(1).find(|word| !word.starts_with('-'));
    let refused = match sentence(error, command.as_deref()) {
        Some(task) => CommandError::usage(format!("`{}` is not a command", one_line(&task, 60)))
            .cause("a task is run with `ralph run`")
            .hint(format!("ralph run {}", join_argv(&[task]))),
        None => usage_error(&text, command.filter(|name| is_command(name))),
    };
    let cause = refused.cause.as_ref().map(|cause| format!("  {cause}\n")).unwrap_or_default();
    let lines = format!("error: {}\n{cause}next: {}\n", refused.message, refused.next());
    let _ = std::io::stderr().write_all(sanitize::block(&lines).as_bytes());
    if wants_json {
        let value = serde_json::json!({ "success": false, "error": refused.to_run_error() });
        let _ = writeln!(std::io::stdout(), "{}", sanitize::json(&value.to_string()));
    }
    ExitCode::from(2)
}

/// The task in `ralph "Fix the failing test"`: several words where a command belongs.
fn sentence(error: &clap::Error, command: Option<&str>) -> Option<String> {
    let command = command.filter(|_| error.kind() == clap::error::ErrorKind::InvalidSubcommand)?;
    let unknown = error.get(clap::error::ContextKind::InvalidSubcommand)?;
    let words: Vec<String> = std::env::args().skip_while(|word| word != command).collect();
    let task = words.iter().take_while(|word| !word.starts_with('-')).cloned().collect::<Vec<_>>().join(" ");
    (unknown.to_string() == command && task.split_whitespace().count() > 2).then_some(task)
}

/// The parser's message as our error; its usage line only if there is no other detail.
fn usage_error(text: &str, command: Option<String>) -> CommandError {
    let mut lines = text.lines().map(str::trim).filter(|line| !line.is_empty());
    let message =
        lines.next().unwrap_or_default().trim_start_matches("error: ").trim_end_matches(':').to_owned();
    let (usage, more): (Vec<&str>, Vec<&str>) = lines
        .take_while(|line| !line.starts_with("For more information"))
        .partition(|line| line.starts_with("Usage: "));
    let cause = if more.is_empty() { usage } else { more };
    let command = command.map(|name| format!(" {name}")).unwrap_or_default();
    let error = CommandError::usage(message).hint(format!("run `ralph{command} --help`"));
    if cause.is_empty() { error } else { error.cause(cause.join("; ")) }
}

/// `ralph --version`, with build details for `--verbose`.
pub fn version(asked: VersionRequest) -> ExitCode {
    let written = match asked {
        VersionRequest::Short => writeln!(std::io::stdout(), "ralph {}", version::VERSION),
        VersionRequest::Long => std::io::stdout().write_all(version::text().as_bytes()),
        VersionRequest::Json => writeln!(std::io::stdout(), "{}", version::json()),
    };
    ExitCode::from(if written.is_ok() { 0 } else { 1 })
}

/// A hook's answer: one JSON object or nothing. The exit code reports a failed write.
pub fn hook(answer: &str) -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(answer.as_bytes()).and_then(|()| stdout.flush());
    // 2 means "blocked" for blocking hooks, and a message for the user in others.
    ExitCode::from(if written.is_ok() { 0 } else { 2 })
}

/// Whether the reader closed stdout (`ralph logs -f | head`).
pub fn reader_gone() -> bool {
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let closed = PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL;
    nix::poll::poll(&mut fds, PollTimeout::ZERO).is_ok_and(|n| n > 0)
        && fds[0].revents().is_some_and(|r| r.intersects(closed))
}

/// Width of stderr's terminal.
pub fn stderr_columns() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stderr()).map(|(width, _)| usize::from(width.0))
}

/// Width of stdout's terminal.
pub fn stdout_columns() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0))
}
