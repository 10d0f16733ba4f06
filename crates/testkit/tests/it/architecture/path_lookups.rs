//! Checks path lookups that follow links but open nothing: whether a path exists, and its full name. The answer alone is harmless,
//! but code that acts on it may act on another file, so lookups are counted like calls that open files.

use super::{collect, lines_before_tests, root};
use std::collections::BTreeMap;

/// Files with such lookups: why they are harmless, and their maximum number.
const HOMES: &[(&str, &[(&str, usize)])] = &[
    (
        "what is in a full path, in the engine's own record, or named by the user's checks; nothing is opened or started by it",
        &[
            ("app/src/read/find.rs", 1),
            ("core/src/steps/checks/missing_programs.rs", 2),
            ("core/src/steps/checkpoint.rs", 1),
            ("git/src/process/path.rs", 1),
            ("sandbox/src/sbx.rs", 2),
        ],
    ),
    ("what an archive says of itself; no path is looked at", &[("fleet/src/pack.rs", 1)]),
    (
        "modules whose files are known: `file_calls.rs` says whose they are",
        &[
            ("agents/src/tools/kit/read_file.rs", 1),
            ("app/src/start/fleet_mark.rs", 1),
            ("app/src/trust/repo_file.rs", 4),
            ("app/src/resume/adopt.rs", 1),
            ("app/src/resume/elsewhere.rs", 3),
            ("app/src/run/memory.rs", 1),
            ("app/src/run/placement.rs", 2),
            ("app/src/start/sandboxes.rs", 2),
            ("app/src/read/seen.rs", 2),
            ("cli/src/command/start/demo.rs", 1),
            ("core/src/inbox/task_edit.rs", 2),
            ("fleet/src/drive.rs", 1),
            ("fleet/src/login.rs", 1),
            ("fleet/src/mirror.rs", 3),
            ("fleet/src/output.rs", 2),
            ("git/src/agent_copy/mod.rs", 1),
            ("git/src/agent_copy/lent.rs", 2),
            ("git/src/agent_copy/git_dir.rs", 1),
            ("git/src/checkout/branch.rs", 2),
            ("git/src/checkout/clean.rs", 2),
            ("git/src/filters/lfs.rs", 1),
            ("git/src/process/engine_dir.rs", 2),
            ("git/src/hand_back/leftovers.rs", 1),
            ("git/src/hand_back/apply.rs", 1),
            ("git/src/checkout/clone.rs", 5),
            ("git/src/publish/push.rs", 3),
            ("git/src/snapshot/mod.rs", 2),
            ("git/src/checkout/submodules.rs", 1),
            ("git/src/checkout/worktree.rs", 1),
            ("journal/src/journal.rs", 3),
            ("journal/src/folder/layout.rs", 2),
            ("journal/src/folder/plain.rs", 1),
            ("journal/src/folder/registry.rs", 3),
            ("journal/src/journal/repair.rs", 2),
            ("journal/src/folder/shown.rs", 2),
            ("sandbox/src/local/egress/defaults.rs", 1),
            ("sandbox/src/local/escapes/doors.rs", 1),
            ("sandbox/src/local/escapes/mod.rs", 2),
            ("sandbox/src/local/isolation/detect.rs", 1),
            ("sandbox/src/local/isolation/view/sockets.rs", 1),
            ("sandbox/src/local/isolation/runtime.rs", 5),
            ("sandbox/src/local/isolation/view/same_path.rs", 2),
            ("sandbox/src/local/isolation/view/tools.rs", 4),
            ("sandbox/src/local/isolation/wrap.rs", 1),
            ("sandbox/src/local/provider.rs", 3),
        ],
    ),
    (
        "the answer decides about words, a place or a program; what is read then goes through the door, and what is started is looked \
         at again",
        &[
            ("core/src/steps/checks/workspace_setup.rs", 1),
            ("core/src/steps/checks/installed.rs", 2),
            ("app/src/agents/installed.rs", 1),
            ("app/src/assumptions.rs", 1),
            ("app/src/agents/isolation.rs", 1),
            ("cli/src/command/take/archive.rs", 2),
            ("cli/src/dashboard.rs", 1),
            ("server/src/index/read.rs", 1),
            ("server/src/live/reconcile.rs", 1),
            ("server/src/routes/prepare.rs", 2),
            ("cli/src/command/setup/doctor/programs.rs", 1),
            ("agents/src/presets.rs", 2),
            ("agents/src/tools/path_rules.rs", 3),
            ("agents/src/tools/process/tests.rs", 1),
            ("app/src/environment.rs", 1),
            ("app/src/read/facts.rs", 1),
            ("app/src/start/handover.rs", 2),
            ("app/src/task/lint/facts.rs", 1),
            ("app/src/read/list.rs", 1),
            ("app/src/agents/programs.rs", 5),
            ("app/src/run/source.rs", 3),
            ("app/src/task/task_source.rs", 2),
            ("app/src/trust.rs", 7),
            ("app/src/wiring.rs", 1),
            ("app/src/agents/hooks.rs", 1),
            ("cli/src/command/task/plan.rs", 2),
            ("cli/src/command/setup/plugin.rs", 1),
            // It resolves links, and opens nothing.
            ("hooks/src/guard/paths.rs", 3),
            ("hooks/src/project.rs", 2),
            ("mcp/src/resources.rs", 1),
            ("cli/src/command/take/archive/commit.rs", 1),
            ("cli/src/command/setup/doctor/agents.rs", 3),
            ("cli/src/command/start/home.rs", 2),
            ("cli/src/command/task/lint/probe.rs", 1),
            ("cli/src/command/start/run/what.rs", 1),
            ("cli/src/progress/report.rs", 1),
            ("cli/src/text/run_text.rs", 1),
            ("core/src/loop_agent/settings/frozen.rs", 1),
            ("core/src/loop_agent/steering.rs", 1),
            ("forge/src/local/bare.rs", 1),
            ("forge/src/local/mod.rs", 2),
            ("sandbox/src/docker/mod.rs", 1),
            ("sandbox/src/docker/options.rs", 1),
            ("sandbox/src/docker/tls.rs", 1),
            ("sandbox/src/hosted/folder_sandbox.rs", 2),
            ("sandbox/src/hosted/mod.rs", 1),
            ("sandbox/src/local/isolation/kernel/bwrap.rs", 3),
            ("sandbox/src/local/isolation/view/caches.rs", 1),
            ("sandbox/src/local/isolation/view/git.rs", 4),
            ("sandbox/src/local/mod.rs", 1),
            ("sandbox/src/local/watch/tracer.rs", 1),
            ("sandbox/src/sbx/tool.rs", 2),
        ],
    ),
];

