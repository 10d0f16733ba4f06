//! Checks that ordinary file calls appear only where the owner of the files is known. Files that a repo or an agent may have written
//! are read and written through `ralph-loop-safe-fs` (or `repo_file`, `RalphDir`, `plain`, which use it).

use super::{collect, lines_before_tests, root};
use std::collections::BTreeMap;

/// Files with ordinary calls: the owner of the files, and the number of calls. Before you add one, check whether an agent
/// or a repo could have written the files that it opens.
const HOMES: &[(&str, &[(&str, usize)])] = &[
    (
        "names in a folder, whose files are read through `repo_file`; and this process's own mappings",
        &[("cli/src/process/own_code.rs", 1)],
    ),
    (
        "the door itself, or a handle that the caller has opened",
        &[("app/src/trust/repo_file.rs", 1), ("journal/src/folder/plain.rs", 2)],
    ),
    (
        "the record of a run and what else lies in the state folder of this user: no agent and no repo writes there",
        &[
            ("agents/src/ask/agent.rs", 1),
            ("agents/src/session/capture.rs", 2),
            ("agents/src/tools/browser/folder.rs", 2),
            ("agents/src/tools/kit/exec.rs", 1),
            ("agents/src/tools/kit/read_file.rs", 1),
            ("agents/src/tools/kit/screenshot.rs", 2),
            ("agents/src/tools/toolbox.rs", 2),
            ("app/src/clean.rs", 9),
            ("app/src/config/dotenv_lines.rs", 3),
            ("app/src/steering/guardrails.rs", 1),
            ("app/src/task/hidden.rs", 1),
            ("app/src/agents/hooks.rs", 5),
            ("app/src/start/locks.rs", 2),
            ("app/src/start/fleet_mark.rs", 1),
            ("app/src/start/log.rs", 2),
            ("app/src/prove/folders.rs", 1),
            ("app/src/race/races.rs", 3),
            ("app/src/trust/record_trust.rs", 1),
            ("app/src/resume/adopt.rs", 1),
            ("app/src/resume/elsewhere.rs", 4),
            ("app/src/run.rs", 1),
            ("app/src/run/memory.rs", 1),
            ("app/src/run/placement.rs", 6),
            ("app/src/read/seen.rs", 1),
            ("app/src/trust/store.rs", 4),
            ("cli/src/command/setup/plugin.rs", 5),
            ("cli/src/command/watch/show/iteration.rs", 1),
            ("core/src/record/append_only.rs", 4),
            ("core/src/resume/open.rs", 2),
            ("core/src/record/guardrails.rs", 1),
            ("core/src/handover/pr.rs", 1),
            ("core/src/handover/state_files.rs", 2),
            ("core/src/loop_agent/settings/source.rs", 1),
            ("core/src/help/record.rs", 1),
            ("core/src/inbox/mod.rs", 1),
            ("core/src/inbox/approval.rs", 1),
            ("core/src/inbox/task_edit.rs", 3),
            ("core/src/record/integrity.rs", 1),
            ("core/src/steps/checks/workspace_setup.rs", 1),
            ("core/src/prompt/files.rs", 2),
            ("core/src/resume/run_writer.rs", 1),
            ("core/src/steps/checks/baseline_checks.rs", 4),
            ("core/src/steps/checks/installed.rs", 1),
            ("core/src/steps/checkpoint.rs", 1),
            ("fleet/src/keeper.rs", 1),
            ("fleet/src/login.rs", 4),
            ("fleet/src/mirror.rs", 3),
            ("fleet/src/output.rs", 2),
            ("fleet/src/result.rs", 1),
            ("hooks/src/memory.rs", 4),
            ("journal/src/folder/artifacts.rs", 7),
            ("journal/src/inbox.rs", 1),
            ("journal/src/journal.rs", 3),
            ("journal/src/folder/layout.rs", 3),
            ("journal/src/live.rs", 1),
            ("journal/src/lock.rs", 4),
            ("journal/src/folder/machine.rs", 6),
            ("journal/src/journal/places.rs", 1),
            ("journal/src/folder/registry.rs", 4),
            ("journal/src/journal/repair.rs", 7),
            ("journal/src/journal/seal.rs", 3),
            ("journal/src/folder/snapshot.rs", 4),
            ("journal/src/live/wake.rs", 3),
            ("providers/src/exec.rs", 1),
            ("server/src/audit.rs", 2),
            ("server/src/home.rs", 4),
            ("server/src/index/file.rs", 2),
            ("server/src/index/read.rs", 1),
            ("server/src/live/watch.rs", 1),
            ("server/src/routes/steer/result.rs", 1),
            ("server/src/routes/runs.rs", 1),
            ("server/src/scheduler/queue.rs", 2),
        ],
    ),
    (
        "temporary folders of the engine, which it names and removes itself",
        &[
            ("app/src/start/sandboxes.rs", 2),
            ("app/src/agents/scratch.rs", 2),
            ("app/src/race/side_by_side.rs", 4),
            ("app/src/start/spawn.rs", 7),
            ("core/src/ledger.rs", 4),
            ("core/src/steps/checks/clean_checkout.rs", 5),
            ("core/src/steps/consult.rs", 3),
            ("fleet/src/store.rs", 1),
            ("git/src/agent_copy/ralph_dir.rs", 2),
            ("git/src/publish/pushed_content.rs", 2),
            ("git/src/publish/push.rs", 8),
            ("git/src/snapshot/record.rs", 3),
            ("git/src/snapshot/baseline.rs", 1),
            ("git/src/snapshot/mod.rs", 13),
            ("git/src/snapshot/state_dir.rs", 2),
            ("git/src/objects/files.rs", 2),
            ("git/src/locks/wait_lock.rs", 2),
            ("git/src/filters/sandbox_git.rs", 13),
            ("git/src/process/engine_dir.rs", 1),
            ("git/src/process/view.rs", 3),
            ("git/src/snapshot/stage.rs", 1),
            ("sandbox/src/docker/exec.rs", 1),
            ("sandbox/src/hosted/host.rs", 2),
            ("sandbox/src/local/escapes/bait.rs", 11),
            ("sandbox/src/local/escapes/doors.rs", 2),
            ("sandbox/src/local/escapes/mod.rs", 2),
            ("sandbox/src/local/request.rs", 1),
            ("sandbox/src/local/watch/mod.rs", 2),
            ("sandbox/src/local/watch/watcher.rs", 1),
            ("sandbox/src/sbx/sandbox.rs", 1),
        ],
    ),
    (
        "the git folder of the user's repo: anything that can write there can run programs anyway; an agent has only its own",
        &[
            ("git/src/agent_copy/git_dir.rs", 5),
            ("git/src/checkout/branch.rs", 3),
            ("git/src/publish/bundle.rs", 3),
            ("git/src/locks/left_lock.rs", 1),
            ("git/src/locks/lock_file.rs", 23),
            ("git/src/objects/writer.rs", 4),
            ("git/src/checkout/submodules.rs", 5),
            ("git/src/objects/user_index.rs", 5),
            ("git/src/workspace.rs", 1),
            ("git/src/filters/lfs.rs", 8),
        ],
    ),
    (
        "trees by paths that were checked folder by folder for links before (`stands_on_real_folders`, a walk); no command of an agent runs meanwhile",
        &[
            ("git/src/agent_copy/mod.rs", 9),
            ("git/src/agent_copy/lent.rs", 10),
            ("git/src/hand_back/start_rules.rs", 1),
            ("git/src/checkout/clean.rs", 10),
            ("git/src/filters/mod.rs", 5),
            ("git/src/agent_copy/copy_files.rs", 1),
            ("git/src/hand_back/apply.rs", 15),
            ("git/src/checkout/clone.rs", 4),
            ("git/src/hand_back/restore.rs", 6),
            ("git/src/objects/private_index.rs", 3),
            ("git/src/snapshot/watch.rs", 3),
            ("git/src/checkout/worktree.rs", 8),
            ("sandbox/src/local/files.rs", 1),
        ],
    ),
    (
        "the machine: `/proc`, programs, the user's own home",
        &[
            ("sandbox/src/local/isolation/logins/shared.rs", 1),
            ("agents/src/tools/process/requests.rs", 1),
            ("app/src/agents/isolation.rs", 1),
            ("cli/src/command/setup/doctor/machine.rs", 3),
            ("cli/src/process/fault.rs", 1),
            ("core/src/proof/surroundings.rs", 3),
            ("fleet/src/worker.rs", 1),
            ("git/src/process/running.rs", 4),
            ("hooks/src/marker.rs", 1),
            ("sandbox/src/bin/guard-probe.rs", 1),
            ("sandbox/src/local/egress/defaults.rs", 1),
            ("sandbox/src/local/egress/mod.rs", 4),
            ("sandbox/src/local/isolation/logins/auth.rs", 4),
            ("sandbox/src/local/isolation/detect.rs", 2),
            ("sandbox/src/local/isolation/view/sockets.rs", 1),
            ("sandbox/src/local/isolation/view/system.rs", 2),
            ("sandbox/src/local/isolation/kernel/launch.rs", 2),
            ("sandbox/src/local/isolation/kernel/limits.rs", 7),
            ("sandbox/src/local/isolation/runtime.rs", 9),
            ("sandbox/src/local/isolation/view/same_path.rs", 1),
            ("sandbox/src/local/isolation/view/tools.rs", 2),
            ("sandbox/src/local/watch/local.rs", 1),
            ("sandbox/src/os/linux.rs", 1),
            ("sandbox/src/os/process.rs", 5),
            ("sandbox/src/os/linux_raw.rs", 1),
            ("sandbox/src/os/trace.rs", 3),
            ("sandbox/src/local/watch/resolve.rs", 1),
        ],
    ),
    (
        "files that the user names on the command line, or that the command makes for them",
        &[
            ("cli/src/command/setup/bug_report.rs", 3),
            ("cli/src/command/start/demo.rs", 1),
            ("cli/src/demo_repo.rs", 3),
            ("cli/src/command/serving/deploy/daytona.rs", 2),
            ("cli/src/command/setup/man.rs", 2),
        ],
    ),
    (
        "names and stamps of installed dependencies; nothing is opened",
        &[("core/src/proof/installed_marks.rs", 1)],
    ),
    (
        "the copy of a record in `.ralph/`: always written from scratch, never read back",
        &[("journal/src/folder/shown.rs", 16)],
    ),
    (
        "the folder of a local code host, which the user's own settings name",
        &[("forge/src/local/store.rs", 8)],
    ),
];

