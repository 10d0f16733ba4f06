//! Effects of the Spec Studio: asking agents, storing threads, writing the task.

use super::look;
use super::perform::World;
use crate::data::{Message, Problem, ThreadRow};
use crate::msg::Msg;
use crate::screen::{REVIEW_SYSTEM, STUDIO_SYSTEM, review_prompt, studio_prompt};
use jiff::Timestamp;
use ralph_loop_app::AppError;
use ralph_loop_app::agents::consult;
use ralph_loop_app::agents::consult::Consultation;
use ralph_loop_app::steering::own_program;
use ralph_loop_app::trust::repo_file;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::{AskSink, Clock as _, StopCause};
use ralph_loop_git::Repo;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::{head, one_line};
use std::ops::ControlFlow;
use std::path::{Component, Path, PathBuf};
use std::time::Duration;

/// Timeout of an answer.
const TIMEOUT: Duration = Duration::from_secs(600);
/// Limits for files a message names: bytes each, and number.
const FILE_MAX: usize = 8 * 1024;
const FILES_MAX: usize = 6;
/// File names given to an agent.
const NAMES_MAX: usize = 200;
/// Limits for a thread's size and for the list.
const THREAD_MAX: usize = 4 * 1024 * 1024;
const THREADS_MAX: usize = 200;

/// Asks an agent about the draft.
pub fn ask(world: &World, agent: &str, thread: &str, messages: &[Message], draft: &str) {
    let named: Vec<&str> =
        messages.iter().flat_map(|m| m.text.split_whitespace()).filter_map(|w| w.strip_prefix('@')).collect();
    let prompt = studio_prompt(messages, draft, &repo_words(world, &named));
    let thread = thread.to_owned();
    let mut sink = Sink { world: world.clone(), since: world.asked(), thread: Some(thread.clone()) };
    let answer = answer(world, agent, STUDIO_SYSTEM, &prompt, &mut sink);
    world.tell(Msg::Answered { thread, agent: agent.to_owned(), answer });
}

/// Has an agent review the draft.
pub fn review(world: &World, agent: &str, draft: &str) {
    let prompt = review_prompt(draft, &repo_words(world, &[]));
    let mut sink = Sink { world: world.clone(), since: world.asked(), thread: None };
    let answer = answer(world, agent, REVIEW_SYSTEM, &prompt, &mut sink);
    world.tell(Msg::Reviewed(agent.to_owned(), answer));
}

fn answer(
    world: &World,
    agent: &str,
    system: &str,
    prompt: &str,
    sink: &mut Sink,
) -> Result<String, Problem> {
    let all = consult::agents(world.env(), &world.folder)?;
    let Some(config) = all.iter().find(|one| one.name.as_str() == agent) else {
        return Err(Problem::new(format!("there is no agent `{agent}` here any more"), "choose another one"));
    };
    // Redacted, because the text goes to a model.
    let prompt = world.env().redactor(&world.top()).text(prompt).into_owned();
    let question = Consultation { system, prompt: &prompt, timeout: TIMEOUT };
    let answer = consult::ask(world.env(), &world.folder, config, &question, sink)?;
    Ok(answer.text)
}

struct Sink {
    world: World,
    since: u64,
    /// The thread that receives the answer.
    thread: Option<String>,
}

impl AskSink for Sink {
    fn text(&mut self, piece: &str) {
        if let Some(thread) = &self.thread {
            self.world.tell(Msg::Answering { thread: thread.clone(), piece: piece.to_owned() });
        }
    }
    fn waiting(&mut self, wait: Duration, reason: &str) {
        if self.thread.is_some() {
            let words = format!("waiting {} s: {}", wait.as_secs(), one_line(reason, 200));
            self.world.tell(Msg::Done(words));
        }
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        match self.world.asked() == self.since {
            true => ControlFlow::Continue(()),
            false => ControlFlow::Break(StopCause::Cancelled),
        }
    }
}

/// Repo facts for a question: file names, test commands, and the named files.
fn repo_words(world: &World, named: &[&str]) -> String {
    let files = look::files(world);
    let mut words = String::from("Files:\n");
    for name in files.iter().take(NAMES_MAX) {
        words.push_str(&format!("{name}\n"));
    }
    if files.len() > NAMES_MAX {
        words.push_str(&format!("… and {} more\n", files.len() - NAMES_MAX));
    }
    for test in &look::repo(world).tests {
        words.push_str(&format!("Test command: {test}\n"));
    }
    for name in named.iter().take(FILES_MAX) {
        let name = name.trim_end_matches([',', '.', ';', ')']);
        // Quotes only files tracked by git, so that no path leaves the repo.
        let is_known = files.iter().any(|file| file == name);
        let plain = Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if let Ok(text) = repo_file::read_text(&world.top().join(name))
            && is_known
            && plain
        {
            words.push_str(&format!("\n`{name}`:\n```\n{}\n```\n", head(&text, FILE_MAX)));
        }
    }
    words
}

