//! A code host that is a folder, for offline work, the demo and tests.
//!
//! ```text
//! repo.git/                      a bare repo: git pushes here
//! prs/1.json                     a pull request; edit `state` to close it
//! prs/1/comments/1.json          a comment
//! prs/1/reviews/ann.json         a review: {"author":"ann","state":"approved"}, any file name
//! checks/<commit>/test.json      a check: {"state":"failed","summary":"2 of 9 fail"}; test.log next to it is its log
//! statuses/<commit>/….json       a commit status
//! issues/2.json                  an issue; numbers are shared with pull requests
//! ```
//!
//! Everything may be edited at any time: files are read for every request.

mod bare;
mod files;
mod people;
mod store;

use crate::error::{Result, not_found, refused};
use crate::review::Verdict;
use crate::{mark, review};
use bare::Bare;
use files::{CheckFile, CommentFile, IssueFile, PrFile, ReviewFile};
use ralph_loop_domain::ports::{
    Access, CiCheck, Comment, DismissedApproval, Forge, ForgeError, GitRemote, Issue, NewPr, NewStatus,
    PrChange, PrState, PullRequest, Review,
};
use ralph_loop_domain::vars::Vars;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// Our login here.
const LOGIN: &str = "ralph";
/// Most listed open pull requests.
const OPEN_MAX: usize = 100;

/// A code host that is a folder.
#[derive(Debug, Clone)]
pub struct LocalForge {
    root: PathBuf,
    name: String,
    bare: Bare,
}

impl LocalForge {
    /// The forge in this folder, created if missing; git processes on it inherit `vars`.
    pub fn open(root: &Path, vars: &Vars) -> Result<Self, ForgeError> {
        store::folder(root)?;
        let root =
            root.canonicalize().map_err(|e| crate::error::unavailable("cannot open the local forge", e))?;
        // Two processes must not create the same repo.
        let _held = store::lock(&root)?;
        let bare = Bare::open(&root.join("repo.git"), vars)?;
        for name in ["prs", "issues", "checks", "statuses"] {
            store::folder(&root.join(name))?;
        }
        Ok(Self { name: root.display().to_string(), root, bare })
    }

    pub fn root(&self) -> &Path {
        &self.root
    }

    fn pr_path(&self, number: u64) -> PathBuf {
        self.root.join("prs").join(format!("{number}.json"))
    }

    fn issue_path(&self, number: u64) -> PathBuf {
        self.root.join("issues").join(format!("{number}.json"))
    }

    fn pr_file(&self, number: u64) -> Result<PrFile> {
        store::read(&self.pr_path(number))?.ok_or_else(|| {
            not_found(
                format!("pull request {number} of {}", self.name),
                "there is no such pull request",
                format!("look into `{}`", self.root.join("prs").display()),
            )
        })
    }

    /// The effective pull request: the branch may have moved, or have been merged with plain git.
    fn seen(&self, mut file: PrFile) -> Result<PullRequest> {
        if file.state == PrState::Open {
            if let Some(commit) = self.bare.branch(&file.head)? {
                file.head_commit = commit;
            }
            if let Some(base) = self.bare.branch(&file.base)?
                && self.bare.is_ancestor(&file.head_commit, &base)?
            {
                file.state = PrState::Merged;
            }
        }
        Ok(PullRequest {
            url: address(&self.pr_path(file.number)),
            number: file.number,
            state: file.state,
            draft: file.draft,
            head: file.head,
            head_commit: file.head_commit,
            base: file.base,
            title: file.title,
            body: file.body,
        })
    }

    fn all_prs(&self) -> Result<Vec<PrFile>> {
        let mut files: Vec<PrFile> =
            store::list::<PrFile>(&self.root.join("prs"))?.into_iter().map(|found| found.value).collect();
        files.sort_by_key(|file| std::cmp::Reverse(file.number));
        Ok(files)
    }

    /// Where comments of a pull request or issue are.
    fn comments_of(&self, number: u64) -> Result<PathBuf> {
        let kind = ["prs", "issues"]
            .into_iter()
            .find(|kind| self.root.join(kind).join(format!("{number}.json")).exists());
        match kind {
            Some(kind) => Ok(self.root.join(kind).join(number.to_string()).join("comments")),
            None => Err(not_found(
                format!("comment on {number} of {}", self.name),
                "there is no such pull request or issue",
                "check the number",
            )),
        }
    }

    fn change(&self, number: u64, change: impl FnOnce(&mut PrFile)) -> Result<PullRequest> {
        let _held = store::lock(&self.root)?;
        let old = self.pr_file(number)?;
        let mut new = old.clone();
        change(&mut new);
        if new != old {
            store::write(&self.pr_path(number), &new)?;
        }
        self.seen(new)
    }