/// Calls that open, create, list, move or remove a path.
const CALLS: &[&str] = &[
    "fs::read(",
    "fs::read_to_string(",
    "fs::write(",
    "fs::copy(",
    "fs::rename(",
    "fs::remove_file(",
    "fs::remove_dir(",
    "fs::remove_dir_all(",
    "fs::create_dir(",
    "fs::create_dir_all(",
    "fs::read_dir(",
    "fs::hard_link(",
    "fs::set_permissions(",
    "fs::symlink(",
    "File::open(",
    "File::create(",
    "File::create_new(",
    "File::options(",
    "OpenOptions::new(",
    "DirBuilder::new(",
];

/// The number of such calls in a source text before its tests.
fn calls_in(text: &str) -> usize {
    let lines = text.lines().take(lines_before_tests(text)).map(str::trim);
    let code = lines.filter(|line| !line.starts_with("//"));
    code.map(|line| CALLS.iter().map(|call| calls_of(line, call)).sum::<usize>()).sum()
}

/// `fs::read(` counts, `other_fs::read(` doesn't.
fn calls_of(line: &str, call: &str) -> usize {
    let is_part = |c: char| c.is_alphanumeric() || c == '_';
    line.match_indices(call).filter(|(at, _)| !line[..*at].ends_with(is_part)).count()
}

