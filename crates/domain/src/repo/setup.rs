//! Dependencies that a repo doesn't hold: their folders, and the commands that install them in a clean checkout. One
//! table for `ralph init` and for the hint of a proof that lacks them.

/// How a kind of project gets its dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    pub marker: &'static str,
    pub folders: &'static [&'static str],
    pub command: &'static str,
}

const NODE: &[&str] = &["node_modules"];
const PYTHON: &[&str] = &[".venv", "venv", "env"];

/// The most exact first: a lock file before the list it was made from. Rust and Go fetch their dependencies
/// themselves.
const SETUPS: &[Setup] = &[
    Setup { marker: "pnpm-lock.yaml", folders: NODE, command: "pnpm install --frozen-lockfile" },
    Setup { marker: "yarn.lock", folders: NODE, command: "yarn install --immutable" },
    Setup { marker: "bun.lock", folders: NODE, command: "bun install --frozen-lockfile" },
    Setup { marker: "bun.lockb", folders: NODE, command: "bun install --frozen-lockfile" },
    Setup { marker: "package-lock.json", folders: NODE, command: "npm ci" },
    Setup { marker: "npm-shrinkwrap.json", folders: NODE, command: "npm ci" },
    Setup { marker: "uv.lock", folders: PYTHON, command: "uv sync" },
    Setup { marker: "poetry.lock", folders: PYTHON, command: "poetry install" },
    Setup { marker: "pdm.lock", folders: PYTHON, command: "pdm sync" },
    Setup { marker: "Pipfile.lock", folders: PYTHON, command: "pipenv sync --dev" },
    Setup {
        marker: "requirements-dev.txt",
        folders: PYTHON,
        command: "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install -r requirements-dev.txt",
    },
    Setup {
        marker: "requirements.txt",
        folders: PYTHON,
        command: "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install -r requirements.txt",
    },
    Setup { marker: "Gemfile.lock", folders: &["vendor/bundle", ".bundle"], command: "bundle install" },
    Setup { marker: "composer.lock", folders: &["vendor"], command: "composer install" },
    Setup { marker: "mix.lock", folders: &["deps", "_build"], command: "mix deps.get" },
];

/// Projects without a lock file: good enough for a hint, too vague to be written to a config.
const LOOSE: &[Setup] = &[
    Setup { marker: "package.json", folders: NODE, command: "npm install" },
    Setup {
        marker: "pyproject.toml",
        folders: PYTHON,
        command: "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install -e .",
    },
];

/// The setup commands of a project, at most one for each kind of folder. `has` says whether a file exists.
pub fn setup_commands(has: impl Fn(&str) -> bool) -> Vec<Setup> {
    let mut found: Vec<Setup> = Vec::new();
    for setup in SETUPS.iter().filter(|s| has(s.marker)) {
        if !found.iter().any(|f| f.folders == setup.folders) {
            found.push(*setup);
        }
    }
    found
}

impl Setup {
    fn fills(&self, path: &str) -> bool {
        let path = path.trim_end_matches('/');
        self.folders.iter().any(|folder| {
            path.strip_suffix(folder).is_some_and(|above| above.is_empty() || above.ends_with('/'))
        })
    }
}

/// What fills the folder at `path`, by the files next to it; even without a lock file.
pub fn setup_of(path: &str, has: impl Fn(&str) -> bool) -> Option<Setup> {
    SETUPS.iter().chain(LOOSE).find(|setup| setup.fills(path) && has(setup.marker)).copied()
}

/// What a clean checkout lacks if no setup is configured: a folder that exists in the workspace, is never recorded,
/// and that a command could fill.
pub fn missing_setup(unrecorded: &[String], has: impl Fn(&str) -> bool) -> Option<(String, Setup)> {
    unrecorded.iter().find_map(|path| Some((path.clone(), setup_of(path, &has)?)))
}

/// Whether a lock file defines the content of the folder at `path`.
pub(crate) fn is_filled(path: &str, has: impl Fn(&str) -> bool) -> bool {
    SETUPS.iter().any(|setup| setup.fills(path) && has(setup.marker))
}

/// Whether virtual environments often have this name.
pub(crate) fn is_python(name: &str) -> bool {
    PYTHON.contains(&name)
}

/// Where a guessed command installs, and the names of the folders that it fills.
pub(crate) fn filled_by(command: &str) -> Option<(&str, &'static [&'static str])> {
    let (place, command) = match command.strip_prefix("cd ").and_then(|rest| rest.split_once(" && ")) {
        Some((place, rest)) => (place, rest),
        None => ("", command),
    };
    let setup = SETUPS.iter().find(|setup| setup.command == command)?;
    Some((place, setup.folders))
}

/// Whether a change of this file may require other dependencies than the installed ones.
pub fn names_dependencies(path: &str) -> bool {
    const MORE: &[&str] = &["setup.py", "setup.cfg", "Pipfile", "Gemfile", "composer.json", "mix.exs"];
    let name = path.rsplit('/').next().unwrap_or(path);
    let listed = name.starts_with("requirements") && name.ends_with(".txt");
    listed || MORE.contains(&name) || SETUPS.iter().chain(LOOSE).any(|setup| setup.marker == name)
}

