//! Spec Studio: the conversation on the left, the growing task on the right, input below. Without an agent it
//! is a form with one question at a time.

use super::{finalize, problem, review};
use crate::data::{AgentState, Message, Problem, Screen};
use crate::draft::{Draft, split_answer};
use crate::keys::Action;
use crate::model::{Answer, Model, Notice, Studio};
use crate::msg::Effect;
use crate::widget::draw::{Canvas, beside, rows, without};
use crate::widget::editor::Editor;
use crate::widget::text::wrap;
use crate::widget::theme::{Role, Sign};
use ralph_loop_app::read::phrases::since;
use ralph_loop_protocol::display::look::agent_color;
use ralph_loop_protocol::display::sanitize;
use ralph_loop_protocol::display::text::clock;
use ratatui::layout::Rect;

/// The form's questions, and the section for each answer.
const QUESTIONS: [(&str, &str); 4] = [
    ("What should be done? One sentence; it becomes the title.", "title"),
    ("What is wrong or missing, for whom, and where does it belong?", "Task"),
    ("How do we know it's done? One check per line.", "Acceptance"),
    ("Which command shows that it's done? For example: make test", "Verification"),
];
/// The parts of a task with their purpose.
const NEEDED: [(&str, &str); 4] = [
    ("Task", "what is wrong or missing, and where"),
    ("Acceptance", "what can be checked"),
    ("Constraints", "what must stay as it is"),
    ("Verification", "the command that shows it"),
];
/// Shown when continuing before an answer has arrived.
const STILL_COMING: &str = "an answer is still coming; Ctrl-X stops it";
/// File names offered.
const OFFERED: usize = 5;

/// Opens it, optionally with a first message.
pub fn open(model: &mut Model, first: Option<String>) -> Vec<Effect> {
    model.go(Screen::Studio);
    let mut effects = Vec::new();
    if model.studio.thread.is_empty() || first.is_some() {
        fresh(model);
        effects.push(Effect::ListFiles);
    }
    if let Some(text) = first {
        effects.extend(send(model, &text));
    }
    effects
}

/// Starts a new thread.
fn fresh(model: &mut Model) {
    let can_talk =
        |state: &AgentState| !matches!(state, AgentState::Missing | AgentState::Off | AgentState::Fails(_));
    let agents: Vec<String> =
        model.repo.agents.iter().filter(|a| can_talk(&a.state)).map(|a| a.name.clone()).collect();
    let thread = model.now.strftime("%Y%m%d-%H%M%S").to_string();
    model.studio = Studio { thread, agents, ..Studio::default() };
    if model.studio.asked().is_none() {
        let text = format!("No agent is installed, so here are plain questions. {}", QUESTIONS[0].0);
        model.studio.messages.push(Message { who: "ralph".into(), text, draft: String::new() });
    }
}

pub fn update(model: &mut Model, action: Action) -> Vec<Effect> {
    let studio = &mut model.studio;
    let goes_on = matches!(action, Action::ReviewRound | Action::Finalize | Action::RunAtOnce);
    if goes_on && studio.answering.is_some() {
        // The visible draft is incomplete, and the previous one isn't visible.
        model.notice = Some(Notice::Done(STILL_COMING.into()));
        return Vec::new();
    }
    match action {
        Action::Enter if studio.hand.is_some() => {
            if let Some(hand) = &mut studio.hand {
                hand.insert("\n");
            }
        }
        Action::Enter => {
            let text = studio.input.take();
            return send(model, &text);
        }
        Action::NewLine => studio.hand.as_mut().unwrap_or(&mut studio.input).insert("\n"),
        Action::NextAgent => studio.agent = (studio.agent + 1) % (studio.agents.len() + 1),
        Action::EditDraft => edit(studio),
        Action::Undo => match studio.undo.pop() {
            Some(draft) => {
                if let Some(hand) = &mut studio.hand {
                    *hand = Editor::with(draft.text());
                }
                studio.draft = draft;
            }
            None => model.notice = Some(Notice::Done("nothing to undo".into())),
        },
        Action::Back if studio.hand.is_some() => edit(studio),
        Action::NextTab => complete(studio),
        Action::PageUp => studio.up += 5,
        Action::PageDown => studio.up = studio.up.saturating_sub(5),
        Action::StopAnswer => return vec![Effect::StopAsking],
        Action::Threads => return vec![Effect::ListThreads],
        Action::NewThread => {
            fresh(model);
            return vec![Effect::StopAsking, Effect::ListFiles];
        }
        Action::ReviewRound => {
            keep_hand(studio);
            return review::begin(model);
        }
        Action::Finalize => {
            keep_hand(studio);
            return finalize::open(model);
        }
        Action::RunAtOnce => {
            keep_hand(studio);
            let text = model.studio.draft.text().to_owned();
            return super::start::open(model, Some(text));
        }
        _ => {}
    }
    Vec::new()
}

fn edit(studio: &mut Studio) {
    if !keep_hand(studio) {
        studio.hand = Some(Editor::with(studio.draft.text()));
    }
}

