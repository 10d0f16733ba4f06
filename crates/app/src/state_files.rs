//! The state files of a workspace: what lasts from session to session beside the code. Written from templates where they
//! are missing; one that is there is never touched.

use crate::error::AppError;
use ralph_journal::layout::RalphDir;
use std::fs::OpenOptions;
use std::io::{ErrorKind, Write as _};

/// Name and template of each file. `errors.log` and `activity.log` begin with their first line.
const FILES: &[(&str, &str)] = &[
    ("guardrails.md", include_str!("templates/state/guardrails.md")),
    ("progress.md", include_str!("templates/state/progress.md")),
    ("notes.md", include_str!("templates/state/notes.md")),
    ("diagnostics.md", include_str!("templates/state/diagnostics.md")),
];

/// Writes the files that are missing from `.ralph/` and returns their names.
pub fn write_missing(dir: &RalphDir) -> Result<Vec<&'static str>, AppError> {
    std::fs::create_dir_all(dir.path()).map_err(|e| {
        AppError::environment(format!("cannot make the folder `{}`: {e}", dir.path().display()))
    })?;
    let mut written = Vec::new();
    for (name, text) in FILES {
        let path = dir.join(name);
        // `create_new` also refuses to write through a link that an agent may have left there.
        match OpenOptions::new().write(true).create_new(true).open(&path) {
            Ok(mut file) => {
                file.write_all(text.as_bytes())
                    .map_err(|e| AppError::environment(format!("cannot write `{}`: {e}", path.display())))?;
                written.push(*name);
            }
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => {
                return Err(AppError::environment(format!("cannot write `{}`: {e}", path.display())));
            }
        }
    }
    Ok(written)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn missing_files_are_written_and_the_others_left_alone() {
        let folder = tempfile::tempdir().unwrap();
        let dir = RalphDir::of(folder.path());
        std::fs::create_dir(dir.path()).unwrap();
        std::fs::write(dir.join("notes.md"), "mine").unwrap();
        assert_eq!(write_missing(&dir).unwrap(), ["guardrails.md", "progress.md", "diagnostics.md"]);
        assert_eq!(std::fs::read_to_string(dir.join("notes.md")).unwrap(), "mine");
        assert!(write_missing(&dir).unwrap().is_empty());
        let rules = std::fs::read_to_string(dir.join("guardrails.md")).unwrap();
        let starters = rules.lines().filter(|line| line.starts_with("### guardrail: ")).count();
        assert_eq!(starters, 3);
        for part in ["- trigger: ", "- instruction: ", "- added_after: ", "- evidence: "] {
            assert_eq!(rules.lines().filter(|line| line.starts_with(part)).count(), 3, "{part}");
        }
    }
}
