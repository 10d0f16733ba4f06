//! Files in a repo, or left by an agent, that aren't regular files: pipes, links out of the repo, devices, sockets, folders,
//! endless files. `ralph` refuses each by name with a fix, or ignores it; it never blocks, and reads or writes nothing outside.
//! Each attack has an honest twin: a regular file at the same path.

use super::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

const WORK: &str = "cat > /dev/null; echo x > part.txt; echo '<promise>COMPLETE</promise>'";
const SECRET: &str = "TOPSECRET of the user";
const RUN: &[&str] = &["run", "--isolation", "none", "--json"];

/// A repo, and a user folder next to it.
struct Ground<'a> {
    env: &'a TestEnv,
    repo: TestRepo<'a>,
    victim: PathBuf,
}

impl<'a> Ground<'a> {
    fn new(env: &'a TestEnv) -> Self {
        let victim = env.path("victim");
        std::fs::create_dir_all(&victim).unwrap();
        std::fs::write(victim.join("file"), format!("{SECRET}\n")).unwrap();
        let repo = TestRepo::with_task(env);
        repo.stub(WORK, "test -f part.txt");
        Self { env, repo, victim }
    }

    fn at(&self, path: &str) -> PathBuf {
        let path = self.repo.dir.join(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        if path.is_dir() && !path.is_symlink() {
            std::fs::remove_dir_all(&path).unwrap();
        } else if path.symlink_metadata().is_ok() {
            std::fs::remove_file(&path).unwrap();
        }
        path
    }

    fn fifo(&self, path: &str) {
        let path = self.at(path);
        TestEnv::finish(self.env.command("mkfifo", &self.repo.dir).arg(path)).exits(0);
    }

    fn out(&self, path: &str) {
        symlink(self.victim.join("file"), self.at(path)).unwrap();
    }

    fn out_folder(&self, path: &str) {
        symlink(&self.victim, self.at(path)).unwrap();
    }

    fn link(&self, path: &str, to: &str) {
        symlink(to, self.at(path)).unwrap();
    }

    fn big(&self, path: &str) {
        std::fs::File::create(self.at(path)).unwrap().set_len(200 << 20).unwrap();
    }

    fn socket(&self, path: &str) {
        let listener = UnixListener::bind(self.at(path)).unwrap();
        std::mem::forget(listener);
    }

    fn folder(&self, path: &str) {
        std::fs::create_dir_all(self.at(path)).unwrap();
    }

    fn track(&self) {
        self.repo.git(&["add", "-A", "-f"]);
        self.repo.git(&["commit", "-q", "-m", "a gift"]);
    }

    /// Files that no attack may change.
    fn assert_untouched(&self, name: &str) {
        let names: Vec<_> =
            std::fs::read_dir(&self.victim).unwrap().flatten().map(|e| e.file_name()).collect();
        assert_eq!(names, ["file"], "{name}: something was made outside");
        let text = std::fs::read_to_string(self.victim.join("file")).unwrap();
        assert_eq!(text, format!("{SECRET}\n"), "{name}: a file outside was changed");
        for prompt in prompts(&self.env.path("state")) {
            let text = std::fs::read_to_string(&prompt).unwrap_or_default();
            assert!(!text.contains(SECRET), "{name}: a file outside reached {prompt:?}");
        }
    }
}

fn prompts(folder: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => found.extend(prompts(&entry.path())),
            Ok(kind) if kind.is_file() => found.push(entry.path()),
            _ => {}
        }
    }
    found
}

type Lay = fn(&Ground<'_>);

/// One attack: the hostile file, the command, and the name in the refusal. An empty name: the file is ignored.
struct RepoFile {
    name: &'static str,
    lay: Lay,
    call: &'static [&'static str],
    refused: &'static str,
    twin: Lay,
}

const fn attack(
    name: &'static str,
    lay: Lay,
    call: &'static [&'static str],
    refused: &'static str,
    twin: Lay,
) -> RepoFile {
    RepoFile { name, lay, call, refused, twin }
}