/// Keeps the user's edits; returns whether the user was editing.
fn keep_hand(studio: &mut Studio) -> bool {
    match studio.hand.take() {
        Some(hand) => {
            studio.change(Draft::new(&hand.text()));
            true
        }
        None => false,
    }
}

fn send(model: &mut Model, text: &str) -> Vec<Effect> {
    let studio = &mut model.studio;
    let text = text.trim();
    if text.is_empty() {
        return Vec::new();
    }
    if studio.answering.is_some() {
        studio.input.set(text);
        model.notice = Some(Notice::Done(STILL_COMING.into()));
        return Vec::new();
    }
    studio.up = 0;
    studio.problem = None;
    let message = Message { who: "you".into(), text: text.to_owned(), draft: String::new() };
    studio.messages.push(message.clone());
    let mut effects = vec![Effect::Remember { thread: studio.thread.clone(), message }];
    match studio.asked() {
        Some(agent) => {
            let agent = agent.to_owned();
            studio.answering = Some(Answer { by: agent.clone(), text: String::new(), since: model.now });
            effects.push(Effect::Ask {
                agent,
                thread: studio.thread.clone(),
                messages: studio.messages.clone(),
                draft: studio.draft.text().to_owned(),
            });
        }
        None => effects.extend(form_answer(studio, text)),
    }
    effects
}

/// The form: fills the section and asks the next question.
fn form_answer(studio: &mut Studio, text: &str) -> Option<Effect> {
    let draft = &studio.draft;
    let filled = |key: &str| match key {
        "title" => draft.title().is_some(),
        section => !draft.section(section).is_empty(),
    };
    let at = QUESTIONS.iter().position(|(_, key)| !filled(key));
    let changed = match at.map(|at| QUESTIONS[at].1) {
        Some("title") => draft.with_title(text),
        Some("Task") => draft.with_section("Task", text),
        Some("Verification") => draft.with_section("Verification", &format!("```sh\n{text}\n```")),
        Some(section) => text.lines().fold(draft.clone(), |draft, line| draft.with_line(section, line)),
        None => draft.with_line("Open questions", text),
    };
    studio.change(changed);
    let next = at
        .and_then(|at| QUESTIONS.get(at + 1))
        .map_or("That is a task. Ctrl-F checks and writes it.", |q| q.0);
    let message = Message { who: "ralph".into(), text: next.into(), draft: studio.draft.text().to_owned() };
    studio.messages.push(message.clone());
    Some(Effect::Remember { thread: studio.thread.clone(), message })
}

/// Adds a piece of an answer; the draft fills as it arrives.
pub fn answering(studio: &mut Studio, thread: &str, piece: &str) {
    if let Some(answer) = studio.answering.as_mut().filter(|_| studio.thread == thread) {
        answer.text.push_str(piece);
    }
}

/// Handles the end of an answer.
pub fn answered(
    model: &mut Model,
    thread: &str,
    agent: &str,
    answer: Result<String, Problem>,
) -> Vec<Effect> {
    let studio = &mut model.studio;
    // The answer belongs to a thread that isn't open any more.
    if studio.thread != thread {
        return Vec::new();
    }
    studio.answering = None;
    let who = agent.to_owned();
    match answer {
        Err(wrong) => {
            studio.problem = Some(wrong);
            Vec::new()
        }
        Ok(text) => {
            let (said, draft) = split_answer(&text);
            if let Some(draft) = draft
                && studio.hand.is_none()
            {
                studio.change(draft);
            }
            let said = sanitize::block(&said).trim().to_owned();
            let message = Message { who, text: said, draft: studio.draft.text().to_owned() };
            studio.messages.push(message.clone());
            vec![Effect::Remember { thread: studio.thread.clone(), message }]
        }
    }
}

/// Opens a thread that was read.
pub fn loaded(studio: &mut Studio, id: String, messages: Vec<Message>) {
    let draft =
        messages.iter().rev().find(|m| !m.draft.is_empty()).map(|m| m.draft.clone()).unwrap_or_default();
    let (agents, files, agent) = (studio.agents.clone(), studio.files.clone(), studio.agent);
    *studio =
        Studio { thread: id, messages, draft: Draft::new(&draft), agents, files, agent, ..Studio::default() };
}

fn offers(studio: &Studio) -> Vec<&str> {
    let Some(word) = studio.input.word_after('@') else { return Vec::new() };
    let fits = |name: &&String| crate::widget::text::contains(name, word) || word.is_empty();
    studio.files.iter().filter(fits).take(OFFERED).map(String::as_str).collect()
}

fn complete(studio: &mut Studio) {
    if let Some(name) = offers(studio).first().map(|name| format!("@{name} ")) {
        studio.input.replace_word(&name);
    }
}

