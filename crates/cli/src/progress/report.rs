//! What a foreground run reports before its first and after its last step.

mod assumed;
mod result_place;

use crate::output::{Out, Sign};
use crate::process::fault::Boundaries;
use crate::progress::present::Terminal;
use crate::progress::session_lines::last_sentence;
use crate::text::run_text::failing_result;
use crate::text::words::home_path;
use ralph_loop_app::{App, Notice, Reporter, RunReport};
use ralph_loop_core::Observer;
use ralph_loop_git::LeftOut;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::{count, duration};
use ralph_loop_protocol::display::view::CheckView;
use ralph_loop_protocol::id::AgentName;
use ralph_loop_protocol::money::Cost;
use ralph_loop_protocol::outcome::EndReason;
use ralph_loop_task::config::{AgentKind, Isolation};
use ralph_loop_task::spec::RunSpec;
use std::path::PathBuf;
use std::time::Duration;

/// Lines of a failing check in the summary.
const SUMMARY_LINES: usize = 6;
/// Changed files named in the summary.
const FILES_SHOWN: usize = 8;

pub struct Presenter<'a> {
    app: &'a App,
    out: &'a Out,
}

impl<'a> Presenter<'a> {
    pub fn new(app: &'a App, out: &'a Out) -> Self {
        Self { app, out }
    }
}

impl Reporter for Presenter<'_> {
    fn notice(&self, notice: &Notice<'_>) {
        let out = self.out;
        match notice {
            Notice::CopyingTree if out.live => out.say("copying your repo into the sandbox"),
            Notice::CopyingTree => {}
            Notice::GoingOn { run } => {
                out.say(format!(
                    "continuing unfinished run {run} (pass `--new` to start another)"
                ));
            }
            Notice::OtherUnfinished { run } => out.say(format!(
                "{} run {run} of the same task is unfinished (`ralph resume {run}` continues it); this is a new run",
                out.err(Tone::Attention, "note:")
            )),
            Notice::StaysHere { reason } => out.say(format!("the result stays on its branch here: {reason}")),
            Notice::TaskPushes { url } => out.say(format!(
                "the work is pushed to {} after each iteration, because the task names that repo; `--publish none` keeps it here",
                ralph_loop_domain::repo::address::without_login(url)
            )),
            Notice::EditedSince { issue, by } => out.say(format!(
                "{} issue {issue} was edited after {by} approved it; this run works on the approved text (to approve the new one, remove the label and add it again)",
                out.err(Tone::Attention, "note:")
            )),
            Notice::CodeHostSilent { reason } => {
                out.say(format!("the code host does not answer now: {reason}"));
            }
            Notice::HasItAlready => {
                out.say("this machine already has the newest state of the run; continuing with it");
            }
            Notice::Brought { run, folder, iterations } => out.say(format!(
                "run {run} is in `{}` now, after {}",
                folder.display(),
                count(*iterations as usize, "iteration")
            )),
            Notice::Assumed { assumptions, settings, place } => {
                assumed::lines(assumptions, settings, place).iter().for_each(|(name, words)| {
                    out.say_below(12, format!("  {} {words}", out.err(Tone::Muted, &format!("{name:<9}"))))
                });
            }
            Notice::Checks(checks) => {
                for check in *checks {
                    let name = out.err(Tone::Muted, &format!("{:<9}", "check"));
                    out.say_below(12, format!("  {name} {}", check.line()));
                }
            }
            Notice::Switching { folder, from, to } => out.say(format!(
                "switching {} from {} to the new branch {to}",
                home_path(folder),
                from.unwrap_or("a detached HEAD"),
            )),
            Notice::BranchTaken { wanted, named } => {
                out.say(format!("the branch {wanted} already exists on the remote: this run is pushed as {named}"));
            }
            Notice::Starting { spec, unpriced } => announce(spec, unpriced, out),
            Notice::LeftOut(left) => print_left_out(left, out),
            Notice::WithUnfinished { run, files } => out.say(format!(
                "{} your uncommitted changes from the start of run {run} are included, and stay uncommitted: {}",
                out.err(Tone::Muted, "note:"),
                some_names(files)
            )),
            Notice::StayBehind { files } => out.say(format!(
                "{} your uncommitted changes stay in your folder; the agent doesn't get them: {}",
                out.err(Tone::Attention, "note:"),
                some_names(files)
            )),
            Notice::MissingSubmodules(paths) => {
                let shown: Vec<&str> = paths.iter().take(5).map(String::as_str).collect();
                out.say(format!(
                    "{} the files of {} ({}) are missing, so no check can use them: fetch them with `git submodule update --init --recursive`",
                    out.err(Tone::Attention, "note:"),
                    count(paths.len(), "submodule"),
                    shown.join(", "),
                ));
            }
        }
    }

    fn observer(&self) -> Box<dyn Observer> {
        Box::new(Terminal::new(*self.out, Boundaries::new(self.app.environment().vars())))
    }
}

