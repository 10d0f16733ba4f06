//! Whether a check's command can start: its program, programs in a shell line, the module Python should run.

use super::agents::{Output, locate};
use ralph_loop_app::Environment;
use ralph_loop_app::agents::scratch::Scratch;
use ralph_loop_domain::ports::{ExecEnd, ExecRequest, Sandbox as _};
use std::path::Path;
use std::time::Duration;

/// Timeout for asking Python about a module.
const TIMEOUT: Duration = Duration::from_secs(10);

/// Shell keywords at the start of a command. After those in the first column another command follows.
const KEYWORDS: &[&str] =
    &["if", "then", "else", "elif", "while", "until", "do", "!", "{", "(", "exec", "command", "env", "time"];
const BUILTINS: &[&str] = &[
    "cd", "test", "[", "[[", "echo", "printf", "true", "false", ":", ".", "source", "exit", "export", "set",
    "unset", "eval", "read", "return", "shift", "trap", "type", "ulimit", "umask", "wait", "for", "case",
    "done", "fi", "esac", "}", ")", "alias", "local", "readonly", "times", "getopts", "hash", "jobs", "kill",
    "pwd",
];

/// What keeps a command from starting.
#[derive(Debug, PartialEq, Eq)]
pub enum CannotStart {
    /// The program doesn't exist.
    Program(String),
    /// This Python lacks the module.
    Module(String, String),
}

impl CannotStart {
    pub fn words(&self) -> String {
        match self {
            Self::Program(program) => format!("the command `{program}` does not exist"),
            Self::Module(python, module) => format!("`{python}` has no module `{module}`"),
        }
    }
}

/// What keeps `argv` from starting in `top`; `None` if that is unknown. A setup that runs `before` may
/// provide files below `top` or Python modules.
pub fn cannot_start(env: &Environment, top: &Path, argv: &[String], before: bool) -> Option<CannotStart> {
    let commands = match argv {
        [shell, flag, line, ..] if is_shell(shell) && flag.starts_with('-') && flag.ends_with('c') => {
            shell_commands(line)
        }
        _ => vec![argv.to_vec()],
    };
    let path = env.path();
    commands.iter().find_map(|argv| {
        let program = argv.first().filter(|program| !program.is_empty())?;
        if locate(program, top, &path).is_none() {
            let brought = before && program.contains('/') && !program.starts_with('/');
            return (!brought).then(|| CannotStart::Program(program.clone()));
        }
        let module = python_module(argv).filter(|_| !before)?;
        lacks_module(env, top, program, module)
            .then(|| CannotStart::Module(program.clone(), module.to_owned()))
    })
}

fn is_shell(program: &str) -> bool {
    matches!(program.rsplit('/').next(), Some("sh" | "bash" | "dash" | "zsh"))
}

/// The plain commands of a shell line, up to the first construct that needs a shell.
fn shell_commands(line: &str) -> Vec<Vec<String>> {
    let mut found = Vec::new();
    // After `cd` relative paths change, and after a quote the end of a command is unclear.
    for part in line.split(['\n', ';', '|', '&']) {
        if part.contains(['\'', '"', '`', '$', '\\', '<', '>', '*', '#', '(']) {
            let first = words(part);
            if first.first().is_some_and(|word| is_plain(word)) {
                found.push(first.into_iter().take(1).collect());
            }
            break;
        }
        let command = words(part);
        let Some(first) = command.first() else { continue };
        if first == "cd" || first == "for" || first == "case" {
            break;
        }
        if !BUILTINS.contains(&first.as_str()) {
            found.push(command);
        }
    }
    found.retain(|command| command.first().is_some_and(|word| !BUILTINS.contains(&word.as_str())));
    found
}

/// The words of a command without leading keywords and variables.
fn words(part: &str) -> Vec<String> {
    let leads = |word: &&str| KEYWORDS.contains(word) || is_assignment(word);
    part.split_whitespace().skip_while(leads).map(str::to_owned).collect()
}

fn is_assignment(word: &str) -> bool {
    let name = word.split_once('=').map(|(name, _)| name);
    name.is_some_and(|name| !name.is_empty() && name.chars().all(|c| c.is_ascii_alphanumeric() || c == '_'))
}

fn is_plain(word: &str) -> bool {
    word.chars().all(|c| c.is_ascii_alphanumeric() || "/._-+".contains(c))
}

/// `python -m NAME`.
fn python_module(argv: &[String]) -> Option<&str> {
    let name = argv.first()?.rsplit('/').next()?;
    let is_python =
        name.strip_prefix("python").is_some_and(|rest| rest.chars().all(|c| c.is_ascii_digit() || c == '.'));
    let at = argv.iter().position(|word| word == "-m").filter(|at| is_python && *at < 4)?;
    argv.get(at + 1)?.split('.').next().filter(|module| is_plain(module))
}

