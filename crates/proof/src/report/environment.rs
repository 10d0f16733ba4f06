//! Environment faults: a program, module or permission that a check lacks, with the fix. What the task itself
//! asks for doesn't count.

use std::path::Path;

/// What is missing in the environment, with the fix.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnvironmentFault {
    /// "`pytest` is not installed".
    pub what: String,
    pub cure: String,
}

impl EnvironmentFault {
    /// One sentence for the user.
    pub fn sentence(&self) -> String {
        format!("{}; {}", self.what, self.cure)
    }
}

/// Lines searched at the end of an output.
const LINES_MAX: usize = 60;

/// The fault in an output. `is_work` tells whether the task or repo mentions a name: then the work is
/// missing, not the environment.
pub fn fault(
    exit_code: Option<i32>,
    output: &str,
    is_work: &dyn Fn(&str) -> bool,
) -> Option<EnvironmentFault> {
    if exit_code == Some(0) {
        return None;
    }
    let lines: Vec<&str> = output.lines().rev().take(LINES_MAX).map(str::trim).collect();
    lines.iter().rev().find_map(|line| of_line(line, exit_code, is_work))
}

fn of_line(line: &str, exit_code: Option<i32>, is_work: &dyn Fn(&str) -> bool) -> Option<EnvironmentFault> {
    if let Some(module) = python_module(line) {
        return (!is_work(module)).then(|| missing_module(module));
    }
    if let Some(package) = node_package(line) {
        return (!is_work(package)).then(|| EnvironmentFault {
            what: format!("the package `{package}` is not installed"),
            cure: "run `npm install` (or add it to `setup_commands`)".into(),
        });
    }
    if let Some(name) = between(line, "cannot load such file -- ", "").map(first_word)
        && !name.contains('/')
    {
        return (!is_work(name)).then(|| EnvironmentFault {
            what: format!("the gem `{name}` is not installed"),
            cure: format!("run `gem install {name}`"),
        });
    }
    if let Some(name) = between(line, "error: no such command: `", "`") {
        return Some(EnvironmentFault {
            what: format!("`cargo {name}` is not installed"),
            cure: format!("run `cargo install cargo-{name}`"),
        });
    }
    if let Some(name) = between(line, "error: linker `", "` not found") {
        return Some(missing_program(name));
    }
    if line.contains("Cannot connect to the Docker daemon") {
        return Some(EnvironmentFault {
            what: "no Docker daemon answers".into(),
            cure: "start it: `sudo systemctl start docker`".into(),
        });
    }
    if exit_code == Some(126) || line.ends_with(": Permission denied") {
        let path = line.strip_suffix(": Permission denied")?.rsplit([':', ' ']).next()?.trim_matches(QUOTES);
        return (path.contains('/') || exit_code == Some(126)).then(|| EnvironmentFault {
            what: format!("`{path}` may not be executed"),
            cure: format!("run `chmod +x {path}` and commit it"),
        });
    }
    let name = program(line, exit_code)?;
    // A script of the repo belongs to the work.
    let own = (name.contains('/') && !name.starts_with('/')) || is_work(name);
    (!own).then(|| missing_program(name))
}

/// The port of this machine whose connection an output reports as refused. In a sandbox with its own network, servers
/// of the machine don't answer.
pub fn refused_port(output: &str) -> Option<u16> {
    output.lines().rev().take(LINES_MAX).find_map(|line| {
        let folded = line.to_ascii_lowercase();
        let signs = ["refused", "(111)", "errno 111", "couldn't connect to server"];
        if !signs.iter().any(|sign| folded.contains(sign)) {
            return None;
        }
        let names = ["localhost", "127.0.0.1", "::1", "0.0.0.0"];
        names.iter().flat_map(|name| folded.match_indices(name)).find_map(|(at, name)| {
            let rest = &folded[at + name.len()..];
            let between = |c: char| c.is_ascii_punctuation() || c == ' ' || "port".contains(c);
            let rest = rest.trim_start_matches(between);
            let digits = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
            let is_address = rest[digits..]
                .strip_prefix('.')
                .is_some_and(|more| more.starts_with(|c: char| c.is_ascii_digit()));
            rest[..digits].parse().ok().filter(|port| *port > 0 && !is_address)
        })
    })
}

