//! Mounts the workspace at the path of the user's repo, so that virtual environments, shebangs and settings with
//! absolute paths work on the agent's copy as on the user's tree.

use super::tools::parts_in_repo;
use ralph_loop_domain::ports::SandboxError;
use ralph_loop_safe_fs::{Kind, SafeDir};
use std::io;
use std::path::{Path, PathBuf};

/// Where borrowed object stores are in the sandbox, numbered.
const OBJECTS: &str = "/run/ralph/objects";
/// Where programs are that the workspace would cover and the agent must not change.
const PROGRAMS: &str = "/run/ralph/programs";

/// Paths that every command needs unchanged.
const SYSTEM: [&str; 13] = [
    "/bin", "/dev", "/etc", "/lib", "/lib64", "/proc", "/root", "/run", "/sbin", "/sys", "/tmp", "/usr",
    "/var",
];

/// Most names of a home that are checked for links.
const NAMES_MAX: usize = 2000;

/// A command's workspace: its local folder, and the path at which commands see it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Workspace {
    pub(crate) host: PathBuf,
    pub(crate) inside: PathBuf,
}

impl Workspace {
    pub(crate) fn plain(host: PathBuf) -> Self {
        Self { inside: host.clone(), host }
    }

    pub(crate) fn is_moved(&self) -> bool {
        self.host != self.inside
    }

    pub(crate) fn to_inside(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.host) {
            Ok(below) if below.as_os_str().is_empty() => self.inside.clone(),
            Ok(below) => self.inside.join(below),
            Err(_) => path.to_owned(),
        }
    }

    pub(crate) fn to_host(&self, path: &Path) -> PathBuf {
        match path.strip_prefix(&self.inside) {
            Ok(below) if below.as_os_str().is_empty() => self.host.clone(),
            Ok(below) => self.host.join(below),
            Err(_) => path.to_owned(),
        }
    }

    /// Whether the workspace hides a local path.
    pub(crate) fn covers(&self, path: &Path) -> bool {
        self.is_moved() && path.starts_with(&self.inside)
    }
}

/// Whether the workspace can be mounted at `at`: not over the home, the system or this program's own paths.
pub(in crate::local::isolation) fn is_usable(at: &Path, home: &Path) -> bool {
    let system = SYSTEM.iter().map(Path::new);
    let taken = system.clone().chain([home]).any(|place| place.starts_with(at));
    let in_system = ["/dev", "/proc", "/sys", "/run"].iter().any(|place| at.starts_with(place));
    at.is_absolute() && at.to_str().is_some() && !taken && !in_system
}

pub(in crate::local::isolation) fn object_store(number: usize) -> PathBuf {
    Path::new(OBJECTS).join(number.to_string())
}

/// The file that tells git where borrowed objects are in the sandbox.
pub(in crate::local::isolation) fn alternates(stores: usize) -> String {
    (0..stores).map(|number| format!("{}\n", object_store(number).display())).collect()
}

/// Programs that the workspace would cover, each with its path in the sandbox. For nested ones only the outer one
/// counts: a program finds its parts around itself.
pub(in crate::local::isolation) fn covered_programs(
    workspace: &Workspace,
    programs: &[PathBuf],
) -> Vec<(PathBuf, PathBuf)> {
    let parts: Vec<PathBuf> = programs.iter().flat_map(|program| parts_in_repo(program)).collect();
    let covered: Vec<&PathBuf> = parts.iter().filter(|path| workspace.covers(path)).collect();
    let outer = |path: &Path| !covered.iter().any(|other| *other != path && path.starts_with(other));
    let mut found: Vec<&PathBuf> = covered.iter().copied().filter(|path| outer(path)).collect();
    found.sort();
    found.dedup();
    let place = |(number, path): (usize, &PathBuf)| {
        let name = path.file_name().unwrap_or_default();
        (path.clone(), Path::new(PROGRAMS).join(number.to_string()).join(name))
    };
    found.into_iter().enumerate().map(place).collect()
}

