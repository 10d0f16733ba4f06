//! What hooks remember of a session between events: alerts given, blocks in a row.

use crate::HookContext;
use crate::input::HookInput;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Memory {
    /// The highest context alert so far, in percent.
    pub alerted: u8,
    /// Blocks in a row.
    pub blocks: u32,
    pub reason: String,
}

const MEMORY_MAX: u64 = 64 * 1024;

pub(crate) fn recall(input: &HookInput, context: &HookContext) -> Memory {
    let Some(path) = file(input, context) else { return Memory::default() };
    let bytes = ralph_loop_safe_fs::read_plain(path, MEMORY_MAX).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Saves the memory; false if that fails.
pub(crate) fn remember(input: &HookInput, context: &HookContext, memory: &Memory) -> bool {
    let Some(path) = file(input, context) else { return false };
    let Some(folder) = path.parent() else { return false };
    let text = serde_json::to_vec(memory).unwrap_or_default();
    std::fs::create_dir_all(folder).is_ok() && {
        // Two hooks of one session may end at the same time; each writes a complete file.
        let partial = path.with_extension(format!("{}.tmp", std::process::id()));
        std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, &path)).is_ok()
    }
}

pub(crate) fn forget(input: &HookInput, context: &HookContext) {
    if let Some(path) = file(input, context) {
        let _ = std::fs::remove_file(path);
    }
}

/// One file per session, in the plugin's own folder or the user's state.
fn file(input: &HookInput, context: &HookContext) -> Option<PathBuf> {
    let id = input.session_id.as_str();
    let plain = !id.is_empty()
        && id.len() <= 80
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if !plain {
        return None;
    }
    let absolute =
        |name: &str| context.vars.filled(name).filter(|path| path.starts_with('/')).map(PathBuf::from);
    let state = || {
        absolute("XDG_STATE_HOME")
            .or_else(|| Some(context.vars.home()?.join(".local/state")))
            .map(|base| base.join("ralph/hooks"))
    };
    let folder = absolute("CLAUDE_PLUGIN_DATA").or_else(state)?;
    Some(folder.join("sessions").join(format!("{id}.json")))
}
