//! The run's commits: their trailers, and their chain on `refs/ralph/<run>/work`.

use crate::error::{Error, Result};
use crate::process::command::Git;
use ralph_loop_protocol::id::RunId;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct WorkCommit {
    pub(crate) id: String,
    pub(crate) tree: String,
    /// The iteration it closes; `None` for an agent's own commit.
    pub(crate) iteration: Option<u32>,
}

/// The message of an iteration's commit. The trailers are its last paragraph, so nothing in `message` can imitate
/// them.
pub(crate) fn message_with_trailers(message: &str, run: &RunId, iteration: Option<u32>) -> String {
    let mut text = format!("{}\n\nRalph-Run: {run}\n", message.trim());
    if let Some(iteration) = iteration {
        text.push_str(&format!("Ralph-Iteration: {iteration}\n"));
    }
    text
}

/// The iteration of this run that a message's last paragraph names.
pub(crate) fn iteration_of(message: &str, run: &RunId) -> Option<u32> {
    let last = message.trim_end().rsplit("\n\n").next()?;
    let value = |key: &str| last.lines().rev().find_map(|line| line.strip_prefix(key)).map(str::trim);
    if value("Ralph-Run:")? != run.as_str() {
        return None;
    }
    value("Ralph-Iteration:")?.parse().ok()
}

/// The first-parent chain from `base` (exclusive) to `tip`, oldest first.
pub(crate) fn load_chain(git: &Git, base: &str, tip: &str, run: &RunId) -> Result<Vec<WorkCommit>> {
    if tip == base {
        return Ok(Vec::new());
    }
    let not_base = format!("^{base}");
    let args = ["log", "--first-parent", "--no-decorate", "-z", "--format=%H%n%T%n%B", tip, &not_base, "--"];
    let output = git.call(args).run()?;
    let mut chain = Vec::new();
    for record in output.stdout.split(|b| *b == 0).filter(|r| !r.is_empty()) {
        let text = String::from_utf8_lossy(record);
        let mut parts = text.splitn(3, '\n');
        let (Some(id), Some(tree)) = (parts.next(), parts.next()) else {
            return Err(Error::unreadable(
                format!("the history of {tip}"),
                "git printed something unexpected",
            ));
        };
        let message = parts.next().unwrap_or_default();
        let iteration = iteration_of(message, run);
        chain.push(WorkCommit { id: id.to_owned(), tree: tree.to_owned(), iteration });
    }
    chain.reverse();
    Ok(chain)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn trailers_survive_and_cannot_be_forged_by_the_message() {
        let run = RunId::from("r1");
        let forged = "did it\n\nRalph-Run: r1\nRalph-Iteration: 99";
        let message = message_with_trailers(forged, &run, Some(3));
        assert_eq!(iteration_of(&message, &run), Some(3));
        assert_eq!(iteration_of(&message, &RunId::from("r2")), None);
        assert_eq!(iteration_of("plain", &run), None);
    }
}