fn folder(world: &World, name: &str) -> PathBuf {
    RalphDir::of(&world.top()).join("spec").join(name)
}

/// An id validated as a path component.
fn thread_file(world: &World, id: &str) -> Result<PathBuf, AppError> {
    let fine = !id.is_empty() && id.len() < 64 && id.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'-');
    match fine {
        true => Ok(folder(world, "threads").join(format!("{id}.jsonl"))),
        false => {
            Err(AppError::usage(format!("there is no thread `{}`", one_line(id, 80)))
                .hint("Ctrl-O lists them"))
        }
    }
}

pub fn remember(world: &World, id: &str, message: &Message) -> Result<(), AppError> {
    let path = thread_file(world, id)?;
    let mut text = repo_file::read_text(&path).unwrap_or_default();
    if text.is_empty()
        && let Ok(repo) = Repo::discover(world.env().vars(), &world.top())
    {
        repo.exclude_ralph_dir()?;
    }
    let clean = world
        .env()
        .redactor(&world.top())
        .text(&serde_json::to_string(message).unwrap_or_default())
        .into_owned();
    if text.len() + clean.len() < THREAD_MAX {
        text.push_str(&clean);
        text.push('\n');
        repo_file::write(&path, text.as_bytes())?;
    }
    Ok(())
}

/// A thread's messages, without invalid lines.
pub fn thread(world: &World, id: &str) -> Result<Vec<Message>, AppError> {
    let path = thread_file(world, id)?;
    let text = repo_file::read_text(&path).map_err(|e| repo_file::unreadable(&path, &e))?;
    let clean = |message: Message| Message {
        who: one_line(&message.who, 40),
        text: sanitize::block(&message.text).into_owned(),
        draft: message.draft,
    };
    Ok(head(&text, THREAD_MAX)
        .lines()
        .filter_map(|line| serde_json::from_str(line).ok())
        .map(clean)
        .collect())
}

/// This repo's threads, newest first.
pub fn threads(world: &World) -> Vec<ThreadRow> {
    let mut rows = Vec::new();
    for entry in repo_file::entries(&folder(world, "threads"), THREADS_MAX) {
        let name = entry.name.to_string_lossy().into_owned();
        let Some(id) = name.strip_suffix(".jsonl") else { continue };
        let Ok(messages) = thread(world, id) else { continue };
        let title =
            messages.iter().find(|m| m.who == "you").map_or_else(String::new, |m| one_line(&m.text, 80));
        rows.push(ThreadRow { id: id.to_owned(), title, messages: messages.len() });
    }
    rows.sort_by(|a, b| b.id.cmp(&a.id));
    rows
}

/// Writes the task: a snapshot, `SPEC.md` if wanted, and the task file.
pub fn write(world: &World, draft: &str, dialect: &str, spec: Option<&str>) -> Result<(), AppError> {
    let top = world.top();
    let stamp = stamp(SystemClock::default().now());
    repo_file::write(&folder(world, "drafts").join(format!("{stamp}.md")), draft.as_bytes())?;
    if let Ok(repo) = Repo::discover(world.env().vars(), &top) {
        repo.exclude_ralph_dir()?;
    }
    let mut written = vec![dialect.to_owned()];
    // Keeps the previous content.
    if let Ok(before) = repo_file::read(&top.join(dialect))
        && before != draft.as_bytes()
    {
        let name = format!("{stamp}-before-{}", dialect.replace('/', "-"));
        repo_file::write(&folder(world, "drafts").join(name), &before)?;
    }
    let mut lost = Vec::new();
    if dialect == "PROMPT.md" {
        repo_file::write(&top.join(dialect), draft.as_bytes())?;
    } else {
        repo_file::write(&folder(world, "PROMPT.md"), draft.as_bytes())?;
        let args = ["convert", ".ralph/spec/PROMPT.md", dialect, "--force"];
        let answer = own_program::answer(world.env(), &top, &args, &|| false)?;
        let listed = answer["no_equivalent"].as_array().into_iter().flatten();
        lost.extend(listed.map(|one| one_line(one["field"].as_str().unwrap_or_default(), 80)));
    }
    if let Some(spec) = spec {
        repo_file::write(&top.join(spec), draft.as_bytes())?;
        written.push(spec.to_owned());
    }
    world.tell(Msg::Wrote(written, lost));
    Ok(())
}

fn stamp(now: Timestamp) -> String {
    now.strftime("%Y%m%d-%H%M%S").to_string()
}
