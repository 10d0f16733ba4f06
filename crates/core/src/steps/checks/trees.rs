//! Creates, sets up and checks each tree of a proof in a clean checkout.

use crate::error::DriveError;
use crate::proof::harness_files::HarnessFiles;
use crate::run::Run;
use crate::steps::checks::check::{CheckOptions, CheckOutcome, CheckRuns, CheckTarget, run_logged};
use crate::steps::checks::clean_checkout::{self, Checkout, SetupEnd, make_dir};
use crate::steps::checks::installed;
use crate::steps::checks::subject::{Finding, Subject};
use crate::steps::prepare;
use ralph_loop_domain::ports::ExecRequest;
use ralph_loop_domain::repo::protect::covers;
use ralph_loop_proof::harness::restore;
use ralph_loop_proof::state::{Tree, TreeRun};
use ralph_loop_protocol::display::text::tail_lines;
use ralph_loop_protocol::event::FileChange;
use ralph_loop_protocol::id::CommitId;
use ralph_loop_protocol::proof::level::{HarnessChange, HarnessSource};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// New modules compared with installed ones.
const MODULES_MAX: usize = 50;
const MODULES_TIMEOUT: Duration = Duration::from_secs(60);
/// Prints which of the named modules Python finds outside the working folder.
const FIND_MODULES: &str = "import importlib.util, os, sys\nhere = os.path.realpath('.') + os.sep\nfor name in sys.argv[1:]:\n    try:\n        spec = importlib.util.find_spec(name)\n    except Exception:\n        continue\n    if spec and not os.path.realpath(spec.origin or '/').startswith(here):\n        print('installed:' + name)\n";

/// The outcome of checking a tree.
pub(crate) enum TreeCheck {
    Run(TreeRun),
    /// The run was stopped.
    Stopped,
}

fn problem(why: impl Into<String>) -> TreeCheck {
    TreeCheck::Run(TreeRun { results: Vec::new(), problems: vec![why.into()] })
}

/// Creates a tree in a clean checkout and runs the required checks.
pub(crate) fn prove_tree(
    run: &mut Run,
    tree: Tree,
    subject: &Subject,
    found: &mut Finding,
) -> Result<TreeCheck, DriveError> {
    let checked =
        clean_checkout::in_clean_folder(run, |run, folder| check_in(run, folder, tree, subject, found))?;
    if let TreeCheck::Run(tree_run) = &checked
        && tree == Tree::Commit
        && tree_run.results.iter().any(|result| !result.passed)
    {
        let changes = run.ports.workspace.changes(subject.start.as_str(), subject.checked.as_str())?;
        if installed::installs_after(run, &changes)? {
            found.output.clear();
            return prove_tree(run, tree, subject, found);
        }
    }
    Ok(checked)
}

fn check_in(
    run: &mut Run,
    folder: &Path,
    tree: Tree,
    subject: &Subject,
    found: &mut Finding,
) -> Result<TreeCheck, DriveError> {
    let logs = subject.logs.join(match tree {
        Tree::Commit => "",
        Tree::OriginalHarness => "original-harness",
        Tree::OriginalTests => "original-tests",
        Tree::OriginalProduct => "original-product",
    });
    make_dir(&logs)?;
    if let Some(why) = make_tree(run, folder, tree, subject, found)? {
        return Ok(problem(why));
    }
    let changes = run.ports.workspace.changes(subject.start.as_str(), subject.checked.as_str())?;
    let protected = prepare::protected_patterns(&run.ledger.state.spec);
    let harness = found.harness.clone();
    let is_harness = |path: &str| harness.matched(path).is_some() || covers(&protected, path);
    let files = HarnessFiles::read(folder, &is_harness);
    let made = |path: &&String| changes.iter().any(|change| change.path == **path);
    let links: Vec<String> = files.links_out.iter().filter(made).cloned().collect();
    if tree == Tree::Commit && !links.is_empty() {
        return Ok(problem(format!("links that lead out of the repository: {}", links.join(", "))));
    }
    let checkout = installed::open_checkout(run, folder)?;
    match clean_checkout::run_setup(run, &checkout, &logs)? {
        SetupEnd::Ready => {}
        SetupEnd::Stopped => return Ok(TreeCheck::Stopped),
        SetupEnd::Failed { command, log } => {
            return Ok(problem(format!("setup command `{command}` failed in a clean checkout: see {log}")));
        }
    }
    if tree == Tree::Commit {
        let shadows = shadowing_modules(run, &checkout, &logs, &changes)?;
        found.state.harness.extend(shadows);
    }
    let mut tree_run = TreeRun { results: Vec::new(), problems: files.changed_by("the setup") };
    let mut runs = CheckRuns::default();
    let verifiers: Vec<_> = run.state.spec.settings.required().cloned().collect();
    for verifier in verifiers {
        let log = logs.join(format!("check-{}.log", verifier.name));
        let how = CheckOptions { env: &checkout.env, watch: false };
        let place = CheckTarget { sandbox: &*checkout.sandbox, tree: &subject.tree, log: &log, how };
        match runs.run(&mut run.ledger, &verifier, &place)? {
            CheckOutcome::Stopped => return Ok(TreeCheck::Stopped),
            CheckOutcome::Result(result, excerpt, _) => {
                if !result.passed && tree == Tree::Commit {
                    let heading = format!("final check: {} failed", verifier.name);
                    run.error_entry(&heading, tail_lines(&excerpt, 30));
                    found.output.push_str(&format!("{excerpt}\n"));
                }
                tree_run.problems.extend(files.changed_by(&verifier.name));
                tree_run.results.push(*result);
            }
        }
    }
    Ok(TreeCheck::Run(tree_run))
}

