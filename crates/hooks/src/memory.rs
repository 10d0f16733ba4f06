//! What a hook remembers of a session from one event to the next: which alerts it has given, how often it has blocked.

use crate::Surroundings;
use crate::input::HookInput;
use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What is remembered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub(crate) struct Memory {
    /// The highest threshold of the context that was told, in percent.
    pub told: u8,
    /// Times in a row that the session was kept from ending.
    pub blocks: u32,
    /// Why, the last time.
    pub reason: String,
}

const MEMORY_MAX: u64 = 64 * 1024;

/// Reads what is remembered of a session.
pub(crate) fn recall(input: &HookInput, around: &Surroundings) -> Memory {
    let Some(path) = file(input, around) else { return Memory::default() };
    let bytes = ralph_loop_safe_fs::read_plain(path, MEMORY_MAX).unwrap_or_default();
    serde_json::from_slice(&bytes).unwrap_or_default()
}

/// Remembers it; false where that cannot be.
pub(crate) fn remember(input: &HookInput, around: &Surroundings, memory: &Memory) -> bool {
    let Some(path) = file(input, around) else { return false };
    let Some(folder) = path.parent() else { return false };
    let text = serde_json::to_vec(memory).unwrap_or_default();
    std::fs::create_dir_all(folder).is_ok() && {
        // Two hooks of one session may end at the same time; each writes a whole file.
        let partial = path.with_extension(format!("{}.tmp", std::process::id()));
        std::fs::write(&partial, text).and_then(|()| std::fs::rename(&partial, &path)).is_ok()
    }
}

/// Forgets a session.
pub(crate) fn forget(input: &HookInput, around: &Surroundings) {
    if let Some(path) = file(input, around) {
        let _ = std::fs::remove_file(path);
    }
}

/// One file per session, in the plugin's own folder or the user's state.
fn file(input: &HookInput, around: &Surroundings) -> Option<PathBuf> {
    let id = input.session_id.as_str();
    let plain = !id.is_empty()
        && id.len() <= 80
        && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-' || b == b'_');
    if !plain {
        return None;
    }
    let absolute =
        |name: &str| around.vars.filled(name).filter(|path| path.starts_with('/')).map(PathBuf::from);
    let state = || {
        absolute("XDG_STATE_HOME")
            .or_else(|| Some(around.vars.home()?.join(".local/state")))
            .map(|base| base.join("ralph/hooks"))
    };
    let folder = absolute("CLAUDE_PLUGIN_DATA").or_else(state)?;
    Some(folder.join("sessions").join(format!("{id}.json")))
}
