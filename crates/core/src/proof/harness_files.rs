//! The harness in a checkout. Agent code is installed and tested there, so the harness is compared after each
//! command: a check that changes the files it judges fails.

use ralph_loop_protocol::id::Digest;
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use std::collections::BTreeMap;
use std::path::{Component, Path, PathBuf};

const ENTRIES_MAX: usize = 200_000;
const LISTED_MAX: usize = 40;
/// Larger files are compared by size only.
const FILE_MAX: u64 = 16 * 1024 * 1024;

/// The harness of a checkout, as file digests.
pub(crate) struct HarnessFiles<'a> {
    root: PathBuf,
    is_harness: &'a dyn Fn(&str) -> bool,
    files: BTreeMap<String, Digest>,
    /// Links that lead out of the checkout.
    pub(crate) links_out: Vec<String>,
}

impl<'a> HarnessFiles<'a> {
    /// Reads a fresh checkout.
    pub(crate) fn read(root: &Path, is_harness: &'a dyn Fn(&str) -> bool) -> Self {
        let mut files =
            Self { root: root.to_owned(), is_harness, files: BTreeMap::new(), links_out: Vec::new() };
        (files.files, files.links_out) = files.digests();
        files
    }

    /// Describes files that `who` changed or removed.
    pub(crate) fn changed_by(&self, who: &str) -> Vec<String> {
        let now = self.digests().0;
        let changed = self.files.iter().filter(|(path, old)| now.get(*path) != Some(*old));
        changed
            .take(LISTED_MAX)
            .map(|(path, _)| format!("{path} was changed in the clean checkout by {who}"))
            .collect()
    }

    fn digests(&self) -> (BTreeMap<String, Digest>, Vec<String>) {
        let (mut files, mut links_out) = (BTreeMap::new(), Vec::new());
        let Ok(root) = SafeDir::open(&self.root) else { return (files, links_out) };
        let mut open = vec![PathBuf::from(".")];
        let mut seen = 0;
        while let Some(folder) = open.pop() {
            for entry in root.entries(&folder, ENTRIES_MAX).unwrap_or_default() {
                seen += 1;
                let name = entry.name.to_string_lossy().into_owned();
                let real = folder.join(&entry.name);
                let real = real.strip_prefix(".").unwrap_or(&real).to_owned();
                let path = real.to_string_lossy().into_owned();
                if seen > ENTRIES_MAX || path == ".git" {
                    continue;
                }
                match entry.kind {
                    Kind::Link => {
                        let target = root.read_link(&real).unwrap_or_default();
                        if leads_out(&path, &target) {
                            links_out.push(path.clone());
                        }
                        if (self.is_harness)(&path) {
                            files.insert(path, Digest::of(target.as_os_str().as_encoded_bytes()));
                        }
                    }
                    Kind::Folder if is_installed(&name) => {}
                    Kind::Folder => open.push(real),
                    _ if (self.is_harness)(&path) => {
                        files.insert(path, digest(&root, &real));
                    }
                    _ => {}
                }
            }
        }
        links_out.sort();
        (files, links_out)
    }
}

fn digest(root: &SafeDir, path: &Path) -> Digest {
    match root.facts(path) {
        Ok(facts) if facts.kind != Kind::File => Digest::of(b"no file"),
        Ok(facts) if facts.length > FILE_MAX => Digest::of(format!("size {}", facts.length).as_bytes()),
        _ => Digest::of(&root.read(path, Links::Refused, FILE_MAX).unwrap_or_default()),
    }
}

/// Whether a link at `path` leads out of the checkout.
fn leads_out(path: &str, target: &Path) -> bool {
    let mut depth = path.split('/').count() - 1;
    for part in target.components() {
        match part {
            Component::RootDir | Component::Prefix(_) => return true,
            Component::ParentDir if depth == 0 => return true,
            Component::ParentDir => depth -= 1,
            Component::Normal(_) => depth += 1,
            Component::CurDir => {}
        }
    }
    false
}

/// Folders filled by setup or tools.
fn is_installed(name: &str) -> bool {
    name.ends_with("cache")
        || matches!(
            name,
            "node_modules" | ".venv" | "venv" | "target" | "__pycache__" | ".tox" | ".nox" | ".gradle"
        )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reports_changed_and_removed_harness_files_only() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("check.sh", "exit 1");
        write("tests/test_a.py", "assert False");
        write("src/a.py", "1");
        let is_harness = |path: &str| path.starts_with("tests/") || path == "check.sh";
        let files = HarnessFiles::read(folder.path(), &is_harness);
        write("src/a.py", "2");
        write("tests/__pycache__/x.pyc", "2");
        write("tests/test_new.py", "2");
        assert_eq!(files.changed_by("x"), [""; 0]);
        write("check.sh", "exit 0");
        std::fs::remove_file(folder.path().join("tests/test_a.py")).unwrap();
        let changed = files.changed_by("tests");
        assert_eq!(changed.len(), 2, "{changed:?}");
        assert_eq!(changed[0], "check.sh was changed in the clean checkout by tests");
    }

    #[test]
    fn links_that_lead_out_are_known() {
        for (path, target, out) in [
            ("tests", "/tmp/x", true),
            ("tests", "../x", true),
            ("a/b", "../c", false),
            ("a/b", "../../c", true),
            ("a", "./b/../c", false),
        ] {
            assert_eq!(leads_out(path, Path::new(target)), out, "{path} -> {target}");
        }
    }
}
