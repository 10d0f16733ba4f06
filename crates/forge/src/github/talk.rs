//! Comments, reviews and issues.

use super::GitHub;
use super::client::{ApiRequest, once};
use super::wire::{WireComment, WireEvent, WireIssue, WirePermission, WireReview, WireUser};
use crate::error::Result;
use crate::{mark, review};
use ralph_loop_domain::ports::{Comment, DismissedApproval, Issue, Review};
use ralph_loop_http::Method;
use ralph_loop_protocol::display::text::percent_encoded;
use serde_json::json;
use std::collections::BTreeMap;

/// Known write permissions by user.
type Writers = BTreeMap<String, bool>;

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

    /// Our comment with this mark: anyone can copy a mark.
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
        let mut writers = Writers::new();
        let mut reviews = self.wire_reviews(number)?;
        reviews.retain(|r| self.has_a_say(r.user.as_ref(), r.author_association.as_deref(), &mut writers));
        Ok(review::latest(reviews.iter().filter_map(WireReview::seen).collect(), &author))
    }

    /// Withdrawn approvals. A dismissed review doesn't show its old decision, but the pull request's events do; they
    /// are only read if there is one.
    pub(super) fn approvals_dismissed(&self, number: u64) -> Result<Vec<DismissedApproval>> {
        let mut writers = Writers::new();
        let mut reviews = self.wire_reviews(number)?;
        reviews.retain(|r| self.has_a_say(r.user.as_ref(), r.author_association.as_deref(), &mut writers));
        let given: Vec<_> = reviews.iter().filter_map(WireReview::seen).collect();
        let dismissed = review::last_dismissed(&given);
        if dismissed.is_empty() {
            return Ok(Vec::new());
        }
        let what = format!("read what happened to pull request {number} of {}", self.name);
        let ask = ApiRequest::get(what, self.url(&format!("/issues/{number}/events?per_page=100")));
        let events: Vec<WireEvent> = self.http.pages(&ask, None, self.tokens())?;
        let told = events.into_iter().filter_map(|event| Some((event.actor, event.dismissed_review?)));
        let approved = told.filter(|(_, was)| {
            was.state.eq_ignore_ascii_case("approved") && was.dismissal_commit_id.is_none()
        });
        let taken = approved.filter_map(|(actor, was)| {
            let review = dismissed.iter().find(|review| review.id == was.review_id)?;
            Some(DismissedApproval {
                id: review.id,
                author: review.author.clone(),
                by: actor.map(|actor| actor.login),
                message: was.dismissal_message.unwrap_or_default(),
                commit: review.commit.clone(),
            })
        });
        Ok(taken.collect())
    }

    /// Whether a user's word on a pull request counts: on a public repo anyone can approve and request changes. Bots
    /// review only if the owner has let them in.
    fn has_a_say(&self, user: Option<&WireUser>, association: Option<&str>, known: &mut Writers) -> bool {
        let Some(user) = user else { return false };
        match association {
            None | Some("OWNER" | "MEMBER" | "COLLABORATOR") => return true,
            Some(_) if user.kind == "Bot" => return true,
            Some(_) => {}
        }
        if let Some(writes) = known.get(&user.login) {
            return *writes;
        }
        let url = self.url(&format!("/collaborators/{}/permission", percent_encoded(&user.login)));
        let ask = ApiRequest::get(format!("ask what {} may do in {}", user.login, self.name), url);
        let answer = self.http.json::<WirePermission>(&ask, self.tokens());
        // A member with hidden membership appears as a contributor; if the permission can't be read, it is believed.
        let writes = match answer {
            Ok(answer) => matches!(answer.permission.as_str(), "admin" | "write" | "maintain"),
            Err(_) => association == Some("CONTRIBUTOR"),
        };
        known.insert(user.login.clone(), writes);
        writes
    }

    /// Review texts, each followed by its line comments.
    pub(super) fn said_in_reviews(&self, number: u64) -> Result<Vec<Comment>> {
        let what = format!("read the remarks on pull request {number} of {}", self.name);
        let ask = ApiRequest::get(what, self.url(&format!("/pulls/{number}/comments?per_page=100")));
        let mut lines: Vec<WireComment> = self.http.pages(&ask, None, self.tokens())?;
        let mut writers = Writers::new();
        lines.retain(|l| self.has_a_say(l.user.as_ref(), l.author_association.as_deref(), &mut writers));
        lines.sort_by_key(|line| line.id);
        let mut reviews = self.wire_reviews(number)?;
        reviews.retain(|r| self.has_a_say(r.user.as_ref(), r.author_association.as_deref(), &mut writers));
        let mut said = Vec::new();
        for review in reviews {
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
