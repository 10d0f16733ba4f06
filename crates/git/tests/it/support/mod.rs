//! Real repos in temporary folders, independent of the machine's git configuration.
#![allow(clippy::disallowed_methods, reason = "tests set repos up and look at them with plain git")]

use jiff::Timestamp;
use ralph_loop_domain::ports::{Baseline, Checkpoint, CheckpointRequest, Workspace};
use ralph_loop_git::{CommitIdentity, GitWorkspace, Repo, WorkspaceOptions};
use ralph_loop_protocol::event::CommitPart;
use ralph_loop_protocol::id::{AgentName, RunId};
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;

pub struct Fixture {
    pub dir: tempfile::TempDir,
    pub top: PathBuf,
}

pub fn vars() -> ralph_loop_domain::vars::Vars {
    std::env::vars_os().collect()
}

/// Plain git, as a user or an agent runs it.
pub fn try_git(dir: &Path, args: &[&str]) -> (bool, String) {
    let output = Command::new("git")
        .args(args)
        .current_dir(dir)
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_NOSYSTEM", "1")
        .env("GIT_AUTHOR_NAME", "User")
        .env("GIT_AUTHOR_EMAIL", "user@example.com")
        .env("GIT_COMMITTER_NAME", "User")
        .env("GIT_COMMITTER_EMAIL", "user@example.com")
        .env("GIT_ALLOW_PROTOCOL", "file")
        .output()
        .unwrap();
    let text =
        String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr);
    (output.status.success(), text)
}

pub fn git(dir: &Path, args: &[&str]) -> String {
    let (fine, text) = try_git(dir, args);
    assert!(fine, "git {args:?} failed: {text}");
    text.trim_end_matches('\n').to_owned()
}

/// Replaces the sandbox of filters: runs their command where it must run.
fn run_filters() {
    ralph_loop_git::set_filter_sandbox(|room| {
        let mut command = Command::new(room.argv[0]);
        let done = command.args(&room.argv[1..]).current_dir(room.folder).output().unwrap();
        match done.status.success() {
            true => Ok(()),
            false => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
        }
    });
}

impl Fixture {
    pub fn empty(init: &[&str]) -> Self {
        run_filters();
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap().join("repo");
        fs::create_dir(&top).unwrap();
        let mut args = vec!["init", "-q", "-b", "main"];
        args.extend(init);
        git(&top, &args);
        Self { dir, top }
    }

    pub fn new() -> Self {
        Self::with(&[])
    }

    pub fn with(init: &[&str]) -> Self {
        let fixture = Self::empty(init);
        fixture.write("a.txt", "a\n");
        fixture.write("b.txt", "b\n");
        fixture.write("src/lib.rs", "fn lib() {}\n");
        fixture.write("src/deep/mod.rs", "fn deep() {}\n");
        fixture.write(".gitignore", "*.log\n/target/\n");
        git(&fixture.top, &["add", "-A"]);
        git(&fixture.top, &["commit", "-qm", "first"]);
        fixture
    }

    pub fn write(&self, path: &str, text: &str) {
        let path = self.top.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    pub fn read(&self, path: &str) -> String {
        fs::read_to_string(self.top.join(path)).unwrap()
    }
    pub fn exists(&self, path: &str) -> bool {
        self.top.join(path).symlink_metadata().is_ok()
    }
    pub fn remove(&self, path: &str) {
        fs::remove_file(self.top.join(path)).unwrap();
    }
    pub fn chmod(&self, path: &str, mode: u32) {
        fs::set_permissions(self.top.join(path), fs::Permissions::from_mode(mode)).unwrap();
    }
    pub fn git(&self, args: &[&str]) -> String {
        git(&self.top, args)
    }
    pub fn repo(&self) -> Repo {
        Repo::discover(&vars(), &self.top).unwrap()
    }
    pub fn workspace(&self) -> GitWorkspace {
        self.workspace_with(|_| {})
    }
    pub fn workspace_with(&self, change: impl FnOnce(&mut WorkspaceOptions)) -> GitWorkspace {
        let mut options = WorkspaceOptions::new(CommitIdentity::new("Ralph", "ralph@localhost"));
        change(&mut options);
        GitWorkspace::new(self.repo(), run(), options).unwrap()
    }
    pub fn begun(&self) -> (GitWorkspace, Baseline) {
        let mut workspace = self.workspace();
        let baseline = workspace.begin(&[]).unwrap();
        (workspace, baseline)
    }
    pub fn reopened(&self, baseline: &Baseline) -> GitWorkspace {
        let mut workspace = self.workspace();
        workspace.reopen(baseline).unwrap();
        workspace
    }
    pub fn names(&self, tree: &str) -> Vec<String> {
        let text = self.git(&["ls-tree", "-r", "--name-only", tree]);
        text.lines().map(str::to_owned).collect()
    }
    pub fn show(&self, commit: &str, path: &str) -> String {
        self.git(&["show", &format!("{commit}:{path}")])
    }
}

pub fn run() -> RunId {
    RunId::from("r1")
}

pub const WORK: &str = "refs/ralph/r1/work";
pub const START: &str = "refs/ralph/r1/start";

pub fn checkpoint(workspace: &mut GitWorkspace, iteration: u32) -> Checkpoint {
    try_checkpoint(workspace, iteration, false).unwrap()
}

pub fn try_checkpoint(
    workspace: &mut GitWorkspace,
    iteration: u32,
    on_branch: bool,
) -> Result<Checkpoint, ralph_loop_domain::ports::WorkspaceError> {
    checkpoint_in_parts(workspace, iteration, on_branch, &[])
}

pub fn checkpoint_in_parts(
    workspace: &mut GitWorkspace,
    iteration: u32,
    on_branch: bool,
    parts: &[CommitPart],
) -> Result<Checkpoint, ralph_loop_domain::ports::WorkspaceError> {
    let agent = AgentName::from("tester");
    let message = format!("ralph(tester): iter {iteration}");
    let at = Timestamp::from_second(1_700_000_000 + i64::from(iteration)).unwrap();
    workspace.checkpoint(&CheckpointRequest {
        iteration,
        agent: &agent,
        message: if parts.is_empty() { &message } else { "" },
        parts,
        at,
        on_branch,
        redactor: None,
    })
}

/// `status path` of each change.
pub fn listed(checkpoint: &Checkpoint) -> Vec<String> {
    checkpoint.files.iter().map(|f| format!("{} {}", f.status, f.path)).collect()
}

pub fn commit_of(checkpoint: &Checkpoint) -> String {
    checkpoint.commit.as_ref().expect("a commit").as_str().to_owned()
}
