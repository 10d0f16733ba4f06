//! Checkpoint: records the tree, commits it on the work ref, stores the diff, and detects moved refs and
//! changed protected paths.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::handover::text;
use ralph_loop_domain::ports::CheckpointRequest;
use ralph_loop_domain::text::change_text::without_skip_marks;
use ralph_loop_protocol::event::{EventBody, FileChange};
use std::path::Path;

/// Files named in the journal; the commit has them all.
const FILES_MAX: usize = 200;
/// Size limit of `git_diff.patch`.
const PATCH_MAX: usize = 1024 * 1024;

impl Driver {
    pub(crate) fn checkpoint(&mut self) -> Result<(), DriveError> {
        self.ctx.boundary("checkpoint.before");
        let Some(current) = &self.ctx.state.iterations.current else { return Ok(()) };
        let (iteration, agent) = (current.iteration, current.agent.clone());
        let wanted = current.session.as_ref().and_then(|s| s.commit_message.clone());
        let again = current.change.is_some();
        let before = self.ctx.state.work.tree.clone();
        self.undo_reader()?;
        if let Some(what) = self.workspace.damage() {
            self.ctx.record(EventBody::Tampered { what })?;
            return Ok(());
        }
        // Check refs first: our own commit must not hide what the agent moved.
        let moves = self.workspace.moved_refs()?;
        if !moves.is_empty() {
            self.ctx.record(EventBody::RefsMoved { moves, left_out: 0 })?;
        }
        let mut message = text::commit_message(&self.ctx.state, iteration, agent.as_str())
            .map(|text| without_trailers(&text))
            .unwrap_or_default();
        if let Some(wanted) = wanted {
            let wanted = without_skip_marks(&wanted);
            message = match self.ctx.state.spec.settings.handover.commit_template {
                Some(_) => format!("{message}\n\n{}", without_trailers(&wanted)),
                // The agent wrote this message for exactly this commit.
                None => without_trailers(&wanted),
            };
        }
        let message = self.ctx.redact_for_display(&message);
        let cut = self.ctx.state.was_cut();
        let kept_out = cut && self.ctx.state.spec.hands_back();
        let on_branch =
            self.ctx.state.spec.commits_on_branch() && self.ctx.state.people.alarm.is_none() && !kept_out;
        let checkpoint = self.workspace.checkpoint(&CheckpointRequest {
            iteration,
            agent: &agent,
            message: &message,
            at: self.ctx.clock.now(),
            on_branch,
            redactor: Some(&self.ctx.redactor),
        })?;
        self.ctx.boundary("checkpoint.committed");
        match kept_out {
            true => self.push_refs_to_user_repo()?,
            false => self.hand_back(checkpoint.commit.clone())?,
        }
        let patch = match (&before, &checkpoint.commit) {
            (Some(before), Some(_)) => {
                self.workspace.patch(before.as_str(), checkpoint.tree.as_str(), PATCH_MAX)?
            }
            _ => Vec::new(),
        };
        let folder = self.ctx.iteration_dir(iteration)?;
        let path = folder.join("git_diff.patch");
        let mut whole = match again {
            // Recorded again with the engine's own marks.
            true => std::fs::read(&path).unwrap_or_default(),
            false => Vec::new(),
        };
        whole.extend_from_slice(&self.ctx.redactor.bytes(&patch));
        self.ctx.files.write(&path, &whole)?;
        let in_submodules = if again { Vec::new() } else { self.edits_in_submodules(iteration)? };
        let outside = if again { Vec::new() } else { self.outside_working_dir(&checkpoint.files) };
        let sum = |of: fn(&FileChange) -> Option<u64>| checkpoint.files.iter().filter_map(of).sum();
        let (added, removed) = (sum(|f| f.added), sum(|f| f.removed));
        let files_total = checkpoint.files.len();
        let mut files = checkpoint.files;
        files.truncate(FILES_MAX);
        self.ctx.boundary("checkpoint.kept");
        self.ctx.record(EventBody::Checkpointed {
            iteration,
            tree: checkpoint.tree,
            commit: checkpoint.commit,
            files,
            files_total,
            added,
            removed,
            dirty_touched: checkpoint.dirty_touched,
            in_submodules,
            again,
        })?;
        if kept_out && files_total > 0 {
            let run = self.ctx.state.spec.run_id.clone();
            self.ctx.notice(format!(
                "what the cut session had written is kept, and not put into your folder: `ralph diff {run}` shows it"
            ))?;
        }
        if let Some(folder) = self.ctx.state.spec.task.working_dir.clone().filter(|_| !outside.is_empty()) {
            let names: Vec<String> = outside.iter().take(5).map(|name| format!("`{name}`")).collect();
            let more = if outside.len() > names.len() { ", …" } else { "" };
            let told = format!("edits outside `{folder}`: {}{more}", names.join(", "));
            self.ctx.error_entry(
                &format!("iteration {iteration}: {told}"),
                "the task is about that folder alone",
            );
            self.ctx.notice(told)?;
        }
        let changes = self.take_claims(iteration, checkpoint.protected)?;
        if !changes.is_empty() {
            // The next prompt quotes the errors, so the agent learns what to restore.
            let mut list: Vec<String> =
                changes.iter().take(FILES_MAX).map(|c| format!("{} {}", c.path, c.change.as_str())).collect();
            if changes.len() > list.len() {
                list.push(format!("… and {} more", changes.len() - list.len()));
            }
            self.ctx
                .error_entry(&format!("iteration {iteration}: protected paths changed"), &list.join("\n"));
            self.ctx.record(EventBody::ProtectedChanged { iteration, changes, left_out: 0 })?;
        }
        self.ctx.boundary("checkpoint.after");
        Ok(())
    }
}

impl Driver {
    /// Files the session wrote in submodules. They aren't recorded, so the next session is informed as well.
    fn edits_in_submodules(&mut self, iteration: u32) -> Result<Vec<String>, DriveError> {
        let Some(before) = self.submodules_before.take() else { return Ok(Vec::new()) };
        let now = self.workspace.submodule_files()?;
        let mut edited: Vec<String> = now
            .iter()
            .filter(|(path, stamp)| before.get(*path) != Some(*stamp))
            .map(|(path, _)| path.clone())
            .collect();
        edited.extend(before.into_keys().filter(|path| !now.contains_key(path)));
        edited.truncate(FILES_MAX);
        if !edited.is_empty() {
            self.ctx.error_entry(
                &format!("iteration {iteration}: edits in a submodule are not part of the result"),
                &format!(
                    "a submodule is another repository, so its changes don't count: {}",
                    edited.join(", ")
                ),
            );
        }
        Ok(edited)
    }

    /// Changes outside the session's folder.
    fn outside_working_dir(&self, files: &[FileChange]) -> Vec<String> {
        let task = &self.ctx.state.spec.task;
        let Some(folder) = &task.working_dir else { return Vec::new() };
        let own = |path: &str| {
            Path::new(path).starts_with(folder) || path.starts_with(".ralph/") || path == task.source
        };
        files.iter().filter(|file| !own(&file.path)).map(|file| file.path.clone()).collect()
    }
}

/// An agent's commit message without lines that look like the engine's trailers.
fn without_trailers(message: &str) -> String {
    let lines: Vec<&str> = message
        .trim()
        .lines()
        .filter(|line| !line.trim_start().to_ascii_lowercase().starts_with("ralph-"))
        .collect();
    lines.join("\n")
}
