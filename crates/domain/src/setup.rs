//! Dependencies that a repo does not hold: which folder they live in, and which command brings them into a clean
//! checkout. One table for `ralph init` and for the hint of a proof that lacks them.

/// One way in which a project gets its dependencies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Setup {
    /// The file that says so.
    pub marker: &'static str,
    /// Folders that the command fills.
    pub folders: &'static [&'static str],
    /// The command.
    pub command: &'static str,
}

const NODE: &[&str] = &["node_modules"];
const PYTHON: &[&str] = &[".venv", "venv", "env"];

/// The most exact first: a lock file before the list that it was made from. Rust and Go fetch what they need themselves.
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
        command: "python3 -m pip install -r requirements-dev.txt",
    },
    Setup {
        marker: "requirements.txt",
        folders: PYTHON,
        command: "python3 -m pip install -r requirements.txt",
    },
    Setup { marker: "Gemfile.lock", folders: &["vendor/bundle", ".bundle"], command: "bundle install" },
    Setup { marker: "composer.lock", folders: &["vendor"], command: "composer install" },
    Setup { marker: "mix.lock", folders: &["deps", "_build"], command: "mix deps.get" },
];

/// Projects without a lock file: good enough for a hint, too vague to be written for somebody.
const LOOSE: &[Setup] = &[
    Setup { marker: "package.json", folders: NODE, command: "npm install" },
    Setup { marker: "pyproject.toml", folders: PYTHON, command: "python3 -m pip install -e ." },
];

/// The same with a virtual environment in a folder of the project: systems whose Python belongs to their package manager let
/// nothing be installed beside it.
impl Setup {
    fn in_venv(self, folder: &str) -> Self {
        let command = match (self.marker, folder) {
            ("requirements.txt", ".venv") => {
                "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt"
            }
            ("requirements.txt", "venv") => {
                "python3 -m venv venv && venv/bin/pip install -r requirements.txt"
            }
            ("requirements-dev.txt", ".venv") => {
                "python3 -m venv .venv && .venv/bin/pip install -r requirements-dev.txt"
            }
            ("requirements-dev.txt", "venv") => {
                "python3 -m venv venv && venv/bin/pip install -r requirements-dev.txt"
            }
            ("pyproject.toml", ".venv") => "python3 -m venv .venv && .venv/bin/pip install -e .",
            ("pyproject.toml", "venv") => "python3 -m venv venv && venv/bin/pip install -e .",
            _ => self.command,
        };
        Self { command, ..self }
    }
}

/// The commands that bring a project's dependencies, at most one for each kind of folder. `has` says whether a file is
/// there, `venv` in which folder the project keeps its virtual environment.
pub fn setup_commands(has: impl Fn(&str) -> bool, venv: Option<&str>) -> Vec<Setup> {
    let mut found: Vec<Setup> = Vec::new();
    for setup in SETUPS.iter().filter(|s| has(s.marker)) {
        if !found.iter().any(|f| f.folders == setup.folders) {
            found.push(venv.map_or(*setup, |folder| setup.in_venv(folder)));
        }
    }
    found
}

/// What is missing in a clean checkout, where no setup is configured: a folder that exists in the workspace, is never
/// recorded, and that a command could fill.
pub fn missing_setup(unrecorded: &[String], has: impl Fn(&str) -> bool) -> Option<(String, Setup)> {
    let folder_of = |setup: &Setup| {
        unrecorded.iter().find(|path| {
            let path = path.trim_end_matches('/');
            setup.folders.iter().any(|f| path == *f || path.ends_with(&format!("/{f}")))
        })
    };
    SETUPS.iter().chain(LOOSE).filter(|setup| has(setup.marker)).find_map(|setup| {
        let folder = folder_of(setup)?.clone();
        let setup = setup.in_venv(folder.trim_end_matches('/'));
        Some((folder, setup))
    })
}

/// The command with the extra of a project that holds its test runner: `pip install -e .` alone leaves that out.
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

/// The sentence for a person.
pub fn setup_hint(folder: &str, command: &str) -> String {
    let python = match command.split_once(" -m venv ").and_then(|(_, rest)| rest.split_once(' ')) {
        Some((venv, _)) => format!(", let the check start `{venv}/bin/python`"),
        None => String::new(),
    };
    format!(
        "the checks pass only where `{folder}` exists, and git does not hold it: set \"setup_commands\": [\"{command}\"] \
         in .ralph/config.json{python} and start a new run (`--new`), so that the final check can install what it needs"
    )
}

/// What mends a setup that fails: one that somebody wrote, or one that the repo's own files speak of.
pub fn setup_failed_hint(guessed: bool) -> &'static str {
    match guessed {
        true => {
            "nobody configured it, the repo's own files name it: \"setup_commands\" in .ralph/config.json names another one, [] none; then start a new run (`--new`)"
        }
        false => "correct `setup_commands`, or give the machine what they need",
    }
}

/// The sentence for a person whose own files are what the checks need.
pub fn commit_hint(paths: &[&str]) -> String {
    let shown: Vec<String> = paths.iter().take(5).map(|p| format!("`{p}`")).collect();
    let more = if paths.len() > 5 { ", …" } else { "" };
    format!(
        "the checks need {}{more}, which you have not committed: commit what belongs to the project, then start a new run (`--new`)",
        shown.join(", ")
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(files: &[&str]) -> Vec<&'static str> {
        setup_commands(|name| files.contains(&name), None).into_iter().map(|s| s.command).collect()
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
        assert_eq!(commands(&["requirements.txt"]), ["python3 -m pip install -r requirements.txt"]);
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
        let pair = "python3 -m venv .venv && .venv/bin/pip install -r requirements.txt";
        assert_eq!(missing(&[".venv/"], &["requirements.txt"]), found(".venv/", pair));
        assert!(setup_hint(".venv/", pair).contains("let the check start `.venv/bin/python`"));
        let own = setup_commands(|name| name == "requirements.txt", Some(".venv"));
        assert_eq!(own[0].command, pair);
        assert_eq!(missing(&["cache/", "target/"], &["package-lock.json", "Cargo.toml"]), None);
        assert_eq!(missing(&["node_modules/"], &["Cargo.toml"]), None);
    }
}