/// Whether a Python lacks a module. A Python in the repo isn't started; its folder is examined.
fn lacks_module(env: &Environment, top: &Path, program: &str, module: &str) -> bool {
    if ["unittest", "doctest", "compileall", "py_compile"].contains(&module)
        || ralph_loop_app::trust::repo_file::is_file(&top.join(format!("{module}.py")))
        || top.join(module).is_dir()
    {
        return false;
    }
    if program.contains('/') && !program.starts_with('/') {
        let Some(home) = top.join(program).parent().and_then(Path::parent).map(Path::to_owned) else {
            return false;
        };
        let versions = ralph_loop_app::trust::repo_file::entries(&home.join("lib"), 20);
        let packages: Vec<_> = versions
            .into_iter()
            .map(|entry| home.join("lib").join(entry.name).join("site-packages"))
            .collect();
        let has = |folder: &std::path::PathBuf| {
            folder.join(module).is_dir() || folder.join(format!("{module}.py")).is_file()
        };
        return packages.iter().any(|folder| folder.is_dir()) && !packages.iter().any(has);
    }
    let Ok(scratch) = Scratch::new(env, "doctor-python") else { return false };
    let look =
        "import importlib.util, sys\nsys.exit(7 if importlib.util.find_spec(sys.argv[1]) is None else 0)";
    let argv = [program, "-c", look, module].map(str::to_owned).to_vec();
    let mut request = ExecRequest::new(argv);
    request.timeout = Some(TIMEOUT);
    let end = scratch.sandbox.exec(&request, &mut Output::default()).map(|outcome| outcome.end);
    matches!(end, Ok(ExecEnd::Exited(7)))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn commands(line: &str) -> Vec<String> {
        shell_commands(line).into_iter().map(|argv| argv.join(" ")).collect()
    }

    #[test]
    fn the_programs_of_a_shell_line_are_those_that_it_starts() {
        assert_eq!(commands("make lint && npm test"), ["make lint", "npm test"]);
        assert_eq!(commands("CI=1 ! nosuch -x; test -f a.txt | wc -l"), ["nosuch -x", "wc -l"]);
        assert_eq!(commands("grep -q 'a; b' file"), ["grep"]);
        assert_eq!(commands("cd web && ./run"), [""; 0]);
        assert_eq!(commands("\"$TOOL\" x"), [""; 0]);
        assert_eq!(commands("test -f a"), [""; 0]);
        assert_eq!(commands("if true; then nosuch; fi"), ["nosuch"]);
    }

    #[test]
    fn python_is_asked_for_the_module_that_it_runs() {
        let of = |line: &str| {
            let argv: Vec<String> = line.split(' ').map(str::to_owned).collect();
            python_module(&argv).map(str::to_owned)
        };
        assert_eq!(of("python3 -m pytest -q").as_deref(), Some("pytest"));
        assert_eq!(of(".venv/bin/python -m pytest").as_deref(), Some("pytest"));
        assert_eq!(of("python3 run.py"), None);
        assert_eq!(of("pythonic -m pytest"), None);
    }

    #[test]
    fn missing_programs_are_named_unless_setup_installs_them() {
        let top = tempfile::tempdir().unwrap();
        let env = Environment::new([("PATH", "/usr/bin:/bin")].into_iter().collect(), "/");
        let argv = |words: &[&str]| -> Vec<String> { words.iter().map(|word| (*word).to_owned()).collect() };
        let found = |words: &[&str], before| cannot_start(&env, top.path(), &argv(words), before);
        let program = |name: &str| Some(CannotStart::Program(name.to_owned()));
        assert_eq!(found(&["nosuch-tool"], false), program("nosuch-tool"));
        assert_eq!(found(&["sh", "-c", "nosuch-tool --all"], false), program("nosuch-tool"));
        assert_eq!(found(&["sh", "-c", "true && ls"], false), None);
        assert_eq!(found(&[".venv/bin/python", "-m", "pytest"], false), program(".venv/bin/python"));
        assert_eq!(found(&[".venv/bin/python", "-m", "pytest"], true), None);
        let bin = top.path().join(".venv/bin");
        std::fs::create_dir_all(&bin).unwrap();
        std::fs::create_dir_all(top.path().join(".venv/lib/python3.12/site-packages/pip")).unwrap();
        std::fs::write(bin.join("python"), "").unwrap();
        let module = found(&[".venv/bin/python", "-m", "pytest"], false).unwrap();
        assert_eq!(module.words(), "`.venv/bin/python` has no module `pytest`");
    }
}
