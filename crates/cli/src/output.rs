//! The one place that prints. stdout for answers, stderr for people; colour by role and never as the only sign.
//!
//! Whatever is printed is made safe here, whoever wrote it: nothing but our own styling steers the terminal, and one line
//! stays one line. What must go out byte by byte is called [`Out::own`] (text of ours) or [`Out::raw`] (asked for by name).
#![allow(clippy::disallowed_methods, reason = "the home of printing")]

mod fold;
mod marks;

use self::marks::{Ink, inked, rendered};
use crate::error::CommandError;
use crate::version::{self, VersionRequest};
use nix::poll::{PollFd, PollFlags, PollTimeout};
use ralph_loop_app::Environment;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::look::{ColorRole, Look};
use ralph_loop_protocol::sanitize;
use ralph_loop_protocol::status::Status;
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

/// How output is wanted, as the command line says it.
#[derive(Debug, Clone, Copy)]
pub struct Style {
    /// One JSON value on stdout.
    pub json: bool,
    /// Only errors.
    pub quiet: bool,
    /// Every step.
    pub verbose: bool,
    /// When to use colour.
    pub color: Color,
}

/// Where output goes and how it looks.
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

/// A sign with its ASCII form.
#[derive(Debug, Clone, Copy)]
pub enum Sign {
    /// Passing, done.
    Good,
    /// Failing.
    Bad,
    /// Going on.
    Now,
    /// Not yet.
    Open,
    /// Paused.
    Pause,
    /// Waiting for your answer.
    NeedsYou,
    /// Waiting.
    Wait,
    /// Something to read.
    Note,
}

impl Out {
    /// From the command line and the environment.
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

    /// Whether somebody is there who can be asked.
    pub fn asks(&self) -> bool {
        self.asks
    }

    /// Whether colours are wanted on stdout.
    pub fn has_colour(&self) -> bool {
        self.stdout_color
    }

    /// Whether signs may be Unicode.
    pub fn has_unicode(&self) -> bool {
        self.unicode
    }

    /// A line on stdout.
    pub fn line(&self, text: impl AsRef<str>) {
        // A reader that went away (`| head`) is no error.
        let _ = writeln!(std::io::stdout(), "{}", rendered(text.as_ref(), sanitize::line));
    }

    /// Lines on stdout.
    pub fn block(&self, text: impl AsRef<str>) {
        let _ = writeln!(std::io::stdout(), "{}", rendered(text.as_ref(), sanitize::block));
    }

    /// Text of our own on stdout, byte by byte: a page of the manual, a script for a shell, a schema.
    pub fn own(&self, bytes: &[u8]) {
        self.raw(bytes);
    }

    /// Bytes on stdout as they are, where somebody asked for exactly that.
    pub fn raw(&self, bytes: &[u8]) {
        let mut stdout = std::io::stdout().lock();
        let _ = stdout.write_all(bytes).and_then(|()| stdout.flush());
    }

    /// A file that somebody else wrote, or a piece of it, on stdout.
    pub fn text(&self, text: &str) {
        self.raw(sanitize::block(text).as_bytes());
    }

    /// One JSON value on stdout.
    pub fn value(&self, value: &impl serde::Serialize) {
        self.json_line(&serde_json::to_string(value).unwrap_or_default());
    }

    /// A line of JSON on stdout, as it was written.
    pub fn json_line(&self, json: &str) {
        let _ = writeln!(std::io::stdout(), "{}", sanitize::json(json));
    }

    /// A line for people on stderr; nothing when quiet. On a terminal it is broken between words.
    pub fn say(&self, text: impl AsRef<str>) {
        self.say_below(0, text);
    }

