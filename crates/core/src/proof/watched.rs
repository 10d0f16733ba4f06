//! Files of a clean checkout that decide what a pass means: protected ones and sources of tests. What is installed there
//! and what is tested there is code of the agent, so they are read again after each command.

use ralph_loop_domain::ports::{ExecTrace, TraceKind, TraceStep};
use ralph_loop_domain::protect::covers;
use ralph_loop_evidence::weakened::{is_source, is_test_source};
use ralph_loop_protocol::id::Digest;
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Component, Path, PathBuf};

/// Files and folders that are looked at.
const ENTRIES_MAX: usize = 200_000;
/// Sources that are listed.
const SOURCES_MAX: usize = 5000;
/// Changes that are told.
const TOLD_MAX: usize = 40;
/// Ends of files that are loaded by their names.
const MODULES: &[&str] = &[".py", ".pyc", ".so", ".pyd", ".rb", ".pm"];
/// A larger file is known by its size alone.
const FILE_MAX: u64 = 16 * 1024 * 1024;

/// The watched files of a checkout.
#[derive(Debug)]
pub(crate) struct Watched {
    root: PathBuf,
    patterns: Vec<String>,
    files: BTreeMap<String, Digest>,
    /// Links that lead out of the checkout.
    pub(crate) links_out: Vec<String>,
    /// Links that lead to a place inside, each with that place.
    pub(crate) links: BTreeMap<String, String>,
    /// Sources that are no tests, as many as are looked through for names.
    pub(crate) sources: Vec<String>,
    /// Files that programs load as modules by their names alone.
    modules: BTreeSet<String>,
}

/// What there is in a checkout.
#[derive(Default)]
struct Found {
    files: BTreeMap<String, Digest>,
    links_out: Vec<String>,
    links: BTreeMap<String, String>,
    sources: Vec<String>,
    modules: BTreeSet<String>,
}

impl Watched {
    /// Looks at a checkout that was just made.
    pub(crate) fn take(root: &Path, patterns: &[String]) -> Self {
        let mut watched = Self {
            root: root.to_owned(),
            patterns: patterns.to_vec(),
            files: BTreeMap::new(),
            links_out: Vec::new(),
            links: BTreeMap::new(),
            sources: Vec::new(),
            modules: BTreeSet::new(),
        };
        let found = watched.digests();
        (watched.files, watched.links_out) = (found.files, found.links_out);
        (watched.links, watched.sources) = (found.links, found.sources);
        watched.modules = found.modules;
        watched
    }

    /// Watched files that are others now, or gone; and protected ones that came.
    pub(crate) fn changed(&self) -> Vec<String> {
        let now = self.digests().files;
        let mut changed: Vec<String> = self
            .files
            .iter()
            .filter(|(path, old)| now.get(*path) != Some(*old))
            .map(|(p, _)| p.clone())
            .collect();
        let came = now.keys().filter(|path| !self.files.contains_key(*path) && covers(&self.patterns, path));
        changed.extend(came.filter(|path| !is_cache(path)).cloned());
        changed
    }

    /// What `who` changed that it must not, in words.
    pub(crate) fn meddled(&self, who: &str) -> Vec<String> {
        let changed = self.changed().into_iter().take(TOLD_MAX);
        changed.map(|path| format!("{path} was changed in the clean checkout by {who}")).collect()
    }

    /// What a command wrote, as far as it may decide something: as it was seen, or, where nobody saw it, the modules that came.
    pub(crate) fn came(&self, seen: Option<&ExecTrace>) -> BTreeSet<TraceStep> {
        let Some(seen) = seen else {
            let now = self.digests().modules;
            let came = now.difference(&self.modules).take(TOLD_MAX).cloned();
            return came.map(|path| TraceStep { kind: TraceKind::Wrote, scripts: 0, path }).collect();
        };
        let writes = |step: &&TraceStep| matches!(step.kind, TraceKind::Wrote | TraceKind::Planted);
        seen.steps.iter().filter(writes).cloned().collect()
    }

    /// Sources of tests that the checkout held.
    pub(crate) fn tests(&self) -> impl Iterator<Item = &str> {
        self.files.keys().map(String::as_str).filter(|path| is_test_source(path))
    }

