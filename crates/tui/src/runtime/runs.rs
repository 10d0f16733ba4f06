//! Steering runs, and what is read of them when somebody looks at a tab.

use super::perform::World;
use crate::data::ToneLine;
use crate::msg::Msg;
use ralph_app::taking_home::{RunChanges, RunFiles};
use ralph_app::{AppError, own_program, repo_file, steer};
use ralph_domain::control::{BudgetChange, Control};
use ralph_domain::describe::Tone;
use ralph_domain::receipt::Receipt;
use ralph_domain::sanitize;
use ralph_domain::text::{count, duration, one_line, tail};
use ralph_journal::layout::RalphDir;
use ralph_journal::registry::Registration;
use std::time::Duration;

/// Bytes of a patch in a tab, and in the pager.
const TAB_MAX: usize = 512 * 1024;
const PAGER_MAX: usize = 64 * 1024 * 1024;
/// Bytes of a changelog.
const CHANGELOG_MAX: usize = 128 * 1024;
/// Receipts that are listed.
const RECEIPTS_MAX: u32 = 200;

fn entry(world: &World, run: &str) -> Result<Registration, AppError> {
    Ok(world.app.open(&world.folder, Some(run))?.entry)
}

/// Sends a control.
pub fn send(world: &World, run: &str, control: Control, then_resume: bool) -> Result<(), AppError> {
    let entry = entry(world, run)?;
    let handle = world.app.handle(&entry);
    let mut aside = None;
    if control == Control::Approve && !handle.is_driven() {
        aside = world.app.accept_sealed(&entry)?;
    }
    let sent = steer::send(&world.app, &entry, control)?;
    let mut words = sent.words(entry.run_id.as_str());
    if let Some(aside) = aside {
        words.push_str(&format!("; the edited journal is kept as {}", aside.display()));
    }
    if then_resume && !sent.driven {
        world.app.spawn_resume(&entry, &BudgetChange::default())?;
        words = format!("{}: accepted, the run goes on", sent.control);
    }
    world.tell(Msg::Done(words));
    Ok(())
}

/// Goes on with a run.
pub fn resume(world: &World, run: &str) -> Result<(), AppError> {
    let entry = entry(world, run)?;
    if world.app.handle(&entry).is_driven() {
        return send(world, run, Control::Resume, false);
    }
    world.app.spawn_resume(&entry, &BudgetChange::default())?;
    world.tell(Msg::Done(format!("run {run} goes on")));
    Ok(())
}

/// Ends a run, whoever drives it: as `ralph cancel` and `ralph stop` do.
pub fn end(world: &World, run: &str, now: bool) -> Result<(), AppError> {
    let word = if now { "cancel" } else { "stop" };
    own_program::answer(world.env(), &world.folder, &[word, run], &|| false)?;
    let said = if now { "the run is cancelled" } else { "the run ends after its session" };
    world.tell(Msg::Done(said.into()));
    Ok(())
}

/// The content of a tab.
pub fn tab(world: &World, run: &str, tab: u8) -> Result<Vec<ToneLine>, AppError> {
    match tab {
        3 => git(world, run),
        4 => changelog(world, run),
        _ => receipts(world, run),
    }
}

fn git(world: &World, run: &str) -> Result<Vec<ToneLine>, AppError> {
    let found = match RunFiles::open(world.env(), &world.folder, Some(run)) {
        Ok(RunChanges::Recorded(found)) => found,
        Ok(RunChanges::Nothing(_)) => return Ok(Vec::new()),
        // Its first iteration is not over yet.
        Err(error) => return Ok(vec![ToneLine::new(Tone::Muted, one_line(&error.message, 200))]),
    };
    let files = found.work.files(&found.repo)?;
    let mut lines = Vec::new();
    for file in &files {
        let (word, tone) = match file.status {
            'A' => ("new", Tone::Good),
            'D' => ("deleted", Tone::Attention),
            _ => ("changed", Tone::Plain),
        };
        let size = match (file.added, file.removed) {
            (Some(added), Some(removed)) => format!("+{added} −{removed}"),
            _ => "binary".to_owned(),
        };
        lines.push(ToneLine::new(tone, format!("{word:<8} {size:>12}  {}", one_line(&file.path, 300))));
    }
    let (patch, cut) = found.work.patch(&found.repo, TAB_MAX)?;
    lines.push(ToneLine::new(Tone::Plain, ""));
    for line in sanitize::block(&String::from_utf8_lossy(&patch)).lines() {
        let tone = match line.as_bytes().first() {
            Some(b'+') if !line.starts_with("+++ ") => Tone::Good,
            Some(b'-') if !line.starts_with("--- ") => Tone::Bad,
            Some(b' ') => Tone::Plain,
            _ => Tone::Muted,
        };
        lines.push(ToneLine::new(tone, line.replace('\t', "    ")));
    }
    if cut {
        lines.push(ToneLine::new(Tone::Muted, "… cut here; g shows all of it"));
    }
    Ok(lines)
}

