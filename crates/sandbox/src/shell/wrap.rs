//! Starts a command in its folder.

use ralph_loop_domain::ports::{ExecRequest, SandboxError};
use std::path::Path;

/// Enters the folder, checks that it is inside, looks for the program, and becomes it. Failures before that are
/// printed on standard error after the command's secret mark.
const START: &str = r#"m=$1 r=$2 d=$3; shift 3
cd "$r/$d" 2>/dev/null || { printf '%s folder' "$m" >&2; exit 126; }
case "$(pwd -P)/" in "$r"/*) ;; *) printf '%s outside' "$m" >&2; exit 126;; esac
command -v "$1" >/dev/null 2>&1 || { printf '%s program' "$m" >&2; exit 127; }
exec "$@""#;

/// The full command line for `request`.
pub(crate) fn argv(root: &Path, request: &ExecRequest, mark: &str) -> Result<Vec<String>, SandboxError> {
    let program = request.argv.first().cloned().unwrap_or_default();
    let cannot =
        |reason: &str| SandboxError::CannotStart { program: program.clone(), reason: reason.to_owned() };
    if request.argv.is_empty() {
        return Err(cannot("the command is empty"));
    }
    if request.argv.iter().any(|text| text.contains('\0')) {
        return Err(cannot("an argument contains a NUL byte"));
    }
    for (name, value) in &request.env {
        if name.is_empty() || name.contains(['=', '\0']) || value.contains('\0') {
            return Err(cannot(&format!("`{name}` is not a variable it could get")));
        }
    }
    let folder = super::files::inside(&request.cwd)?;
    let root = root.to_str().ok_or_else(|| SandboxError::OutsideWorkspace(root.to_owned()))?;
    let mut argv: Vec<String> = ["sh", "-c", START, "sh", mark, root, &folder].map(String::from).to_vec();
    argv.extend(request.argv.iter().cloned());
    Ok(argv)
}

/// Why a command never started; `None` if it did, and `stderr` is its own.
pub(crate) fn refused(request: &ExecRequest, mark: &str, stderr: &[u8]) -> Option<SandboxError> {
    let word = stderr.strip_prefix(mark.as_bytes())?.trim_ascii();
    let program = request.argv.first().cloned().unwrap_or_default();
    let reason = match word {
        b"outside" => return Some(SandboxError::OutsideWorkspace(request.cwd.clone())),
        b"folder" => format!("its folder `{}` cannot be entered", request.cwd.display()),
        _ => "there is no such program inside the sandbox".to_owned(),
    };
    Some(SandboxError::CannotStart { program, reason })
}

/// Whether these bytes may be the start of a refusal and must be held back.
pub(crate) fn may_be_refusal(mark: &str, stderr: &[u8]) -> bool {
    let mark = mark.as_bytes();
    let length = mark.len().min(stderr.len());
    stderr.get(..length) == mark.get(..length)
}
