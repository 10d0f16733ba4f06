//! Finds the repo around a folder with a single git process.

use crate::error::{Error, Result};
use crate::objects::files;
use crate::objects::oid::ObjectFormat;
use crate::objects::writer::CommitIdentity;
use crate::process::command::{Git, GitError, GitFailure, UserGit};
use crate::process::path::outside_of_repo;
use crate::process::settings::Settings;
use crate::process::view;
use ralph_loop_domain::vars::Vars;
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RefFormat {
    /// Loose files and `packed-refs`.
    Files,
    /// The reftable folder, or anything newer: only git reads and writes it.
    Other,
}

/// Why a folder can't be worked in.
#[derive(Debug, thiserror::Error)]
pub enum RepoError {
    /// Not inside a git repo.
    #[error("`{}` is not in a git repo", .0.display())]
    NotARepo(PathBuf),
    /// A repo without files.
    #[error("`{}` is a bare repo: it has no files to work on", .0.display())]
    Bare(PathBuf),
    /// Inside `.git`.
    #[error("`{}` is inside a repo's git folder", .0.display())]
    InsideGitDir(PathBuf),
    /// A repo without a commit.
    #[error("the repo `{}` has no commit yet", .0.display())]
    NoCommits(PathBuf),
    #[error(transparent)]
    Git(#[from] GitError),
}

impl RepoError {
    /// What to do next, if known.
    pub fn hint(&self) -> Option<String> {
        match self {
            Self::NotARepo(_) => Some(
                "go to the folder of your repo; or make this one: git init && git add -A && git commit --allow-empty -m start"
                    .to_owned(),
            ),
            Self::Bare(path) => Some(format!("clone it first: git clone {} <folder>", path.display())),
            Self::InsideGitDir(_) => Some("go to the folder that holds your files".to_owned()),
            Self::NoCommits(_) => {
                Some("make one: git add -A && git commit --allow-empty -m start".to_owned())
            }
            Self::Git(error) => error.hint.clone(),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Tree {
    /// The user's folder. What happens to its `HEAD` may be the user's doing, and is never undone.
    User,
    /// The run's copy, worktree or clone. What an agent does to its branches there becomes part of the run.
    Run,
}

/// A repo with a work tree and at least one commit.
#[derive(Debug, Clone)]
pub struct Repo {
    pub vars: Vars,
    pub top: PathBuf,
    /// The git folder of this work tree.
    pub git_dir: PathBuf,
    /// The git folder that all work trees share.
    pub common_dir: PathBuf,
    pub object_format: ObjectFormat,
    pub ref_format: RefFormat,
    /// The commit that `HEAD` names.
    pub head: String,
    /// The branch that `HEAD` is on, unless detached.
    pub branch: Option<String>,
    /// The engine's git folder for this tree, if an agent can write the tree's own. Git takes its settings from here;
    /// from the tree's only objects.
    pub engine_git_dir: Option<PathBuf>,
}

impl Repo {
    /// Finds the repo that `path` is in; git processes on it inherit `vars`.
    pub fn discover(vars: &Vars, path: &Path) -> Result<Self, RepoError> {
        let vars = &outside_of_repo(vars, path);
        let git = Git::in_folder(vars, path);
        let args = [
            "rev-parse",
            "--path-format=absolute",
            "--is-bare-repository",
            "--show-object-format",
            "--show-ref-format",
            "--git-dir",
            "--git-common-dir",
            "--show-toplevel",
            "HEAD^{commit}",
        ];
        let output = match git.call(args).accept(&[128]).run() {
            Ok(output) => output,
            Err(GitError { kind: GitFailure::CannotStart(_), .. }) if !path.is_dir() => {
                return Err(RepoError::NotARepo(path.to_owned()));
            }
            Err(error) => return Err(error.into()),
        };
        let text = output.text();
        let lines: Vec<&str> = text.lines().collect();
        if output.code != 0 {
            return Err(Self::diagnose(path, &lines, &output.stderr));
        }
        let [_, object_format, ref_format, git_dir, common_dir, top, head] = lines[..] else {
            return Err(RepoError::NotARepo(path.to_owned()));
        };
        let mut repo = Self {
            vars: vars.clone(),
            top: PathBuf::from(top),
            git_dir: PathBuf::from(git_dir),
            common_dir: PathBuf::from(common_dir),
            object_format: if object_format == "sha256" { ObjectFormat::Sha256 } else { ObjectFormat::Sha1 },
            // A git that is too old for the question repeats it, and only knows files.
            ref_format: if matches!(ref_format, "files" | "--show-ref-format") {
                RefFormat::Files
            } else {
                RefFormat::Other
            },
            head: head.to_owned(),
            branch: None,
            engine_git_dir: None,
        };
        repo.branch = repo.current_branch()?;
        Ok(repo)
    }

    fn diagnose(path: &Path, lines: &[&str], stderr: &str) -> RepoError {
        let here = path.to_owned();
        if stderr.contains("dubious ownership") {
            return RepoError::Git(GitError {
                args: "rev-parse".to_owned(),
                kind: GitFailure::Exited(128),
                hint: Some(format!(
                    "if you trust it: git config --global --add safe.directory '{}'",
                    path.display()
                )),
                stderr: stderr.to_owned(),
            });
        }
        match lines {
            [] => RepoError::NotARepo(here),
            ["true", ..] => RepoError::Bare(here),
            [_, _, _, _, _, top, ..] if !top.starts_with("HEAD") => RepoError::NoCommits(PathBuf::from(top)),
            _ => RepoError::InsideGitDir(here),
        }
    }

    /// Git on this repo and its files. No filter, driver or helper exists for it, and no network.
    pub fn git(&self) -> Git {
        match &self.engine_git_dir {
            Some(own) => {
                Git::in_repo(&self.vars, own, &self.top).with_objects(self.common_dir.join("objects"))
            }
            None => view::git(&self.vars, (&self.git_dir, &self.common_dir), &self.top, false),
        }
    }

    /// The same with the user's settings for remotes, to bring what the repo lacks.
    pub(crate) fn remote_git(&self) -> Git {
        view::git(&self.vars, (&self.git_dir, &self.common_dir), &self.top, true)
    }

    /// Git with the user's settings, without the repo's files.
    pub fn user_git(&self) -> UserGit {
        UserGit::in_repo(&self.vars, self.engine_git_dir.as_ref().unwrap_or(&self.git_dir))
    }

    /// The address that a remote is pushed to, as the user's git has it.
    pub fn push_url(&self, remote: &str) -> Option<String> {
        self.settings().ok()?.get(&format!("remote.{remote}.url"))?;
        let url = self.user_git().call(["remote", "get-url", "--push", remote]).run().ok()?.text();
        Some(url).filter(|url| !url.is_empty())
    }

    pub(crate) fn settings(&self) -> Result<Arc<Settings>, GitError> {
        let git_dir = self.engine_git_dir.as_ref().unwrap_or(&self.git_dir);
        Settings::now(&self.vars, git_dir, &self.common_dir)
    }

    /// Whether this is a linked worktree of another repo.
    pub fn is_linked_worktree(&self) -> bool {
        self.git_dir != self.common_dir
    }

    /// The branch that `HEAD` is on now.
    pub fn current_branch(&self) -> Result<Option<String>, GitError> {
        if self.ref_format == RefFormat::Files {
            let head = files::read_text(&self.git_dir.join("HEAD"), files::REF_MAX).unwrap_or_default();
            return Ok(head.trim_end().strip_prefix("ref: refs/heads/").map(str::to_owned));
        }
        let output = self.git().call(["symbolic-ref", "-q", "HEAD"]).accept(&[1]).run()?;
        Ok(output.text().strip_prefix("refs/heads/").map(str::to_owned))
    }

    /// The folder for the run's records of the repo, such as its private index. Never pushed, never in the work tree.
    pub fn run_folder(&self, run: &ralph_loop_protocol::id::RunId) -> PathBuf {
        self.git_dir.join("ralph").join(run.as_str())
    }

    /// Keeps `.ralph/` out of the user's commits and status through `info/exclude`, except for the repo's
    /// configuration. Idempotent.
    pub fn exclude_ralph_dir(&self) -> Result<()> {
        self.exclude(&["/.ralph/*", "!/.ralph/config.json", "!/.ralph/models.yaml"])
    }

    /// Also excludes a `.ralph/` in a subfolder: a session that is limited to the folder may create one there.
    pub fn exclude_ralph_dir_in(&self, folder: &str) -> Result<()> {
        let folder = folder.trim_matches('/');
        // No folder name that a task can have contains these characters.
        if folder.is_empty() || folder.contains(['*', '?', '[', '\\', '\n', '!', '#']) {
            return Ok(());
        }
        self.exclude(&[&format!("/{folder}/.ralph/")])
    }

    fn exclude(&self, patterns: &[&str]) -> Result<()> {
        /// Written by earlier versions; with it nothing in there can be committed.
        const ALL: &[u8] = b"/.ralph/";
        let path = self.common_dir.join("info/exclude");
        let old = match files::read(&path, files::CONFIG_MAX) {
            Ok(bytes) => bytes,
            Err(e) if e.kind() == std::io::ErrorKind::NotFound => Vec::new(),
            Err(e) => return Err(Error::file("read", &path, e)),
        };
        let lines = || old.split_inclusive(|b| *b == b'\n').filter(|line| line.trim_ascii_end() != ALL);
        let missing = |pattern: &&&str| !lines().any(|line| line.trim_ascii_end() == pattern.as_bytes());
        let mut new = lines().collect::<Vec<_>>().concat();
        for pattern in patterns.iter().filter(missing) {
            if !new.is_empty() && !new.ends_with(b"\n") {
                new.push(b'\n');
            }
            new.extend_from_slice(pattern.as_bytes());
            new.push(b'\n');
        }
        if new == old { Ok(()) } else { crate::objects::files::write_atomically(&path, &new) }
    }

    /// The user's name and email as git knows them here: environment, config and includes.
    pub fn user_identity(&self) -> (Option<String>, Option<String>) {
        let settings = self.settings().unwrap_or_default();
        let other = ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL"].iter().any(|name| self.vars.is_filled(name));
        let own = [settings.get("user.name"), settings.get("user.email")];
        if let ([Some(name), Some(email)], false, None, None) =
            (own, other, settings.get("author.name"), settings.get("author.email"))
        {
            return (given(Some(name)), given(Some(email)));
        }
        // Keeps git from inventing an email from the host name.
        let call = self.user_git().call(["var", "GIT_AUTHOR_IDENT"]).config("user.useConfigOnly=true");
        let ident = call.run().map(|output| output.text()).unwrap_or_default();
        match ident.split_once(" <").and_then(|(who, rest)| Some((who, rest.split_once('>')?.0))) {
            Some((who, address)) => (given(Some(who)), given(Some(address))),
            None => (None, None),
        }
    }

    /// Who signs the run's commits: the arguments, else `GIT_AUTHOR_*`, else the user's git identity, else Ralph.
    pub fn identity(&self, name: Option<&str>, email: Option<&str>) -> CommitIdentity {
        let (mut name, mut email) = (given(name), given(email));
        if name.is_none() || email.is_none() {
            let (own_name, own_email) = self.user_identity();
            name = name.or(own_name);
            email = email.or(own_email);
        }
        CommitIdentity::new(name.as_deref().unwrap_or("Ralph"), email.as_deref().unwrap_or("ralph@localhost"))
    }
}

fn given(text: Option<&str>) -> Option<String> {
    text.map(str::trim).filter(|text| !text.is_empty()).map(str::to_owned)
}
