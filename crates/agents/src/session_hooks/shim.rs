//! The line that a CLI starts for an event.

use super::HookPlace;
use serde_json::json;

/// Seconds that the guard may take, below the time-out at which the CLIs let a tool through.
const SECONDS: u32 = 8;

/// `'/path/to/ralph' hook EVENT --for CLI`, as a shell reads it.
///
/// Every CLI lets a tool through where the hook's program is missing, crashes or takes too long. So the guard's own line says no in
/// these cases; what goes wrong with the other events is in nobody's way.
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

/// What is said where the guard does not answer, in the words of the CLI.
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

    /// What the line prints where the program is this script.
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
    fn a_guard_that_is_missing_or_broken_says_no() {
        use std::os::unix::fs::PermissionsExt as _;
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("it's ralph");
        let gone = printed(&program, "pre-tool-use", "claude");
        assert!(gone.contains(r#""permissionDecision":"deny""#), "{gone}");
        assert!(printed(&program, "pre-tool-use", "gemini").contains(r#"{"decision":"deny""#));
        assert_eq!(printed(&program, "stop", "claude"), "", "the others are in nobody's way");
        for (script, says) in [("exit 0", ""), ("echo \"$1 $2 $4\"", "hook pre-tool-use qwen\n")] {
            std::fs::write(&program, format!("#!/bin/sh\n{script}\n")).unwrap();
            std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o700)).unwrap();
            assert_eq!(printed(&program, "pre-tool-use", "qwen"), says);
        }
        std::fs::write(&program, "#!/bin/sh\nkill -9 $$\n").unwrap();
        assert!(printed(&program, "pre-tool-use", "codex").contains("could not be asked"));
    }
}
