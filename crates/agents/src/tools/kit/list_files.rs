//! `listFiles`: file names by glob.

use super::{Tool, ToolContext, ToolOutcome, spec};
use crate::tools::args::Args;
use ralph_loop_domain::model::ToolSpec;
use ralph_loop_domain::ports::Sandbox;
use ralph_loop_domain::repo::protect::covers;
use ralph_loop_protocol::display::text;
use serde_json::json;
use std::collections::VecDeque;
use std::path::{Path, PathBuf};

const SHOWN: usize = 400;
const FOLDERS: usize = 20_000;
/// Folders of generated files; listed, but only searched on request.
const HEAVY: &[&str] =
    &["node_modules", "target", "dist", "build", ".venv", "venv", "__pycache__", ".next", ".cache"];

pub(super) struct ListFiles;

impl Tool for ListFiles {
    fn spec(&self) -> ToolSpec {
        spec(
            "listFiles",
            "List files of the workspace. Without a pattern, the names in one folder; with a glob like `**/*.rs`, all \
             files below it that match.",
            json!({
                "path": { "type": "string", "description": "The folder; the working folder where absent" },
                "pattern": { "type": "string", "minLength": 1, "description": "A glob, relative to the folder" },
                "recursive": { "type": "boolean", "description": "Also everything below the folder" },
            }),
            &[],
        )
    }

    fn beside_others(&self) -> bool {
        true
    }

    fn what(&self, args: &Args<'_>) -> String {
        [args.maybe("path"), args.maybe("pattern")].into_iter().flatten().collect::<Vec<_>>().join(" ")
    }

    fn call(&self, args: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let folder = context.path_rules.folder(args.maybe("path"))?;
        let pattern = args.maybe("pattern").map(|pattern| pattern.trim_start_matches("./").to_owned());
        let deep =
            args.flag("recursive") || pattern.as_deref().is_some_and(|p| p.contains('/') || p.contains("**"));
        let mut walk = Walk {
            sandbox: context.sandbox,
            folder: &folder,
            pattern,
            deep,
            found: Vec::new(),
            more: 0,
            tired: false,
        };
        walk.go(context)?;
        let (found, more, tired) = (walk.found, walk.more, walk.tired);
        let total = found.len() + more;
        let line = text::count(total, "name");
        let mut text = match found.is_empty() {
            true => "nothing found".to_owned(),
            false => found.join("\n"),
        };
        if more > 0 {
            text.push_str(&format!("\n[{more} more; a narrower pattern or folder shows them]"));
        }
        if tired {
            text.push_str("\n[too many folders; not all were looked into]");
        }
        Ok(ToolOutcome { text, line, ..ToolOutcome::default() })
    }
}

struct Walk<'a> {
    sandbox: &'a dyn Sandbox,
    folder: &'a Path,
    pattern: Option<String>,
    deep: bool,
    found: Vec<String>,
    more: usize,
    tired: bool,
}

impl Walk<'_> {
    fn go(&mut self, context: &ToolContext<'_>) -> Result<(), String> {
        let mut waiting = VecDeque::from([PathBuf::new()]);
        let mut looked = 0;
        while let Some(below) = waiting.pop_front() {
            looked += 1;
            if looked > FOLDERS || context.halt.get().is_some() {
                self.tired = true;
                break;
            }
            let folder = self.folder.join(&below);
            let names = match self.sandbox.list(&folder) {
                Ok(names) => names,
                Err(error) if looked == 1 => return Err(error.to_string()),
                // An unreadable folder doesn't affect the others.
                Err(_) => continue,
            };
            for name in names {
                let path = below.join(&name);
                // The engine's folder and git's aren't for the agent.
                if name == ".git" || (name == ".ralph" && folder.as_os_str().is_empty()) {
                    continue;
                }
                let is_folder = self.is_folder(&folder.join(&name));
                let wanted = self.keep(&path, is_folder);
                if is_folder && self.deep && (wanted || !HEAVY.contains(&name.as_str()) || self.names(&name))
                {
                    waiting.push_back(path);
                }
            }
        }
        Ok(())
    }

    /// Whether the pattern itself names this folder.
    fn names(&self, name: &str) -> bool {
        self.pattern.as_deref().is_some_and(|pattern| pattern.split('/').any(|part| part == name))
    }

    fn is_folder(&self, path: &Path) -> bool {
        // Links aren't followed: they may be circular.
        match self.sandbox.host_root().map(|root| root.join(path).symlink_metadata()) {
            Some(Ok(found)) => found.is_dir(),
            // The workspace isn't visible from here.
            _ => self.sandbox.list(path).is_ok_and(|names| !names.is_empty()),
        }
    }

    fn keep(&mut self, path: &Path, is_folder: bool) -> bool {
        let text = path.to_string_lossy();
        let wanted = match &self.pattern {
            Some(pattern) => !is_folder && matches(pattern, &text),
            None => true,
        };
        if !wanted {
            return false;
        }
        if self.found.len() < SHOWN {
            self.found.push(format!("{text}{}", if is_folder { "/" } else { "" }));
        } else {
            self.more += 1;
        }
        !HEAVY.iter().any(|heavy| path.ends_with(heavy))
    }
}

/// Whether a path matches a glob. A glob without a slash matches names.
fn matches(pattern: &str, path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let of = |pattern: &str, text: &str| covers(std::slice::from_ref(&pattern.to_owned()), text);
    if pattern.contains('/') { of(pattern, path) } else { of(pattern, name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn globs_for_paths_and_for_names() {
        assert!(matches("*.rs", "src/a.rs") && matches("**/*.rs", "src/a.rs") && matches("**/*.rs", "a.rs"));
        assert!(matches("src/*.rs", "src/a.rs") && !matches("src/*.rs", "src/b/a.rs"));
        assert!(!matches("*.rs", "src/a.ts"));
    }
}
