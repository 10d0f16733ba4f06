//! Unified diffs of one file that apply exactly or not at all.
//!
//! Exact means: every line that a hunk shows as old stands in the file, byte for byte and in one piece. Models count lines
//! badly, so the numbers of a hunk only choose between several places that fit; where its lines stand in one place
//! only, that is the place. Nothing is ever guessed: no fuzz, no whitespace that may differ, no line left out.

mod apply;
mod parse;

use std::path::Path;

/// Largest diff that is read.
const PATCH_MAX: usize = 4 * 1024 * 1024;
/// Largest file that is patched.
const FILE_MAX: usize = 32 * 1024 * 1024;

/// What a diff makes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Patched {
    /// Its new content, and how many hunks made it.
    Content(Vec<u8>, usize),
    /// It goes.
    Removed,
}

/// Why a diff does not apply. The file is as it was.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum PatchError {
    /// It is no unified diff.
    #[error("line {line} of the patch: {what}")]
    Format {
        /// From 1.
        line: usize,
        /// What is wrong.
        what: String,
    },
    /// It has no hunk.
    #[error("the patch has no hunk: expected a unified diff with `@@` lines")]
    NoHunk,
    /// It is too large.
    #[error("{0} is larger than can be patched")]
    TooLarge(&'static str),
    /// It is about another file.
    #[error("the patch is about `{found}`, but the action's path is `{path}`; one action patches one file")]
    OtherFile {
        /// The name in the patch.
        found: String,
        /// The action's path.
        path: String,
    },
    /// It makes a file that is there.
    #[error("the patch makes a new file, but `{0}` is there already")]
    Exists(String),
    /// Its file is missing.
    #[error("there is no `{0}` to patch; a new file needs `--- /dev/null`")]
    Missing(String),
    /// A hunk fits nowhere.
    #[error("hunk {hunk} does not fit: {what}")]
    Hunk {
        /// From 1.
        hunk: usize,
        /// Why not.
        what: String,
    },
    /// It says that the file goes, but leaves something.
    #[error("the patch removes `{0}`, but does not show all of its lines")]
    NotAllRemoved(String),
}

/// What `patch` makes of the file `path` with this content; `None` where there is no such file.
pub fn apply(path: &Path, patch: &str, content: Option<&[u8]>) -> Result<Patched, PatchError> {
    let name = path.to_string_lossy().into_owned();
    if patch.len() > PATCH_MAX {
        return Err(PatchError::TooLarge("the patch"));
    }
    if content.is_some_and(|content| content.len() > FILE_MAX) {
        return Err(PatchError::TooLarge("the file"));
    }
    // A diff that came with carriage returns throughout means its text, not them.
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