const PLAIN: Lay = |_| {};
const MODELS: &str = "default: x\nprofiles:\n  x: {litellm_model: zai/glm-4.7}\n";
const PRICES: &str = r#"{"x": {"input_cost_per_token": 0.1, "output_cost_per_token": 0.2}}"#;
const PRICED: &str = "default: x\nprices_file: prices.json\nprofiles:\n  x: {litellm_model: zai/glm-4.7}\n";
const TASK: &str = "---\ntask_id: x\ntest_command: test -f part.txt\nmax_iterations: 3\nmax_wall_time_minutes: 5\n\
    max_cost_usd_estimate: 1\n---\n# Task: The part\n\nWrite it.\n\n## Success criteria\n- [ ] M1.1 it is there\n  - verify: \
    `test -f part.txt`\n- [ ] M1.2 it is a file\n  - verify: `test -f part.txt`\n";

fn play(attacks: &[RepoFile]) {
    for RepoFile { name, lay, call, refused, twin } in attacks {
        let env = TestEnv::new(RALPH);
        let ground = Ground::new(&env);
        lay(&ground);
        // A second time, too: leftovers of the first attempt change nothing.
        for time in ["first", "second"] {
            let done = ground.repo.ralph(call);
            let shown = format!("{}{}", done.stdout, done.stderr);
            assert!(!shown.contains(SECRET), "{name}, {time}: a file outside is shown: {shown}");
            if refused.is_empty() {
                assert_eq!(done.code, Some(0), "{name}, {time}: {shown}");
            } else {
                assert!(matches!(done.code, Some(2 | 4)), "{name}, {time}: {:?} {shown}", done.code);
                assert!(shown.contains(refused), "{name}, {time}: no `{refused}` in {shown}");
                assert!(
                    shown.contains("next:") || shown.contains("fix:"),
                    "{name}, {time}: the error has no fix: {shown}"
                );
            }
            ground.assert_untouched(name);
            if refused.is_empty() {
                break;
            }
        }
        let env = TestEnv::new(RALPH);
        let ground = Ground::new(&env);
        twin(&ground);
        let done = ground.repo.ralph(call);
        assert_eq!(done.code, Some(0), "{name}, its twin: {}{}", done.stdout, done.stderr);
    }
}

#[test]
fn config_that_is_not_a_regular_file_is_refused() {
    const FILE: &str = ".ralph/config.json";
    play(&[
        attack("config.json is a pipe", |g| g.fifo(FILE), RUN, FILE, PLAIN),
        attack("config.json is a link out of the repo", |g| g.out(FILE), RUN, FILE, PLAIN),
        attack("config.json is a link to a device", |g| g.link(FILE, "/dev/zero"), RUN, FILE, PLAIN),
        attack(
            "config.json is a link to a pipe of the repo",
            |g| {
                g.fifo("pipe");
                g.link(FILE, "../pipe");
            },
            RUN,
            FILE,
            |g| {
                // A link to another file of the repo is honest.
                let text = g.repo.read(FILE);
                g.repo.write("shared/config.json", &text);
                g.link(FILE, "../shared/config.json");
            },
        ),
        attack("config.json is a link to itself", |g| g.link(FILE, "config.json"), RUN, FILE, PLAIN),
        attack("config.json is endless", |g| g.big(FILE), RUN, FILE, PLAIN),
        attack("config.json is a folder", |g| g.folder(FILE), RUN, FILE, PLAIN),
        attack("config.json is a socket", |g| g.socket(FILE), RUN, FILE, PLAIN),
        attack(
            "config.json is a link through /proc",
            |g| g.link(FILE, "/proc/self/environ"),
            RUN,
            FILE,
            PLAIN,
        ),
        attack("a doctor meets a pipe as config.json", |g| g.fifo(FILE), &["lint"], FILE, PLAIN),
    ]);
}

