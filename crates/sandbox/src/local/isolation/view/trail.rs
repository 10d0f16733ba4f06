//! Follows a path to its real target.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

/// The kernel follows no more links.
const LINKS_MAX: usize = 40;

#[derive(Debug, PartialEq, Eq)]
pub(in crate::local::isolation) struct Trail {
    /// Every link on the way, of a folder or a file: its real path, and its target.
    pub(in crate::local::isolation) links: Vec<(PathBuf, PathBuf)>,
    pub(in crate::local::isolation) end: PathBuf,
}

impl Trail {
    /// Follows an absolute path component by component; `None` if the target doesn't exist.
    pub(in crate::local::isolation) fn of(path: &Path) -> Option<Self> {
        let mut trail = Self { links: Vec::new(), end: PathBuf::from("/") };
        let mut rest = parts(path.is_absolute().then_some(path)?);
        while let Some(part) = rest.pop() {
            if part == ".." {
                trail.end.pop();
                continue;
            }
            let at = trail.end.join(part);
            let Ok(target) = std::fs::read_link(&at) else {
                trail.end = at;
                continue;
            };
            if target.is_absolute() {
                trail.end = PathBuf::from("/");
            }
            rest.extend(parts(&target));
            trail.links.push((at, target));
            if trail.links.len() > LINKS_MAX {
                return None;
            }
        }
        trail.end.symlink_metadata().is_ok().then_some(trail)
    }

    /// Whether a link of one of `trees` is on the way, or a link leads into one.
    pub(in crate::local::isolation) fn leads_through(&self, trees: &[&Path]) -> bool {
        let within = |path: &Path| trees.iter().any(|tree| path.starts_with(tree));
        self.links.iter().any(|(at, _)| within(at)) || !self.links.is_empty() && within(&self.end)
    }
}

fn parts(path: &Path) -> Vec<OsString> {
    let named =
        path.components().rev().filter(|part| matches!(part, Component::Normal(_) | Component::ParentDir));
    named.map(|part| part.as_os_str().to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn every_link_on_the_way_is_found_where_it_really_is() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        std::fs::create_dir_all(top.join("data/tool/1.2/bin")).unwrap();
        std::fs::write(top.join("data/tool/1.2/bin/x"), "").unwrap();
        let link = |target: &Path, name: &str| symlink(target, top.join(name)).unwrap();
        link(Path::new("1.2"), "data/tool/current");
        link(&top.join("data"), "short");
        link(Path::new("short/../short/tool/current/./bin/x"), "x");
        let trail = Trail::of(&top.join("x")).unwrap();
        assert_eq!(trail.end, top.join("data/tool/1.2/bin/x"));
        let names = ["x", "short", "short", "data/tool/current"].map(|name| top.join(name));
        assert_eq!(trail.links.iter().map(|(at, _)| at.clone()).collect::<Vec<_>>(), names);
        assert_eq!(trail.links[3].1, Path::new("1.2"));
        assert!(trail.leads_through(&[&top.join("data")]) && !trail.leads_through(&[&top.join("other")]));

        link(Path::new("loop"), "loop");
        link(Path::new("nothing"), "dangling");
        for none in ["loop", "dangling", "missing"] {
            assert_eq!(Trail::of(&top.join(none)), None, "{none}");
        }
        assert_eq!(Trail::of(Path::new("relative")), None);
    }
}
