//! Indirect escapes: what a command leaves in its tree, and `ralph`, outside the sandbox, reads, writes or removes
//! later. Each is created in the sandbox; then the engine's calls must not be led outside.

use super::bait::SecretFixture;
use ralph_loop_safe_fs::{Links, SafeDir};
use std::io::{Read as _, Write as _};
use std::path::Path;

const MOST: u64 = 64 * 1024;

/// Something that a command leaves, and what the engine does with it.
pub(super) struct EscapeRoute {
    pub(super) name: &'static str,
    /// What is tried, as text.
    pub(super) what: &'static str,
    /// Creates it, in the workspace.
    pub(super) lay: &'static str,
    /// What the engine does; true if it was led outside.
    pub(super) engine: fn(&SafeDir, &SecretFixture) -> bool,
    /// The same with ordinary calls, if harmless; true if they were led outside.
    pub(super) ordinary: Option<fn(&Path, &SecretFixture) -> bool>,
}

fn is_secret(bytes: &[u8]) -> bool {
    bytes.windows(11).any(|piece| piece == b"bait-secret")
}

fn reads(tree: &SafeDir, path: &str, links: Links) -> bool {
    tree.read(path, links, MOST).is_ok_and(|bytes| is_secret(&bytes))
}

fn ordinary(tree: &Path, path: &str) -> bool {
    let mut bytes = Vec::new();
    let read = std::fs::File::open(tree.join(path)).and_then(|file| file.take(MOST).read_to_end(&mut bytes));
    read.is_ok() && is_secret(&bytes)
}

/// Every indirect escape.
#[rustfmt::skip]
pub(super) const ESCAPE_ROUTES: &[EscapeRoute] = &[
    EscapeRoute {
        name: "left-link", what: "leave a link to a secret where ralph reads notes",
        lay: "mkdir -p left && ln -sfn \"$BAIT/secret\" left/notes.md",
        engine: |tree, _| reads(tree, "left/notes.md", Links::Refused),
        ordinary: Some(|tree, _| ordinary(tree, "left/notes.md")),
    },
    EscapeRoute {
        name: "left-link-inside", what: "leave a link to a secret where links of the repo are followed",
        lay: "mkdir -p left && ln -sfn \"$BAIT/secret\" left/config.json && ln -sfn config.json left/by-another",
        engine: |tree, _| reads(tree, "left/by-another", Links::Inside),
        ordinary: Some(|tree, _| ordinary(tree, "left/by-another")),
    },
    EscapeRoute {
        name: "left-folder", what: "leave a link instead of a folder",
        lay: "ln -sfn \"$BAIT\" led",
        engine: |tree, _| reads(tree, "led/secret", Links::Inside) || tree.entries("led", 10).is_ok(),
        ordinary: Some(|tree, _| ordinary(tree, "led/secret")),
    },
    EscapeRoute {
        name: "left-proc-link", what: "leave a link that leads out through /proc",
        lay: "mkdir -p left && ln -sfn \"/proc/self/root$BAIT/secret\" left/proc",
        engine: |tree, _| reads(tree, "left/proc", Links::Inside),
        ordinary: Some(|tree, _| ordinary(tree, "left/proc")),
    },
    EscapeRoute {
        name: "left-up", what: "leave a name that leads up",
        lay: "mkdir -p left/a && ln -sfn ../.. left/a/up",
        engine: |tree, bait| {
            let up = format!("left/a/up/../{}/secret", bait.folder.file_name().unwrap_or_default().to_string_lossy());
            reads(tree, &up, Links::Inside) || reads(tree, "../bait/secret", Links::Inside)
        },
        ordinary: None,
    },
    EscapeRoute {
        name: "left-link-write", what: "leave a link where ralph writes a file",
        lay: "mkdir -p left && ln -sfn \"$BAIT/outside\" left/progress.md",
        engine: |tree, bait| { let _ = tree.write("left/progress.md", b"changed\n"); bait.outside_changed() },
        ordinary: None,
    },
    EscapeRoute {
        name: "left-link-log", what: "leave a link where ralph appends to a log",
        lay: "mkdir -p left && ln -sfn \"$BAIT/outside\" left/errors.log",
        engine: |tree, bait| {
            let _ = tree.open_log("left/errors.log").and_then(|mut log| log.write_all(b"changed\n"));
            bait.outside_changed()
        },
        ordinary: None,
    },
    EscapeRoute {
        name: "left-folder-write", what: "leave a link instead of the folder that ralph writes to",
        lay: "ln -sfn \"$BAIT\" led",
        engine: |tree, bait| { let _ = tree.write("led/outside", b"changed\n"); bait.outside_changed() },
        ordinary: None,
    },
    EscapeRoute {
        name: "left-temporary", what: "guess the name of a file that ralph is about to make",
        lay: "mkdir -p left && for n in 0 1 2 3 4 5 6 7 8 9; do ln -sfn \"$BAIT/outside\" left/state.json.$n.tmp; done",
        engine: |tree, bait| { let _ = tree.write("left/state.json", b"changed\n"); bait.outside_changed() },
        ordinary: None,
    },
    EscapeRoute {
        name: "left-folder-removed", what: "leave a link instead of a folder that ralph removes",
        lay: "ln -sfn \"$BAIT\" led",
        engine: |tree, bait| { let _ = tree.remove("led"); !bait.folder.join("secret").exists() },
        ordinary: None,
    },
    EscapeRoute {
        name: "left-pipe", what: "leave a pipe that ralph would wait for",
        lay: "mkdir -p left && rm -f left/pipe && mkfifo left/pipe",
        engine: |tree, _| tree.read("left/pipe", Links::Inside, MOST).is_ok(),
        ordinary: None,
    },
    EscapeRoute {
        name: "left-device", what: "leave a link to a file without an end",
        lay: "mkdir -p left && ln -sfn /dev/zero left/zero",
        engine: |tree, _| tree.read("left/zero", Links::Inside, MOST).is_ok(),
        ordinary: Some(|tree, _| {
            let mut bytes = Vec::new();
            let file = std::fs::File::open(tree.join("left/zero"));
            file.and_then(|file| file.take(MOST).read_to_end(&mut bytes)).is_ok_and(|read| read as u64 == MOST)
        }),
    },
];