#[test]
fn models_and_prices_that_are_not_regular_files_are_refused() {
    const FILE: &str = ".ralph/models.yaml";
    play(&[
        attack("models.yaml is a pipe", |g| g.fifo(FILE), RUN, FILE, |g| g.repo.write(FILE, MODELS)),
        attack(
            "models.yaml is a link out of the repo",
            |g| g.out(FILE),
            RUN,
            FILE,
            |g| {
                g.repo.write("models.yaml", MODELS);
                g.link(FILE, "../models.yaml");
            },
        ),
        attack("models.yaml is endless", |g| g.big(FILE), RUN, FILE, |g| g.repo.write(FILE, MODELS)),
        attack(
            "config/models.yaml is a pipe",
            |g| g.fifo("config/models.yaml"),
            RUN,
            "config/models.yaml",
            |g| {
                g.repo.write("config/models.yaml", MODELS);
            },
        ),
        attack(
            "config is a link out of the repo",
            |g| {
                std::fs::remove_file(g.victim.join("file")).unwrap();
                std::fs::write(g.victim.join("file"), format!("{SECRET}\n")).unwrap();
                g.link("config", "../victim");
            },
            RUN,
            "",
            |g| g.repo.write("config/models.yaml", MODELS),
        ),
        attack(
            "a list of prices is a pipe",
            |g| {
                g.repo.write(FILE, PRICED);
                g.fifo(".ralph/prices.json");
            },
            RUN,
            "prices.json",
            |g| {
                g.repo.write(FILE, PRICED);
                g.repo.write(".ralph/prices.json", PRICES);
            },
        ),
        attack(
            "a list of prices is a link out of the repo",
            |g| {
                g.repo.write(FILE, PRICED);
                g.out(".ralph/prices.json");
            },
            RUN,
            "prices.json",
            |g| {
                g.repo.write(FILE, PRICED);
                g.repo.write(".ralph/prices.json", PRICES);
            },
        ),
        attack(
            "a list of prices is endless",
            |g| {
                g.repo.write(FILE, PRICED);
                g.big(".ralph/prices.json");
            },
            RUN,
            "prices.json",
            |g| {
                g.repo.write(FILE, PRICED);
                g.repo.write(".ralph/prices.json", PRICES);
            },
        ),
    ]);
}

#[test]
fn dotenv_that_is_not_a_regular_file_is_refused_but_a_folder_is_ignored() {
    play(&[
        attack(".env is a pipe", |g| g.fifo(".env"), RUN, ".env", |g| g.repo.write(".env", "A=b\n")),
        attack(
            ".env is a link out of the repo",
            |g| g.out(".env"),
            RUN,
            ".env",
            |g| {
                // A user's link: git ignores it, so it can't come from a clone.
                g.repo.write(".gitignore", ".env\n");
                g.out(".env");
            },
        ),
        attack(
            ".env is a tracked link out of the repo",
            |g| {
                g.repo.write(".gitignore", ".env\n");
                g.out(".env");
                g.track();
            },
            RUN,
            ".env",
            |g| {
                g.repo.write("shared.env", "A=b\n");
                g.link(".env", "shared.env");
                g.track();
            },
        ),
        attack(
            ".env is a device",
            |g| g.link(".env", "/dev/zero"),
            RUN,
            ".env",
            |g| g.repo.write(".env", ""),
        ),
        attack(".env is endless", |g| g.big(".env"), RUN, ".env", |g| g.folder(".env")),
        attack(".env is a socket", |g| g.socket(".env"), RUN, ".env", |g| g.folder(".env")),
        attack(".env is a pipe for every other command", |g| g.fifo(".env"), &["list", "--json"], "", PLAIN),
        attack(".env is a pipe for the model list", |g| g.fifo(".env"), &["models", "--json"], ".env", PLAIN),
    ]);
}

