//! A server on a test machine.

use super::RALPH;
use super::client::{Reply, Socket, request};
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};
use std::io::{BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Stdio};

/// A running server.
pub struct Served {
    child: Child,
    pub port: u16,
    pub token: String,
    pub login_url: String,
}

impl Served {
    /// Starts a server in this folder.
    pub fn start(env: &TestEnv, folder: &Path, args: &[&str]) -> Self {
        Self::start_with(env, folder, args, &[])
    }

    /// The same with further variables.
    pub fn start_with(env: &TestEnv, folder: &Path, args: &[&str], vars: &[(&str, &str)]) -> Self {
        let port: &[&str] = if args.contains(&"--port") { &[] } else { &["--port", "0"] };
        let args = [&["serve", "--no-open", "--json"], port, args].concat();
        let mut command = env.ralph_command(folder, &args);
        command.stdout(Stdio::piped()).stderr(Stdio::piped()).envs(vars.iter().copied());
        let mut child = command.spawn().unwrap();
        let mut line = String::new();
        BufReader::new(child.stdout.as_mut().unwrap()).read_line(&mut line).unwrap();
        let Ok(ready) = serde_json::from_str::<Value>(&line) else {
            panic!("the server did not start: {line:?} {:?}", child.wait_with_output());
        };
        let port = ready["url"].as_str().unwrap().rsplit(':').next().unwrap().parse().unwrap();
        let text = |key: &str| ready[key].as_str().unwrap().to_owned();
        Self { child, port, token: text("token"), login_url: text("login_url") }
    }

    pub fn send(
        &self,
        token: &str,
        method: &str,
        path: &str,
        headers: &[(&str, &str)],
        body: Option<&Value>,
    ) -> Reply {
        let bearer = format!("Bearer {token}");
        let headers: Vec<(&str, &str)> =
            headers.iter().copied().chain([("Authorization", bearer.as_str())]).collect();
        request(self.port, method, &format!("/api/v1{path}"), &headers, body)
    }

    pub fn get(&self, path: &str) -> Reply {
        self.send(&self.token, "GET", path, &[], None)
    }

    pub fn post(&self, path: &str, body: &Value) -> Reply {
        self.send(&self.token, "POST", path, &[], Some(body))
    }

    pub fn control(&self, run: &str, body: Value) -> Reply {
        self.post(&format!("/runs/{run}/control"), &body)
    }

    pub fn socket(&self, path: &str) -> Socket {
        let bearer = format!("Bearer {}", self.token);
        Socket::open(self.port, &format!("/api/v1{path}"), &[("authorization", &bearer)]).unwrap()
    }

    /// A token with this role.
    pub fn person(&self, name: &str, role: &str) -> String {
        let made = self.post("/people", &json!({ "name": name, "role": role })).is(201).json();
        made["token"].as_str().unwrap().to_owned()
    }

    /// Waits until the row of a run matches, and returns it.
    pub fn row_when(&self, run: &str, what: &str, is: impl Fn(&Value) -> bool) -> Value {
        until(what, || {
            let rows = self.get("/runs?limit=500").is(200).json();
            rows["runs"].as_array().unwrap().iter().find(|row| row["id"] == run && is(row)).cloned()
        })
    }

    /// Kills the server.
    pub fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops the server with SIGTERM.
    pub fn stop(mut self) -> i32 {
        let pid = nix::unistd::Pid::from_raw(self.child.id() as i32);
        nix::sys::signal::kill(pid, nix::sys::signal::Signal::SIGTERM).unwrap();
        self.child.wait().unwrap().code().unwrap_or(-1)
    }
}

impl Drop for Served {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// A machine with a repo whose agent works once a file allows it.
pub fn machine() -> TestEnv {
    TestEnv::new(RALPH)
}

/// The agent's script: it waits for `.git/go`, then does the work.
pub fn waiting_script(repo: &TestRepo<'_>) -> String {
    let go = repo.dir.join(".git/go").display().to_string();
    format!(
        "echo \"here $RALPH_ITERATION\"; until [ -e '{go}' ]; do sleep 0.05; done; echo work > part.txt; echo '<promise>COMPLETE</promise>'"
    )
}

/// Starts a detached run in a terminal.
pub fn detached(repo: &TestRepo<'_>, more: &[&str]) -> String {
    let args = [&["run", "--detach", "--isolation", "none", "--json"], more].concat();
    repo.ralph(&args).exits(0).json()["run_id"].as_str().unwrap().to_owned()
}