    /// The same; what does not fit goes on in this column.
    pub fn say_below(&self, column: usize, text: impl AsRef<str>) {
        let columns = crate::terminal::columns().or_else(stderr_columns).filter(|_| self.live);
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

    /// A line for people on stderr, also when quiet.
    pub fn warn(&self, text: impl AsRef<str>) {
        let _ = writeln!(std::io::stderr(), "{}", rendered(text.as_ref(), sanitize::line));
    }

    /// A question on stderr; the answer is typed behind it.
    pub fn ask(&self, question: &str) {
        draw(&rendered(question, sanitize::line));
    }

    /// Puts a line over the live one on stderr.
    pub fn redraw(&self, line: &str) {
        draw(&format!("{ERASE}{}", rendered(line, sanitize::line)));
    }

    /// Puts lines over the `before` last ones on stderr.
    pub fn redraw_lines(&self, before: usize, lines: &[String]) {
        let mut text = if before > 0 { format!("\u{1b}[{before}A") } else { String::new() };
        for line in lines {
            text.push_str(&format!("{ERASE}{}\n", rendered(line, sanitize::line)));
        }
        draw(&text);
    }

    /// Takes the live line away.
    pub fn erase(&self) {
        draw(ERASE);
    }

    /// An error in three lines: what failed; the cause; what to do. Returns the exit code.
    pub fn fail(&self, error: &CommandError) -> u8 {
        if self.json {
            self.value(&serde_json::json!({ "success": false, "error": error.to_run_error() }));
        }
        let message = crate::terminal::local_times(&error.message);
        self.warn(format!("{} {message}", self.err(Tone::Bad, "error:")));
        if let Some(cause) = &error.cause {
            for line in cause.lines() {
                self.warn(format!("  {line}"));
            }
        }
        self.warn(format!("{} {}", self.err(Tone::Plain, "next:"), error.next()));
        error.kind.exit_code()
    }

    /// Text on stdout in the colour of its role.
    pub fn out(&self, tone: Tone, text: &str) -> String {
        paint(self.stdout_color, tone, text)
    }

    /// Text on stderr in the colour of its role.
    pub fn err(&self, tone: Tone, text: &str) -> String {
        paint(self.stderr_color, tone, text)
    }

    /// Bold text on stderr.
    pub fn strong(&self, text: &str) -> String {
        if self.stderr_color { inked(Ink::Bold, text) } else { text.to_owned() }
    }

    /// A sign as this terminal can show it.
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

    /// Frames of the spinner.
    pub fn spinner(&self) -> &'static [&'static str] {
        if self.unicode {
            &["⠋", "⠙", "⠹", "⠸", "⠼", "⠴", "⠦", "⠧", "⠇", "⠏"]
        } else {
            &["|", "/", "-", "\\"]
        }
    }

    /// The sign that belongs to a status word.
    pub fn status_sign(&self, status: &str) -> String {
        let (sign, tone) = self.look(status);
        self.out(tone, sign)
    }

    /// Sign and color of a status word.
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

/// Empties the line that the cursor is on.
const ERASE: &str = "\r\u{1b}[2K";

fn draw(text: &str) {
    let mut stderr = std::io::stderr().lock();
    let _ = stderr.write_all(text.as_bytes()).and_then(|()| stderr.flush());
}

/// Prints the help, or a usage error in three lines, and returns the exit code.
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
    let refused = usage_error(&text, command.filter(|name| is_command(name)));
    let cause = refused.cause.as_ref().map(|cause| format!("  {cause}\n")).unwrap_or_default();
    let lines = format!("error: {}\n{cause}next: {}\n", refused.message, refused.next());
    let _ = std::io::stderr().write_all(lines.as_bytes());
    if wants_json {
        let value = serde_json::json!({ "success": false, "error": refused.to_run_error() });
        let _ = writeln!(std::io::stdout(), "{}", sanitize::json(&value.to_string()));
    }
    ExitCode::from(2)
}

/// The parser's message as one of ours: its usage line only if nothing says more.
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

/// `ralph --version`, and with `--verbose` what was built.
pub fn version(asked: VersionRequest) -> ExitCode {
    let written = match asked {
        VersionRequest::Short => writeln!(std::io::stdout(), "ralph {}", version::VERSION),
        VersionRequest::Long => std::io::stdout().write_all(version::text().as_bytes()),
        VersionRequest::Json => writeln!(std::io::stdout(), "{}", version::json()),
    };
    ExitCode::from(if written.is_ok() { 0 } else { 1 })
}

/// The answer of a hook: one JSON object, or nothing. Where it cannot be written the CLI is told so by the exit code.
pub fn hook(answer: &str) -> ExitCode {
    let mut stdout = std::io::stdout().lock();
    let written = stdout.write_all(answer.as_bytes()).and_then(|()| stdout.flush());
    // Two is "blocked" where a hook may block, and a word for the person elsewhere.
    ExitCode::from(if written.is_ok() { 0 } else { 2 })
}

/// Whether whoever read stdout has closed it (`ralph logs -f | head`).
pub fn reader_gone() -> bool {
    let stdout = std::io::stdout();
    let mut fds = [PollFd::new(stdout.as_fd(), PollFlags::empty())];
    let closed = PollFlags::POLLERR | PollFlags::POLLHUP | PollFlags::POLLNVAL;
    nix::poll::poll(&mut fds, PollTimeout::ZERO).is_ok_and(|n| n > 0)
        && fds[0].revents().is_some_and(|r| r.intersects(closed))
}

/// Columns of the terminal behind stderr.
pub fn stderr_columns() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stderr()).map(|(width, _)| usize::from(width.0))
}

/// Columns of the terminal behind stdout.
pub fn stdout_columns() -> Option<usize> {
    terminal_size::terminal_size_of(std::io::stdout()).map(|(width, _)| usize::from(width.0))
}