    /// Watched files that somebody was seen to write to, even if they are as they were by now.
    pub(crate) fn written(&self, seen: &ExecTrace) -> Vec<String> {
        let mut found = BTreeSet::new();
        for step in seen.steps.iter().filter(|step| step.kind == TraceKind::Wrote) {
            if self.files.contains_key(&step.path) {
                found.insert(step.path.clone());
            }
            // A folder that was moved away takes what is in it along.
            let inside = format!("{}/", step.path);
            let below = self.files.range(inside.clone()..).take_while(|(path, _)| path.starts_with(&inside));
            found.extend(below.map(|(path, _)| path.clone()).take(1));
        }
        found.into_iter().collect()
    }

    fn digests(&self) -> Found {
        let Found { mut files, mut links_out, mut links, mut sources, mut modules } = Found::default();
        let mut open = vec![PathBuf::from(".")];
        let mut seen = 0;
        let Ok(root) = SafeDir::open(&self.root) else { return Found::default() };
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
                if entry.kind == Kind::Link {
                    let target = root.read_link(&real).unwrap_or_default();
                    match inside(&path, &target) {
                        Some(to) => drop(links.insert(path.clone(), to)),
                        None => links_out.push(path.clone()),
                    }
                    if covers(&self.patterns, &path) || is_test_source(&path) {
                        files.insert(path, Digest::of(target.as_os_str().as_encoded_bytes()));
                    }
                } else if entry.kind == Kind::Folder {
                    if !is_installed(&name) {
                        open.push(real);
                    }
                } else {
                    let is_test = is_test_source(&path);
                    if MODULES.iter().any(|end| name.ends_with(end)) {
                        modules.insert(path.clone());
                    }
                    if !is_test && is_source(&path) && sources.len() < SOURCES_MAX {
                        sources.push(path.clone());
                    }
                    if is_test || covers(&self.patterns, &path) {
                        let digest = digest(&root, &real);
                        files.insert(path, digest);
                    }
                }
            }
        }
        links_out.sort();
        sources.sort();
        Found { files, links_out, links, sources, modules }
    }
}

fn digest(root: &SafeDir, path: &Path) -> Digest {
    match root.facts(path) {
        Ok(facts) if facts.kind != Kind::File => Digest::of(b"no file"),
        Ok(facts) if facts.length > FILE_MAX => Digest::of(format!("size {}", facts.length).as_bytes()),
        _ => Digest::of(&root.read(path, Links::Refused, FILE_MAX).unwrap_or_default()),
    }
}

/// Where a link at `path` leads to, as seen from the folder that the path is relative to; `None` where it leads out of it.
fn inside(path: &str, target: &Path) -> Option<String> {
    let mut parts: Vec<String> = path.split('/').map(str::to_owned).collect();
    parts.pop();
    for part in target.components() {
        match part {
            Component::RootDir | Component::Prefix(_) => return None,
            Component::ParentDir => drop(parts.pop()?),
            Component::Normal(name) => parts.push(name.to_string_lossy().into_owned()),
            Component::CurDir => {}
        }
    }
    Some(parts.join("/"))
}

/// Folders that a setup fills with other people's files.
fn is_installed(name: &str) -> bool {
    matches!(name, "node_modules" | ".venv" | "venv" | "target" | "__pycache__" | ".tox" | ".nox" | ".gradle")
}

fn is_cache(path: &str) -> bool {
    path.split('/')
        .any(|part| part.ends_with("cache") || part.ends_with("cache__") || part.starts_with(".nyc"))
        || path.ends_with(".pyc")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn changed_removed_and_added_files_are_told_and_caches_are_not() {
        let folder = tempfile::tempdir().unwrap();
        let write = |path: &str, text: &str| {
            let path = folder.path().join(path);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, text).unwrap();
        };
        write("check.sh", "exit 1");
        write("tests/test_a.py", "assert False");
        write("src/a.py", "1");
        write("safe/b.txt", "1");
        let watched = Watched::take(folder.path(), &["check.sh".into(), "safe".into()]);
        assert_eq!(watched.changed(), [""; 0]);
        write("src/a.py", "2");
        write("safe/__pycache__/x.pyc", "2");
        write("tests/test_new.py", "2");
        assert_eq!(watched.changed(), [""; 0], "the work itself, caches and new tests are no matter");
        write("check.sh", "exit 0");
        write("safe/new.txt", "2");
        std::fs::remove_file(folder.path().join("tests/test_a.py")).unwrap();
        assert_eq!(watched.changed(), ["check.sh", "tests/test_a.py", "safe/new.txt"]);
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
            assert_eq!(inside(path, Path::new(target)).is_none(), out, "{path} -> {target}");
        }
    }
}