const LOOKS: &[&str] = &[".exists()", ".is_file()", ".canonicalize()"];
/// Methods on known metadata don't count.
const KNOWN: &[&str] = &["m", "meta", "about", "kind", "metadata", "facts"];

fn looks_in(text: &str) -> usize {
    let lines = text.lines().take(lines_before_tests(text)).map(str::trim);
    let code = lines.filter(|line| !line.starts_with("//"));
    code.map(|line| LOOKS.iter().map(|look| looks_of(line, look)).sum::<usize>()).sum()
}

fn looks_of(line: &str, look: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    let at_path = |at: usize| {
        let word = line[..at].rsplit(|c| !is_part(c)).next().unwrap_or_default();
        look != ".is_file()" || !KNOWN.contains(&word)
    };
    line.match_indices(look).filter(|(at, _)| at_path(*at)).count()
}

#[test]
fn path_lookups_are_counted_and_metadata_methods_are_not() {
    assert_eq!(looks_in("if path.exists() && dir.join(x).is_file() { y.canonicalize()?; }\n"), 3);
    assert_eq!(looks_in("Ok(meta) if meta.is_file() => {}\n// path.exists()\n"), 0);
    assert_eq!(looks_in("fn a() {}\n#[cfg(test)]\nmod tests {\n    a.exists();\n}\n"), 0);
}

#[test]
fn link_following_lookups_are_listed_with_a_reason() {
    let crates = root().join("crates");
    let known: BTreeMap<&str, usize> =
        HOMES.iter().flat_map(|(_, files)| files.iter().map(|(file, n)| (*file, *n))).collect();
    let mut wrong = Vec::new();
    let names: Vec<String> = super::crates().iter().map(|c| c.name.clone()).collect();
    for name in names.iter().filter(|name| !["safe-fs", "testkit"].contains(&name.as_str())) {
        let mut files = Vec::new();
        collect(&crates.join(name).join("src"), &mut files);
        for path in files {
            let has = looks_in(&std::fs::read_to_string(&path).expect("a source file can be read"));
            let shown = path.strip_prefix(&crates).expect("a crate's file").display().to_string();
            let may = known.get(shown.as_str()).copied().unwrap_or(0);
            if has > may && !shown.ends_with("_tests.rs") {
                wrong.push(format!("crates/{shown} looks {has} times, its row says {may}"));
            }
        }
    }
    super::assert_none(
        &wrong,
        "could an agent or a repo have put a link there? Then ask `SafeDir::facts`; else say in `architecture/path_lookups.rs` why not:",
    );
}
