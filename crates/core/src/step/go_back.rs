//! Go back: restores an earlier tree after a read-only session changed files, or after a change made the
//! metric worse.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use ralph_loop_domain::ports::WriteMode;
use ralph_loop_protocol::event::{EventBody, WentBack};
use ralph_loop_protocol::id::{CommitId, TreeId};
use ralph_loop_protocol::stuck::MeasuredNumber;
use std::path::Path;

const NAMES: usize = 5;

impl Driver {
    /// Undoes changes of a session in a read-only role.
    pub(crate) fn undo_reader(&mut self) -> Result<(), DriveError> {
        let Some(before) = self.read_only_from.take() else { return Ok(()) };
        let Some(current) = &self.ctx.state.iterations.current else { return Ok(()) };
        let (iteration, role) = (current.iteration, current.role.map_or("agent", |role| role.as_str()));
        let files = self.go_back(&before)?;
        if files.is_empty() {
            return Ok(());
        }
        let why = format!("the {role} must not change files; its changes were undone: {}", names(&files));
        self.ctx.record(EventBody::WentBack(WentBack {
            iteration,
            tree: before,
            files: files.len(),
            why,
            hint: None,
        }))?;
        Ok(())
    }

    /// Restores `tree` and returns the restored files. The task file, the user's earlier changes and the
    /// engine's files stay.
    pub(crate) fn go_back(&mut self, tree: &TreeId) -> Result<Vec<String>, DriveError> {
        let now = self.workspace.tree()?;
        if now == *tree {
            return Ok(Vec::new());
        }
        let state = &self.ctx.state;
        let dirty = state.baseline.as_ref().map(|b| b.dirty.clone()).unwrap_or_default();
        let source = state.spec.task.source.clone();
        let mut done = Vec::new();
        for change in self.workspace.changes(now.as_str(), tree.as_str())? {
            let path = change.path;
            if path == source || path.starts_with(".ralph/") || dirty.contains(&path) {
                continue;
            }
            // Any tree name works, not only commits.
            let wanted = self.workspace.file_at(&CommitId::new(tree.as_str()), &path)?;
            match wanted {
                Some(bytes) => self.sandbox.write(Path::new(&path), &bytes, WriteMode::Replace)?,
                None => self.sandbox.remove(Path::new(&path))?,
            }
            done.push(path);
        }
        Ok(done)
    }

    /// Restores the files with the best metric if it got worse. Returns whether it did, so that they become
    /// part of this iteration's record.
    pub(crate) fn keep_best(
        &mut self,
        iteration: u32,
        measured: Option<&MeasuredNumber>,
    ) -> Result<bool, DriveError> {
        if !self.ctx.state.spec.settings.keep_best {
            return Ok(false);
        }
        let Some(best) = self.ctx.state.work.best.clone() else { return Ok(false) };
        let shown = |thousandths: i64| thousandths as f64 / 1000.0;
        let worse = measured.is_none_or(|now| best.gain(now.value, now.noise) < 0);
        if !worse {
            return Ok(false);
        }
        let files = self.go_back(&best.tree)?;
        if files.is_empty() {
            return Ok(false);
        }
        let measured = measured.map_or_else(|| "nothing".to_owned(), |now| shown(now.value).to_string());
        let when = match best.iteration {
            0 => "at the start".to_owned(),
            iteration => format!("iteration {iteration}"),
        };
        let why = format!(
            "`{}` measures {measured}, and {} was the best ({when}): the files of then are back",
            best.label,
            shown(best.value),
        );
        let hint = format!(
            "The last change was taken back: {why}. Changed then: {}. Try something else.",
            names(&files)
        );
        let news = WentBack { iteration, tree: best.tree, files: files.len(), why, hint: Some(hint) };
        self.ctx.record(EventBody::WentBack(news))?;
        Ok(true)
    }
}

fn names(files: &[String]) -> String {
    let shown: Vec<String> = files.iter().take(NAMES).map(|name| format!("`{name}`")).collect();
    let more = if files.len() > shown.len() { ", …" } else { "" };
    format!("{}{more}", shown.join(", "))
}
