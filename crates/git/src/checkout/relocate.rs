//! Resumes elsewhere: a fresh clone replaces the workspace that a run began in.

use crate::error::{Error, Result};
use crate::snapshot::history;
use crate::snapshot::protected::Protected;
use crate::snapshot::read_tree;
use crate::snapshot::record::{RefPosition, RefRecord};
use crate::workspace::GitWorkspace;
use ralph_loop_domain::ports::{Baseline, WorkspaceError};
use ralph_loop_protocol::id::{CommitId, TreeId};

impl GitWorkspace {
    /// Makes this clone the workspace of a run that began elsewhere. Checks out the work commit on the run's branch,
    /// and takes a new start snapshot, since the first never left the old machine (it may hold uncommitted files of
    /// the user's). Idempotent.
    pub fn relocate(
        &mut self,
        old: &Baseline,
        work: Option<&CommitId>,
        protected: &[String],
    ) -> Result<Baseline, WorkspaceError> {
        self.take_over(old, work, protected).map_err(|e| e.during("fetch the run"))
    }

    fn take_over(
        &mut self,
        old: &Baseline,
        work: Option<&CommitId>,
        protected: &[String],
    ) -> Result<Baseline> {
        let head = old.head.as_str();
        for commit in [Some(head), work.map(CommitId::as_str)].into_iter().flatten() {
            if self
                .git
                .call(["cat-file", "-e", &format!("{commit}^{{commit}}")])
                .accept(&[1, 128])
                .run()?
                .code
                != 0
            {
                return Err(Error::refused(
                    format!("the commit {commit} of the run is not on the remote"),
                    "push the branch that the run started from, then try again",
                ));
            }
        }
        let at = work.map_or(head, CommitId::as_str);
        let git = self.repo.remote_git();
        match &self.options.branch {
            Some(branch) => git.call(["checkout", "-q", "-f", "-B", branch, at]).run()?,
            None => git.call(["checkout", "-q", "-f", "--detach", at]).run()?,
        };
        crate::filters::Filters::smudge_checkout(&self.repo, None, &self.repo.settings()?, None)?;
        let tree = self.git.call(["rev-parse", "--verify", &format!("{head}^{{tree}}")]).run()?.text();
        let message = history::message_with_trailers("ralph: state before the run", &self.run, None);
        let time = self.git.call(["show", "-s", "--format=%ct", head]).run()?.text().parse().unwrap_or(0);
        let start = self.objects.commit(&tree, Some(head), &self.options.identity, time, &message)?;
        let baseline = Baseline {
            start: CommitId::new(start.clone()),
            tree: TreeId::new(tree),
            branch: self.options.branch.clone(),
            dirty: Vec::new(),
            dirty_total: 0,
            left_out: Vec::new(),
            ..old.clone()
        };
        let own = |name: &str| self.own_ref(name);
        for (name, target) in
            [(own("start"), Some(start.as_str())), (own("work"), work.map(CommitId::as_str))]
        {
            let Some(target) = target else { continue };
            let now = self.refs.read(&name)?;
            if now.as_deref() != Some(target) {
                self.refs.update(&name, target, now.as_deref())?;
            }
        }
        let branch = self.options.branch.as_ref().map(|_| RefPosition::at(Some(at.to_owned())));
        RefRecord::new(baseline.clone(), work.map(ToString::to_string), branch).save(&self.folder)?;
        let entries = read_tree(&self.git, head)?;
        Protected::begin(&self.folder, &self.repo.top, protected, &entries)?;
        self.accept_guard()?;
        Ok(baseline)
    }
}

/// More files than any run has; each is read by a separate process.
const FILES_MAX: usize = 20_000;

/// Whether some file system takes this name for `.git`: upper case, zero-width letters, the short name, trailing
/// dots.
fn is_git(name: &str) -> bool {
    let seen: String = name
        .chars()
        .filter(|c| !matches!(c, '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2060}'..='\u{206f}' | '\u{feff}'))
        .flat_map(char::to_lowercase)
        .collect();
    let seen = seen.split(':').next().unwrap_or_default().trim_end_matches(['.', ' ']);
    seen == ".git" || seen == "git~1"
}

/// The files of a commit below a folder, to read the state of a run. At most `max` bytes in total.
pub fn read_files(repo: &crate::Repo, commit: &str, max: usize) -> Result<Vec<(String, Vec<u8>)>> {
    let list = repo.git().call(["ls-tree", "-r", "-z", "--name-only", "--full-tree", commit]).run()?;
    let mut files = Vec::new();
    let mut total = 0;
    let names: Vec<&[u8]> = list.stdout.split(|b| *b == 0).filter(|name| !name.is_empty()).collect();
    if names.len() > FILES_MAX {
        return Err(Error::unreadable(
            "the state of the run",
            "it has more files than a run's state can have",
        ));
    }
    for name in names {
        let name = String::from_utf8_lossy(name).into_owned();
        // A path comes from a remote: it must stay below the folder it is written to.
        let sound = !name.starts_with('/')
            && !name.split('/').any(|part| matches!(part, ".." | "." | "") || is_git(part));
        if !sound {
            return Err(Error::unreadable(name, "a path of the run's state leads elsewhere"));
        }
        let blob =
            repo.git().call(["cat-file", "blob", &format!("{commit}:{name}")]).max_stdout(max).run()?;
        total += blob.stdout.len();
        if total > max {
            return Err(Error::unreadable("the state of the run", "it is larger than a run's state can be"));
        }
        files.push((name, blob.stdout));
    }
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::is_git;

    #[test]
    fn every_spelling_of_dot_git_is_recognized() {
        for name in [
            ".git",
            ".GIT",
            ".Git.",
            ".git ",
            "GIT~1",
            ".g\u{200c}it",
            ".git::$INDEX_ALLOCATION",
            "\u{feff}.git",
        ] {
            assert!(is_git(name), "{name:?}");
        }
        for name in [".gitignore", "git", "x.git", ".github", "git~2"] {
            assert!(!is_git(name), "{name:?}");
        }
    }
}
