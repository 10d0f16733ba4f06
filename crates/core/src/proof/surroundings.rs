//! Fingerprints of programs and settings outside the workspace that checks depend on. A run without a sandbox
//! could replace them.

use ralph_loop_domain::vars::Vars;
use ralph_loop_protocol::id::Digest;
use ralph_loop_task::config::Settings;
use std::collections::{BTreeMap, BTreeSet};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::path::{Path, PathBuf};

/// Programs behind most checks.
const USUAL: &[&str] = &[
    "sh", "bash", "env", "python", "python3", "node", "npm", "npx", "pnpm", "yarn", "bun", "cargo", "rustc",
    "go", "make", "just", "pytest", "jest", "vitest", "mocha", "ruby", "bundle", "rspec", "java", "mvn",
    "gradle", "php", "dotnet", "git", "grep", "diff", "cat", "sed", "awk", "test", "uv", "poetry",
];

/// Settings in the home folder that programs read.
const HOME_FILES: &[&str] = &[
    ".gitconfig",
    ".config/git/config",
    ".npmrc",
    ".yarnrc.yml",
    ".config/pip/pip.conf",
    ".cargo/config.toml",
    ".cargo/config",
    ".m2/settings.xml",
    ".gradle/init.gradle",
    ".mocharc.json",
    ".pytest.ini",
];

/// Fingerprints of programs and settings, by name; empty if missing.
pub(crate) type Fingerprints = BTreeMap<String, String>;

/// Fingerprints what a run's checks depend on outside the workspace, given its folder and the path at which
/// checks see it.
pub(crate) fn fingerprints(vars: &Vars, settings: &Settings, workspace: [&Path; 2]) -> Fingerprints {
    let mut folders = vars.path_folders();
    folders.retain(|folder| !workspace.iter().any(|top| folder.starts_with(top)));
    marks(&wanted(settings), &folders, vars.get_os("HOME").map(Path::new))
}

/// Programs named by checks, and the usual ones.
fn wanted(settings: &Settings) -> (BTreeSet<String>, BTreeSet<String>) {
    let (mut named, mut words) = (BTreeSet::new(), BTreeSet::new());
    let checks = settings.verifiers.iter().map(|v| v.command_argv.clone());
    for argv in checks.chain(settings.setup_commands.iter().map(|c| c.argv())) {
        named.extend(argv.first().cloned());
        // Any word of a shell line may be a program.
        words.extend(
            argv.iter()
                .skip(1)
                .flat_map(|word| word.split([' ', ';', '&', '|', '(', ')']))
                .map(str::to_owned),
        );
    }
    for names in [&mut named, &mut words] {
        names.retain(|name| !name.contains('/') && !name.is_empty());
    }
    words.extend(USUAL.iter().map(|name| (*name).to_owned()));
    (named, words)
}

fn marks(
    (named, usual): &(BTreeSet<String>, BTreeSet<String>),
    folders: &[PathBuf],
    home: Option<&Path>,
) -> Fingerprints {
    let mut marks = Fingerprints::new();
    for name in named.iter().chain(usual) {
        let found = folders.iter().map(|folder| folder.join(name)).find(|path| is_program(path));
        match found {
            Some(path) => drop(marks.insert(name.clone(), mark(&path))),
            // A program that appears later matters if a check names it.
            None if named.contains(name) => drop(marks.insert(name.clone(), String::new())),
            None => {}
        }
    }
    let Some(home) = home else { return marks };
    for file in HOME_FILES {
        marks.insert(format!("~/{file}"), settings_mark(&home.join(file)));
    }
    // Python runs these before anything else.
    let libraries = std::fs::read_dir(home.join(".local/lib")).into_iter().flatten().flatten();
    for folder in libraries.filter(|e| e.file_name().to_string_lossy().starts_with("python")).take(20) {
        for name in ["usercustomize.py", "sitecustomize.py"] {
            let below = format!(".local/lib/{}/site-packages/{name}", folder.file_name().to_string_lossy());
            marks.insert(format!("~/{below}"), mark(&home.join(&below)));
        }
        let below = format!(".local/lib/{}/site-packages", folder.file_name().to_string_lossy());
        marks.insert(format!("~/{below}/*.pth"), path_files(&home.join(&below)));
    }
    marks
}

fn is_program(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|m| m.is_file() && m.permissions().mode() & 0o111 != 0)
}

/// Path and identity of a file. Its owner can't reset the status time.
fn mark(path: &Path) -> String {
    match std::fs::metadata(path) {
        Ok(m) => format!(
            "{} {}:{} {} {}.{}",
            path.display(),
            m.dev(),
            m.ino(),
            m.size(),
            m.ctime(),
            m.ctime_nsec()
        ),
        Err(_) => String::new(),
    }
}

/// The `.pth` and customize files that Python runs at start, in a module folder.
fn path_files(folder: &Path) -> String {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten().map(|entry| entry.path());
    let files: BTreeSet<PathBuf> =
        files.filter(|path| path.extension().is_some_and(|e| e == "pth")).collect();
    let marks: Vec<String> = files.iter().take(100).map(|path| settings_mark(path)).collect();
    if marks.is_empty() { String::new() } else { format!("{} {}", folder.display(), marks.join("\n")) }
}

