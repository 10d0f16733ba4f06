//! What a sandboxed command sees of the machine: an allowlist, from which the mounts, the Landlock rules and `ralph
//! sandbox test` are made. The tools of the user's `PATH` and the workspace are added to it.

use super::trail::Trail;
use std::path::{Path, PathBuf};

const ENTRIES: &str = include_str!("system.txt");
/// A folder with more names holds no entry of the list.
const NAMES_MAX: usize = 5000;
/// Users whose names tools ask for, besides the own one.
const USERS: [u32; 2] = [0, 65534];

/// The part of the machine that every sandboxed command can read.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct SystemView {
    /// Files and folders by their real path, none inside another.
    pub readable: Vec<PathBuf>,
    /// Links outside those, each with its target.
    pub links: Vec<(PathBuf, PathBuf)>,
}

impl SystemView {
    /// What exists of the list on this machine.
    pub fn of_machine() -> Self {
        let trails: Vec<Trail> = patterns().flat_map(expanded).filter_map(|path| Trail::of(&path)).collect();
        let mut ends: Vec<&Path> = trails.iter().map(|trail| trail.end.as_path()).collect();
        ends.sort_unstable();
        let mut view = Self::default();
        for end in ends {
            if !view.readable.last().is_some_and(|last| end.starts_with(last)) {
                view.readable.push(end.to_owned());
            }
        }
        let mut links: Vec<_> = trails.into_iter().flat_map(|trail| trail.links).collect();
        links.sort();
        links.dedup();
        links.retain(|(at, _)| !view.shows(at));
        view.links = links;
        view
    }

    /// Whether `path`, without links, is part of it.
    pub(in crate::local::isolation) fn shows(&self, path: &Path) -> bool {
        self.readable.iter().any(|place| path.starts_with(place))
            || self.links.iter().any(|(at, _)| at == path)
    }

    /// Whether a folder holds parts of the system next to others, so that it is never visible as a whole.
    pub(in crate::local::isolation) fn is_around(&self, folder: &Path) -> bool {
        folder.parent().is_none()
            || self.readable.iter().any(|place| place != folder && place.starts_with(folder))
    }
}

fn patterns() -> impl Iterator<Item = &'static str> {
    ENTRIES.lines().map(str::trim).filter(|line| line.starts_with('/'))
}

fn expanded(pattern: &str) -> Vec<PathBuf> {
    let Some(start) = pattern.strip_suffix('*') else { return vec![PathBuf::from(pattern)] };
    let (folder, start) = start.rsplit_once('/').unwrap_or_default();
    let names = std::fs::read_dir(folder).into_iter().flatten().flatten().take(NAMES_MAX);
    let named = names.filter(|entry| entry.file_name().to_str().is_some_and(|name| name.starts_with(start)));
    named.map(|entry| entry.path()).collect()
}

/// The lines of `/etc/passwd` and `/etc/group` that a command gets: the system's own users, and this one.
pub(in crate::local::isolation) fn accounts() -> [(&'static str, String); 2] {
    let (user, group) = (nix::unistd::getuid().as_raw(), nix::unistd::getgid().as_raw());
    let lines = |file: &str, own: u32| -> String {
        let text = std::fs::read_to_string(file).unwrap_or_default();
        let id = |line: &str| line.split(':').nth(2).and_then(|id| id.parse::<u32>().ok());
        let kept = text.lines().filter(|line| id(line).is_some_and(|id| id == own || USERS.contains(&id)));
        kept.map(|line| format!("{line}\n")).collect()
    };
    let (mut passwd, mut groups) = (lines("/etc/passwd", user), lines("/etc/group", group));
    let named =
        |lines: &str, id: u32| lines.lines().any(|line| line.split(':').nth(2) == Some(&id.to_string()));
    // Users of a directory service are in no file.
    if !named(&passwd, user)
        && let Ok(Some(own)) = nix::unistd::User::from_uid(user.into())
    {
        let (home, shell) = (own.dir.display(), own.shell.display());
        passwd.push_str(&format!("{}:x:{user}:{group}::{home}:{shell}\n", own.name));
    }
    if !named(&groups, group)
        && let Ok(Some(own)) = nix::unistd::Group::from_gid(group.into())
    {
        groups.push_str(&format!("{}:x:{group}:\n", own.name));
    }
    [("passwd", passwd), ("group", groups)]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn view_holds_programs_and_no_folder_of_the_owner() {
        let view = SystemView::of_machine();
        assert!(view.shows(Path::new("/usr/bin")) && view.readable.contains(&"/usr".into()), "{view:?}");
        for no in [
            "/",
            "/etc",
            "/home",
            "/root",
            "/srv",
            "/opt",
            "/mnt",
            "/boot",
            "/var/log",
            "/etc/shadow",
            "/etc/fstab",
        ] {
            assert!(!view.shows(Path::new(no)), "{no}");
        }
        assert!(view.is_around(Path::new("/etc")) && view.is_around(Path::new("/")));
        assert!(!view.is_around(Path::new("/opt/tool")));
        for (at, _) in &view.links {
            assert!(!view.readable.iter().any(|place| at.starts_with(place)), "{at:?}");
        }
    }

    #[test]
    fn accounts_are_the_systems_and_this_users() {
        let [(_, passwd), (_, group)] = accounts();
        let own = nix::unistd::getuid().to_string();
        assert!(passwd.lines().any(|line| line.split(':').nth(2) == Some(&own)), "{passwd}");
        assert!(passwd.lines().count() <= 3 && group.lines().count() <= 3, "{passwd}{group}");
    }

    #[test]
    fn docs_show_the_list() {
        let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/SANDBOXES.md");
        let docs = std::fs::read_to_string(docs).unwrap();
        for pattern in patterns() {
            assert!(docs.contains(&format!("`{pattern}`")), "docs/SANDBOXES.md lacks `{pattern}`");
        }
    }
}
