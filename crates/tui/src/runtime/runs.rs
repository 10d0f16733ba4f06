//! Steers runs and reads their data for tabs.

use super::perform::World;
use super::{feed, tabs};
use crate::data::ToneLine;
use crate::msg::{Details, Msg};
use ralph_loop_app::AppError;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::read::taking_home::{RunChanges, RunResultFiles};
use ralph_loop_app::read::timeline::RunTimeline;
use ralph_loop_app::read::transcript;
use ralph_loop_app::steering::{own_program, steer};
use ralph_loop_app::trust::repo_file;
use ralph_loop_git::RunCommits;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_journal::folder::registry::Registration;
use ralph_loop_protocol::control::{BudgetChange, Control};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::{one_line, tail};
use ralph_loop_protocol::event::FileChange;
use ralph_loop_protocol::money::receipt::Receipt;

/// Size limits of a patch in a tab and in the pager.
const TAB_MAX: usize = 512 * 1024;
const PAGER_MAX: usize = 64 * 1024 * 1024;
/// Size limit of a changelog.
const CHANGELOG_MAX: usize = 128 * 1024;
/// Receipts listed.
const RECEIPTS_MAX: u32 = 200;

fn entry(world: &World, run: &str) -> Result<Registration, AppError> {
    Ok(world.app.open(&world.folder, Some(run))?.entry)
}

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
        words = format!("{}: accepted, the run continues", sent.control);
    }
    world.tell(Msg::Done(words));
    Ok(())
}

/// Resumes a run.
pub fn resume(world: &World, run: &str) -> Result<(), AppError> {
    let entry = entry(world, run)?;
    if world.app.handle(&entry).is_driven() {
        return send(world, run, Control::Resume, false);
    }
    world.app.spawn_resume(&entry, &BudgetChange::default())?;
    world.tell(Msg::Done(format!("run {run} continues")));
    Ok(())
}

/// Ends a run like `ralph cancel` and `ralph stop`.
pub fn end(world: &World, run: &str, now: bool) -> Result<(), AppError> {
    let word = if now { "cancel" } else { "stop" };
    own_program::answer(world.env(), &world.folder, &[word, run], &|| false)?;
    let said = if now { "the run is cancelled" } else { "the run ends after its session" };
    world.tell(Msg::Done(said.into()));
    Ok(())
}

pub fn tab(world: &World, run: &str, tab: u8) -> Result<Vec<ToneLine>, AppError> {
    match tab {
        3 => git(world, run),
        4 => changelog(world, run),
        _ => receipts(world, run),
    }
}

fn git(world: &World, run: &str) -> Result<Vec<ToneLine>, AppError> {
    let found = match RunResultFiles::open(world.env(), &world.folder, Some(run)) {
        Ok(RunChanges::Recorded(found)) => found,
        Ok(RunChanges::Nothing(_)) => return Ok(Vec::new()),
        // The first iteration isn't over yet.
        Err(error) => return Ok(vec![ToneLine::new(Tone::Muted, one_line(&error.message, 200))]),
    };
    let files = found.work.files(&found.repo)?;
    let (patch, cut) = found.work.patch(&found.repo, TAB_MAX)?;
    Ok(tabs::changes(files.iter().map(file_line).collect(), &String::from_utf8_lossy(&patch), cut))
}

/// An iteration: what the agent printed, its prompt, its diff and its checks; or what changed between two.
pub fn details(world: &World, run: &str, from: Option<u32>, iteration: u32) -> Result<Details, AppError> {
    let facts = RunSnapshot::load(world.env(), entry(world, run)?)?;
    let folder = |number: u32| facts.entry.run_dir().iteration(number);
    let text = |name: &str| repo_file::read_record(&folder(iteration).join(name)).unwrap_or_default();
    let receipt = |number: u32| {
        let bytes = repo_file::read_record(&folder(number).join("receipt.json")).ok()?;
        serde_json::from_slice::<Receipt>(&bytes).ok()
    };
    let found = Details { from, iteration, ..Details::default() };
    if let Some(from) = from {
        let diff = between(world, run, from, iteration)?;
        let checks = tabs::tests_between(receipt(from).as_ref(), receipt(iteration).as_ref());
        return Ok(Details { diff, checks, ..found });
    }
    let records = transcript::read(&facts, iteration).unwrap_or_default();
    let heading = |line: &str| if line.starts_with('#') { Tone::Attention } else { Tone::Plain };
    let prompt = String::from_utf8_lossy(&text("prompt.md")).into_owned();
    let prompt = sanitize::block(&prompt).lines().map(|line| ToneLine::new(heading(line), line)).collect();
    let patch = text("git_diff.patch");
    let cut = patch.len() > TAB_MAX;
    let patch = String::from_utf8_lossy(&patch[..patch.len().min(TAB_MAX)]).into_owned();
    Ok(Details {
        output: records.iter().filter_map(|record| feed::shown(facts.now, record)).collect(),
        prompt,
        diff: if patch.trim().is_empty() { Vec::new() } else { tabs::changes(Vec::new(), &patch, cut) },
        checks: receipt(iteration).map(|receipt| tabs::receipt(iteration, &receipt)).unwrap_or_default(),
        ..found
    })
}

/// The files and the patch between the ends of two iterations.
fn between(world: &World, run: &str, from: u32, to: u32) -> Result<Vec<ToneLine>, AppError> {
    let found = match RunResultFiles::open(world.env(), &world.folder, Some(run))? {
        RunChanges::Recorded(found) => found,
        RunChanges::Nothing(_) => return Ok(Vec::new()),
    };
    let story = RunTimeline::read(world.env(), &found.reading, None)?;
    // An iteration without changes has the files of the one before.
    let at_end_of = |number: u32| {
        let until = story.iterations.iter().take_while(|it| it.iteration <= number);
        until.filter_map(|it| it.commit.clone()).last().unwrap_or_else(|| found.work.start.clone())
    };
    let (files, patch) = RunCommits::between(&found.repo, &at_end_of(from), &at_end_of(to), TAB_MAX)?;
    if files.is_empty() {
        return Ok(Vec::new());
    }
    let files = files.iter().map(file_line).collect();
    Ok(tabs::changes(files, &String::from_utf8_lossy(&patch), patch.len() >= TAB_MAX))
}

fn file_line(file: &FileChange) -> ToneLine {
    let word = match file.status {
        'A' => "new",
        'D' => "deleted",
        _ => "changed",
    };
    tabs::file(word, file.added.zip(file.removed), &file.path)
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
        lines.extend(tabs::receipt(number, &receipt));
    }
    Ok(lines)
}

/// The whole diff, sanitized, with colors for the pager.
pub fn diff(world: &World, run: &str) -> Result<String, AppError> {
    let found = match RunResultFiles::open(world.env(), &world.folder, Some(run))? {
        RunChanges::Recorded(found) => found,
        RunChanges::Nothing(_) => return Ok("This run has changed no file.\n".to_owned()),
    };
    let (patch, _) = found.work.patch(&found.repo, PAGER_MAX)?;
    Ok(sanitize::block(&String::from_utf8_lossy(&patch)).into_owned())
}

/// Saves text to a file the user named.
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
