//! Describes tool uses in one line: "editing src/router.rs", "running `cargo test`".

use crate::scan::fold;
use serde_json::Value;
use std::path::Path;

/// What a tool use does, for any CLI's tool names.
pub(crate) fn describe(name: &str, input: &Value, root: &Path) -> String {
    let path = || field(input, &["file_path", "path", "absolute_path", "notebook_path", "filePath"]);
    let shown = |verb: &str, what: Option<&str>| match what {
        Some(what) => format!("{verb} {}", relative(what, root)),
        None => format!("{verb} files"),
    };
    match fold(name).as_str() {
        "write" | "edit" | "multiedit" | "notebookedit" | "write_file" | "replace" | "edit_file"
        | "apply_patch" => shown("editing", path()),
        "read" | "read_file" | "read_many_files" => shown("reading", path()),
        "bash" | "shell" | "run_shell_command" | "exec_command" => match field(input, &["command", "cmd"]) {
            Some(command) => format!("running `{command}`"),
            None => "running a command".into(),
        },
        "grep" | "glob" | "grep_search" | "search_file_content" | "search" => {
            match field(input, &["pattern", "query"]) {
                Some(pattern) => format!("searching for `{pattern}`"),
                None => "searching".into(),
            }
        }
        "ls" | "list_directory" => shown("listing", path().or_else(|| field(input, &["dir_path"]))),
        "webfetch" | "web_fetch" => {
            format!("fetching {}", field(input, &["url", "prompt"]).unwrap_or("a page"))
        }
        "websearch" | "web_search" | "google_web_search" => {
            format!("searching the web for {}", field(input, &["query"]).unwrap_or("something"))
        }
        "task" | "agent" => {
            format!("asking a helper: {}", field(input, &["description"]).unwrap_or("a subtask"))
        }
        "todowrite" | "todo_write" | "write_todos" | "taskcreate" | "taskupdate" => "planning".into(),
        _ => format!("using {name}"),
    }
}

/// Whether a tool is read-only.
pub(crate) fn only_looks(name: &str) -> bool {
    matches!(
        fold(name).as_str(),
        "read"
            | "grep"
            | "glob"
            | "ls"
            | "webfetch"
            | "websearch"
            | "toolsearch"
            | "todowrite"
            | "taskcreate"
            | "taskget"
            | "tasklist"
            | "taskupdate"
            | "skill"
    )
}

/// A path without the workspace in front.
pub(crate) fn relative<'a>(path: &'a str, root: &Path) -> &'a str {
    match Path::new(path).strip_prefix(root) {
        Ok(inner) => inner.to_str().filter(|inner| !inner.is_empty()).unwrap_or(path),
        Err(_) => path,
    }
}

/// A command without the shell that CLIs wrap around it.
pub(crate) fn unwrapped(command: &str) -> &str {
    for shell in ["/bin/bash -lc ", "bash -lc ", "/bin/sh -c ", "/usr/bin/bash -lc ", "/bin/zsh -lc "] {
        if let Some(inner) = command.strip_prefix(shell) {
            let quoted = inner.strip_prefix('\'').and_then(|inner| inner.strip_suffix('\''));
            return quoted.or_else(|| inner.strip_prefix('"')?.strip_suffix('"')).unwrap_or(inner);
        }
    }
    command
}

fn field<'a>(input: &'a Value, names: &[&str]) -> Option<&'a str> {
    names.iter().find_map(|name| input.get(name)?.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn tool_uses_are_described_in_plain_words() {
        let root = Path::new("/w/repo");
        let table = [
            ("Write", json!({"file_path": "/w/repo/src/x.rs"}), "editing src/x.rs"),
            ("Bash", json!({"command": "cargo test"}), "running `cargo test`"),
            ("Read", json!({"file_path": "/etc/hosts"}), "reading /etc/hosts"),
            ("run_shell_command", json!({"command": "ls"}), "running `ls`"),
            ("write_file", json!({"file_path": "hello.txt"}), "editing hello.txt"),
            ("Grep", json!({"pattern": "fn main"}), "searching for `fn main`"),
            ("mcp__db__query", json!({}), "using mcp__db__query"),
            ("Edit", json!(null), "editing files"),
        ];
        for (name, input, expected) in table {
            assert_eq!(describe(name, &input, root), expected);
        }
        assert_eq!(unwrapped("/bin/bash -lc 'echo a && cat b'"), "echo a && cat b");
        assert_eq!(unwrapped("cargo test"), "cargo test");
    }
}