/// The first path that an output reports as missing or forbidden and that `hides` knows to be out of sight.
pub fn hidden_path(output: &str, hides: impl Fn(&Path) -> bool) -> Option<&str> {
    output.lines().rev().take(LINES_MAX).find_map(|line| {
        let folded = line.to_ascii_lowercase();
        let signs =
            ["no such file", "not found", "enoent", "does not exist", "doesn't exist", "permission denied"];
        if !signs.iter().any(|sign| folded.contains(sign)) {
            return None;
        }
        let words =
            line.split(|c: char| c.is_whitespace() || QUOTES.contains(&c) || ",;()[]{}<>=".contains(c));
        let paths = words.map(|word| word.trim_end_matches([':', '.'])).filter(|word| word.len() > 1);
        paths.into_iter().find(|word| word.starts_with('/') && hides(Path::new(word)))
    })
}

/// Words that are built into other shells: a script that uses them is wrong, and nothing is missing.
const SHELL_WORDS: [&str; 8] = ["[[", "declare", "function", "let", "mapfile", "pushd", "shopt", "source"];

const QUOTES: [char; 5] = ['\'', '"', '`', '‘', '’'];

/// The program that a shell, `env`, `make` or the engine couldn't find.
fn program(line: &str, exit_code: Option<i32>) -> Option<&str> {
    let named = line
        .strip_suffix(": command not found")
        .or_else(|| line.strip_suffix(": not found").filter(|_| exit_code == Some(127)))
        .or_else(|| {
            let rest = line.strip_suffix(": No such file or directory")?;
            let from_env = rest.starts_with("env: ") || rest.starts_with("/usr/bin/env: ");
            (from_env || rest.starts_with("make: ") || exit_code == Some(127)).then_some(rest)
        });
    if let Some(named) = named {
        let name = named.rsplit(": ").next()?.trim_matches(QUOTES);
        let is_program = !name.is_empty() && !name.contains(' ') && !SHELL_WORDS.contains(&name);
        return is_program.then_some(name);
    }
    let rest = between(line, "cannot start `", "`")?;
    line.to_ascii_lowercase().contains("no such file").then_some(rest)
}

fn python_module(line: &str) -> Option<&str> {
    let at = line.find("No module named ")? + "No module named ".len();
    let module = first_word(&line[at..]).trim_matches(QUOTES);
    Some(module.split('.').next().unwrap_or(module)).filter(|name| !name.is_empty())
}

fn node_package(line: &str) -> Option<&str> {
    let rest =
        between(line, "Cannot find module '", "'").or_else(|| between(line, "Cannot find package '", "'"))?;
    (!rest.starts_with(['.', '/']) && !rest.contains(":\\")).then_some(rest)
}

fn between<'a>(line: &'a str, start: &str, end: &str) -> Option<&'a str> {
    let rest = &line[line.find(start)? + start.len()..];
    if end.is_empty() { Some(rest) } else { rest.find(end).map(|at| &rest[..at]) }
}

fn first_word(text: &str) -> &str {
    text.split_whitespace().next().unwrap_or_default()
}

fn missing_module(module: &str) -> EnvironmentFault {
    let package = match module {
        "yaml" => "pyyaml",
        "cv2" => "opencv-python",
        "PIL" => "pillow",
        "sklearn" => "scikit-learn",
        "bs4" => "beautifulsoup4",
        "dotenv" => "python-dotenv",
        other => other,
    };
    EnvironmentFault {
        what: format!("the Python module `{module}` is not installed"),
        cure: format!("run `pip install {package}` (or add it to `setup_commands`)"),
    }
}