#[test]
fn task_that_is_not_a_regular_file_is_refused() {
    let lay_task: Lay = |g| g.repo.write("ralph_task.md", TASK);
    play(&[
        attack("PROMPT.md is a pipe", |g| g.fifo("PROMPT.md"), RUN, "PROMPT.md", PLAIN),
        attack(
            "PROMPT.md is a link out of the repo",
            |g| g.out("PROMPT.md"),
            RUN,
            "PROMPT.md",
            |g| {
                g.repo.write("docs/task.md", "# Do the work\n\nWrite `part.txt`.\n");
                g.link("PROMPT.md", "docs/task.md");
            },
        ),
        attack("PROMPT.md is endless", |g| g.big("PROMPT.md"), RUN, "PROMPT.md", PLAIN),
        attack("PROMPT.md is a device", |g| g.link("PROMPT.md", "/dev/zero"), RUN, "PROMPT.md", PLAIN),
        attack(
            "a named task is a pipe",
            |g| g.fifo("ralph_task.md"),
            &["lint", "ralph_task.md"],
            "ralph_task.md",
            lay_task,
        ),
        attack(
            "a named task is a link out",
            |g| g.out("ralph_task.md"),
            &["lint", "ralph_task.md"],
            "ralph_task.md",
            lay_task,
        ),
        attack(
            "a task lies in a linked folder",
            |g| {
                g.out_folder("docs");
            },
            &["run", "docs/file", "--isolation", "none", "--json"],
            "docs/file",
            |g| {
                g.repo.write("docs/file", "# Do the work\n\nWrite `part.txt`.\n");
            },
        ),
        attack(
            "the plan's description is a pipe",
            |g| {
                g.repo.ralph(&["init", "--plan", "--force"]).exits(0);
                g.fifo("ralph/prd.md");
            },
            &["run", "ralph/tasks.json", "--isolation", "none", "--json"],
            "ralph/prd.md",
            |g| {
                g.repo.write("ralph/tasks.json", &json!({"project": "p", "branchName": "b", "description": "d",
                "verifyCommands": ["test -f part.txt"], "userStories": [{"id": "US-1", "title": "t", "description": "d",
                "acceptanceCriteria": ["Typecheck passes"], "priority": 1, "passes": false, "notes": ""}]}).to_string());
                g.repo.write("ralph/prd.md", "# Plan\n");
                g.repo.stub(
                "cat > /dev/null; echo x > part.txt; sed -i 's/\"passes\": *false/\"passes\": true/' ralph/tasks.json; \
                 echo '<promise>COMPLETE</promise>'",
                "test -f part.txt",
            );
            },
        ),
    ]);
}

#[test]
fn prompt_files_must_be_inside_the_repo() {
    play(&[
        attack("guardrails.md is a link out of the repo", |g| g.out(".ralph/guardrails.md"), RUN, "", PLAIN),
        attack("notes.md is a link out of the repo", |g| g.out(".ralph/notes.md"), RUN, "", PLAIN),
        attack("progress.md is a pipe", |g| g.fifo(".ralph/progress.md"), RUN, "", PLAIN),
        attack(
            "diagnostics.md is a device",
            |g| g.link(".ralph/diagnostics.md", "/dev/zero"),
            RUN,
            "",
            PLAIN,
        ),
        attack("errors.log is a link out of the repo", |g| g.out(".ralph/errors.log"), RUN, "", PLAIN),
        attack(
            "guardrails.md is endless",
            |g| g.big(".ralph/guardrails.md"),
            RUN,
            "",
            |g| {
                g.repo.write(".ralph/guardrails.md", "be careful\n");
            },
        ),
        attack(
            "a story's context is a link out of the repo",
            |g| {
                g.repo.write("ralph.json", &context("notes.txt"));
                g.out("notes.txt");
            },
            &["run", "ralph.json", "--isolation", "none", "--json"],
            "",
            |g| {
                g.repo.write("ralph.json", &context("readme.txt"));
            },
        ),
        attack(
            "a story's context is a pipe",
            |g| {
                g.repo.write("ralph.json", &context("notes.txt"));
                g.fifo("notes.txt");
            },
            &["run", "ralph.json", "--isolation", "none", "--json"],
            "",
            |g| {
                g.repo.write("ralph.json", &context("readme.txt"));
            },
        ),
    ]);
}

fn context(file: &str) -> String {
    json!({"version": 2, "task": "Write part.txt", "context_files": [file],
        "acceptance_criteria": [{"type": "file_exists", "path": "part.txt", "description": "it is there"}]})
    .to_string()
}

#[test]
fn project_detection_never_blocks() {
    const INIT: &[&str] = &["init", "--force", "--json"];
    play(&[
        attack(
            "package.json is a pipe",
            |g| g.fifo("package.json"),
            INIT,
            "",
            |g| g.repo.write("package.json", "{}"),
        ),
        attack(
            "Makefile is a pipe",
            |g| g.fifo("Makefile"),
            INIT,
            "",
            |g| g.repo.write("Makefile", "test:\n\ttrue\n"),
        ),
        attack(
            "pyproject.toml is a device",
            |g| g.link("pyproject.toml", "/dev/zero"),
            INIT,
            "",
            |g| {
                g.repo.write("pyproject.toml", "[tool.ruff]\n");
            },
        ),
        attack(
            "a test file is a pipe",
            |g| g.fifo("tests/test_a.py"),
            INIT,
            "",
            |g| {
                g.repo.write("tests/test_a.py", "import unittest\n");
            },
        ),
        attack(
            "the folder of tests is a link out of the repo",
            |g| g.out_folder("tests"),
            INIT,
            "",
            |g| {
                g.repo.write("tests/test_a.py", "import unittest\n");
            },
        ),
        attack(
            "a configuration of the older format is a pipe",
            |g| g.fifo(".ralf/config.json"),
            INIT,
            ".ralf/config.json",
            |g| {
                g.repo.write(".ralf/config.json", "{}");
            },
        ),
        attack(
            "a configuration of the older format is a link out",
            |g| g.out(".ralf/config.json"),
            INIT,
            ".ralf/config.json",
            |g| {
                g.repo.write(".ralf/config.json", "{}");
            },
        ),
    ]);
}