fn changelog(world: &World, run: &str) -> Result<Vec<ToneLine>, AppError> {
    let entry = entry(world, run)?;
    let path = RalphDir::of(&entry.origin).join("changelog/global.md");
    let text = repo_file::read_text(&path).unwrap_or_default();
    let lines = tail(&text, CHANGELOG_MAX).lines().map(|line| {
        let tone = if line.starts_with('#') { Tone::Attention } else { Tone::Plain };
        ToneLine::new(tone, line)
    });
    Ok(lines.collect())
}

fn receipts(world: &World, run: &str) -> Result<Vec<ToneLine>, AppError> {
    let entry = entry(world, run)?;
    let done = world.app.handle(&entry).state()?.iterations.count;
    let mut lines = Vec::new();
    for number in (1..=done).rev().take(RECEIPTS_MAX as usize) {
        let path = entry.run_dir().iteration(number).join("receipt.json");
        let read = repo_file::read_record(&path).ok();
        let Some(receipt) = read.and_then(|bytes| serde_json::from_slice::<Receipt>(&bytes).ok()) else {
            continue;
        };
        let took = duration(Duration::from_millis(receipt.session_ms));
        let cost =
            receipt.cost_usd.map_or_else(|| "unknown".to_owned(), |cost| receipt.cost_basis.words(cost));
        let tokens =
            receipt.tokens.map_or_else(String::new, |t| format!("  {} in, {} out", t.input, t.output));
        lines.push(ToneLine::new(
            Tone::Attention,
            format!(
                "{number:>3}  {}  {}  {}",
                receipt.agent,
                receipt.model.unwrap_or_default(),
                receipt.verdict.words()
            ),
        ));
        lines.push(ToneLine::new(
            Tone::Plain,
            format!(
                "     {took}  {cost}{tokens}  +{} −{}  {}",
                receipt.lines_added,
                receipt.lines_removed,
                count(receipt.files_changed, "file")
            ),
        ));
        for check in &receipt.checks {
            let (tone, word) = if check.passed { (Tone::Good, "passed") } else { (Tone::Bad, "failed") };
            let why = check.why.as_deref().map(|why| format!(": {}", one_line(why, 200))).unwrap_or_default();
            lines.push(ToneLine::new(tone, format!("     {word} {}{why}", one_line(&check.name, 80))));
        }
        lines.push(ToneLine::new(Tone::Muted, format!("     {}", one_line(&receipt.message, 300))));
        lines.push(ToneLine::new(Tone::Plain, ""));
    }
    Ok(lines)
}

/// The whole diff, safe to show, in the colours of every pager.
pub fn diff(world: &World, run: &str) -> Result<String, AppError> {
    let found = match RunFiles::open(world.env(), &world.folder, Some(run))? {
        RunChanges::Recorded(found) => found,
        RunChanges::Nothing(_) => return Ok("This run has changed no file.\n".to_owned()),
    };
    let (patch, _) = found.work.patch(&found.repo, PAGER_MAX)?;
    Ok(sanitize::block(&String::from_utf8_lossy(&patch)).into_owned())
}

/// Saves a text to a file that the user has named.
pub fn save(world: &World, name: &str, text: &str) -> Result<(), AppError> {
    let path = world.folder.join(name);
    if path.symlink_metadata().is_ok() {
        return Err(
            AppError::usage(format!("`{}` is there already", path.display())).hint("give another name")
        );
    }
    repo_file::write(&path, text.as_bytes())?;
    world.tell(Msg::Done(format!("saved to {}", path.display())));
    Ok(())
}
