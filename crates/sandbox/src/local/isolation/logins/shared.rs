//! Which of the user's settings an agent gets in its sandbox: only its login, unless the user shares more.

use super::auth::{AuthFile, auth_files};
use ralph_loop_task::config::Share;
use std::fs;
use std::path::{Path, PathBuf};

const FILES_MAX: usize = 1000;
const DEPTH_MAX: usize = 6;

/// The files below `home` that the agent program `program` gets: its login, and what the user shares.
pub fn files_of(program: &str, home: &Path, share: &[Share]) -> Vec<AuthFile> {
    let mcp = share.contains(&Share::Mcp);
    let mut files: Vec<AuthFile> =
        auth_files(program).into_iter().map(|file| AuthFile { keeps_mcp: mcp, ..file }).collect();
    let (instructions, skills) = places(program);
    if share.contains(&Share::Instructions) {
        files.extend(instructions.iter().map(|path| shared(Path::new(path))));
    }
    if share.contains(&Share::Skills) {
        let mut found = Vec::new();
        skills.iter().for_each(|folder| collect(home, Path::new(folder), 0, &mut found));
        files.extend(found.iter().map(|path| shared(path)));
    }
    files
}

fn shared(path: &Path) -> AuthFile {
    AuthFile { path: path.to_owned(), is_login: false, keeps_mcp: true }
}

/// Where a program keeps the user's instructions, and the folders of skills.
fn places(program: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match program {
        "claude" => (&[".claude/CLAUDE.md"], &[".claude/skills", ".claude/commands", ".claude/agents"]),
        "codex" => (&[".codex/AGENTS.md"], &[".codex/skills", ".codex/prompts", ".agents/skills"]),
        "gemini" => (&[".gemini/GEMINI.md"], &[".gemini/skills", ".gemini/commands", ".agents/skills"]),
        "opencode" => (
            &[".config/opencode/AGENTS.md", ".claude/CLAUDE.md"],
            &[".config/opencode/skills", ".config/opencode/skill", ".claude/skills", ".agents/skills"],
        ),
        "qwen" => (&[".qwen/QWEN.md"], &[".qwen/skills", ".qwen/commands"]),
        _ => (&[], &[]),
    }
}

/// The plain files below a folder of the home, by path. Links aren't followed.
fn collect(home: &Path, folder: &Path, depth: usize, found: &mut Vec<PathBuf>) {
    let Ok(listing) = fs::read_dir(home.join(folder)) else { return };
    let mut names: Vec<_> = listing.flatten().map(|entry| entry.file_name()).collect();
    names.sort();
    for name in names {
        let path = folder.join(name);
        let Ok(meta) = fs::symlink_metadata(home.join(&path)) else { continue };
        if found.len() >= FILES_MAX {
            return;
        }
        if meta.is_dir() && depth < DEPTH_MAX {
            collect(home, &path, depth + 1, found);
        } else if meta.is_file() {
            found.push(path);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_shared_settings_are_copied() {
        let home = tempfile::tempdir().unwrap();
        let skill = home.path().join(".claude/skills/review");
        fs::create_dir_all(&skill).unwrap();
        fs::write(skill.join("SKILL.md"), "x").unwrap();
        std::os::unix::fs::symlink("/etc/hostname", skill.join("link")).unwrap();
        let names = |share: &[Share]| -> Vec<String> {
            let files = files_of("claude", home.path(), share);
            files.into_iter().map(|file| file.path.display().to_string()).collect()
        };
        assert_eq!(names(&[]).len(), 3);
        assert_eq!(names(&[Share::Instructions])[3..], [".claude/CLAUDE.md"]);
        assert_eq!(names(&[Share::Skills])[3..], [".claude/skills/review/SKILL.md"]);
        assert!(files_of("claude", home.path(), &[Share::Mcp]).iter().all(|file| file.keeps_mcp));
        assert!(files_of("mine", home.path(), &Share::ALL).is_empty());
    }
}