/// Reports what matters before money is spent.
fn announce(spec: &RunSpec, unpriced: &[AgentName], out: &Out) {
    let provider = spec.settings.sandbox.provider();
    if provider.is_elsewhere() && (out.live || out.verbose) {
        out.say(format!("works in a sandbox of {}; the runs folder and git stay here", provider.as_str()));
    }
    if !provider.is_elsewhere() && (out.live || out.verbose) {
        match spec.settings.isolation {
            Isolation::Bwrap => {
                out.say("sandboxed with bubblewrap: sees the workspace, not your home; network: allowlist")
            }
            Isolation::Landlock => {
                out.say("sandboxed with Landlock, which isolates less than bubblewrap (`ralph doctor`)")
            }
            Isolation::Auto | Isolation::None => {}
        }
    }
    let ignored = spec.settings.sandbox.ignored();
    if !ignored.is_empty() {
        let keys: Vec<String> = ignored.iter().map(|key| format!("`sandbox.{key}`")).collect();
        let verb = if keys.len() == 1 { "does" } else { "do" };
        out.say(format!(
            "{} {} {verb} not count: the provider `{}` has no use for {}",
            out.err(Tone::Attention, "note:"),
            keys.join(", "),
            provider.as_str(),
            if keys.len() == 1 { "it" } else { "them" },
        ));
    }
    let open = !provider.is_elsewhere() && spec.settings.isolation == Isolation::None;
    if open && !spec.settings.allowed_hosts.is_empty() {
        out.say(format!(
            "{} `allowed_hosts` does not count: without a sandbox the network is open",
            out.err(Tone::Attention, "note:"),
        ));
    }
    let uncounted: Vec<&str> = spec
        .settings
        .agents
        .iter()
        .filter(|agent| !agent.reports_tokens())
        .map(|a| a.name.as_str())
        .collect();
    if let Some(most) = spec.settings.budgets.max_tokens.filter(|_| !uncounted.is_empty()) {
        out.say(format!(
            "{} {} {} not report tokens: the cap of {most} tokens cannot hold for {}",
            out.err(Tone::Attention, "note:"),
            uncounted.join(", "),
            if uncounted.len() == 1 { "does" } else { "do" },
            if uncounted.len() == 1 { "it" } else { "them" },
        ));
    }
    // An agent that reports tokens has a price once its model is known.
    let (later, unpriced): (Vec<&AgentName>, Vec<&AgentName>) = unpriced.iter().partition(|name| {
        spec.settings
            .agent(name)
            .is_some_and(|a| a.kind == AgentKind::Cli && a.model.is_none() && a.reports_tokens())
    });
    if !later.is_empty() {
        let names: Vec<&str> = later.iter().map(|name| name.as_str()).collect();
        out.say(format!(
            "{} {} {} not report cost: it is estimated once the model is known, and where its price is not, the cap of {} cannot hold",
            out.err(Tone::Attention, "note:"),
            names.join(", "),
            if names.len() == 1 { "does" } else { "do" },
            spec.settings.budgets.max_cost,
        ));
    }
    let blind: Vec<&str> = unpriced.iter().map(|name| name.as_str()).collect();
    if !blind.is_empty() {
        out.say(format!(
            "{} {} {} not report cost and no price is known: the cap of {} cannot hold for {}",
            out.err(Tone::Attention, "note:"),
            blind.join(", "),
            if blind.len() == 1 { "does" } else { "do" },
            spec.settings.budgets.max_cost,
            if blind.len() == 1 { "it" } else { "them" },
        ));
    }
}

