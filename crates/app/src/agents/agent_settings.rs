//! Agent CLI settings in a repo. Sessions don't see them unless the user has allowed exactly these bytes.
//!
//! Such files can be the repo's product (a folder of skills, a plugin). The user then shows them to sessions
//! with [`shown_ask`]. A few are obeyed whatever the command line says; without a sandbox to cover them they
//! need approval: [`open_asks`].

use crate::environment::Environment;
use crate::error::AppError;
use crate::trust::repo_file;
use crate::trust::{Ask, PrivilegeKind, TrustedSet, quoted};
use ralph_loop_agents::presets;
use ralph_loop_agents::project_settings::{ProjectSettings, project_settings};
use ralph_loop_protocol::id::Digest;
use ralph_loop_safe_fs::Kind;
use ralph_loop_sandbox::isolation::{Covers, folders_to, place_below};
use std::path::{Component, Path, PathBuf};

/// Limits for a folder that is shown; a larger one can't be identified by its bytes.
const FILES_MAX: usize = 2000;
const DEPTH_MAX: usize = 8;

/// Paths that sessions of CLI `name` find empty in the repo at `top`, working in its folder `below`.
pub fn covers(top: &Path, below: &Path, name: &str, grants: &TrustedSet) -> Covers {
    let Some(table) = project_settings(name) else { return Covers::default() };
    let paths =
        folders_to(below).into_iter().flat_map(|folder| names(table).map(move |name| folder.join(name)));
    let shown = paths.filter(|path| shown_ask(top, path).is_some_and(|ask| grants.allow(&ask))).collect();
    Covers { folders: table.folders, files: table.files, shown }
}

/// Like [`covers`], for several CLIs.
pub fn covered(top: &Path, below: &Path, clis: &[&str], grants: &TrustedSet) -> Vec<PathBuf> {
    let of = |name: &&str| -> Vec<PathBuf> {
        let Covers { folders, files, shown } = covers(top, below, name, grants);
        let names = folders.iter().chain(files);
        let paths = names.flat_map(|name| folders_to(below).into_iter().map(move |folder| folder.join(name)));
        paths.filter(|path| !shown.contains(path)).collect()
    };
    let mut found: Vec<PathBuf> = clis.iter().flat_map(of).collect();
    found.retain(|path| top.join(path).symlink_metadata().is_ok());
    found.sort();
    found.dedup();
    found
}

fn names(table: ProjectSettings) -> impl Iterator<Item = &'static str> {
    table.folders.iter().chain(table.files).copied()
}

/// What showing `path` would allow; `None` if it is too large to identify by its bytes.
pub fn shown_ask(top: &Path, path: &Path) -> Option<Ask> {
    let text = format!("{} to be shown to the sessions of agents", quoted(&path.display().to_string()));
    ask(top, path, "shown", text)
}

fn ask(top: &Path, path: &Path, setting: &str, text: String) -> Option<Ask> {
    let source = path.display().to_string();
    let content = format!("{source}\0{}", content(&top.join(path), 0, &mut 0)?);
    Some(Ask::new(PrivilegeKind::Settings, &source, setting, &content, text))
}

/// Settings that need approval: those that CLI `name` obeys in spite of its command line when no sandbox
/// covers them, and links that a sandbox can't cover.
pub fn open_asks(top: &Path, below: &Path, name: &str, covered: bool) -> Vec<Ask> {
    let Some(table) = project_settings(name) else { return Vec::new() };
    let is_there = |path: &PathBuf| top.join(path).symlink_metadata().is_ok();
    let is_bad_link = |path: &PathBuf| top.join(path).is_symlink() && place_below(top, path).is_none();
    let folders = folders_to(below).into_iter();
    let found: Vec<(PathBuf, &str)> = match covered {
        true => {
            let paths = folders.flat_map(|folder| names(table).map(move |name| folder.join(name)));
            paths.filter(is_bad_link).map(|path| (path, "a link that leads out of the repo")).collect()
        }
        false => {
            let paths = folders.flat_map(|folder| table.open.iter().map(move |name| folder.join(name)));
            paths.filter(is_there).map(|path| (path, "which it obeys without a sandbox")).collect()
        }
    };
    let asked = found.into_iter().map(|(path, why)| {
        let shown = quoted(&path.display().to_string());
        let text = format!("`{name}`, which has your keys, to read its settings in {shown}, {why}");
        let source = path.display().to_string();
        // Too large to identify by its bytes: use the path alone.
        let bytes = content(&top.join(&path), 0, &mut 0).unwrap_or_default();
        Ask::new(PrivilegeKind::Settings, &source, "files", &format!("{name}\0{source}\0{bytes}"), text)
    });
    asked.collect()
}