pub fn view(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let studio = &model.studio;
    let input_rows = (studio.input.text().lines().count() as u16).clamp(1, 6);
    let offered = offers(studio);
    let below = input_rows + 2 + offered.len() as u16;
    let body = without(area, 0, below.min(area.height / 2));
    let narrow = area.width < 70;
    let (left, right) = if narrow { (body, Rect::default()) } else { beside(body, area.width / 2) };
    if narrow && studio.hand.is_some() {
        draft(model, canvas, body);
    } else {
        talk(model, canvas, left);
    }
    if !narrow {
        canvas.bar_down(right.x.saturating_sub(1), right);
        draft(model, canvas, Rect { x: right.x + 1, width: right.width.saturating_sub(1), ..right });
    }
    let foot = rows(area, body.height, below);
    canvas.rule(foot, 0);
    let who = studio.asked().map_or("plain form".to_owned(), str::to_owned);
    canvas.right(
        foot,
        0,
        &[(Role::Muted, " to ".into()), (Role::Agent(agent_color(&who)), format!("{who} "))],
    );
    for (row, name) in (1..).zip(&offered) {
        canvas.line(foot, row, &[(Role::Muted, format!("  @{name}"))]);
    }
    let line = without(foot, 1 + offered.len() as u16, 0);
    let sign = canvas.theme.sign(Sign::Point);
    canvas.line(line, 0, &[(Role::Accent, format!("{sign} "))]);
    let place = Rect { x: line.x + 2, width: line.width.saturating_sub(2), height: input_rows, ..line };
    if studio.input.is_empty() {
        let hint = if studio.messages.is_empty() {
            "say what is to be done; @ names a file"
        } else {
            "answer, or ask for a change"
        };
        canvas.line(place, 0, &[(Role::Muted, hint.into())]);
    }
    if studio.hand.is_none() {
        canvas.editor(place, &studio.input);
    }
}

fn talk(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let studio = &model.studio;
    let cells = usize::from(area.width).saturating_sub(2);
    let mut lines: Vec<(Role, String)> = Vec::new();
    let mut say = |who: &str, text: &str| {
        let role = if who == "you" { Role::Strong } else { Role::Agent(agent_color(who)) };
        lines.push((role, who.to_owned()));
        lines.extend(
            text.lines().flat_map(|line| wrap(line, cells)).map(|piece| (Role::Text, format!("  {piece}"))),
        );
        lines.push((Role::Text, String::new()));
    };
    for message in &studio.messages {
        say(&message.who, &message.text);
    }
    if let Some(answer) = &studio.answering {
        let said = sanitize::block(&split_answer(&answer.text).0).into_owned();
        let (half, time) = (canvas.theme.sign(Sign::Half), clock(since(answer.since, model.now)));
        match said.is_empty() {
            true => say(&answer.by, &format!("{half} thinking for {time}")),
            false => say(&answer.by, &format!("{said}\n{half} answering for {time}")),
        }
    }
    let height = usize::from(area.height);
    let last = lines.len().saturating_sub(studio.up.min(lines.len().saturating_sub(height)));
    let top = last.saturating_sub(height);
    for (row, line) in (0..).zip(&lines[top..last]) {
        canvas.line(area, row, std::slice::from_ref(line));
    }
    if let Some(wrong) = &studio.problem {
        let row = (last - top).min(height.saturating_sub(4)) as u16;
        problem(canvas, area, row, wrong);
    }
}

fn draft(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let studio = &model.studio;
    if let Some(hand) = &studio.hand {
        canvas.line(area, 0, &[(Role::Accent, "draft, by hand (Ctrl-E or Esc keeps it)".into())]);
        canvas.editor(without(area, 1, 0), hand);
        return;
    }
    let coming = studio.answering.as_ref().and_then(|answer| split_answer(&answer.text).1);
    let shown = coming.as_ref().unwrap_or(&studio.draft);
    if shown.is_empty() {
        let row = canvas.text(
            area,
            0,
            Role::Muted,
            "The task grows here while you talk. Ctrl-E writes it by hand.",
        );
        missing(shown, canvas, area, row + 1);
        return;
    }
    let row = draft_text(shown, canvas, area, 0);
    missing(shown, canvas, area, row);
}

/// Draws the draft; returns the row after it.
pub(super) fn draft_text(shown: &Draft, canvas: &mut Canvas<'_>, area: Rect, row: u16) -> u16 {
    let mut row = canvas.text(area, row, Role::Strong, shown.title().unwrap_or("(no title yet)")) + 1;
    for (name, body) in shown.sections() {
        let sign = canvas.theme.sign(Sign::Good);
        canvas.line(area, row, &[(Role::Good, format!("{sign} ")), (Role::Accent, name.to_owned())]);
        let inside = Rect { x: area.x + 2, width: area.width.saturating_sub(2), ..area };
        let fence = |line: &&str| !line.trim_start().starts_with("```");
        let body: Vec<&str> = body.lines().filter(fence).collect();
        row = canvas.text(inside, row + 1, Role::Text, &body.join("\n")) + 1;
    }
    row
}

/// Sections the task still needs.
fn missing(shown: &Draft, canvas: &mut Canvas<'_>, area: Rect, mut row: u16) {
    let sign = canvas.theme.sign(Sign::Open);
    for (name, what) in NEEDED.into_iter().filter(|(name, _)| shown.section(name).is_empty()) {
        canvas.line(area, row, &[(Role::Muted, format!("{sign} {name}  {what}"))]);
        row += 1;
    }
}