/// A missing program with the command that installs it.
pub fn missing_program(name: &str) -> EnvironmentFault {
    let cure = match name {
        "cargo" | "rustc" => "install Rust: `curl https://sh.rustup.rs -sSf | sh`".to_owned(),
        "node" | "npm" | "npx" => "install Node.js: `sudo apt install nodejs npm`".to_owned(),
        "pnpm" | "yarn" | "jest" | "vitest" | "tsc" | "eslint" => format!("run `npm install -g {name}`"),
        "pytest" | "ruff" | "mypy" | "black" | "tox" | "nox" | "flake8" | "uv" | "poetry" => {
            format!("run `pip install {name}`")
        }
        "python" | "python3" | "pip" | "pip3" => {
            "install Python: `sudo apt install python3 python3-pip python-is-python3`".to_owned()
        }
        "go" => "install Go: `sudo apt install golang`".to_owned(),
        "make" | "cc" | "gcc" | "g++" => "run `sudo apt install build-essential`".to_owned(),
        "mvn" => "run `sudo apt install maven`".to_owned(),
        "java" | "javac" => "run `sudo apt install default-jdk`".to_owned(),
        other => format!("install `{other}`, or put it on the PATH that checks see"),
    };
    EnvironmentFault { what: format!("`{name}` is not installed"), cure }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(exit_code: i32, output: &str) -> Option<String> {
        fault(Some(exit_code), output, &|name| name == "calc").map(|f| f.sentence())
    }

    #[test]
    fn missing_tools_are_reported_with_a_fix() {
        for (code, output, want) in [
            (127, "sh: 1: pytest: not found\n", "`pytest` is not installed; run `pip install pytest`"),
            (
                127,
                "bash: line 1: frobnicate: command not found\n",
                "`frobnicate` is not installed; install `frobnicate`",
            ),
            (1, "/usr/bin/env: ‘node’: No such file or directory\n", "`node` is not installed"),
            (2, "make: cargo: No such file or directory\n", "`cargo` is not installed"),
            (
                1,
                "/usr/bin/python3: No module named pytest\n",
                "the Python module `pytest` is not installed; run `pip install pytest`",
            ),
            (1, "ModuleNotFoundError: No module named 'yaml.x'\n", "`pip install pyyaml`"),
            (1, "Error: Cannot find module 'express'\n", "the package `express` is not installed"),
            (101, "error: no such command: `nextest`\n", "run `cargo install cargo-nextest`"),
            (126, "sh: 1: ./check.sh: Permission denied\n", "run `chmod +x ./check.sh`"),
            (-1, "cannot start `mvn`: No such file or directory\n", "`mvn` is not installed"),
        ] {
            let found = what(code, output).unwrap_or_default();
            assert!(found.contains(want), "{output}: {found}");
        }
    }

    #[test]
    fn refused_connections_of_common_clients_name_their_port() {
        for (line, port) in [
            ("Error: connect ECONNREFUSED 127.0.0.1:5432", 5432),
            ("Error: connect ECONNREFUSED ::1:6379", 6379),
            ("dial tcp [::1]:3306: connect: connection refused", 3306),
            ("connection to server at \"localhost\" (127.0.0.1), port 5433 failed: Connection refused", 5433),
            (
                "redis.exceptions.ConnectionError: Error 111 connecting to localhost:6380. Connection refused.",
                6380,
            ),
            ("HTTPConnectionPool(host='localhost', port=8000): Connection refused", 8000),
            ("org.postgresql.util.PSQLException: Connection to localhost:5434 refused.", 5434),
            (
                "curl: (7) Failed to connect to localhost port 8080 after 0 ms: Couldn't connect to server",
                8080,
            ),
            ("Can't connect to MySQL server on '127.0.0.1:3307' (111)", 3307),
        ] {
            assert_eq!(refused_port(line), Some(port), "{line}");
        }
        for line in [
            "ConnectionRefusedError: [Errno 111] Connection refused",
            "listening on localhost:3000",
            "dial tcp 93.184.216.34:443: connect: connection refused",
            "AssertionError: the visitor was refused entry",
        ] {
            assert_eq!(refused_port(line), None, "{line}");
        }
    }

    #[test]
    fn a_missing_path_outside_the_sandbox_is_found() {
        let hides = |path: &Path| path.starts_with("/srv");
        for line in [
            "cat: /srv/data/x.csv: No such file or directory",
            "FileNotFoundError: [Errno 2] No such file or directory: '/srv/data/x.csv'",
            "Error: ENOENT: no such file or directory, open '/srv/data/x.csv'",
            "sh: 1: cannot open /srv/data/x.csv: Permission denied",
        ] {
            assert_eq!(hidden_path(line, hides), Some("/srv/data/x.csv"), "{line}");
        }
        for line in ["reads /srv/data/x.csv", "cat: /usr/x: No such file or directory", "a/srv/x not found"] {
            assert_eq!(hidden_path(line, hides), None, "{line}");
        }
    }

    #[test]
    fn failures_of_requested_work_are_ordinary() {
        for (code, output) in [
            (1, "ModuleNotFoundError: No module named 'calc'\n"),
            (127, "sh: 1: ./build.sh: not found\n"),
            (1, "Error: Cannot find module './calc.js'\n"),
            (1, "cat: notes.txt: No such file or directory\n"),
            (1, "AssertionError: expected 'command' not found in list\n"),
            (0, "sh: 1: pytest: not found\n"),
        ] {
            assert_eq!(what(code, output), None, "{output}");
        }
    }
}