/// The first of some names.
fn some_names(files: &[String]) -> String {
    let shown: Vec<String> = files.iter().take(5).map(|path| format!("`{path}`")).collect();
    format!("{}{}", shown.join(", "), if files.len() > shown.len() { ", …" } else { "" })
}

/// The first changed files, and how many more there are.
fn file_list(files: &[String]) -> String {
    let shown: Vec<&str> = files.iter().take(FILES_SHOWN).map(String::as_str).collect();
    match files.len() - shown.len() {
        0 => shown.join(", "),
        more => format!("{}, and {more} more", shown.join(", ")),
    }
}

/// Parts of the user's tree that the agent doesn't get.
fn print_left_out(left: &LeftOut, out: &Out) {
    let names = |paths: &[PathBuf]| {
        let shown: Vec<String> = paths.iter().take(5).map(|path| format!("`{}`", path.display())).collect();
        format!("{}{}", shown.join(", "), if paths.len() > shown.len() { ", …" } else { "" })
    };
    if !left.withheld.is_empty() {
        out.say(format!(
            "{} the agent works without your ignored files (`workspace.include` adds some): {}",
            out.err(Tone::Muted, "note:"),
            names(&left.withheld)
        ));
    }
    if !left.too_much.is_empty() {
        out.say(format!(
            "{} too much to copy, so the agent works without: {}",
            out.err(Tone::Attention, "note:"),
            names(&left.too_much)
        ));
    }
}

/// Checks that fail at the end, with their output.
fn failing_checks(checks: &[CheckView], out: &Out) {
    for check in checks {
        let Some(result) = failing_result(check) else { continue };
        let why = result.why.as_deref().unwrap_or("failed");
        let place = if check.refused.is_some() { " in the final check" } else { "" };
        out.say_below(12, format!("  {} {}{place}: {why}", out.err(Tone::Bad, "failing  "), check.name));
        // The steps of the run showed its lines; without them this is the only place.
        let lines = if out.quiet {
            result.evidence(SUMMARY_LINES)
        } else {
            result.failing_words(3).into_iter().collect()
        };
        for line in lines {
            out.say_below(12, format!("            {}", out.err(Tone::Muted, &line)));
        }
    }
}

