//! Unified diffs of one file that apply exactly or not at all.
//!
//! Exactly means that all old lines of a hunk are in the file, byte for byte and contiguous. Models count lines
//! badly, so a hunk's numbers only choose between several matches; a single match is used wherever it is. Nothing is
//! guessed: no fuzz, no ignored whitespace, no skipped line.

mod apply;
mod parse;

use std::path::Path;

const PATCH_MAX: usize = 4 * 1024 * 1024;
const FILE_MAX: usize = 32 * 1024 * 1024;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Patched {
    /// Its new content, and the number of hunks.
    Content(Vec<u8>, usize),
    /// It is removed.
    Removed,
}

/// Why a diff doesn't apply. The file is unchanged.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    #[error("line {line} of the patch: {what}")]
    Format { line: usize, what: String },
    #[error("the patch has no hunk: expected a unified diff with `@@` lines")]
    NoHunk,
    #[error("{0} is larger than can be patched")]
    TooLarge(&'static str),
    #[error("the patch is about `{found}`, but the action's path is `{path}`; one action patches one file")]
    OtherFile { found: String, path: String },
    /// It creates a file that exists.
    #[error("the patch creates a file, but `{0}` already exists")]
    Exists(String),
    #[error("there is no `{0}` to patch; a new file needs `--- /dev/null`")]
    Missing(String),
    #[error("hunk {hunk} does not fit: {what}")]
    Hunk { hunk: usize, what: String },
    /// It removes the file, but leaves content.
    #[error("the patch removes `{0}`, but does not show all of its lines")]
    NotAllRemoved(String),
}

/// What `patch` makes of the file `path` with this content; `None` for a missing file.
pub fn apply(path: &Path, patch: &str, content: Option<&[u8]>) -> Result<Patched, PatchError> {
    let name = path.to_string_lossy().into_owned();
    if patch.len() > PATCH_MAX {
        return Err(PatchError::TooLarge("the patch"));
    }
    if content.is_some_and(|content| content.len() > FILE_MAX) {
        return Err(PatchError::TooLarge("the file"));
    }
    // A diff with carriage returns throughout means its text without them.
    let whole_crlf = patch.lines().count() > 1
        && patch.split_inclusive('\n').all(|line| line.ends_with("\r\n") || !line.ends_with('\n'));
    let plain;
    let patch = if whole_crlf {
        plain = patch.replace("\r\n", "\n");
        plain.as_str()
    } else {
        patch
    };
    let diff = parse::parse(patch, &name)?;
    match (content, diff.makes) {
        (Some(content), true) if !content.is_empty() => return Err(PatchError::Exists(name)),
        (None, false) if !diff.hunks.iter().all(|hunk| hunk.old.is_empty() && hunk.at == Some(0)) => {
            return Err(PatchError::Missing(name));
        }
        _ => {}
    }
    let new = apply::content(content.unwrap_or_default(), &diff.hunks)?;
    match (diff.removes, new.is_empty()) {
        (true, true) => Ok(Patched::Removed),
        (true, false) => Err(PatchError::NotAllRemoved(name)),
        (false, _) => Ok(Patched::Content(new, diff.hunks.len())),
    }
}

#[cfg(test)]
mod tests;