/// The path in the sandbox of a program that is started by its full path.
pub(in crate::local::isolation) fn program_inside(
    covered: &[(PathBuf, PathBuf)],
    program: &str,
) -> Option<String> {
    let path = Path::new(program);
    let (below, place) = covered.iter().find_map(|(from, to)| Some((path.strip_prefix(from).ok()?, to)))?;
    let inside = if below.as_os_str().is_empty() { place.clone() } else { place.join(below) };
    inside.into_os_string().into_string().ok()
}

/// Local links that lead to `at` or a folder around it, each with its target: those in the user's home, and those on
/// the path of the user's current folder. They are recreated in the sandbox.
pub(in crate::local::isolation) fn links_to(
    at: &Path,
    home: &Path,
    here: Option<&Path>,
) -> Vec<(PathBuf, PathBuf)> {
    let in_home = std::fs::read_dir(home).into_iter().flatten().flatten().take(NAMES_MAX);
    let links = in_home.filter(|entry| entry.file_type().is_ok_and(|kind| kind.is_symlink()));
    let mut names: Vec<PathBuf> = links.map(|entry| entry.path()).collect();
    names.extend(
        here.into_iter().flat_map(Path::ancestors).filter(|path| path.is_symlink()).map(Path::to_owned),
    );
    names.sort();
    names.dedup();
    let leads = |name: PathBuf| {
        let real = name.parent()?.canonicalize().is_ok_and(|parent| Some(parent.as_path()) == name.parent());
        let target = name.canonicalize().ok()?;
        (real && at.starts_with(&target) && !name.starts_with(at)).then_some((name, target))
    };
    names.into_iter().filter_map(leads).collect()
}

/// Creates a mount point below `base`, which commands can write: removes any link or other thing on the way.
pub(in crate::local::isolation) fn make_mount_point(
    base: &SafeDir,
    below: &Path,
    wanted: Kind,
) -> io::Result<()> {
    let parts: Vec<_> = below.components().collect();
    let mut at = PathBuf::new();
    for (number, part) in parts.iter().enumerate() {
        at.push(part);
        let kind = if number + 1 == parts.len() { wanted } else { Kind::Folder };
        match base.facts(&at) {
            Ok(facts) if facts.kind == kind => continue,
            Ok(_) => base.remove(&at)?,
            Err(error) if error.kind() == io::ErrorKind::NotFound => {}
            Err(error) => return Err(error),
        }
        match kind {
            Kind::Folder => drop(base.create_folder(&at)?),
            _ => base.write(&at, b"")?,
        }
    }
    Ok(())
}

/// Creates a link below `base`, which commands can write, replacing anything there.
pub(in crate::local::isolation) fn make_link(
    base: &Path,
    below: &Path,
    target: &Path,
) -> Result<(), SandboxError> {
    let made = SafeDir::open(base).and_then(|base| {
        if base.read_link(below).is_ok_and(|said| said == target) {
            return Ok(());
        }
        if let Some(folder) = below.parent().filter(|folder| !folder.as_os_str().is_empty()) {
            make_mount_point(&base, folder, Kind::Folder)?;
        }
        base.remove(below)?;
        base.link(below, target)
    });
    made.map_err(|error| cannot_be_made(below, &error))
}

fn cannot_be_made(below: &Path, error: &io::Error) -> SandboxError {
    SandboxError::Broken(format!("`{}` cannot be made in the sandbox: {error}", below.display()))
}

/// Creates the mount point of something that is mounted at its own path, if that is below `from`, whose content is in
/// `base`. What doesn't exist isn't mounted.
pub(in crate::local::isolation) fn make_place_of(
    base: &Path,
    from: &Path,
    place: &Path,
) -> Result<(), SandboxError> {
    let Ok(below) = place.strip_prefix(from) else { return Ok(()) };
    if below.as_os_str().is_empty() {
        return Ok(());
    }
    let Ok(about) = place.metadata() else { return Ok(()) };
    let kind = if about.is_dir() { Kind::Folder } else { Kind::File };
    make_below(base, below, kind)
}

