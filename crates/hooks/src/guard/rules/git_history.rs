//! Rewriting history, here or on a remote.

use super::Call;
use crate::guard::category::{Category, Refusal};

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    if call.name == "bfg" || call.name == "git-filter-repo" {
        return call.refuse(Category::GitHistory, "It rewrites the history.");
    }
    if call.name == "gh" && (call.is("gh", &["repo", "delete"]) || call.is("gh", &["repo", "archive"])) {
        return call.refuse(Category::GitHistory, "It takes a repository away.");
    }
    if call.name == "gh" && deletes_by_api(call) {
        return call.refuse(Category::GitHistory, "It takes a repository or a branch away.");
    }
    if call.name != "git" {
        return None;
    }
    let words = words(call);
    let verb = words.first().copied().unwrap_or_default();
    let rest = words.get(1..).unwrap_or_default();
    let has = |names: &[&str]| call.option(names);
    let refuse = |why: &str| call.refuse(Category::GitHistory, why);
    match verb {
        "push" => {
            let forced =
                has(&["--force", "--force-with-lease", "--force-if-includes", "--mirror", "--prune"])
                    || call.short('f');
            let deletes = has(&["--delete"])
                || call.short('d')
                || rest.iter().any(|spec| spec.starts_with(':') && spec.len() > 1);
            let plus = rest.iter().any(|spec| spec.starts_with('+'));
            match (forced || plus, deletes) {
                (true, _) => refuse("It replaces what others have on the remote."),
                (_, true) => refuse("It removes a branch or tag of the remote."),
                _ => None,
            }
        }
        "reset"
            if has(&["--hard"])
                && rest.iter().any(|at| at.contains(['~', '^', '@']) || at.starts_with("origin/")) =>
        {
            refuse("It drops commits.")
        }
        "filter-branch" | "filter-repo" => refuse("It rewrites the history."),
        "reflog" if rest.first().is_some_and(|verb| ["expire", "delete"].contains(verb)) => {
            refuse("It forgets where branches were.")
        }
        "gc" | "prune"
            if call.args.iter().any(|arg| {
                arg.text.contains("prune=now")
                    || arg.text.contains("expire=now")
                    || arg.text.contains("prune=all")
            }) =>
        {
            refuse("It removes what only the reflog still knows.")
        }
        "update-ref"
            if has(&["-d", "--stdin"])
                || rest.iter().any(|to| to.len() >= 7 && to.bytes().all(|b| b == b'0')) =>
        {
            refuse("It removes a branch.")
        }
        "branch"
            if call.has(&["-D"])
                && rest.iter().any(|name| ["main", "master", "develop", "trunk"].contains(name)) =>
        {
            refuse("It removes a main branch.")
        }
        "stash" if rest.first().is_some_and(|verb| ["clear", "drop"].contains(verb)) => {
            refuse("It drops work that somebody put away.")
        }
        "config" => {
            let key = rest.iter().find(|word| word.contains('.')).copied().unwrap_or_default().to_lowercase();
            let value = rest.last().copied().unwrap_or_default();
            let global = has(&["--global", "--system"]);
            let runs = [
                "core.sshcommand",
                "core.pager",
                "core.fsmonitor",
                "core.askpass",
                "credential.helper",
                "diff.external",
                "core.gitproxy",
            ];
            let set = rest.len() >= 2 && !has(&["--get", "--unset", "--list", "-l", "--get-all"]);
            let outside = key == "core.hookspath"
                && (value.starts_with('/') || value.starts_with('~') || value.starts_with(".."));
            if set
                && (runs.contains(&key.as_str()) && value != "store" && value != "cat"
                    || outside
                    || global && key.starts_with("alias.") && value.starts_with('!'))
            {
                return call.refuse(
                    Category::Persistence,
                    "git would run a program of this command's choice from now on.",
                );
            }
            None
        }
        _ => None,
    }
}

/// `gh api -X DELETE repos/OWNER/NAME`, and branches and tags by their refs.
fn deletes_by_api(call: &Call<'_>) -> bool {
    let method = call.value(&["-X", "--method"]).unwrap_or_default();
    let deletes = method.eq_ignore_ascii_case("DELETE") || call.has(&["-XDELETE"]);
    deletes
        && call.is("gh", &["api"])
        && call.operands().any(|arg| {
            let path = arg.text.trim_matches('/');
            path.strip_prefix("repos/")
                .is_some_and(|rest| rest.split('/').count() == 2 || rest.contains("/git/refs"))
        })
}

/// The words of git itself, without the options before its verb.
pub(super) fn words<'a>(call: &'a Call<'_>) -> Vec<&'a str> {
    let mut words = Vec::new();
    let mut at = 0;
    while let Some(arg) = call.args.get(at) {
        match arg.text.as_str() {
            "-C" | "-c" | "--git-dir" | "--work-tree" | "--namespace" if words.is_empty() => at += 2,
            text if text.starts_with('-') => at += 1,
            text => {
                words.push(text);
                at += 1;
            }
        }
    }
    words
}
