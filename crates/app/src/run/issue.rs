//! Creates a task file from an issue, in the folder's `.ralph/`.

use crate::environment::Environment;
use crate::error::AppError;
use crate::report::{Notice, Reporter};
use crate::start::handover;
use crate::trust::pinned::{Pinned, PinnedTask, issue_digest};
use ralph_loop_git::Repo;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_task::config::ConfigFile;
use ralph_loop_task::dialect::names;
use std::path::{Path, PathBuf};

/// An issue that a run works on.
pub struct Issue {
    pub number: u64,
    title: String,
    /// The task file, relative to the run's folder.
    pub file: PathBuf,
}

impl Issue {
    /// The branch name for a run on it.
    pub fn branch(&self) -> String {
        names::branch(&format!("issue-{}", self.number), &names::slug(&self.title))
    }
}

/// Fetches the issue and writes the task file. If its text was approved, that text counts.
pub fn fetch(
    env: &Environment,
    (named, pinned): (&str, Option<&Pinned>),
    origin: &Repo,
    config: &ConfigFile,
    report: &dyn Reporter,
) -> Result<Issue, AppError> {
    let settings = config.clone().resolve();
    let own = handover::remote_url(origin, &settings.handover.remote);
    let (number, url) = match named.trim_start_matches('#').parse::<u64>() {
        Ok(number) => (number, own),
        Err(_) => match ralph_loop_forge::parse_issue_url(named) {
            Some(place) => {
                let repo = place.repo;
                (place.number, Some(format!("https://{}/{}/{}", repo.host, repo.owner, repo.name)))
            }
            None => {
                return Err(AppError::usage(format!("`{named}` names no issue"))
                    .hint("give its address (`https://github.com/OWNER/REPO/issues/7`) or its number"));
            }
        },
    };
    let local = handover::local_folder(&settings, &origin.top);
    let Some(forge) = handover::forge(env, url.as_deref(), local.as_deref())? else {
        return Err(AppError::environment("no code host found, so the issue can't be read")
            .hint("GitHub is known by its remote and `GITHUB_TOKEN`"));
    };
    let mut issue = forge.issue(number)?;
    if issue.closed {
        return Err(AppError::usage(format!("issue {number} is closed: {}", issue.title))
            .hint("open it again, or name another one"));
    }
    // The issue could have been edited since it was approved; the approver can pin the text.
    let read = env.vars().filled("RALPH_ISSUE_SHA256");
    let now = issue_digest(&issue.title, &issue.body);
    if read.is_some_and(|read| !read.trim().eq_ignore_ascii_case(now.as_str())) {
        return Err(AppError::needs_person(format!("issue {number} was edited after it was allowed"))
            .cause("Its text is not the one that RALPH_ISSUE_SHA256 names.")
            .hint("read the issue again, then remove and add the label"));
    }
    let mut origin_line = format!("from {}", issue.url);
    if let Some(Pinned { by, at, task: PinnedTask::Issue { title, body } }) = pinned {
        origin_line.push_str(&format!(", as {by} approved it at {at}"));
        if now != issue_digest(title, body) {
            origin_line.push_str("; it was edited since");
            report.notice(&Notice::EditedSince { issue: number, by });
        }
        (issue.title, issue.body) = (title.clone(), body.clone());
    }
    let body = issue.body.replace("\r\n", "\n");
    // An issue may contain a complete task file; otherwise its text is the task.
    let text = match body.trim_start().starts_with("---\n") {
        true => body.trim_start().to_owned(),
        false => format!("# {}\n\n{}\n\n({origin_line})\n", issue.title.trim(), body.trim()),
    };
    let file = format!("issues/{number}.md");
    RalphDir::of(&origin.top).write(&file, text.as_bytes())?;
    Ok(Issue { number, title: issue.title, file: Path::new(".ralph").join(file) })
}
