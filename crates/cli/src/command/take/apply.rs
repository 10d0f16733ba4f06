//! `ralph apply`: applies a run's result to the user's checkout.

use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::text::words::home_path;
use ralph_loop_app::App;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::read::taking_home::{RunChanges, RunResultFiles};
use ralph_loop_git::hand_back::hooks::UserHooks;
use ralph_loop_git::{ApplyMode, ApplyReport};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::count;
use ralph_loop_protocol::proof::level::ProofLevel;
use serde_json::json;
use std::path::{Path, PathBuf};

/// Commits listed.
const COMMITS_SHOWN: usize = 20;

#[derive(Debug, clap::Args)]
#[command(group = clap::ArgGroup::new("how").multiple(false))]
#[command(after_help = "Examples:
  ralph apply                    apply the latest run as uncommitted changes
  ralph apply k3f9 --squash      apply run k3f9 as one commit
  ralph apply --branch fix-it    create a branch, leave the checkout alone")]
pub struct ApplyArgs {
    /// Run id [default: the latest run in this folder]
    pub run: Option<String>,
    /// Make one commit on the current branch
    #[arg(long, group = "how")]
    pub squash: bool,
    /// Make one commit per iteration on the current branch
    #[arg(long, group = "how")]
    pub commit: bool,
    /// Make one commit per iteration on this new branch
    #[arg(long, value_name = "NAME", group = "how")]
    pub branch: Option<String>,
    /// Apply to this checkout instead of the run's folder
    #[arg(long, value_name = "DIR")]
    pub into: Option<PathBuf>,
    /// Message of the `--squash` commit
    #[arg(short, long, value_name = "TEXT", requires = "squash")]
    pub message: Option<String>,
}

pub fn run(args: ApplyArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let env = app.environment();
    let found = match RunResultFiles::open(env, folder, args.run.as_deref())? {
        RunChanges::Recorded(found) => found,
        RunChanges::Nothing(reading) => return Ok(nothing(&reading, &args, out)),
    };
    let files = found.work.files(&found.repo)?;
    if files.is_empty() {
        return Ok(nothing(&found.reading, &args, out));
    }
    found.reading.mark_seen();
    let run = &found.reading.entry.run_id;
    let message = args.message.clone().unwrap_or_else(|| {
        // An agent's words go into the user's history: redacted and sanitized.
        let text = env.redactor(&found.reading.state.spec.origin).text(&found.message()).into_owned();
        ralph_loop_protocol::display::sanitize::block(&text).into_owned()
    });
    let how = match (&args.branch, args.squash, args.commit) {
        (Some(name), ..) => ApplyMode::Branch(name),
        (None, true, _) => ApplyMode::Squash(&message),
        (None, false, true) => ApplyMode::Commits,
        (None, false, false) => ApplyMode::Files,
    };
    let (proven, level) = worth(&found.reading);
    let into = args.into.as_ref().map(|dir| folder.join(dir));
    let (done, hooks) = found.apply(env, into.as_deref(), how)?;
    let taken = if done.files.is_empty() { files.len() } else { done.files.len() };
    let origin = into.as_ref().unwrap_or(&found.reading.state.spec.origin);
    if out.json {
        out.value(&json!({
            "run_id": run,
            "proven": proven,
            "level": level,
            "how": word(how),
            "folder": origin,
            "branch": args.branch,
            "commits": done.commits,
            "files": match done.files.as_slice() {
                [] => files.iter().map(|file| &file.path).collect::<Vec<_>>(),
                taken => taken.iter().collect(),
            },
            "merged": done.merged,
            "hooks_not_run": hooks.as_ref().map(|hooks| hooks.names.as_slice()).unwrap_or_default(),
            "already_there": done.branch_had_it || (done.files_had_it && how == ApplyMode::Files),
        }));
        return Ok(0);
    }
    let (what, next) = words(run.as_str(), how, &done, taken);
    out.say(format!("{} {what} in {}", out.err(Tone::Good, out.sign(Sign::Good)), home_path(origin)));
    let made = found.titles(env, into.as_deref(), &done.commits)?;
    made.iter().take(COMMITS_SHOWN).for_each(|commit| out.say(format!("  {}", out.err(Tone::Muted, commit))));
    if !done.merged.is_empty() {
        let names: Vec<String> = done.merged.iter().take(5).map(|name| format!("`{name}`")).collect();
        let more = if done.merged.len() > names.len() { ", …" } else { "" };
        out.say(format!(
            "{} merged with your own edits, untested together: {}{more}",
            out.err(Tone::Attention, "note:"),
            names.join(", ")
        ));
    }
    if let Some(hooks) = &hooks {
        out.say(format!("{} {}", out.err(Tone::Attention, "note:"), hook_words(hooks, done.commits.len())));
    }
    if !proven {
        let note = out.err(Tone::Attention, "note:");
        let what = match level {
            Some(ProofLevel::Unverified) => "nothing shows that this result does what you asked",
            _ => "this run has not proven its result",
        };
        out.say(format!("{note} {what}: run `ralph show {run}` to see why"));
    }
    out.say(format!("{} {next}", out.err(Tone::Plain, "next:")));
    Ok(0)
}