/// Content of settings, regardless of copies and times. For git only what affects files and programs: the
/// user may change identity or display during a run.
fn settings_mark(path: &Path) -> String {
    let Ok(text) = std::fs::read(path) else { return String::new() };
    let text = match path.ends_with(".gitconfig") || path.ends_with("git/config") {
        true => git_settings(&String::from_utf8_lossy(&text)).into_bytes(),
        false => text,
    };
    if text.is_empty() { String::new() } else { format!("{} {}", path.display(), Digest::of(&text).as_str()) }
}

/// Sections of git's configuration that change files or run programs.
fn git_settings(text: &str) -> String {
    const DECIDE: &[&str] =
        &["core", "filter", "include", "includeif", "diff", "merge", "url", "safe", "submodule", "protocol"];
    let (mut decides, mut kept) = (false, String::new());
    for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if let Some(heading) = line.strip_prefix('[') {
            let name = heading.split([']', ' ', '"']).next().unwrap_or_default().to_ascii_lowercase();
            decides = DECIDE.contains(&name.as_str());
        }
        if decides {
            kept.push_str(line);
            kept.push('\n');
        }
    }
    kept
}

/// Hashed, for the journal.
pub(crate) fn sealed(marks: &Fingerprints) -> Fingerprints {
    marks.iter().map(|(name, mark)| (name.clone(), seal(mark))).collect()
}

fn seal(mark: &str) -> String {
    if mark.is_empty() { String::new() } else { Digest::of(mark.as_bytes()).short().to_owned() }
}

/// Describes what changed since it was sealed.
pub(crate) fn differences(before: &Fingerprints, now: &Fingerprints) -> Vec<String> {
    let path = |mark: &str| mark.split(' ').next().unwrap_or_default().to_owned();
    let mut found = Vec::new();
    // The user's installed dependencies are compared separately.
    for (name, old) in before.iter().filter(|(name, _)| !name.ends_with('/')) {
        let new = now.get(name).map(String::as_str).unwrap_or_default();
        if seal(new) == *old {
            continue;
        }
        found.push(match (old.is_empty(), new.is_empty()) {
            (_, true) => {
                format!("`{name}`, which checks may use, was removed from this machine during the run")
            }
            (true, false) => {
                format!("`{name}`, which checks may use, appeared during the run: {}", path(new))
            }
            (false, false) => {
                format!("`{name}`, which checks may use, is not the one from the start: {}", path(new))
            }
        });
    }
    // If the home lacked the folder, the file in it has no fingerprint.
    let had_folder = |name: &String| before.contains_key(&name.replace("*.pth", "usercustomize.py"));
    let came = now.iter().filter(|(name, mark)| {
        // Older records have the folder but not these files.
        (name.ends_with("customize.py") || (name.ends_with("*.pth") && !had_folder(name))) && !mark.is_empty()
    });
    found.extend(came.filter(|(name, _)| !before.contains_key(*name)).map(|(name, _)| {
        format!("`{name}`, which Python runs before anything else, appeared during the run")
    }));
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_program_in_front_of_another_is_noticed_and_one_behind_it_is_not() {
        let folder = tempfile::tempdir().unwrap();
        let folders = ["a", "b", "c"].map(|n| folder.path().join(n));
        let program = |at: usize, name: &str| {
            std::fs::create_dir_all(&folders[at]).unwrap();
            let path = folders[at].join(name);
            std::fs::write(&path, format!("{at}")).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        program(1, "grep");
        let names = |list: &[&str]| list.iter().map(|n| (*n).to_owned()).collect::<BTreeSet<_>>();
        let wanted = (names(&["jtest"]), names(&["grep", "nowhere"]));
        let fingerprint_now = || marks(&wanted, &folders, Some(folder.path()));
        let before = sealed(&fingerprint_now());
        program(2, "grep");
        program(0, "other");
        let git = folder.path().join(".gitconfig");
        std::fs::write(&git, "[user]\n  name = A\n[alias]\n  x = status\n").unwrap();
        assert_eq!(differences(&before, &fingerprint_now()), [""; 0]);
        program(0, "grep");
        program(0, "jtest");
        std::fs::write(&git, "[core]\n  hooksPath = x\n").unwrap();
        std::fs::write(folder.path().join(".npmrc"), "script-shell=/bin/true").unwrap();
        let site = folder.path().join(".local/lib/python3.9/site-packages");
        std::fs::create_dir_all(&site).unwrap();
        std::fs::write(site.join("usercustomize.py"), "").unwrap();
        std::fs::write(site.join("a.pth"), "import os").unwrap();
        let found = differences(&before, &fingerprint_now()).join("\n");
        for word in [
            "`grep`, which checks may use, is not the one",
            "`jtest`, which checks may use, appeared",
            "`~/.npmrc`",
            "`~/.gitconfig`",
            "usercustomize",
            "*.pth",
        ] {
            assert!(found.contains(word), "{word}: {found}");
        }
    }
}