/// The command with the project's extra that holds its test runner: `pip install -e .` alone leaves that out.
pub fn with_test_extra(command: &str, pyproject: &str) -> String {
    let mut inside = false;
    let mut extra = None;
    for line in pyproject.lines().map(str::trim) {
        if line.starts_with('[') && !line.starts_with("[\"") {
            inside = line == "[project.optional-dependencies]";
        }
        if let Some((name, _)) = line.split_once('=').filter(|(_, list)| list.trim_start().starts_with('[')) {
            extra = Some(name.trim().trim_matches('"'));
        }
        let plain = |name: &&str| name.chars().all(|c| c.is_ascii_alphanumeric() || matches!(c, '-' | '_'));
        if inside
            && line.contains("pytest")
            && let Some(extra) = extra.filter(plain)
        {
            return command.replace("install -e .", &format!("install -e '.[{extra}]'"));
        }
    }
    command.to_owned()
}

/// The hint if checkouts don't get what is installed in the user's folder.
pub fn setup_hint(folder: &str, command: &str) -> String {
    format!(
        "git does not hold `{folder}`, so a clean checkout is without it: \"setup_commands\": [\"{command}\"] in \
         .ralph/config.json makes it there, from a new run on (`--new`)"
    )
}

/// How to fix a failing setup: a configured one, or a guessed one.
pub fn setup_failed_hint(guessed: bool) -> &'static str {
    match guessed {
        true => {
            "`ralph` derived it from the repo's files; set \"setup_commands\" in .ralph/config.json (or [] for none), then start a new run with `--new`"
        }
        false => "correct `setup_commands`, or give the machine what they need",
    }
}

/// The hint if the checks need the user's own uncommitted files.
pub fn commit_hint(paths: &[&str]) -> String {
    let shown: Vec<String> = paths.iter().map(|p| format!("`{p}`")).collect();
    format!(
        "the checks need {}, which you have not committed: commit what belongs to the project, then start a new run (`--new`)",
        some(&shown)
    )
}

pub(crate) fn some(words: &[String]) -> String {
    const SHOWN: usize = 5;
    let more = if words.len() > SHOWN { ", …" } else { "" };
    format!("{}{more}", words.get(..SHOWN).unwrap_or(words).join(", "))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(files: &[&str]) -> Vec<&'static str> {
        setup_commands(|name| files.contains(&name)).into_iter().map(|s| s.command).collect()
    }

    #[test]
    fn the_extra_that_holds_the_test_runner_is_installed_too() {
        let project = "[project]\nname = \"x\"\n[project.optional-dependencies]\ndocs = [\"mkdocs\"]\ndev = [\n  \"pytest>=8\",\n]\n";
        let command = "python3 -m venv .venv && .venv/bin/pip install -e .";
        assert_eq!(
            with_test_extra(command, project),
            "python3 -m venv .venv && .venv/bin/pip install -e '.[dev]'"
        );
        assert_eq!(with_test_extra(command, "[tool.pytest.ini_options]\n"), command);
        assert_eq!(with_test_extra("npm ci", project), "npm ci");
    }

    #[test]
    fn a_lock_file_says_what_to_install_and_rust_and_go_need_nothing() {
        assert_eq!(commands(&["package.json", "package-lock.json"]), ["npm ci"]);
        assert_eq!(commands(&["pnpm-lock.yaml", "package-lock.json"]), ["pnpm install --frozen-lockfile"]);
        assert_eq!(commands(&["yarn.lock"]), ["yarn install --immutable"]);
        assert_eq!(
            commands(&["uv.lock", "requirements.txt", "yarn.lock"]),
            ["yarn install --immutable", "uv sync"]
        );
        assert_eq!(
            commands(&["requirements.txt"]),
            [
                "python3 -m venv .venv && echo '*' >.venv/.gitignore && .venv/bin/pip install -r requirements.txt"
            ]
        );
        assert_eq!(commands(&["Cargo.toml", "Cargo.lock", "go.mod", "go.sum", "package.json"]), [""; 0]);
    }

    #[test]
    fn a_missing_folder_leads_to_its_command() {
        let missing = |paths: &[&str], files: &[&str]| {
            let paths: Vec<String> = paths.iter().map(|p| (*p).to_owned()).collect();
            missing_setup(&paths, |name| files.contains(&name)).map(|(folder, s)| (folder, s.command))
        };
        let found = |folder: &str, command| Some((folder.to_owned(), command));
        assert_eq!(missing(&["node_modules/"], &["package-lock.json"]), found("node_modules/", "npm ci"));
        assert_eq!(
            missing(&["web/node_modules/"], &["package.json"]),
            found("web/node_modules/", "npm install")
        );
        assert_eq!(missing(&[".env", ".venv/"], &["uv.lock"]), found(".venv/", "uv sync"));
        assert_eq!(missing(&["cache/", "target/"], &["package-lock.json", "Cargo.toml"]), None);
        assert_eq!(missing(&["node_modules/"], &["Cargo.toml"]), None);
    }
}