/// Digest input for a path: names and bytes. `None` if there is too much.
fn content(path: &Path, depth: usize, files: &mut usize) -> Option<String> {
    *files += 1;
    if depth > DEPTH_MAX || *files > FILES_MAX {
        return None;
    }
    let Ok(about) = path.symlink_metadata() else { return Some("missing".to_owned()) };
    if about.is_symlink() {
        return Some(format!("link {}", path.read_link().unwrap_or_default().display()));
    }
    if !about.is_dir() {
        return Some(match repo_file::read(path) {
            Ok(bytes) => format!("file {}", Digest::of(&bytes)),
            Err(error) => format!("unreadable {error}"),
        });
    }
    let mut text = String::new();
    for entry in repo_file::entries(path, FILES_MAX) {
        let inner = content(&path.join(&entry.name), depth + 1, files)?;
        let kind = if entry.kind == Kind::Folder { "/" } else { "" };
        text.push_str(&format!("{}{kind}\0{inner}\n", entry.name.display()));
    }
    Some(format!("folder {}", Digest::of(text.as_bytes())))
}

/// Shows `path` to agent sessions for as long as its bytes stay the same.
pub fn show(env: &Environment, folder: &Path, path: &Path) -> Result<Ask, AppError> {
    let top = repo_file::top(folder);
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    let tables = presets::NAMES.into_iter().filter_map(project_settings);
    if !tables.into_iter().flat_map(names).any(|known| known == name) {
        return Err(AppError::usage(format!("`{}` is not hidden from any agent", path.display()))
            .cause("only settings of agent CLIs are hidden, such as `.claude`, `.mcp.json` or `.codex`")
            .hint("name such a file or folder, for example `ralph trust --agent-settings .claude`"));
    }
    // Use the name alone: the target of a link isn't included.
    let mut at = PathBuf::new();
    for part in folder.join(path).components() {
        match part {
            Component::CurDir => {}
            Component::ParentDir => drop(at.pop()),
            part => at.push(part),
        }
    }
    let below = at.strip_prefix(&top).ok().map(Path::to_owned);
    let below = below.ok_or_else(|| {
        AppError::usage(format!("`{}` is not in this repo", path.display()))
            .hint(format!("name a path below `{}`", top.display()))
    })?;
    let ask = shown_ask(&top, &below).ok_or_else(|| {
        AppError::usage(format!("can't show `{}` to agent sessions", below.display()))
            .cause(format!("it has more than {FILES_MAX} files or is nested deeper than {DEPTH_MAX} folders"))
            .hint("move what agents don't need out of it, then try again")
    })?;
    let store = crate::trust::store::TrustStore::of(&env.state_home()?, &top);
    store.allow(std::slice::from_ref(&ask), std::slice::from_ref(&ask.source))?;
    Ok(ask)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    fn repo() -> tempfile::TempDir {
        let top = tempfile::tempdir().unwrap();
        for folder in [".git", ".claude/skills", "a/.claude", "a/b"] {
            std::fs::create_dir_all(top.path().join(folder)).unwrap();
        }
        std::fs::write(top.path().join(".claude/settings.json"), "{}").unwrap();
        top
    }

    #[test]
    fn approval_covers_every_byte_of_a_file() {
        let top = repo();
        let path = Path::new(".claude");
        let shown = |grants: &TrustedSet| covers(top.path(), Path::new("a/b"), "claude", grants).shown;
        assert!(shown(&TrustedSet::default()).is_empty());
        let allowed = || TrustedSet::of([shown_ask(top.path(), path).unwrap().digest]);
        let before = allowed();
        assert_eq!(shown(&before), [path]);
        std::fs::write(top.path().join(".claude/skills/x.md"), "new").unwrap();
        assert!(shown(&before).is_empty(), "it is another one now");
        assert_eq!(shown(&allowed()), [path]);
        // A missing path can be allowed too, for a task that creates it.
        let missing = shown_ask(top.path(), Path::new(".mcp.json")).unwrap();
        assert_eq!(shown(&TrustedSet::of([missing.digest.clone()])), [Path::new(".mcp.json")]);
        std::fs::write(top.path().join(".mcp.json"), "{}").unwrap();
        assert!(shown(&TrustedSet::of([missing.digest])).is_empty());
    }

    #[test]
    fn only_settings_that_nothing_hides_need_approval() {
        let top = repo();
        let asked = |name: &str, covered: bool| -> Vec<String> {
            let asks = open_asks(top.path(), Path::new("a/b"), name, covered);
            asks.into_iter().map(|ask| ask.source).collect()
        };
        assert_eq!(asked("claude", false), [""; 0], "its start line holds");
        std::fs::create_dir(top.path().join("a/.opencode")).unwrap();
        std::fs::write(top.path().join("opencode.json"), "{}").unwrap();
        assert_eq!(asked("opencode", true), [""; 0], "a sandbox covers it");
        assert_eq!(asked("opencode", false), ["opencode.json", "a/.opencode"]);
        symlink("/proc/self/cwd/evil.json", top.path().join(".mcp.json")).unwrap();
        symlink("../../../x", top.path().join("a/b/.claude")).unwrap();
        symlink(".claude/skills", top.path().join("a/.mcp.json")).unwrap();
        assert_eq!(asked("claude", true), [".mcp.json", "a/.mcp.json", "a/b/.claude"]);
        std::fs::remove_file(top.path().join("a/.mcp.json")).unwrap();
        symlink("../.claude/skills", top.path().join("a/.mcp.json")).unwrap();
        assert_eq!(asked("claude", true), [".mcp.json", "a/b/.claude"], "a link within the repo is covered");
    }
}