    fn review_files(&self, number: u64) -> Result<Vec<store::StoredFile<ReviewFile>>> {
        let folder = self.root.join("prs").join(number.to_string()).join("reviews");
        let mut found = store::list::<ReviewFile>(&folder)?;
        found.sort_by_key(|one| (one.value.at.or(one.at), one.id));
        Ok(found)
    }
}

/// The `file://` URL of a file.
fn address(path: &Path) -> String {
    format!("file://{}", path.display())
}

impl Forge for LocalForge {
    fn kind(&self) -> &'static str {
        "local"
    }

    fn repo(&self) -> &str {
        &self.name
    }

    fn access(&self) -> Result<Access> {
        Ok(Access { login: LOGIN.into(), push: true, private: true })
    }

    fn default_branch(&self) -> Result<String> {
        self.bare.default_branch()
    }

    fn remote(&self) -> Result<GitRemote> {
        Ok(ralph_loop_git::path_remote(&self.bare.path))
    }

    fn find_pr(&self, head: &str) -> Result<Option<PullRequest>> {
        let mut latest = None;
        for file in self.all_prs()?.into_iter().filter(|file| file.head == head) {
            let pr = self.seen(file)?;
            if pr.state == PrState::Open {
                return Ok(Some(pr));
            }
            latest.get_or_insert(pr);
        }
        Ok(latest)
    }

    fn pr(&self, number: u64) -> Result<PullRequest> {
        self.seen(self.pr_file(number)?)
    }

    fn open_pr(&self, new: &NewPr) -> Result<PullRequest> {
        let what =
            || format!("cannot open a pull request from `{}` to `{}` in {}", new.head, new.base, self.name);
        let held = store::lock(&self.root)?;
        if let Some(pr) = self.find_pr(&new.head)?.filter(|pr| pr.state == PrState::Open) {
            return Ok(pr);
        }
        let branch = |name: &str| {
            self.bare.branch(name)?.ok_or_else(|| {
                refused(
                    what(),
                    format!("there is no branch `{name}`"),
                    format!("push it to {}", self.bare.path.display()),
                )
            })
        };
        let (head, base) = (branch(&new.head)?, branch(&new.base)?);
        if self.bare.is_ancestor(&head, &base)? {
            let reason = format!("there are no commits between `{}` and `{}`", new.base, new.head);
            return Err(refused(what(), reason, "push a commit first"));
        }
        let number = store::next_number(&[self.root.join("prs"), self.root.join("issues")], &held)?;
        let file = PrFile {
            number,
            state: PrState::Open,
            draft: new.draft,
            head: new.head.clone(),
            base_commit: self.bare.merge_base(&base, &head)?.unwrap_or(base),
            head_commit: head,
            base: new.base.clone(),
            title: new.title.clone(),
            body: mark::fit(&new.body),
            author: LOGIN.into(),
            labels: Vec::new(),
            other: serde_json::Map::new(),
        };
        store::write(&self.pr_path(number), &file)?;
        self.seen(file)
    }

    fn update_pr(&self, number: u64, change: &PrChange) -> Result<PullRequest> {
        self.change(number, |file| {
            if let Some(title) = &change.title {
                file.title.clone_from(title);
            }
            if let Some(body) = &change.body {
                file.body = mark::fit(body);
            }
            if let Some(draft) = change.draft {
                file.draft = draft;
            }
        })
    }

    fn add_labels(&self, number: u64, labels: &[String]) -> Result<()> {
        self.change(number, |file| {
            for label in labels {
                if !file.labels.contains(label) {
                    file.labels.push(label.clone());
                }
            }
        })?;
        Ok(())
    }

    fn comment(&self, number: u64, mark: &str, body: &str) -> Result<Comment> {
        let folder = self.comments_of(number)?;
        let held = store::lock(&self.root)?;
        let found = store::list::<CommentFile>(&folder)?;
        let old =
            found.into_iter().find(|one| one.value.author == LOGIN && mark::carries(&one.value.body, mark));
        let id = match &old {
            Some(old) => old.id,
            None => store::next_number(std::slice::from_ref(&folder), &held)?,
        };
        let file = CommentFile { author: LOGIN.into(), body: mark::marked(body, mark), at: None };
        if old.is_none_or(|old| old.value.body != file.body) {
            store::write(&folder.join(format!("{id}.json")), &file)?;
        }
        Ok(file.seen(id, None))
    }

    fn checks(&self, commit: &str) -> Result<Vec<CiCheck>> {
        let mut found = Vec::new();
        for kind in ["checks", "statuses"] {
            let folder = self.root.join(kind).join(store::file_name(commit));
            for (path, file) in store::list_named::<CheckFile>(&folder)? {
                found.push(file.seen(&path));
            }
        }
        Ok(found)
    }

    fn check_log(&self, check: &CiCheck, max: usize) -> Result<String> {
        let path = check.url.as_deref().and_then(|url| url.strip_prefix("file://")).map(PathBuf::from);
        // The URL may come from a journal: only logs of this forge are read.
        let path = path.filter(|p| {
            p.starts_with(self.root.join("checks"))
                && !p.components().any(|c| c == std::path::Component::ParentDir)
        });
        let log = match path {
            Some(path) => store::read_text(&path.with_extension("log"))?,
            None => None,
        };
        Ok(ralph_loop_protocol::display::text::tail(&log.unwrap_or_else(|| check.summary.clone()), max)
            .to_owned())
    }

    fn set_status(&self, commit: &str, status: &NewStatus) -> Result<()> {
        let name = format!("{}.json", store::file_name(&status.context));
        let path = self.root.join("statuses").join(store::file_name(commit)).join(name);
        let file = CheckFile {
            name: Some(status.context.clone()),
            state: status.state,
            summary: status.description.clone(),
            url: status.url.clone(),
        };
        store::write(&path, &file)
    }

    fn reviews(&self, number: u64) -> Result<Vec<Review>> {
        let author = self.pr_file(number)?.author;
        let given = self
            .review_files(number)?
            .into_iter()
            .map(|found| (found.value.state, found.value.seen(found.id, found.at)));
        Ok(review::latest(given.collect(), &author))
    }

    fn dismissed_approvals(&self, number: u64) -> Result<Vec<DismissedApproval>> {
        let mut given = Vec::new();
        let mut approved = BTreeMap::new();
        for found in self.review_files(number)? {
            let review = found.value.seen(found.id, found.at);
            match found.value.state {
                Verdict::Dismissed => {}
                Verdict::Commented => continue,
                state => drop(approved.insert(review.author.clone(), (state, review.commit.clone()))),
            }
            given.push((found.value.state, review));
        }
        let taken = review::last_dismissed(&given).into_iter().filter_map(|last| {
            let (state, commit) = approved.get(&last.author)?;
            (*state == Verdict::Approved).then(|| DismissedApproval {
                id: last.id,
                author: last.author.clone(),
                by: None,
                message: last.body.clone(),
                commit: commit.clone(),
            })
        });
        Ok(taken.collect())
    }

    fn review_comments(&self, number: u64) -> Result<Vec<Comment>> {
        self.pr_file(number)?;
        Ok(self
            .review_files(number)?
            .into_iter()
            .flat_map(|found| found.value.comments_seen(found.id, found.at))
            .collect())
    }

    fn pr_files(&self, number: u64) -> Result<Vec<String>> {
        let file = self.pr_file(number)?;
        let recorded = file.base_commit.clone();
        let pr = self.seen(file)?;
        // Once merged, there is no difference between the branches.
        let from = match self.bare.branch(&pr.base)? {
            Some(base) if pr.state != PrState::Merged => {
                self.bare.merge_base(&base, &pr.head_commit)?.unwrap_or(base)
            }
            _ => recorded,
        };
        self.bare.paths(&from, &pr.head_commit)
    }

    fn open_prs(&self) -> Result<Vec<PullRequest>> {
        let mut open = Vec::new();
        for file in self.all_prs()?.into_iter().filter(|file| file.state == PrState::Open) {
            let pr = self.seen(file)?;
            if pr.state == PrState::Open {
                open.push(pr);
            }
            if open.len() >= OPEN_MAX {
                break;
            }
        }
        Ok(open)
    }

    fn issue(&self, number: u64) -> Result<Issue> {
        if let Some(file) = store::read::<IssueFile>(&self.issue_path(number))? {
            return Ok(file.seen(number, address(&self.issue_path(number))));
        }
        // A pull request can be read as an issue, as on GitHub.
        match store::read::<PrFile>(&self.pr_path(number))? {
            Some(file) => Ok(Issue {
                number,
                url: address(&self.pr_path(number)),
                labels: file.labels.clone(),
                closed: file.state != PrState::Open,
                title: file.title,
                body: file.body,
            }),
            None => Err(not_found(
                format!("issue {number} of {}", self.name),
                "there is no such issue",
                format!("look into `{}`", self.root.join("issues").display()),
            )),
        }
    }
}
