//! A terminal that a test can type into and look at.

use ralph_loop_testkit::TestEnv;
use ralph_loop_testkit::env::until;
use std::path::Path;
use std::process::Command;

/// A separate tmux server with one window.
pub struct Tmux<'a> {
    env: &'a TestEnv,
    socket: String,
}

impl<'a> Tmux<'a> {
    /// Starts `program` in a new shell; `vars` override the machine's. `None` if tmux isn't installed.
    pub fn start(
        env: &'a TestEnv,
        folder: &Path,
        program: &str,
        vars: &str,
        size: (u16, u16),
    ) -> Option<Self> {
        let vars: Vec<(String, String)> = vars
            .split_whitespace()
            .filter_map(|pair| pair.split_once('='))
            .map(|(k, v)| (k.into(), v.into()))
            .collect();
        Self::start_with(env, folder, program, &vars, size)
    }

    /// The same with whole variables.
    pub fn start_with(
        env: &'a TestEnv,
        folder: &Path,
        program: &str,
        vars: &[(String, String)],
        size: (u16, u16),
    ) -> Option<Self> {
        let tmux = Self { env, socket: env.path("tmux.sock").display().to_string() };
        let (wide, high) = (size.0.to_string(), size.1.to_string());
        let mut command =
            tmux.command(&["-f", "/dev/null", "new-session", "-d", "-x", &wide, "-y", &high, "sh"]);
        command.current_dir(folder).envs(vars.iter().map(|(name, value)| (name, value)));
        match command.output() {
            Ok(done) if done.status.success() => {}
            Ok(done) => panic!("tmux: {}", String::from_utf8_lossy(&done.stderr)),
            Err(error) => {
                ralph_loop_testkit::skip(&format!("tmux is the terminal of this test: {error}"));
                return None;
            }
        }
        tmux.types(&format!("PS1=; clear; {program}; echo left with $?"));
        tmux.key("Enter");
        Some(tmux)
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new("tmux");
        command
            .arg("-S")
            .arg(&self.socket)
            .args(args)
            .env_clear()
            .envs(self.env.vars())
            .env("TERM", "xterm-256color");
        command
    }

    fn run(&self, args: &[&str]) -> String {
        let done = self.command(args).output().unwrap();
        assert!(done.status.success(), "tmux {args:?}: {}", String::from_utf8_lossy(&done.stderr));
        String::from_utf8_lossy(&done.stdout).into_owned()
    }

    /// Types a text.
    pub fn types(&self, text: &str) {
        self.run(&["send-keys", "-l", text]);
    }

    /// Presses a key, as tmux calls it.
    pub fn key(&self, key: &str) {
        self.run(&["send-keys", key]);
    }

    /// The screen as text.
    pub fn screen(&self) -> String {
        self.run(&["capture-pane", "-p"])
    }

    /// The screen with its colors.
    pub fn colored(&self) -> String {
        self.run(&["capture-pane", "-p", "-e"])
    }

    /// The terminal's title.
    pub fn title(&self) -> String {
        self.run(&["display-message", "-p", "#{pane_title}"]).trim().to_owned()
    }

    /// The terminal's modes: alternate screen, visible cursor, mouse reporting.
    pub fn modes(&self) -> String {
        self.run(&["display-message", "-p", "#{alternate_on} #{cursor_flag} #{mouse_any_flag}"])
            .trim()
            .to_owned()
    }

    /// Resizes the terminal.
    pub fn resize(&self, (wide, high): (u16, u16)) {
        self.run(&["resize-window", "-x", &wide.to_string(), "-y", &high.to_string()]);
    }

    /// Waits until the screen matches.
    #[track_caller]
    pub fn until(&self, what: &str, is: impl Fn(&str) -> bool) {
        let mut last = String::new();
        let found = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            until(what, || {
                last = self.screen();
                is(&last).then_some(())
            });
        }));
        assert!(found.is_ok(), "{what}; the screen is:\n{last}");
    }

    /// Waits until the screen shows a text.
    #[track_caller]
    pub fn shows(&self, text: &str) {
        self.until(&format!("`{text}`"), |screen| screen.contains(text));
    }
}

impl Drop for Tmux<'_> {
    fn drop(&mut self) {
        let _ = self.command(&["kill-server"]).output();
    }
}
