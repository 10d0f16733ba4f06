//! What people and we say: comments, reviews, issues.

use super::GitHub;
use super::client::{ApiRequest, once};
use super::wire::{WireComment, WireIssue, WireReview};
use crate::error::Result;
use crate::{mark, review};
use ralph_domain::ports::{Comment, Issue, Review};
use ralph_http::Method;
use serde_json::json;

impl GitHub {
    pub(super) fn say(&self, number: u64, mark: &str, body: &str) -> Result<Comment> {
        let text = mark::marked(body, mark);
        let old = match self.ours(number, mark)? {
            Some(old) if old.body.as_deref() == Some(text.as_str()) => return Ok(old.seen()),
            Some(old) => old.id,
            None => {
                let url = self.url(&format!("/issues/{number}/comments"));
                let what = format!("comment on {number} of {}", self.name);
                let ask = ApiRequest::with(Method::POST, what, url, json!({ "body": text })).once();
                let make = || self.http.json::<WireComment>(&ask, self.tokens());
                return once(&self.http, make, || self.ours(number, mark)).map(WireComment::seen);
            }
        };
        let what = format!("change our comment on {number} of {}", self.name);
        let url = self.url(&format!("/issues/comments/{old}"));
        let ask = ApiRequest::with(Method::PATCH, what, url, json!({ "body": text }));
        self.http.json::<WireComment>(&ask, self.tokens()).map(WireComment::seen)
    }

    /// The comment that carries the mark and that we wrote: anybody can copy a mark.
    fn ours(&self, number: u64, mark: &str) -> Result<Option<WireComment>> {
        let what = format!("read the comments on {number} of {}", self.name);
        let ask = ApiRequest::get(what, self.url(&format!("/issues/{number}/comments?per_page=100")));
        let found: Vec<WireComment> = self.http.pages(&ask, None, self.tokens())?;
        let mut marked = found
            .into_iter()
            .filter(|c| c.body.as_deref().is_some_and(|b| mark::carries(b, mark)))
            .peekable();
        if marked.peek().is_none() {
            return Ok(None);
        }
        let me = self.me()?;
        Ok(marked.find(|comment| match (&me, &comment.user) {
            (Some(me), Some(user)) => user.login.eq_ignore_ascii_case(me),
            (None, Some(user)) => user.kind == "Bot",
            (_, None) => false,
        }))
    }

    fn wire_reviews(&self, number: u64) -> Result<Vec<WireReview>> {
        let what = format!("read the reviews of pull request {number} of {}", self.name);
        let ask = ApiRequest::get(what, self.url(&format!("/pulls/{number}/reviews?per_page=100")));
        self.http.pages(&ask, None, self.tokens())
    }

    pub(super) fn latest_reviews(&self, number: u64) -> Result<Vec<Review>> {
        let author = super::wire::login(self.wire_pr(number)?.user.as_ref());
        let given = self.wire_reviews(number)?.iter().filter_map(WireReview::seen).collect();
        Ok(review::latest(given, &author))
    }

    /// Texts of reviews, each followed by its remarks on lines.
    pub(super) fn said_in_reviews(&self, number: u64) -> Result<Vec<Comment>> {
        let what = format!("read the remarks on pull request {number} of {}", self.name);
        let ask = ApiRequest::get(what, self.url(&format!("/pulls/{number}/comments?per_page=100")));
        let mut lines: Vec<WireComment> = self.http.pages(&ask, None, self.tokens())?;
        lines.sort_by_key(|line| line.id);
        let mut said = Vec::new();
        for review in self.wire_reviews(number)? {
            let Some((_, seen)) = review.seen() else { continue };
            if !seen.body.trim().is_empty() {
                let Review { id, author, body, at, .. } = seen;
                said.push(Comment { id, author, body, path: None, line: None, at });
            }
            let (its, rest) =
                lines.into_iter().partition(|line| line.pull_request_review_id == Some(review.id));
            lines = rest;
            said.extend(Vec::into_iter(its).map(WireComment::seen));
        }
        said.extend(lines.into_iter().map(WireComment::seen));
        Ok(said)
    }

    pub(super) fn read_issue(&self, number: u64) -> Result<Issue> {
        let ask = ApiRequest::get(
            format!("read issue {number} of {}", self.name),
            self.url(&format!("/issues/{number}")),
        );
        self.http.json::<WireIssue>(&ask, self.tokens()).map(WireIssue::seen)
    }
}
