//! The command line that a CLI runs for an event.

use super::HookPlace;
use serde_json::json;

/// Time limit of the guard, below the timeout at which the CLIs let a tool through.
const SECONDS: u32 = 8;

/// `'/path/to/ralph' hook EVENT --for CLI`, for a shell.
///
/// Every CLI lets a tool through if the hook's program is missing, crashes or is too slow. So the guard's command
/// line itself refuses then; failures of other events block nothing.
pub(super) fn command(place: &HookPlace<'_>, event: &str, cli: &str) -> String {
    let program = quoted(&place.program.display().to_string());
    let asked = format!("{program} hook {event} --for {cli}");
    if event != "pre-tool-use" {
        return asked;
    }
    let no = quoted(&refusal(cli));
    format!(
        r#"set --; command -v timeout >/dev/null 2>&1 && set -- timeout -k 1 {SECONDS}; "$@" {asked} || printf '%s\n' {no}"#
    )
}

/// The refusal if the guard doesn't answer, in the CLI's format.
fn refusal(cli: &str) -> String {
    let reason =
        "Refused: ralph's guard could not be asked, and no tool is used without it. End the session.";
    match cli {
        "gemini" => json!({"decision": "deny", "reason": reason}),
        _ => json!({"hookSpecificOutput": {
            "hookEventName": "PreToolUse", "permissionDecision": "deny", "permissionDecisionReason": reason,
        }}),
    }
    .to_string()
}

fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;
    use std::process::{Command, Stdio};

    /// The command line's output if the program is this script.
    #[allow(clippy::disallowed_methods, reason = "a test starts what a CLI would start")]
    fn printed(program: &Path, event: &str, cli: &str) -> String {
        let place = HookPlace {
            program,
            folder: Path::new("/r"),
            sandboxed: false,
            argv: &[],
            var: &|_| None,
            read: &|_| None,
            names: &|_| Vec::new(),
        };
        let out = Command::new("sh")
            .args(["-c", &command(&place, event, cli)])
            .stdin(Stdio::null())
            .stderr(Stdio::null())
            .output()
            .unwrap();
        String::from_utf8(out.stdout).unwrap()
    }

    #[test]
    fn missing_or_broken_guard_refuses() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("it's ralph");
        let gone = printed(&program, "pre-tool-use", "claude");
        assert!(gone.contains(r#""permissionDecision":"deny""#), "{gone}");
        assert!(printed(&program, "pre-tool-use", "gemini").contains(r#"{"decision":"deny""#));
        assert_eq!(printed(&program, "stop", "claude"), "", "the other events print nothing");
        for (script, says) in [("exit 0", ""), ("echo \"$1 $2 $4\"", "hook pre-tool-use qwen\n")] {
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
            assert_eq!(printed(&program, "pre-tool-use", "qwen"), says);
        }
        std::fs::write(&program, "#!/bin/sh\nkill -9 $$\n").unwrap();
        assert!(printed(&program, "pre-tool-use", "codex").contains("could not be asked"));
    }
}
