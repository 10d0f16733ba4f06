//! Programs as installers leave them: behind links, in linked folders, in the folders of tool managers. Each starts
//! in the sandbox by its `PATH` entry, and nothing else of the home is visible.

use crate::common::{PROBE, refused, run, sh};
use ralph_loop_domain::ports::{Credentials, ExecRequest, SandboxError};
use ralph_loop_sandbox::isolation::detect;
use ralph_loop_sandbox::{IsolationSpec, LocalIsolation, LocalOptions, LocalSandbox};
use ralph_loop_task::config::Isolation;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// Prints its name, and the content of the file next to its real one.
const STUB: &str =
    "#!/bin/sh\necho \"${0##*/} $(cat \"$(dirname \"$(readlink -f \"$0\")\")/data\" 2>/dev/null)\"\n";
/// The interpreter of a script.
const INTERPRETER: &str = "#!/bin/sh\necho \"interpreted ${1##*/}\"\n";

/// One entry of the home; `~` is the home and `@` the folder around it.
enum Entry {
    Program(&'static str, &'static str),
    Data(&'static str),
    Folder(&'static str),
    Link(&'static str, &'static str),
}
use Entry::{Data, Folder, Link, Program};

struct Layout {
    name: &'static str,
    entries: &'static [Entry],
    /// The folder of the `PATH` with `claude`.
    path: &'static str,
    says: &'static str,
}

const LAYOUTS: &[Layout] = &[
    Layout {
        name: "native installer, absolute link",
        entries: &[
            Program("~/.local/share/claude/versions/2.1.0", STUB),
            Link("~/.local/bin/claude", "~/.local/share/claude/versions/2.1.0"),
        ],
        path: "~/.local/bin",
        says: "claude ",
    },
    Layout {
        name: "native installer, relative link",
        entries: &[
            Program("~/.local/share/claude/versions/2.1.0", STUB),
            Link("~/.local/bin/claude", "../share/claude/versions/2.1.0"),
        ],
        path: "~/.local/bin",
        says: "claude ",
    },
    Layout {
        name: "npm global with its own prefix",
        entries: &[
            Program("~/packages/lib/node_modules/@x/claude/cli.js", STUB),
            Data("~/packages/lib/node_modules/@x/claude/data"),
            Link("~/packages/bin/claude", "../lib/node_modules/@x/claude/cli.js"),
        ],
        path: "~/packages/bin",
        says: "claude data",
    },
    Layout {
        name: "nvm",
        entries: &[
            Program("~/.nvm/versions/node/v22/lib/node_modules/claude/cli.js", STUB),
            Link("~/.nvm/versions/node/v22/bin/claude", "../lib/node_modules/claude/cli.js"),
        ],
        path: "~/.nvm/versions/node/v22/bin",
        says: "claude ",
    },
    Layout {
        name: "nvm with `current`",
        entries: &[
            Program("~/.nvm/versions/node/v22/lib/node_modules/claude/cli.js", STUB),
            Link("~/.nvm/versions/node/v22/bin/claude", "../lib/node_modules/claude/cli.js"),
            Link("~/.nvm/current", "~/.nvm/versions/node/v22"),
        ],
        path: "~/.nvm/current/bin",
        says: "claude ",
    },
    Layout {
        name: "volta: one program that is called by many names",
        entries: &[
            Program("~/.volta/bin/volta-shim", STUB),
            Link("~/.volta/bin/claude", "~/.volta/bin/volta-shim"),
        ],
        path: "~/.volta/bin",
        says: "claude ",
    },
    Layout {
        name: "fnm: a linked folder outside the home",
        entries: &[
            Program("~/.local/share/fnm/node-versions/v22/installation/lib/node_modules/claude/cli.js", STUB),
            Link(
                "~/.local/share/fnm/node-versions/v22/installation/bin/claude",
                "../lib/node_modules/claude/cli.js",
            ),
            Link("~/.local/share/fnm/aliases/default", "~/.local/share/fnm/node-versions/v22/installation"),
            Link("@/run/fnm_multishells/1_2", "~/.local/share/fnm/aliases/default"),
        ],
        path: "@/run/fnm_multishells/1_2/bin",
        says: "claude ",
    },
    Layout {
        name: "asdf: a shim that starts another program",
        entries: &[
            Program("~/.asdf/shims/claude", "#!/bin/sh\nexec HOME/.asdf/installs/claude/1/bin/claude\n"),
            Program("~/.asdf/installs/claude/1/bin/claude", STUB),
        ],
        path: "~/.asdf/shims",
        says: "claude ",
    },
    Layout {
        name: "mise: shims are links to its own program",
        entries: &[
            Program("~/.local/bin/mise", STUB),
            Link("~/.local/share/mise/shims/claude", "~/.local/bin/mise"),
        ],
        path: "~/.local/share/mise/shims",
        says: "claude ",
    },
    Layout {
        name: "mise: a version behind a linked folder",
        entries: &[
            Program("~/.local/share/mise/installs/claude/2.1.0/bin/claude", STUB),
            Link("~/.local/share/mise/installs/claude/latest", "./2.1.0"),
        ],
        path: "~/.local/share/mise/installs/claude/latest/bin",
        says: "claude ",
    },
    Layout {
        name: "Homebrew in another home",
        entries: &[
            Program("@/linuxbrew/.linuxbrew/Cellar/claude/2/libexec/claude", STUB),
            Data("@/linuxbrew/.linuxbrew/Cellar/claude/2/libexec/data"),
            Link("@/linuxbrew/.linuxbrew/Cellar/claude/2/bin/claude", "../libexec/claude"),
            Link("@/linuxbrew/.linuxbrew/bin/claude", "../Cellar/claude/2/bin/claude"),
        ],
        path: "@/linuxbrew/.linuxbrew/bin",
        says: "claude data",
    },
    Layout {
        name: "pyenv shims",
        entries: &[
            Program("~/.pyenv/shims/claude", "#!/bin/sh\nexec HOME/.pyenv/versions/3.12/bin/claude\n"),
            Program("~/.pyenv/versions/3.12/bin/claude", STUB),
        ],
        path: "~/.pyenv/shims",
        says: "claude ",
    },
    Layout {
        name: "pipx: a script for the Python of its environment, which is a link",
        entries: &[
            Program("~/pythons/3.12/bin/python3", INTERPRETER),
            Folder("~/pythons/3.12/lib/python3.12"),
            Link("~/venvs/claude/bin/python", "~/pythons/3.12/bin/python3"),
            Program("~/venvs/claude/bin/claude", "#!HOME/venvs/claude/bin/python\n"),
            Link("~/bin/claude", "~/venvs/claude/bin/claude"),
        ],
        path: "~/bin",
        says: "interpreted claude",
    },
    Layout {
        name: "a linked `~/bin`",
        entries: &[Program("~/dotfiles/bin/claude", STUB), Link("~/bin", "dotfiles/bin")],
        path: "~/bin",
        says: "claude ",
    },
    Layout {
        name: "a chain of three links",
        entries: &[
            Program("~/tools/claude-2/claude", STUB),
            Data("~/tools/claude-2/data"),
            Link("~/links/second", "../tools/claude-2/claude"),
            Link("~/links/first", "~/links/second"),
            Link("~/bin/claude", "../links/first"),
        ],
        path: "~/bin",
        says: "claude data",
    },
    Layout {
        name: "from the home to a folder outside it, and back by a linked folder",
        entries: &[
            Program("~/tools/claude-2/claude", STUB),
            Link("@/opt/claude", "~/tools/claude-2"),
            Link("~/bin/claude", "@/opt/claude/claude"),
        ],
        path: "~/bin",
        says: "claude ",
    },
    Layout {
        name: "a linked `.local` on another disk",
        entries: &[
            Program("@/disk/local/share/claude/versions/2", STUB),
            Link("~/.local", "@/disk/local"),
            Link("@/disk/local/bin/claude", "~/.local/share/claude/versions/2"),
        ],
        path: "~/.local/bin",
        says: "claude ",
    },
];

/// A home with a layout, some secrets, and a workspace.
struct Machine {
    dir: tempfile::TempDir,
}

impl Machine {
    fn new(entries: &[Entry]) -> Self {
        let machine = Self { dir: tempfile::tempdir().unwrap() };
        machine.write("~/.ssh/id", "private", 0o600);
        machine.write("~/letters/mine", "private", 0o600);
        std::fs::create_dir(machine.top().join("work")).unwrap();
        for entry in entries {
            match *entry {
                Program(path, text) => {
                    machine.write(path, &text.replace("HOME", machine.home().to_str().unwrap()), 0o755);
                }
                Data(path) => machine.write(path, "data\n", 0o644),
                Folder(path) => std::fs::create_dir_all(machine.at(path)).unwrap(),
                Link(path, target) => {
                    std::fs::create_dir_all(machine.at(path).parent().unwrap()).unwrap();
                    symlink(machine.at(target), machine.at(path)).unwrap();
                }
            }
        }
        machine
    }

    fn top(&self) -> PathBuf {
        self.dir.path().canonicalize().unwrap()
    }

    fn home(&self) -> PathBuf {
        self.top().join("home")
    }

    fn at(&self, path: &str) -> PathBuf {
        match (path.strip_prefix("~/"), path.strip_prefix("@/")) {
            (Some(below), _) => self.home().join(below),
            (_, Some(below)) => self.top().join(below),
            _ => PathBuf::from(path),
        }
    }

    fn write(&self, path: &str, text: &str, mode: u32) {
        let path = self.at(path);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, text).unwrap();
        std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
    }

    /// A sandbox with that folder first on the `PATH`, and its `claude` as the agent's program.
    fn sandbox(&self, isolation: Isolation, folder: &Path) -> Option<LocalSandbox> {
        let mut spec = IsolationSpec::new(self.top().join("state/run"));
        spec.programs = vec![folder.join("claude")];
        let chosen = detect(&ralph_loop_testkit::vars()).choose(isolation, spec);
        let isolation = chosen.map_err(|why| ralph_loop_testkit::skip(&why)).ok()?;
        Some(self.start(isolation, folder).unwrap())
    }

    fn start(&self, isolation: LocalIsolation, folder: &Path) -> Result<LocalSandbox, SandboxError> {
        let path = format!("{}:/usr/local/bin:/usr/bin:/bin", folder.display());
        let home = self.home().display().to_string();
        let vars = ralph_loop_testkit::vars().with([("HOME", home), ("PATH", path)]);
        let id = self.dir.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.').to_owned();
        let guard_exe = Some(PathBuf::from(PROBE));
        let options = LocalOptions { guard_exe, isolation, ..LocalOptions::new(id, &vars) };
        LocalSandbox::start(&self.top().join("work"), options)
    }
}

fn session(program: &Path) -> ExecRequest {
    let argv = vec![program.display().to_string(), "--version".to_owned()];
    ExecRequest { credentials: Credentials::Agent, ..ExecRequest::new(argv) }
}

#[test]
fn every_layout_starts_by_its_path_entry_and_shows_nothing_else() {
    for layout in LAYOUTS {
        for isolation in [Isolation::Bwrap, Isolation::Landlock] {
            let machine = Machine::new(layout.entries);
            let folder = machine.at(layout.path);
            let Some(sandbox) = machine.sandbox(isolation, &folder) else { continue };
            let label = format!("{} ({isolation:?})", layout.name);
            // Twice: what the first command needed exists when the second starts.
            for _ in 0..2 {
                let done = run(&sandbox, &session(&folder.join("claude")));
                let said = (done.outcome.end.code(), done.stdout.trim_end());
                assert_eq!(said, (Some(0), layout.says.trim_end()), "{label}: {}", done.stderr);
            }
            // By the `PATH` as well, and no secret next to it.
            let done = run(
                &sandbox,
                &sh(&format!("claude; cat {0}/.ssh/id {0}/letters/mine", machine.home().display())),
            );
            assert_eq!(done.stdout.trim_end(), layout.says.trim_end(), "{label}: {}", done.stderr);
        }
    }
}

#[test]
fn links_are_recreated_for_each_command() {
    let entries = [
        Program("~/dotfiles/bin/tool", STUB),
        Link("~/dotfiles/bin/claude", "tool"),
        Link("~/bin", "dotfiles/bin"),
    ];
    let machine = Machine::new(&entries);
    let folder = machine.at("~/bin");
    let Some(sandbox) = machine.sandbox(Isolation::Bwrap, &folder) else { return };
    for attempt in [
        "rm ~/bin; mkdir ~/bin; echo 'echo other' > ~/bin/claude; chmod +x ~/bin/claude",
        "rm ~/bin; ln -s /tmp ~/bin",
        "rm ~/bin",
        "true",
    ] {
        run(&sandbox, &sh(attempt));
        assert_eq!(run(&sandbox, &sh("readlink ~/bin")).stdout, "dotfiles/bin\n", "{attempt}");
        assert_eq!(run(&sandbox, &session(&folder.join("claude"))).stdout, "claude \n", "{attempt}");
    }
    let done = run(&sandbox, &sh("echo x > ~/dotfiles/bin/tool || echo x > ~/bin/new"));
    assert_ne!(done.outcome.end.code(), Some(0), "the tool is read-only");
}

#[test]
fn shims_find_the_chosen_versions_and_no_command_changes_them() {
    let shim = "#!/bin/sh\ncat ~/.tool-versions ~/.config/mise/config.toml\n";
    let machine = Machine::new(&[Program("~/.asdf/shims/claude", shim)]);
    machine.write("~/.tool-versions", "claude 2\n", 0o600);
    machine.write("~/.config/mise/config.toml", "[env]\nKEY = \"private\"\n[tools]\nclaude = \"2\"\n", 0o600);
    let folder = machine.at("~/.asdf/shims");
    for isolation in [Isolation::Bwrap, Isolation::Landlock] {
        let Some(sandbox) = machine.sandbox(isolation, &folder) else { continue };
        for _ in 0..2 {
            let done = run(&sandbox, &session(&folder.join("claude")));
            assert_eq!(done.stdout, "claude 2\n[tools]\nclaude = \"2\"\n", "{isolation:?}: {}", done.stderr);
        }
        if isolation == Isolation::Bwrap {
            run(
                &sandbox,
                &sh("echo other > ~/.tool-versions; mv ~/.config ~/moved; mv ~/.tool-versions ~/x"),
            );
            assert_eq!(run(&sandbox, &sh("cat ~/.tool-versions")).stdout, "claude 2\n");
        }
    }
}

#[test]
fn an_agent_that_cannot_be_started_is_an_error_and_no_session() {
    let entries = [Program("~/bin/claude", "#!/no/such/interpreter\n")];
    let machine = Machine::new(&entries);
    let folder = machine.at("~/bin");
    for isolation in [Isolation::Bwrap, Isolation::Landlock] {
        let Some(sandbox) = machine.sandbox(isolation, &folder) else { continue };
        let error = refused(&sandbox, &session(&folder.join("claude")));
        assert!(matches!(&error, SandboxError::CannotStart { .. }), "{error}");
        assert!(error.to_string().contains("No such file"), "{error}");
        // A check may run what has yet to be written: that one has failed.
        let done = run(&sandbox, &sh("true; exec ~/bin/claude"));
        assert_eq!(done.outcome.end.code(), Some(127));
    }
}

#[test]
fn a_sandbox_that_cannot_be_built_is_an_error_and_no_failed_command() {
    let machine = Machine::new(&[Program("~/bin/claude", STUB)]);
    let failing =
        "#!/bin/sh\necho \"bwrap: Creating new namespace failed: No space left on device\" >&2\nexit 1\n";
    machine.write("@/fake/bwrap", failing, 0o755);
    let isolation = LocalIsolation::Bwrap(IsolationSpec::new(machine.top().join("state/run")));
    let sandbox = machine.start(isolation, &machine.at("@/fake")).unwrap();
    let error = refused(&sandbox, &sh("true"));
    assert!(matches!(error, SandboxError::Broken(_)), "{error}");
    assert!(error.to_string().contains("Creating new namespace failed"), "{error}");
}
