//! Where each known CLI looks for its settings in a repo, from the top to its folder.
//!
//! Such settings may start programs (hooks, key helpers, tool servers, plugins) or redirect the key to another
//! server, without a model's request. So no CLI may read them: its command line says so, and a sandbox covers these
//! names.

/// What one CLI looks for in a repo.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ProjectSettings {
    pub folders: &'static [&'static str],
    pub files: &'static [&'static str],
    /// What the CLI obeys despite its command line. Without a sandbox that covers it, only the user can allow that.
    pub open: &'static [&'static str],
}

/// What the CLI `name` looks for; `None` if unknown.
pub fn project_settings(name: &str) -> Option<ProjectSettings> {
    let (folders, files, open): (&'static [_], &'static [_], &'static [_]) = match name {
        "claude" => (&[".claude"], &[".mcp.json"], &[]),
        // A skill in `.agents` may name a tool server.
        "codex" => (&[".codex", ".agents"], &[], &[]),
        "gemini" => (&[".gemini"], &[], &[".gemini/.env"]),
        "opencode" => (
            &[".opencode", ".claude"],
            &["opencode.json", "opencode.jsonc"],
            &[".opencode", "opencode.json", "opencode.jsonc"],
        ),
        "qwen" => (&[".qwen"], &[], &[".qwen", ".env"]),
        _ => return None,
    };
    Some(ProjectSettings { folders, files, open })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::presets;

    #[test]
    fn every_known_cli_has_names_and_each_is_a_single_one() {
        for name in presets::NAMES {
            let table = project_settings(name).unwrap();
            assert!(table.folders.contains(&format!(".{name}").as_str()), "{name}");
            for one in table.folders.iter().chain(table.files) {
                assert!(!one.contains('/'), "{one}: it is looked for in every folder");
            }
        }
        assert_eq!(project_settings("emacs"), None);
    }
}
