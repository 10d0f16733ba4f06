//! What a code host sends, and what it asks for. Who may ask is what the file of triggers says; being able to send something is
//! not being allowed to.

use crate::trigger::{RepoTrigger, Triggers};
use hmac::{Hmac, KeyInit as _, Mac as _};
use jiff::Timestamp;
use ralph_loop_app::trust::pinned::PinnedTask;
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::display::text::one_line;
use serde_json::Value;
use sha2::Sha256;

/// Bytes of a delivery.
pub const DELIVERY_MAX: usize = 5 * 1024 * 1024;
/// Bytes of the text that a comment brings.
const WORDS_MAX: usize = 8 * 1024;
/// Pull requests and branches of one delivery.
const PLACES_MAX: usize = 50;

/// A delivery of the code host, as it came.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// Its id (`X-GitHub-Delivery`). It is not signed.
    pub id: &'a str,
    /// What happened (`X-GitHub-Event`).
    pub event: &'a str,
    /// The signature (`X-Hub-Signature-256`).
    pub signature: &'a str,
    /// The body.
    pub body: &'a [u8],
}

/// What a delivery asks for.
#[derive(Debug, Clone, PartialEq)]
pub enum Asked {
    /// Nothing, and why.
    Nothing(&'static str),
    /// A run of an issue.
    Start {
        /// The name of the repo in the list.
        repo: String,
        /// The issue.
        issue: u64,
        /// Its title, for lists.
        title: String,
        /// Its text as the sender of the label saw it.
        text: PinnedTask,
        /// Who asks.
        person: String,
        /// The occasion.
        occasion: String,
        /// When it happened.
        at: Timestamp,
    },
    /// A word to the run of an issue or pull request.
    Steer {
        /// `owner/name#number`.
        thread: String,
        /// Who says it.
        person: String,
        /// The number of the comment; later ones have larger numbers.
        comment: i64,
        /// What.
        control: Box<Control>,
    },
    /// Checks or a review have changed: runs that wait for them look at once.
    News {
        /// Pull requests (`owner/name#number`) and branches (`owner/name@branch`).
        places: Vec<String>,
    },
}

/// What a delivery asks for. Its signature was checked.
pub fn read(triggers: &Triggers, event: &str, body: &Value) -> Asked {
    let name = body["repository"]["full_name"].as_str().unwrap_or_default();
    let Some(repo) = triggers.repo(name) else { return Asked::Nothing("the repo is not in the list") };
    if event == "ping" {
        return Asked::Nothing("the webhook is set up: its signature fits, and the repo is in the list");
    }
    // Any sender may cause these: they make a run refresh, and pass no text to it.
    if let Some(places) = news(&repo.repo, event, body) {
        return Asked::News { places };
    }
    let person = body["sender"]["login"].as_str().unwrap_or_default();
    // An issue template can add a label in the author's name, so a labeled issue alone doesn't prove permission.
    if person.is_empty() || !repo.people.iter().any(|one| one.eq_ignore_ascii_case(person)) {
        return Asked::Nothing("its sender isn't listed in `people`");
    }
    match (event, body["action"].as_str().unwrap_or_default()) {
        ("issues", "labeled") => labelled(repo, body, person),
        ("issue_comment", "created") => commented(repo, body, person),
        _ => Asked::Nothing("this event has no effect"),
    }
}

/// The pull requests and branches whose checks or reviews have changed.
fn news(repo: &str, event: &str, body: &Value) -> Option<Vec<String>> {
    let of_checks = |what: &Value| {
        let numbers = what["pull_requests"].as_array().into_iter().flatten();
        let numbers = numbers.filter_map(|pr| pr["number"].as_u64()).map(|number| thread(repo, number));
        let branch = what["head_branch"].as_str().map(|branch| branch_place(repo, branch));
        numbers.chain(branch).take(PLACES_MAX).collect()
    };
    let of_pr = || body["pull_request"]["number"].as_u64().map(|number| thread(repo, number));
    match (event, body["action"].as_str().unwrap_or_default()) {
        ("check_suite" | "workflow_run", "completed") => Some(of_checks(&body[event])),
        ("check_run", "completed") => {
            let mut places: Vec<String> = of_checks(&body["check_run"]);
            places.extend(of_checks(&body["check_run"]["check_suite"]));
            Some(places)
        }
        ("status", _) => {
            let branches = body["branches"].as_array().into_iter().flatten();
            let names = branches.filter_map(|branch| branch["name"].as_str());
            Some(names.map(|name| branch_place(repo, name)).take(PLACES_MAX).collect())
        }
        ("pull_request_review", "submitted" | "dismissed" | "edited")
        | ("pull_request", "closed" | "reopened" | "synchronize") => Some(of_pr().into_iter().collect()),
        _ => None,
    }
}

fn labelled(repo: &RepoTrigger, body: &Value, person: &str) -> Asked {
    let issue = &body["issue"];
    let label = body["label"]["name"].as_str().unwrap_or_default();
    if repo.label.as_deref() != Some(label) || issue["pull_request"].is_object() {
        return Asked::Nothing("another label, or no issue");
    }
    if issue["state"].as_str() != Some("open") {
        return Asked::Nothing("the issue is not open");
    }
    let (Some(number), Some(when)) = (issue["number"].as_u64(), time(&issue["updated_at"])) else {
        return Asked::Nothing("it names no issue");
    };
    let text_of = |key: &str| issue[key].as_str().unwrap_or_default();
    Asked::Start {
        repo: repo.repo.clone(),
        issue: number,
        title: one_line(text_of("title"), 120),
        text: PinnedTask::Issue { title: text_of("title").to_owned(), body: text_of("body").to_owned() },
        person: person.to_owned(),
        // The label taken off and put on again is another occasion.
        occasion: format!("label:{}#{number}:{when}", repo.repo.to_ascii_lowercase()),
        at: when,
    }
}

fn commented(repo: &RepoTrigger, body: &Value, person: &str) -> Asked {
    let comment = &body["comment"];
    if comment["user"]["login"].as_str() != Some(person) {
        return Asked::Nothing("the sender did not write it");
    }
    let text = comment["body"].as_str().unwrap_or_default();
    let Some(control) = control_of(text) else { return Asked::Nothing("no word for a run") };
    let (Some(number), Some(id)) = (body["issue"]["number"].as_u64(), comment["id"].as_i64()) else {
        return Asked::Nothing("it names no issue");
    };
    Asked::Steer {
        thread: thread(&repo.repo, number),
        person: person.to_owned(),
        comment: id,
        control: Box::new(control),
    }
}

/// What `/ralph …` at the beginning of a comment means.
pub fn control_of(comment: &str) -> Option<Control> {
    let rest = comment.trim_start().strip_prefix("/ralph")?;
    if !rest.starts_with(char::is_whitespace) {
        return None;
    }
    let rest = rest.trim();
    let (word, text) = rest.split_once(char::is_whitespace).unwrap_or((rest, ""));
    let mut text = text.trim().to_owned();
    text.truncate(text.floor_char_boundary(WORDS_MAX));
    let said = !text.is_empty();
    Some(match word {
        "pause" => Control::Pause,
        "resume" | "go" => Control::Resume,
        "stop" => Control::Stop,
        "cancel" => Control::Cancel,
        "rotate" => Control::Rotate,
        "approve" => Control::Approve,
        "diagnose" => Control::Diagnose,
        "note" if said => Control::Note { text },
        "nudge" if said => Control::Nudge { text },
        _ => return None,
    })
}

pub(crate) fn thread(repo: &str, number: u64) -> String {
    format!("{}#{number}", repo.to_ascii_lowercase())
}

/// Names a branch as `owner/name@branch`, to find its runs.
pub(crate) fn branch_place(repo: &str, branch: &str) -> String {
    format!("{}@{}", repo.to_ascii_lowercase(), one_line(branch, 250))
}

fn time(value: &Value) -> Option<Timestamp> {
    value.as_str()?.parse().ok()
}

/// What a code host signs this body with.
pub fn signature(secret: &str, body: &[u8]) -> String {
    let mac = Hmac::<Sha256>::new_from_slice(secret.as_bytes()).map(|mut mac| {
        mac.update(body);
        mac.finalize().into_bytes()
    });
    let hex: String = mac.iter().flatten().map(|byte| format!("{byte:02x}")).collect();
    format!("sha256={hex}")
}

/// Whether the code host has signed this body.
pub fn is_signed(secret: &str, signature: &str, body: &[u8]) -> bool {
    let Some(hex) = signature.strip_prefix("sha256=").filter(|hex| hex.len() == 64 && hex.is_ascii()) else {
        return false;
    };
    let byte = |at: usize| u8::from_str_radix(hex.get(at..at + 2)?, 16).ok();
    let Some(given) = (0..64).step_by(2).map(byte).collect::<Option<Vec<u8>>>() else { return false };
    let Ok(mut mac) = Hmac::<Sha256>::new_from_slice(secret.as_bytes()) else { return false };
    mac.update(body);
    mac.verify_slice(&given).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn triggers() -> Triggers {
        let text = json!({ "repos": [{
            "repo": "o/r", "clone": "https://h/o/r.git", "label": "ralph", "people": ["Ana"]
        }]});
        Triggers::parse(&text.to_string()).unwrap()
    }

    fn label(person: &str, label: &str) -> Value {
        json!({ "action": "labeled", "repository": { "full_name": "O/R" }, "sender": { "login": person },
            "label": { "name": label },
            "issue": { "number": 7, "title": "T", "state": "open", "updated_at": "2026-11-17T12:00:00Z" } })
    }

    #[test]
    fn only_the_label_by_somebody_who_may_starts_a_run() {
        assert!(matches!(read(&triggers(), "issues", &label("ana", "ralph")), Asked::Start { issue: 7, .. }));
        for (person, name) in [("mallory", "ralph"), ("", "ralph"), ("ana", "bug")] {
            assert!(
                matches!(read(&triggers(), "issues", &label(person, name)), Asked::Nothing(_)),
                "{person} {name}"
            );
        }
        let mut other = label("ana", "ralph");
        other["repository"]["full_name"] = "o/other".into();
        assert!(matches!(read(&triggers(), "issues", &other), Asked::Nothing(_)));
    }

    #[test]
    fn a_new_webhook_hears_that_it_is_set_up() {
        let ping = |repo: &str| json!({ "zen": "x", "repository": { "full_name": repo } });
        let said = |repo: &str| match read(&triggers(), "ping", &ping(repo)) {
            Asked::Nothing(why) => why,
            other => panic!("{other:?}"),
        };
        assert!(said("o/r").starts_with("the webhook is set up"));
        assert!(said("o/other").contains("not in the list"));
    }

    #[test]
    fn a_comment_steers_only_in_the_words_of_whoever_sent_it() {
        let comment = |sender: &str, author: &str, body: &str| {
            json!({ "action": "created", "repository": { "full_name": "o/r" }, "sender": { "login": sender },
                "issue": { "number": 7 }, "comment": { "id": 5, "user": { "login": author }, "body": body } })
        };
        let asked = |value: &Value| read(&triggers(), "issue_comment", value);
        assert!(matches!(asked(&comment("Ana", "Ana", "/ralph stop")), Asked::Steer { .. }));
        assert!(matches!(asked(&comment("Ana", "mallory", "/ralph stop")), Asked::Nothing(_)));
        assert!(matches!(asked(&comment("mallory", "mallory", "/ralph stop")), Asked::Nothing(_)));
        assert!(matches!(asked(&comment("Ana", "Ana", "see /ralph stop")), Asked::Nothing(_)));
    }

    #[test]
    fn words_of_comments_are_controls() {
        assert_eq!(
            control_of("/ralph  nudge try the other parser\n"),
            Some(Control::Nudge { text: "try the other parser".into() })
        );
        assert_eq!(control_of("/ralph stop"), Some(Control::Stop));
        for none in ["/ralph", "/ralphstop", "/ralph dance", "/ralph note", "stop"] {
            assert_eq!(control_of(none), None, "{none}");
        }
    }

    #[test]
    fn a_signature_is_of_exactly_this_body() {
        // From the documentation of GitHub.
        let signature = "sha256=757107ea0eb2509fc211221cce984b8a37570b6d7586c22c46f4379c8b043e17";
        assert_eq!(super::signature("It's a Secret to Everybody", b"Hello, World!"), signature);
        assert!(is_signed("It's a Secret to Everybody", signature, b"Hello, World!"));
        assert!(!is_signed("It's a Secret to Everybody", signature, b"Hello, World"));
        assert!(!is_signed("another", signature, b"Hello, World!"));
        for wrong in ["", "sha256=", "sha256=zz", &signature[..70]] {
            assert!(!is_signed("It's a Secret to Everybody", wrong, b"Hello, World!"));
        }
    }

    #[test]
    fn checks_and_reviews_of_anybody_are_news_and_nothing_more() {
        let repository = json!({ "full_name": "o/r" });
        let suite = json!({ "action": "completed", "repository": repository, "sender": { "login": "ci" },
            "check_suite": { "head_branch": "ralph/x", "pull_requests": [{ "number": 9 }] } });
        let places = vec!["o/r#9".to_owned(), "o/r@ralph/x".to_owned()];
        assert_eq!(read(&triggers(), "check_suite", &suite), Asked::News { places });
        let review = json!({ "action": "submitted", "repository": repository, "sender": { "login": "mallory" },
            "pull_request": { "number": 9 }, "review": { "body": "/ralph stop" } });
        assert_eq!(
            read(&triggers(), "pull_request_review", &review),
            Asked::News { places: vec!["o/r#9".into()] }
        );
        let status = json!({ "repository": repository, "branches": [{ "name": "main" }] });
        assert_eq!(read(&triggers(), "status", &status), Asked::News { places: vec!["o/r@main".into()] });
    }
}