/// Fills a folder with a tree, or says why it can't.
fn make_tree(
    run: &Run,
    folder: &Path,
    tree: Tree,
    subject: &Subject,
    found: &mut Finding,
) -> Result<Option<String>, DriveError> {
    let (main, other): (&CommitId, &CommitId) = match tree {
        Tree::OriginalProduct => (&subject.start, &subject.checked),
        _ => (&subject.checked, &subject.start),
    };
    if let Err(error) = run.ports.workspace.checkout_clean(main, folder) {
        let why = error.to_string();
        found.hint = Some(match error.hint {
            Some(hint) => format!("{}: {hint}", error.reason),
            None => error.reason,
        });
        return Ok(Some(why));
    }
    if tree == Tree::Commit {
        let forged = run.ports.workspace.verify_checkout(main, folder)?;
        return Ok((!forged.is_empty()).then(|| forged.join("; ")));
    }
    let beside = folder.parent().unwrap_or(folder).join("other-tree");
    make_dir(&beside)?;
    if let Err(error) = run.ports.workspace.checkout_clean(other, &beside) {
        return Ok(Some(error.to_string()));
    }
    let all = found.state.harness.iter();
    let changes: Vec<&HarnessChange> = match tree {
        Tree::OriginalTests => all.filter(|change| !found.state.keeps(change)).collect(),
        // A script that may be the product isn't a test.
        Tree::OriginalProduct => all.filter(|change| !change.may_be_product()).collect(),
        _ => all.collect(),
    };
    let made = match tree {
        Tree::OriginalProduct => restore::new_harness(&beside, folder, &changes),
        _ => restore::original_harness(&beside, folder, &changes),
    };
    if let Err(error) = made {
        return Ok(Some(format!("the harness can't be restored: {error}")));
    }
    let paths: Vec<&str> = changes.iter().map(|change| change.path.as_str()).collect();
    Ok(run.ports.workspace.commit_in_checkout(folder, &paths).err().map(|error| error.to_string()))
}

/// New Python modules that shadow an installed one.
fn shadowing_modules(
    run: &mut Run,
    checkout: &Checkout,
    logs: &Path,
    changes: &[FileChange],
) -> Result<Vec<HarnessChange>, DriveError> {
    let modules = new_modules(changes);
    if modules.is_empty() {
        return Ok(Vec::new());
    }
    let mut argv = ["python3", "-I", "-c", FIND_MODULES].map(str::to_owned).to_vec();
    argv.extend(modules.keys().map(|name| (*name).to_owned()));
    let mut request = ExecRequest::new(argv);
    request.timeout = Some(MODULES_TIMEOUT);
    request.env.clone_from(&checkout.env);
    let log = logs.join("modules.log");
    run_logged(&mut run.ledger, &*checkout.sandbox, &request, "setup", &log, false)?;
    let output = crate::record::log_tail::read_tail(&log, 64 * 1024);
    let installed: BTreeSet<&str> =
        output.lines().filter_map(|line| line.strip_prefix("installed:")).collect();
    let shadows = modules.iter().filter(|(name, _)| installed.contains(*name));
    Ok(shadows
        .flat_map(|(name, paths)| {
            paths.iter().map(move |path| HarnessChange {
                path: (*path).to_owned(),
                added: true,
                source: HarnessSource::Shadow,
                named: false,
                what: format!("added: hides the installed module `{name}`"),
            })
        })
        .collect())
}

/// New files by the module name they would have if their folder were on the path.
fn new_modules(changes: &[FileChange]) -> BTreeMap<&str, Vec<&str>> {
    let mut found: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    let added = || changes.iter().filter(|change| change.status == 'A').map(|change| change.path.as_str());
    for path in added().filter(|path| path.ends_with(".py")) {
        let module = path.trim_end_matches("/__init__.py");
        let name = module.rsplit('/').next().unwrap_or(module).trim_end_matches(".py");
        let valid =
            !name.is_empty() && name.chars().all(|c| c.is_alphanumeric() || c == '_') && name != "__init__";
        if !valid || found.len() >= MODULES_MAX {
            continue;
        }
        let files = found.entry(name).or_default();
        match module == path {
            true => files.push(path),
            false => files.extend(added().filter(|file| file.starts_with(&format!("{module}/")))),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn new_modules_are_files_and_packages() {
        let change = |path: &str, status| FileChange {
            path: path.into(),
            status,
            added: None,
            removed: None,
            blob: None,
        };
        let changes = [
            change("requests.py", 'A'),
            change("src/json/__init__.py", 'A'),
            change("src/json/tool.py", 'A'),
            change("old.py", 'M'),
            change("a.txt", 'A'),
        ];
        let found = new_modules(&changes);
        assert_eq!(found.keys().copied().collect::<Vec<_>>(), ["json", "requests", "tool"]);
        assert_eq!(found["json"], ["src/json/__init__.py", "src/json/tool.py"]);
    }
}
