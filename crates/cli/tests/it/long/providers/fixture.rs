//! A user's machine with a sandbox provider.

use crate::RALPH;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// A machine that can reach `provider`.
pub struct Fixture {
    pub env: TestEnv,
    pub provider: &'static str,
    pub vars: Vec<(String, String)>,
    /// Sandbox settings in addition to the provider.
    pub sandbox: Value,
}

impl Fixture {
    pub fn new(provider: &'static str, vars: &[(&str, &str)], sandbox: Value) -> Self {
        let vars = vars.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        Self { env: TestEnv::new(RALPH), provider, vars, sandbox }
    }

    /// A repo with a task, this agent and this check.
    pub fn repo(&self, agent: Value, check: &str) -> TestRepo<'_> {
        let repo = TestRepo::with_task(&self.env);
        repo.write(".gitignore", "built/\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-q", "-m", "more"]);
        let mut sandbox = self.sandbox.clone();
        sandbox["provider"] = self.provider.into();
        repo.configure(&[agent], check, &json!({ "sandbox": sandbox, "baseline": false }));
        repo
    }

    /// An agent that is this shell script.
    pub fn shell_agent(script: &str) -> Value {
        json!({ "name": "stub", "command_argv": ["sh", "-c", format!("cat >/dev/null; {script}")] })
    }

    pub fn command(&self, repo: &TestRepo<'_>, args: &[&str]) -> Command {
        let mut command = self.env.ralph_command(&repo.dir, args);
        // Ignores other engines or clouds of the host machine.
        command.env("DOCKER_HOST", "ssh://nowhere").envs(self.vars.iter().cloned());
        // The user also allows that the code goes there.
        command.env("RALPH_DEFAULT_PROVIDER", self.provider);
        command
    }

    pub fn ralph(&self, repo: &TestRepo<'_>, args: &[&str]) -> Finished {
        TestEnv::finish(&mut self.command(repo, args))
    }

    pub fn spawn(&self, repo: &TestRepo<'_>, args: &[&str]) -> Child {
        self.command(repo, args).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    /// Our sandboxes, as listed by `ralph sandbox list`.
    pub fn sandboxes(&self, repo: &TestRepo<'_>) -> Vec<Value> {
        let list = self.ralph(repo, &["sandbox", "list", "--json"]).exits(0).json();
        list["sandboxes"]
            .as_array()
            .unwrap()
            .iter()
            .filter(|one| self.belongs_to_this_test(one))
            .cloned()
            .collect()
    }

    /// Whether a sandbox belongs to this test; other tests share the engine.
    fn belongs_to_this_test(&self, sandbox: &Value) -> bool {
        let run = sandbox["run"].as_str().unwrap_or_default();
        self.runs().iter().any(|own| run.starts_with(own.as_str()))
    }

    /// The runs of this machine, by their workspaces.
    pub fn runs(&self) -> Vec<String> {
        let folder = std::fs::read_dir(self.workspaces()).into_iter().flatten().flatten();
        folder.filter_map(|entry| entry.file_name().into_string().ok()).collect()
    }

    fn workspaces(&self) -> PathBuf {
        self.env.path("state").join("ralph/workspaces")
    }

    /// The only run's workspace.
    pub fn workspace(&self) -> PathBuf {
        until("the workspace", || Some(self.workspaces().join(self.runs().pop()?)))
    }

    /// The folder of the only run's agent: a copy of the workspace if the sandbox uses a folder of this machine.
    pub fn agents_folder(&self) -> PathBuf {
        let workspace = self.workspace();
        if !["docker", "sbx"].contains(&self.provider) {
            return workspace;
        }
        let copy = self.env.path("state").join("ralph/copies").join(workspace.file_name().unwrap());
        until("the agent's copy", || copy.is_dir().then(|| copy.clone()))
    }

    /// The journal of the only run.
    pub fn events(&self) -> Vec<Value> {
        let run = self.runs().pop().unwrap();
        let path = self.workspace().join(format!(".ralph/runs/{run}/events.jsonl"));
        let text = std::fs::read_to_string(path).unwrap_or_default();
        text.lines().filter_map(|line| serde_json::from_str(line).ok()).collect()
    }

    /// All events of a kind.
    pub fn events_named(&self, kind: &str) -> Vec<Value> {
        self.events().into_iter().filter(|event| event["kind"] == kind).collect()
    }

    /// Waits for a file that an agent makes.
    pub fn await_file(path: &Path) {
        until(&format!("`{}`", path.display()), || path.exists().then_some(()));
    }
}

impl Drop for Fixture {
    fn drop(&mut self) {
        // Leftovers of a failing test.
        for run in self.runs() {
            let mut command = self.env.ralph_command(Path::new("/"), &["sandbox", "rm", "--force", &run]);
            let _ = command.env("DOCKER_HOST", "ssh://nowhere").envs(self.vars.iter().cloned()).output();
        }
    }
}