/// Whether the result is proven, and its level.
fn worth(reading: &RunSnapshot) -> (bool, Option<ProofLevel>) {
    let proof = reading.state.result.proof.as_ref().filter(|proof| proof.passed);
    let level = proof.and_then(|proof| proof.level);
    (level.is_some_and(ProofLevel::is_proven), level)
}

/// Which hooks didn't run, and how to run them.
fn hook_words(hooks: &UserHooks, commits: usize) -> String {
    let names = hooks.names.join(", ");
    let look = match hooks.changed.first() {
        Some(path) => format!("review `{path}` first, which the result changes; then "),
        None => String::new(),
    };
    let last = if commits == 1 { "it" } else { "the last of them" };
    format!("without your hooks ({names}): {look}`git commit --amend --no-edit` runs them on {last}")
}

/// Handles a run without changes.
fn nothing(reading: &RunSnapshot, args: &ApplyArgs, out: &Out) -> u8 {
    reading.mark_seen();
    let run = &reading.entry.run_id;
    let (proven, level) = worth(reading);
    if out.json {
        let how = match (&args.branch, args.squash, args.commit) {
            (Some(_), ..) => "branch",
            (None, true, _) => "squash",
            (None, false, true) => "commits",
            (None, false, false) => "files",
        };
        out.value(&json!({
            "run_id": run,
            "proven": proven,
            "level": level,
            "how": how,
            "folder": args.into.as_ref().unwrap_or(&reading.state.spec.origin),
            "branch": null,
            "commits": [],
            "files": [],
            "merged": [],
            "hooks_not_run": [],
            "already_there": false,
        }));
    } else {
        out.say(format!(
            "run {run} changed no files, so there is nothing to apply; run `ralph show {run}` to see what it did"
        ));
    }
    0
}

fn word(how: ApplyMode<'_>) -> &'static str {
    match how {
        ApplyMode::Files => "files",
        ApplyMode::Squash(_) => "squash",
        ApplyMode::Commits => "commits",
        ApplyMode::Branch(_) => "branch",
    }
}

/// Reports what was done and what comes next.
fn words(run: &str, how: ApplyMode<'_>, done: &ApplyReport, files: usize) -> (String, String) {
    let changes = format!("{} of run {run}", count(files, "changed file"));
    match how {
        _ if done.branch_had_it => (
            format!("the current branch already contains the result of run {run}"),
            "`git log` shows its commits".to_owned(),
        ),
        ApplyMode::Files if done.files_had_it => (
            format!("{changes}: already in your folder, not committed"),
            format!("`ralph apply {run} --squash` commits them and nothing else"),
        ),
        ApplyMode::Files => (
            format!("{changes}: now in your folder, not committed"),
            format!("`git status` shows them; `ralph apply {run} --squash` commits them"),
        ),
        ApplyMode::Squash(_) => (format!("{changes}: one commit"), "`git show` shows it".to_owned()),
        ApplyMode::Commits => {
            let commits = count(done.commits.len(), "commit");
            (format!("{changes}: {commits}"), format!("`git log -{}` shows them", done.commits.len().max(1)))
        }
        ApplyMode::Branch(name) => (
            format!("{changes}: on the new branch `{name}`"),
            format!("`git merge {name}` merges it into your current branch"),
        ),
    }
}