#[test]
fn written_files_never_follow_links() {
    play(&[
        attack(
            "init meets .ralph as a link out",
            |g| g.out_folder(".ralph"),
            &["init", "--force"],
            ".ralph",
            PLAIN,
        ),
        attack(
            "init --plan meets ralph/ as a link out",
            |g| g.out_folder("ralph"),
            &["init", "--plan", "--force"],
            "`ralph`",
            PLAIN,
        ),
        attack(
            "init --task meets its file as a link out",
            |g| g.out("ralph_task.md"),
            &["init", "--task", "--force"],
            "",
            PLAIN,
        ),
        attack(
            "init meets config.json as a link out",
            |g| g.out(".ralph/config.json"),
            &["init", "--force"],
            "",
            PLAIN,
        ),
        attack(
            "init meets the guardrails as a link out",
            |g| g.out(".ralph/guardrails.md"),
            &["init", "--force"],
            "",
            PLAIN,
        ),
        attack(
            "lint --fix meets a link out",
            |g| g.out("ralph_task.md"),
            &["lint", "--fix", "ralph_task.md"],
            "ralph_task.md",
            |g| {
                g.repo.write("docs/task.md", TASK);
                g.link("ralph_task.md", "docs/task.md");
            },
        ),
    ]);
}

/// A run shipped by a repo is read-only, and reading it neither blocks nor leaves the repo.
#[test]
fn reading_a_run_shipped_by_a_repo_never_blocks() {
    let env = TestEnv::new(RALPH);
    let ground = Ground::new(&env);
    let run = ground.repo.run(&[]).exits(0).json()["run_id"].as_str().unwrap().to_owned();
    let other = TestEnv::new(RALPH);
    for file in [
        "events.jsonl",
        "spec.json",
        "iterations/1/output.log",
        "proof.json",
        "iterations/1/receipt.json",
        "inbox.jsonl",
    ] {
        for lay in ["pipe", "out", "zero", "big"] {
            let place = Ground::new(&other);
            let shipped = place.repo.dir.join(".ralph/runs").join(&run);
            std::fs::create_dir_all(shipped.parent().unwrap()).unwrap();
            let from = ground.repo.record(&run);
            TestEnv::finish(other.command("cp", &place.repo.dir).arg("-rL").arg(&from).arg(&shipped))
                .exits(0);
            let file_of = format!(".ralph/runs/{run}/{file}");
            match lay {
                "pipe" => place.fifo(&file_of),
                "out" => place.out(&file_of),
                "zero" => place.link(&file_of, "/dev/zero"),
                _ => place.big(&file_of),
            }
            for call in [
                &["list", "--json"][..],
                &["status", &run],
                &["show", &run],
                &["logs", &run],
                &["show", &run, "--proof"],
            ] {
                // Unreadable files are reported or omitted; the command must end and show none of the user's files.
                let done = place.repo.ralph(call);
                assert!(done.code.is_some(), "{file} {lay} {call:?}: {}", done.stderr);
                let shown = format!("{}{}", done.stdout, done.stderr);
                assert!(!shown.contains(SECRET), "{file} {lay} {call:?}: {shown}");
            }
            place.assert_untouched(file);
            std::fs::remove_dir_all(&place.repo.dir).unwrap();
        }
    }
    // The twin: the run is shown on its own machine.
    for call in [&["status", &run][..], &["show", &run], &["logs", &run], &["show", &run, "--proof"]] {
        ground.repo.ralph(call).exits(0);
    }
}
