//! State files of a workspace, which persist between sessions. Missing ones are written from templates;
//! existing ones aren't touched.

use crate::error::AppError;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_safe_fs::SafeDir;
use std::io::ErrorKind;
use std::path::Path;

/// Name and template of each file. `errors.log` and `activity.log` start with their first line.
const FILES: &[(&str, &str)] = &[
    ("guardrails.md", include_str!("../templates/state/guardrails.md")),
    ("progress.md", include_str!("../templates/state/progress.md")),
    ("notes.md", include_str!("../templates/state/notes.md")),
    ("diagnostics.md", include_str!("../templates/state/diagnostics.md")),
];

/// Writes the missing files of `.ralph/` and returns their names.
pub fn write_missing(dir: &RalphDir) -> Result<Vec<&'static str>, AppError> {
    let top = dir.path().parent().unwrap_or(Path::new("/"));
    let name = dir.path().file_name().unwrap_or_default();
    let folder = SafeDir::open(top).and_then(|top| top.create_folder(name)).map_err(|e| {
        let error = AppError::environment(format!("cannot make the folder `{}`: {e}", dir.path().display()));
        match std::fs::symlink_metadata(dir.path()) {
            Ok(_) => error.hint("links aren't followed there: replace it with a real folder, or remove it"),
            Err(_) => error,
        }
    })?;
    let mut written = Vec::new();
    for (name, text) in FILES {
        match folder.write_new(name, text.as_bytes()) {
            Ok(()) => written.push(*name),
            Err(e) if e.kind() == ErrorKind::AlreadyExists => {}
            Err(e) => {
                let path = dir.join(name);
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
