//! What the user had not committed when a run began: its sessions had it before them, and no commit of the run holds it.

use crate::error::Result;
use crate::kept_files::ChangedPaths;
use crate::lay_over::{self, Target};
use crate::repo::Repo;
use crate::take_over::changed_on_start;
use ralph_loop_protocol::id::{CommitId, RunId};

/// The user's unfinished changes that were there beside a commit of a run and are in no commit of it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unfinished {
    /// The tree of the commit, with them.
    pub tree: String,
    /// Their files.
    pub files: Vec<String>,
}

impl Unfinished {
    /// Those beside `commit` of a run that began at `head` with the files of `start`; `None` where there were none.
    pub fn beside(
        repo: &Repo,
        run: &RunId,
        (head, start): (&CommitId, &CommitId),
        commit: &CommitId,
    ) -> Result<Option<Self>> {
        let tree = changed_on_start(repo, run, start.as_str(), Some(head.as_str()), commit.as_str())?;
        let files = ChangedPaths::between(&repo.git(), commit.as_str(), &tree)?.file_names();
        let tree = repo.git().call(["rev-parse", "--verify", &format!("{tree}^{{tree}}")]).run()?.text();
        Ok((!files.is_empty()).then_some(Self { tree, files }))
    }

    /// Brings them into a checkout of that commit, uncommitted as they were. Repeating it changes nothing.
    pub fn lay(checkout: &Repo, commit: &CommitId, tree: &str) -> Result<()> {
        let git = checkout.git();
        let args = ["diff-tree", "-r", "-p", "--binary", "--full-index", "--no-renames", "--no-ext-diff"];
        let more = ["--no-textconv", "--no-color", "--ignore-submodules=all", commit.as_str(), tree];
        let patch = git.call(args.into_iter().chain(more)).run()?.stdout;
        if patch.is_empty() || lay_over::check(&git, Target::Files, &patch, &["-R"]).run()?.code == 0 {
            return Ok(());
        }
        lay_over::apply(&git, Target::Files, &patch).run()?;
        Ok(())
    }
}