#[test]
fn file_calls_are_found_in_every_form() {
    assert_eq!(calls_in("let a = std::fs::read(x); let b = fs::read(y);\n// fs::read(z)\n"), 2);
    assert_eq!(calls_in("safe_fs::read(x); SafeDir::open(y); MyFile::open(z); dir.read(a)\n"), 0);
    assert_eq!(calls_in("fs::read_to_string(x)?.len();\nOpenOptions::new()\n"), 2);
    assert_eq!(calls_in("fn a() {}\n#[cfg(test)]\nmod tests {\n    fs::read(x);\n}\n"), 0);
}

#[test]
fn ordinary_file_calls_are_listed_with_their_owner() {
    let crates = root().join("crates");
    let mut found = BTreeMap::new();
    for name in
        super::crates().iter().map(|c| c.name.as_str()).filter(|n| !["safe-fs", "testkit"].contains(n))
    {
        let mut files = Vec::new();
        collect(&crates.join(name).join("src"), &mut files);
        for path in files {
            let calls = calls_in(&std::fs::read_to_string(&path).expect("a source file can be read"));
            let shown = path.strip_prefix(&crates).expect("a crate's file").display().to_string();
            if calls > 0 && !shown.ends_with("_tests.rs") {
                found.insert(shown, calls);
            }
        }
    }
    let known: BTreeMap<String, usize> =
        HOMES.iter().flat_map(|(_, files)| files.iter().map(|(file, n)| ((*file).to_owned(), *n))).collect();
    let mut wrong = Vec::new();
    for file in found.keys().chain(known.keys().filter(|file| !found.contains_key(*file))) {
        let (has, may) = (found.get(file).unwrap_or(&0), known.get(file).unwrap_or(&0));
        if has != may {
            wrong.push(format!("crates/{file} has {has} ordinary file calls, its row says {may}"));
        }
    }
    super::assert_none(
        &wrong,
        "could an agent or a repo have written these files? Then go through `ralph-loop-safe-fs` or `repo_file`; else say in \
         `architecture/file_calls.rs` whose they are:",
    );
}