/// A run's final summary.
pub fn summary(finished: &RunReport, app: &App, out: &Out) {
    let RunReport { result, spec, .. } = finished;
    let state = finished.state.as_ref();
    let (tone, sign) = match result.reason {
        EndReason::Completed => (Tone::Good, Sign::Good),
        EndReason::NeedsHuman => (Tone::Attention, Sign::NeedsYou),
        EndReason::Suspended => (Tone::Attention, Sign::Pause),
        _ => (Tone::Bad, Sign::Bad),
    };
    out.say_below(2, format!("{} {}", out.err(tone, out.sign(sign)), out.strong(&result.summary)));
    let time = duration(Duration::from_secs_f64(result.elapsed_seconds.max(0.0)));
    let cost = match result.cost {
        Cost::UNKNOWN => Cost::UNKNOWN.alone(),
        cost => cost.with_basis(),
    };
    let row = |name: &str, value: &str| {
        out.say_below(12, format!("  {} {value}", out.err(Tone::Muted, &format!("{name:<9}"))))
    };
    let compute = result.compute_usd.map(|cost| format!(" · compute ~{cost}")).unwrap_or_default();
    row(
        "run",
        &format!(
            "{} · {} · {time} · {cost}{compute}",
            spec.run_id,
            count(result.iterations as usize, "iteration")
        ),
    );
    // Where no agent could work, the checks say nothing about its end.
    if !matches!(result.reason, EndReason::Completed | EndReason::Error) {
        failing_checks(&finished.checks(), out);
        if let Some((agent, question)) = finished.last_question() {
            let answer = format!("`ralph nudge \"…\" --run {}` answers", spec.run_id);
            let answer =
                if result.reason == EndReason::NeedsHuman { format!(" ({answer})") } else { String::new() };
            row("asked", &format!("{agent}: {question}{answer}"));
        }
    }
    if result.reason == EndReason::NeedsHuman
        && let Some(question) = state.and_then(|state| state.tests_question())
    {
        for line in question.details() {
            out.say_below(12, format!("            {}", out.err(Tone::Muted, &line)));
        }
    }
    if let Some(state) = state.filter(|state| !result.success && state.unclaimed_iterations() > 0) {
        let promise = &state.spec.settings.completion_promise;
        row(
            "hint",
            &format!(
                "the checks pass, only `<promise>{promise}</promise>` is missing: with `\"completion\": \"checks\"` in `.ralph/config.json` a run ends without it"
            ),
        );
    }
    let kept = state.map(|state| state.work.kept_back.as_slice()).unwrap_or_default();
    let (name, words) = result_place::row(result, spec, state);
    row(name, &words);
    if !result.files_changed.is_empty() {
        row("files", &file_list(&result.files_changed));
    }
    let said =
        state.and_then(|state| state.iterations.history.iter().rev().find(|it| !it.message.is_empty()));
    if let Some(last) = said.filter(|_| finished.last_question().is_none())
        && let Some(sentence) = last_sentence(&last.message)
    {
        row("said", &format!("{}: {sentence}", last.agent));
    }
    if let Some(state) = state.filter(|state| !state.work.in_submodules.is_empty()) {
        let files: Vec<String> = state.work.in_submodules.iter().cloned().collect();
        row("apart", &ralph_loop_protocol::describe::in_submodules_words(&files));
    }
    if let (Some(commit), Some(branch)) =
        (state.and_then(|state| state.handover.pushed.as_ref()), result.branch.as_deref())
    {
        row("pushed", &format!("{branch} at {} to {}", commit.short(), spec.settings.handover.remote));
    }
    if let Some(url) = &result.pr_url {
        row("pull req", url);
    }
    if result_place::is_apart(spec) {
        row("folder", &spec.home().display().to_string());
    }
    let git = result_place::git(spec);
    if let Some(branch) = state.and_then(|state| state.work.branch_kept.as_ref()) {
        let work = format!("refs/ralph/{}/work", spec.run_id);
        row(
            "yours",
            &format!("the branch `{branch}` stayed where you moved it; the run's commits: {git} log {work}"),
        );
    }
    if let Some(first) = kept.first() {
        let name = if kept.len() == 1 { format!("`{first}`") } else { count(kept.len(), "file") };
        row(
            "yours",
            &format!(
                "{name} kept as you changed it; the agent's: {git} show refs/ralph/{}/work:{first}",
                spec.run_id
            ),
        );
    }
    if !result.sandboxes.is_empty() {
        let ids = result.sandboxes.join(", ");
        row("sandbox", &format!("{ids} is kept; `ralph sandbox rm {}` removes it", spec.run_id));
    }
    if let Some(dir) = &result.run_dir {
        if dir.join("proof.json").is_file() {
            row("evidence", &dir.join("proof.json").display().to_string());
        }
        row("logs", &dir.join("iterations").display().to_string());
    }
    if let Some(hint) = result.error.as_ref().and_then(|e| e.hint.as_deref()) {
        out.say_below(6, format!("{} {hint}", out.err(Tone::Plain, "next:")));
    } else if let Some(next) = result_place::next(result, (spec, state), app.environment()) {
        out.say_below(6, format!("{} {next}", out.err(Tone::Plain, "next:")));
    }
}
