//! Which programs count as runners: what they open decides what is run. Everything else is the work itself, or tests
//! it.

use std::path::Path;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Program {
    /// It runs what files say: a shell, `make`, `npm`.
    Runner {
        /// The script's name as given.
        script: Option<String>,
    },
    /// It starts another program without influencing it: `env`, `timeout`.
    PassesOn,
    /// It runs a script of another language.
    Interpreter {
        /// The script's name as given, if any.
        script: Option<String>,
    },
    Other,
}

const SHELLS: &[&str] = &["sh", "bash", "dash", "zsh", "ksh", "ash", "busybox", "mksh"];
const RUNNERS: &[&str] = &["make", "gmake", "ninja", "just", "task", "go-task", "pnpm"];
/// The build drivers among them read the product like a compiler.
const PASS_ON: &[&str] = &[
    "cargo",
    "go",
    "mvn",
    "gradle",
    "ctest",
    "uv",
    "uvx",
    "rustup",
    "cmake",
    "env",
    "timeout",
    "xargs",
    "find",
    "nice",
    "nohup",
    "setsid",
    "stdbuf",
    "time",
    "ionice",
    "chrt",
    "chronic",
    "coreutils",
    "dumb-init",
    "faketime",
    "flock",
    "numactl",
    "prlimit",
    "setarch",
    "taskset",
    "tini",
    "pyenv",
    "unbuffer",
];
/// Runners that are scripts of other languages, by the names of those scripts or modules.
const SCRIPTED: &[&str] = &[
    "npm",
    "npm-cli.js",
    "npx",
    "npx-cli.js",
    "pnpm",
    "pnpm.cjs",
    "pnpx",
    "yarn",
    "yarn.js",
    "yarn.cjs",
    "corepack",
    "tox",
    "nox",
    "uv",
    "poetry",
    "hatch",
    "pipenv",
    "pdm",
    "rake",
];

/// Classifies the program at `path` with these arguments. One inside the workspace is never a runner.
pub(super) fn classify(path: &Path, arguments: &[String], root: &Path) -> Program {
    let name = path.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
    if path.starts_with(root) {
        return Program::Other;
    }
    if SHELLS.contains(&name.as_str()) {
        return Program::Runner { script: shell_script(arguments) };
    }
    if RUNNERS.contains(&name.as_str()) {
        return Program::Runner { script: None };
    }
    if PASS_ON.contains(&name.as_str()) {
        return Program::PassesOn;
    }
    let stem = name.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
    if !matches!(
        stem,
        "python" | "pypy" | "node" | "nodejs" | "ruby" | "perl" | "php" | "deno" | "java" | "bun"
    ) {
        return Program::Other;
    }
    let (script, module) = interpreted(arguments);
    let known = |text: &str| SCRIPTED.contains(&text.rsplit('/').next().unwrap_or(text));
    let outside = |text: &str| !text.starts_with(&*root.to_string_lossy()) && text.starts_with('/');
    match (&script, &module) {
        (Some(script), _) if outside(script) && known(script) => Program::Runner { script: None },
        (_, Some(module)) if known(module) => Program::Runner { script: None },
        (Some(_), _) => Program::Interpreter { script },
        _ => Program::Interpreter { script: None },
    }
}

/// Modules and scripts of interpreters that install packages.
const INSTALLERS: &[&str] =
    &["pip", "pip3", "venv", "virtualenv", "ensurepip", "pipx", "gem", "bundle", "composer"];

/// Whether a program may run code of the workspace: one that is part of it or was just built, and an interpreter,
/// unless it installs packages.
pub(super) fn runs_product(path: &Path, arguments: &[String], root: &Path) -> bool {
    match classify(path, arguments, root) {
        Program::Interpreter { .. } => {
            let (script, module) = interpreted(arguments);
            let name = |text: &str| text.rsplit('/').next().unwrap_or(text).to_owned();
            let own = |text: &str| !text.starts_with('/') || text.starts_with(&*root.to_string_lossy());
            let in_venv = |text: &str| text.contains("venv/bin/");
            let script = script.filter(|script| !own(script) || in_venv(script));
            let named = module.or(script).map(|named| name(&named)).unwrap_or_default();
            let stem = named.trim_end_matches(|c: char| c.is_ascii_digit() || c == '.');
            !INSTALLERS.contains(&stem)
        }
        Program::Other => path.starts_with(root) || path.starts_with("/tmp") || path.starts_with("/var/tmp"),
        Program::Runner { .. } | Program::PassesOn => false,
    }
}

