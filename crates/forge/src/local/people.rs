//! User actions on a code host as methods, for tests, the demo, and other programs.

use super::files::{CheckFile, CommentFile, IssueFile, LineComment, ReviewFile};
use super::{LocalForge, store};
use crate::error::refused;
use crate::review::Verdict;
use ralph_loop_domain::ports::{CiState, Comment, ForgeError, PrState, ReviewState};
use std::path::Path;

impl LocalForge {
    /// Copies a branch of another repo unless it exists, as a target for pull requests. The first one becomes the
    /// default.
    pub fn seed(&self, from: &Path, branch: &str) -> Result<(), ForgeError> {
        let _held = store::lock(&self.root)?;
        self.bare.seed(from, branch)
    }

    /// Adds a review with line comments (`path`, `line`, text).
    pub fn review(
        &self,
        number: u64,
        author: &str,
        state: ReviewState,
        body: &str,
        lines: &[(&str, u64, &str)],
    ) -> Result<(), ForgeError> {
        let state = match state {
            ReviewState::Approved => Verdict::Approved,
            ReviewState::ChangesRequested => Verdict::ChangesRequested,
            ReviewState::Commented => Verdict::Commented,
        };
        self.write_review(number, author, state, body, lines)
    }

    pub fn dismiss_review(&self, number: u64, author: &str) -> Result<(), ForgeError> {
        self.write_review(number, author, Verdict::Dismissed, "", &[])
    }

    fn write_review(
        &self,
        number: u64,
        author: &str,
        state: Verdict,
        body: &str,
        lines: &[(&str, u64, &str)],
    ) -> Result<(), ForgeError> {
        let commit = self.seen(self.pr_file(number)?)?.head_commit;
        let comments = lines.iter().map(|(path, line, body)| LineComment {
            path: (*path).into(),
            line: Some(*line),
            body: (*body).into(),
        });
        let file = ReviewFile {
            author: author.into(),
            state,
            body: body.into(),
            commit: Some(commit),
            at: None,
            comments: comments.collect(),
        };
        let folder = self.root.join("prs").join(number.to_string()).join("reviews");
        let held = store::lock(&self.root)?;
        let id = store::next_number(std::slice::from_ref(&folder), &held)?;
        store::write(&folder.join(format!("{id}.json")), &file)
    }

    /// Writes a comment on a pull request or issue.
    pub fn say(&self, number: u64, author: &str, body: &str) -> Result<(), ForgeError> {
        let folder = self.comments_of(number)?;
        let held = store::lock(&self.root)?;
        let id = store::next_number(std::slice::from_ref(&folder), &held)?;
        let file = CommentFile { author: author.into(), body: body.into(), at: None };
        store::write(&folder.join(format!("{id}.json")), &file)
    }

    /// The comments of a pull request or issue, oldest first.
    pub fn comments(&self, number: u64) -> Result<Vec<Comment>, ForgeError> {
        let found = store::list::<CommentFile>(&self.comments_of(number)?)?;
        Ok(found.into_iter().map(|one| one.value.seen(one.id, one.at)).collect())
    }

    pub fn labels(&self, number: u64) -> Result<Vec<String>, ForgeError> {
        Ok(self.pr_file(number)?.labels)
    }

    /// Closes a pull request without a merge.
    pub fn close(&self, number: u64) -> Result<(), ForgeError> {
        self.change(number, |file| file.state = PrState::Closed).map(|_| ())
    }

    pub fn reopen(&self, number: u64) -> Result<(), ForgeError> {
        self.change(number, |file| file.state = PrState::Open).map(|_| ())
    }

    /// Merges a pull request, also in the repo.
    pub fn merge(&self, number: u64) -> Result<(), ForgeError> {
        let pr = self.seen(self.pr_file(number)?)?;
        match pr.state {
            PrState::Merged => return self.change(number, |file| file.state = PrState::Merged).map(|_| ()),
            PrState::Closed => {
                return Err(refused(
                    format!("cannot merge pull request {number}"),
                    "it is closed",
                    "open it again first",
                ));
            }
            PrState::Open => {}
        }
        let message = format!("Merge pull request #{number} from {}\n\n{}", pr.head, pr.title);
        self.bare.merge(&pr.base, &pr.head_commit, &message)?;
        self.change(number, |file| {
            file.state = PrState::Merged;
            file.head_commit = pr.head_commit;
        })
        .map(|_| ())
    }

    pub fn set_check(
        &self,
        commit: &str,
        name: &str,
        state: CiState,
        summary: &str,
        log: Option<&str>,
    ) -> Result<(), ForgeError> {
        let path = self
            .root
            .join("checks")
            .join(store::file_name(commit))
            .join(format!("{}.json", store::file_name(name)));
        if let Some(log) = log {
            store::write_bytes(&path.with_extension("log"), log.as_bytes())?;
        }
        let file = CheckFile { name: Some(name.into()), state, summary: summary.into(), url: None };
        store::write(&path, &file)
    }

    /// Creates an issue; returns its number.
    pub fn add_issue(&self, title: &str, body: &str, labels: &[&str]) -> Result<u64, ForgeError> {
        let held = store::lock(&self.root)?;
        let number = store::next_number(&[self.root.join("prs"), self.root.join("issues")], &held)?;
        let file = IssueFile {
            title: title.into(),
            body: body.into(),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            closed: false,
        };
        store::write(&self.issue_path(number), &file)?;
        Ok(number)
    }
}
