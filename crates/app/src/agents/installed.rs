//! Finds what is installed for a repo: in the user's folder, and in the folders where Python tools keep
//! virtual environments.

use crate::environment::Environment;
use ralph_loop_domain::repo::installed::{ENVIRONMENT, InstalledFolder, InstalledUse};
use ralph_loop_domain::vars::Vars;
use ralph_loop_git::{Repo, installed_folders};
use ralph_loop_protocol::id::Digest;
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use ralph_loop_task::spec::{RunSpec, WorkspaceKind};
use std::path::{Path, PathBuf};

/// Environment stores: folder below a variable's value, else below this folder of the home.
const STORES: &[(&str, &str, &str)] = &[
    ("XDG_CACHE_HOME", ".cache", "pypoetry/virtualenvs"),
    ("POETRY_CACHE_DIR", "", "virtualenvs"),
    ("POETRY_VIRTUALENVS_PATH", "", ""),
    ("XDG_DATA_HOME", ".local/share", "virtualenvs"),
    ("WORKON_HOME", "", ""),
    ("XDG_DATA_HOME", ".local/share", "hatch/env/virtual"),
    ("HATCH_DATA_DIR", "", "env/virtual"),
    ("XDG_DATA_HOME", ".local/share", "pdm/venvs"),
];
/// Entries examined in one store folder.
const NAMES_MAX: usize = 2000;
/// Depth of environments below a store.
const DEPTH: usize = 3;

/// What the checks of this run use. Empty for a clone of anything but the user's own folder.
pub(crate) fn of_run(env: &Environment, spec: &RunSpec) -> Vec<InstalledFolder> {
    let own = match &spec.place {
        WorkspaceKind::Clone { from, .. } => {
            let real = |path: &Path| path.canonicalize().ok();
            real(&spec.origin.join(from)).is_some_and(|from| real(&spec.origin) == Some(from))
        }
        WorkspaceKind::InPlace | WorkspaceKind::Worktree => true,
    };
    match own && !spec.settings.sandbox.provider().is_elsewhere() {
        true => for_repo(env, &spec.origin),
        false => Vec::new(),
    }
}

pub(crate) fn for_repo(env: &Environment, top: &Path) -> Vec<InstalledFolder> {
    let Ok(repo) = Repo::discover(env.vars(), top) else { return Vec::new() };
    let mut found = installed_folders(&repo).unwrap_or_default();
    // Checks look it up by the path the run uses.
    found.iter_mut().for_each(|folder| folder.from = top.join(&folder.at));
    found.extend(outside(env.vars(), top));
    found
}

/// Environments of the repo at `top` in tool stores.
fn outside(vars: &Vars, top: &Path) -> Vec<InstalledFolder> {
    let home = vars.home();
    let codes = [code(top), code(&top.join("Pipfile"))];
    let stores = STORES.iter().filter_map(|(variable, default, below)| {
        let named = vars.get_os(variable).map(PathBuf::from).filter(|path| path.is_absolute());
        let usual = || home.filter(|_| !default.is_empty()).map(|home| home.join(default));
        Some(named.or_else(usual)?.join(below))
    });
    let mut found: Vec<PathBuf> = stores.flat_map(|store| environments(&store, &codes)).collect();
    found.sort();
    found.dedup();
    let folder = |path: PathBuf| InstalledFolder {
        at: path.display().to_string(),
        from: path.clone(),
        usage: InstalledUse::Outside,
        environments: vec![path],
    };
    found.into_iter().map(folder).collect()
}

/// Environments in a store whose path contains one of the codes.
fn environments(store: &Path, codes: &[String]) -> Vec<PathBuf> {
    let Ok(top) = SafeDir::open(store) else { return Vec::new() };
    let mut found = Vec::new();
    let mut open = vec![(PathBuf::from("."), 0)];
    while let Some((folder, depth)) = open.pop() {
        let own = |path: &Path| {
            path.components()
                .any(|part| codes.iter().any(|code| part.as_os_str().to_string_lossy().contains(code)))
        };
        if own(&folder) && top.is_file(folder.join(ENVIRONMENT), Links::Inside) {
            found.push(store.join(&folder));
        } else if depth < DEPTH && !top.is_file(folder.join(ENVIRONMENT), Links::Inside) {
            let inner = top.entries(&folder, NAMES_MAX).unwrap_or_default().into_iter();
            let inner = inner.filter(|entry| entry.kind == Kind::Folder);
            open.extend(inner.map(|entry| {
                let path = if depth == 0 { PathBuf::from(entry.name) } else { folder.join(entry.name) };
                (path, depth + 1)
            }));
        }
    }
    found
}

/// Start of the Base64 checksum of a path, which poetry, pipenv, hatch and pdm put into environment names.
fn code(path: &Path) -> String {
    const LETTERS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_";
    let digest = Digest::of(path.as_os_str().as_encoded_bytes());
    let hex = digest.as_str().rsplit(':').next().unwrap_or_default();
    let bits = hex.get(..12).and_then(|hex| u64::from_str_radix(hex, 16).ok()).unwrap_or_default();
    let letter = |at: u32| char::from(LETTERS[(bits >> (42 - 6 * at) & 63) as usize]);
    (0..8).map(letter).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn environments_outside_the_repo_are_found_by_the_code_of_its_path() {
        assert_eq!(code(Path::new("/home/me/calc")), "kWSp5ODc");
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path();
        let top = home.join("code/calc");
        let (own, pipfile) = (code(&top), code(&top.join("Pipfile")));
        let environment = |name: String| {
            std::fs::create_dir_all(home.join(&name)).unwrap();
            std::fs::write(home.join(&name).join(ENVIRONMENT), "").unwrap();
            name
        };
        let wanted = [
            environment(format!(".cache/pypoetry/virtualenvs/calc-{own}-py3.12")),
            environment(format!(".local/share/hatch/env/virtual/calc/{own}/calc")),
            environment(format!(".local/share/hatch/env/virtual/calc/{own}/hatch-test.py3.12")),
            environment(format!(".local/share/virtualenvs/calc-{pipfile}")),
            environment(format!("envs/calc-{own}")),
        ];
        environment(".cache/pypoetry/virtualenvs/other-AAAAAAAA-py3.12".to_owned());
        let vars: Vars = [("HOME", home.to_owned()), ("WORKON_HOME", home.join("envs"))]
            .into_iter()
            .map(|(name, path)| (std::ffi::OsString::from(name), path.into_os_string()))
            .collect();
        let found: Vec<String> = outside(&vars, &top).into_iter().map(|folder| folder.at).collect();
        assert_eq!(found, wanted.map(|name| home.join(name).display().to_string()));
    }
}