/// The script that a shell was given; `None` if it got a command line.
fn shell_script(arguments: &[String]) -> Option<String> {
    let mut rest = arguments.iter().skip(1);
    while let Some(word) = rest.next() {
        if word.starts_with('-') && !word.starts_with("--") && word.contains('c') {
            return None;
        }
        match word.as_str() {
            "-o" | "+o" | "-O" | "--rcfile" | "--init-file" => drop(rest.next()),
            word if word.starts_with(['-', '+']) || word.is_empty() => {}
            script => return Some(script.to_owned()),
        }
    }
    None
}

/// An interpreter's script or module.
fn interpreted(arguments: &[String]) -> (Option<String>, Option<String>) {
    let mut rest = arguments.iter().skip(1);
    while let Some(word) = rest.next() {
        match word.as_str() {
            "-c" | "-e" | "--eval" | "-p" => return (None, None),
            "-m" => return (None, rest.next().cloned()),
            "-W" | "-X" | "-r" | "--require" | "--import" | "-cp" | "-jar" => drop(rest.next()),
            word if word.starts_with('-') || word.is_empty() => {}
            script => return (Some(script.to_owned()), None),
        }
    }
    (None, None)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_are_known_by_their_place_and_name() {
        let what = |line: &str| {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            classify(Path::new(&arguments[0]), &arguments, Path::new("/repo"))
        };
        let script = |text: &str| Some(text.to_owned());
        assert_eq!(what("/usr/bin/bash -e x.sh a"), Program::Runner { script: script("x.sh") });
        assert_eq!(what("/bin/sh -c true"), Program::Runner { script: None });
        assert_eq!(what("/usr/bin/make -s test"), Program::Runner { script: None });
        assert_eq!(what("/usr/bin/node /usr/bin/npm test"), Program::Runner { script: None });
        assert_eq!(what("/usr/bin/python3.11 -m tox"), Program::Runner { script: None });
        assert_eq!(what("/usr/bin/python3 -m pytest"), Program::Interpreter { script: None });
        assert_eq!(what("/usr/bin/node test.js"), Program::Interpreter { script: script("test.js") });
        assert_eq!(what("/usr/bin/timeout 5 x"), Program::PassesOn);
        assert_eq!(what("/usr/bin/go test ./..."), Program::PassesOn);
        assert_eq!(what("/repo/bin/make test"), Program::Other);
        assert_eq!(what("/usr/bin/node /repo/npm"), Program::Interpreter { script: script("/repo/npm") });
        assert_eq!(what("/usr/bin/grep x"), Program::Other);
    }

    #[test]
    fn built_programs_run_product_code_and_package_managers_do_not() {
        let product = |line: &str| {
            let arguments: Vec<String> = line.split(' ').map(str::to_owned).collect();
            runs_product(Path::new(&arguments[0]), &arguments, Path::new("/repo"))
        };
        for line in [
            "/usr/bin/python3 gen.py",
            "/usr/bin/python3 -m unittest",
            "/usr/bin/python3 /repo/bin/pip install x",
            "/usr/bin/node webpack.js",
            "/repo/target/debug/deps/a-1",
            "/tmp/go-build1/b001/a.test",
        ] {
            assert!(product(line), "{line}");
        }
        for line in [
            "/usr/bin/python3 -m pip install x",
            "/usr/bin/python3.11 -m venv .venv",
            "/usr/bin/python3 /repo/.venv/bin/pip3 install x",
            "/usr/bin/node /usr/bin/npm ci",
            "/usr/bin/rustc a.rs",
            "/bin/sh build.sh",
        ] {
            assert!(!product(line), "{line}");
        }
    }
}