/// The mount point below `base`, or why there can't be one.
pub(in crate::local::isolation) fn make_below(
    base: &Path,
    below: &Path,
    kind: Kind,
) -> Result<(), SandboxError> {
    let made = SafeDir::open(base).and_then(|base| make_mount_point(&base, below, kind));
    made.map_err(|error| cannot_be_made(below, &error))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn workspace_is_never_mounted_over_the_home_or_the_system() {
        let home = Path::new("/home/me");
        for good in ["/home/me/repo", "/srv/a b/ü", "/tmp/x/repo", "/home/me/.local/x", "/opt/repo"] {
            assert!(is_usable(Path::new(good), home), "{good}");
        }
        for bad in ["/", "/home", "/home/me", "/tmp", "/usr", "/run/x", "/proc/1", "/var", "relative"] {
            assert!(!is_usable(Path::new(bad), home), "{bad}");
        }
    }

    #[test]
    fn paths_translate_to_the_inside_and_back() {
        let workspace = Workspace { host: "/state/copy".into(), inside: "/home/me/repo".into() };
        for (host, inside) in [
            ("/state/copy", "/home/me/repo"),
            ("/state/copy/a/b", "/home/me/repo/a/b"),
            ("/state/copy2", "/state/copy2"),
        ] {
            assert_eq!(workspace.to_inside(Path::new(host)), Path::new(inside));
            assert_eq!(workspace.to_host(Path::new(inside)), Path::new(host));
        }
        assert!(workspace.covers(Path::new("/home/me/repo/x")) && !workspace.covers(Path::new("/home/me/r")));
        assert!(!Workspace::plain("/a".into()).covers(Path::new("/a/b")));
    }

    #[test]
    fn program_in_the_repo_is_mounted_elsewhere_with_its_package() {
        let workspace = Workspace { host: "/copy".into(), inside: "/repo".into() };
        let programs = ["/repo/node_modules/.bin/x", "/usr/bin/y"].map(PathBuf::from);
        let covered = covered_programs(&workspace, &programs);
        assert_eq!(
            covered,
            [("/repo/node_modules".into(), PathBuf::from("/run/ralph/programs/0/node_modules"))]
        );
        assert_eq!(
            program_inside(&covered, "/repo/node_modules/.bin/x").as_deref(),
            Some("/run/ralph/programs/0/node_modules/.bin/x")
        );
        assert_eq!(program_inside(&covered, "/usr/bin/y"), None);
        assert_eq!(program_inside(&covered, "x"), None);
    }

    #[test]
    fn links_that_lead_to_the_repo_are_found() {
        let dir = tempfile::tempdir().unwrap();
        let top = dir.path().canonicalize().unwrap();
        for folder in ["home", "data/repo", "other"] {
            std::fs::create_dir_all(top.join(folder)).unwrap();
        }
        symlink(top.join("data"), top.join("home/code")).unwrap();
        symlink(top.join("other"), top.join("home/else")).unwrap();
        symlink("data/repo", top.join("short")).unwrap();
        let found = links_to(&top.join("data/repo"), &top.join("home"), Some(&top.join("short/sub")));
        assert_eq!(
            found,
            [(top.join("home/code"), top.join("data")), (top.join("short"), top.join("data/repo")),]
        );
    }

    #[test]
    fn link_at_a_mount_point_is_replaced() {
        let dir = tempfile::tempdir().unwrap();
        let (home, outside) = (dir.path().join("home"), dir.path().join("outside"));
        std::fs::create_dir_all(&home).unwrap();
        std::fs::create_dir_all(&outside).unwrap();
        symlink(&outside, home.join("code")).unwrap();
        symlink(&outside, home.join("file")).unwrap();
        let base = SafeDir::open(&home).unwrap();
        make_mount_point(&base, Path::new("code/repo"), Kind::Folder).unwrap();
        make_mount_point(&base, Path::new("file"), Kind::File).unwrap();
        assert!(home.join("code").symlink_metadata().unwrap().is_dir());
        assert!(home.join("code/repo").is_dir() && home.join("file").symlink_metadata().unwrap().is_file());
        assert_eq!(std::fs::read_dir(&outside).unwrap().count(), 0);
        // A correct one stays.
        std::fs::write(home.join("code/repo/kept"), "").unwrap();
        make_mount_point(&base, Path::new("code/repo"), Kind::Folder).unwrap();
        assert!(home.join("code/repo/kept").exists());
    }
}
