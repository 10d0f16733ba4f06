//! Dependencies that are installed in the user's folder and not held by git: `.venv`, `node_modules`, `.tox`. One
//! rule recognizes them, and the checkouts of a run use them instead of installing everything again.

use crate::repo::setup;
use std::path::{Path, PathBuf};

/// Folders that tools keep and write to whenever they run.
const WRITTEN: &[&str] = &["node_modules", ".tox", ".nox"];
/// The file that marks a Python virtual environment, whatever its folder is called.
pub const ENVIRONMENT: &str = "pyvenv.cfg";
/// The file with which tools mark their caches: <https://bford.info/cachedir/>.
pub const CACHE_TAG: &str = "CACHEDIR.TAG";
/// Folders of build output and caches without such a file.
const OUTPUT: &[&str] = &[
    "target",
    "build",
    "dist",
    "__pycache__",
    ".cache",
    ".gradle",
    ".next",
    ".nuxt",
    ".svelte-kit",
    ".angular",
    ".turbo",
    ".parcel-cache",
    ".yarn",
    ".dart_tool",
    ".build",
    ".stack-work",
    "dist-newstyle",
    "elm-stuff",
    ".eggs",
];

/// How a checkout uses such a folder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InstalledUse {
    /// The user's folder, mounted read-only.
    Lent,
    /// A copy: its tools write to it while they run.
    Copied,
    /// It is outside the repo, where commands find it by its full path.
    Outside,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct InstalledFolder {
    /// Its path below the top of the repo; the full path if it is outside.
    pub at: String,
    pub from: PathBuf,
    pub usage: InstalledUse,
    /// The virtual environments in it, whose base installations are needed as well.
    pub environments: Vec<PathBuf>,
}

impl InstalledFolder {
    pub fn top(&self) -> &Path {
        self.from.ancestors().nth(self.at.split('/').count()).unwrap_or(&self.from)
    }
}

/// How a checkout uses the folder at `path`, which git doesn't hold; `None` if nothing is installed in it. `inside`
/// and `above` say whether a file of that name is in the folder, or in one above it.
pub fn usage(
    path: &str,
    inside: impl Fn(&str) -> bool,
    above: impl Fn(&str) -> bool,
) -> Option<InstalledUse> {
    let name = path.rsplit('/').next().unwrap_or(path);
    if inside(ENVIRONMENT) {
        return Some(InstalledUse::Lent);
    }
    let written = WRITTEN.contains(&name) || (!setup::is_python(name) && setup::is_filled(path, above));
    written.then_some(InstalledUse::Copied)
}

/// Whether the folder at `path`, which git ignores, holds what a build has made.
pub fn is_output(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    OUTPUT.contains(&name) || name.ends_with(".egg-info")
}

/// Whether these folders hold everything that a guessed setup command would install.
pub fn has_all_of<'a>(command: &str, mut folders: impl Iterator<Item = &'a InstalledFolder>) -> bool {
    let Some((place, filled)) = setup::filled_by(command) else { return false };
    folders.any(|folder| {
        // A Python environment may have any name, and be outside.
        let is_kind = match (filled.iter().any(|name| setup::is_python(name)), folder.usage) {
            (true, _) => !folder.environments.is_empty(),
            (false, InstalledUse::Outside) => false,
            (false, _) => filled.contains(&folder.at.rsplit('/').next().unwrap_or_default()),
        };
        let above = folder.at.rsplit_once('/').map_or("", |(above, _)| above);
        is_kind && (folder.usage == InstalledUse::Outside || above == place)
    })
}

/// Names the folders for display, with how checks use them.
pub fn named(folders: &[InstalledFolder]) -> String {
    let words = |folder: &InstalledFolder| match folder.usage {
        InstalledUse::Lent | InstalledUse::Outside => format!("`{}` (read-only)", folder.at),
        InstalledUse::Copied => format!("a copy of `{}`", folder.at),
    };
    crate::repo::setup::some(&folders.iter().map(words).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn usage_of(path: &str, inside: &[&str], above: &[&str]) -> Option<InstalledUse> {
        usage(path, |name| inside.contains(&name), |name| above.contains(&name))
    }

    /// Each layout with its marker files, and how checkouts use it.
    #[test]
    fn every_layout_is_known_by_one_rule() {
        use InstalledUse::{Copied, Lent};
        for (layout, path, inside, above, want) in [
            ("python -m venv", ".venv", &["pyvenv.cfg"][..], &[][..], Some(Lent)),
            ("virtualenv", "venv", &["pyvenv.cfg"], &["requirements.txt"], Some(Lent)),
            ("another name", "py311", &["pyvenv.cfg"], &[], Some(Lent)),
            ("uv", ".venv", &["pyvenv.cfg"], &["uv.lock"], Some(Lent)),
            ("poetry in the project", ".venv", &["pyvenv.cfg"], &["poetry.lock"], Some(Lent)),
            ("a part of a repo", "api/.venv", &["pyvenv.cfg"], &[], Some(Lent)),
            ("a folder that isn't an environment", "env", &[], &["requirements.txt"], None),
            ("tox", ".tox", &[], &["tox.ini"], Some(Copied)),
            ("nox", ".nox", &[], &["noxfile.py"], Some(Copied)),
            ("npm", "node_modules", &[], &["package-lock.json"], Some(Copied)),
            ("pnpm", "packages/web/node_modules", &[], &[], Some(Copied)),
            ("composer", "vendor", &[], &["composer.lock"], Some(Copied)),
            ("bundler", "vendor/bundle", &[], &["Gemfile.lock"], Some(Copied)),
            ("another vendor", "vendor", &[], &[], None),
            ("build results", "target", &[], &["Cargo.lock"], None),
            ("secrets", ".env", &[], &["uv.lock"], None),
        ] {
            assert_eq!(usage_of(path, inside, above), want, "{layout}");
        }
    }

    #[test]
    fn build_output_is_known_by_its_name() {
        for yes in ["target", "crates/x/target", "web/dist", "src/__pycache__", "src/x.egg-info"] {
            assert!(is_output(yes), "{yes}");
        }
        for no in ["targets", "secrets", "dist/keys", ".env", "backup"] {
            assert!(!is_output(no), "{no}");
        }
    }

    #[test]
    fn setup_is_skipped_if_its_folder_exists() {
        let folder = |at: &str, usage, environments: &[&str]| InstalledFolder {
            at: at.to_owned(),
            from: PathBuf::from(at),
            usage,
            environments: environments.iter().map(PathBuf::from).collect(),
        };
        let there = [
            folder("node_modules", InstalledUse::Copied, &[]),
            folder("api/py3", InstalledUse::Lent, &["/repo/api/py3"]),
        ];
        let outside = [folder("/home/me/envs/x", InstalledUse::Outside, &["/home/me/envs/x"])];
        for (command, folders, want) in [
            ("npm ci", &there[..], true),
            ("cd web && npm ci", &there, false),
            ("uv sync", &there, false),
            ("cd api && uv sync", &there, true),
            ("poetry install", &outside, true),
            ("npm ci", &outside, false),
            ("./make-deps.sh", &there, false),
        ] {
            assert_eq!(has_all_of(command, folders.iter()), want, "{command}");
        }
    }
}
