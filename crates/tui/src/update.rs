//! Applies messages to the model: pure, one at a time; effects are returned.

use crate::data::{Problem, Screen};
use crate::keys::{self, Action, Chord, is_text};
use crate::model::{BaselineState, Model, Notice, Overlay, Purpose, RACE_TAB};
use crate::msg::{Effect, Msg};
use crate::screen::{details, finalize, review, run, setup, start, studio, summary, welcome};
use crate::widget::editor::{Editor, Move};
use crate::widget::overlay;
use crate::widget::overlay::Outcome;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::status::Status;
use ralph_loop_task::command_line::join_argv;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

/// Lines per wheel step.
const WHEEL: i32 = 3;

pub fn update(model: &mut Model, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(chord) => {
            let effects = key(model, chord);
            if let Some(words) = effects.iter().find_map(busy) {
                model.notice = Some(Notice::Busy(words.into()));
            }
            effects
        }
        Msg::Paste(text) => {
            if let Some(editor) = focused(model) {
                editor.insert(&text);
            }
            Vec::new()
        }
        Msg::Click(x, y) => {
            let hit = model.hits.iter().rev().find(|hit| hit.area.contains((x, y).into())).copied();
            hit.map_or_else(Vec::new, |hit| act(model, hit.action))
        }
        Msg::Wheel(lines) => wheel(model, lines),
        Msg::Resize(columns, lines) => {
            model.size = (columns, lines);
            Vec::new()
        }
        Msg::Tick(now) => {
            model.now = now;
            Vec::new()
        }
        other => told(model, other),
    }
}

/// Shown while an effect runs; its result replaces it.
fn busy(effect: &Effect) -> Option<&'static str> {
    match effect {
        Effect::Send { .. } | Effect::Resume(_) => Some("sent …"),
        Effect::End { .. } => Some("ending the run …"),
        Effect::Command { words, .. } if words.first().is_some_and(|word| word == "publish") => {
            Some("publishing …")
        }
        Effect::Command { .. } => Some("working …"),
        Effect::SaveConfig(_) => Some("saving …"),
        Effect::FirstCommit => Some("making the first commit …"),
        _ => None,
    }
}

fn wheel(model: &mut Model, lines: i32) -> Vec<Effect> {
    if model.overlay.is_none() && model.screen == Screen::Run {
        run::scroll(model, lines * WHEEL);
        return Vec::new();
    }
    let code = if lines < 0 { KeyCode::Up } else { KeyCode::Down };
    match (&model.overlay, model.screen) {
        (None, Screen::Studio) => act(model, if lines < 0 { Action::PageUp } else { Action::PageDown }),
        _ => key(model, (code, KeyModifiers::NONE)),
    }
}

fn key(model: &mut Model, chord: Chord) -> Vec<Effect> {
    if !matches!(model.notice, Some(Notice::Busy(_))) {
        model.notice = None;
    }
    let leaves = keys::action(model.screen, chord, false) == Some(Action::Leave);
    if let Some(over) = &mut model.overlay {
        if leaves {
            // Ctrl-C again at its own question means yes.
            let again = matches!(over, Overlay::Confirm { leave: true, .. });
            return if again { finish(model, vec![Effect::Quit]) } else { act(model, Action::Leave) };
        }
        let moves = matches!(chord.0, KeyCode::Up | KeyCode::Down | KeyCode::Enter | KeyCode::Esc);
        if let Some(editor) = overlay::editor(over)
            && !moves
            && edit(editor, chord)
        {
            return Vec::new();
        }
        return match overlay::key(model, chord.0) {
            Outcome::Taken(effects) => finish(model, effects),
            Outcome::Chosen(action) => act(model, action),
        };
    }
    let asks = model.screen == Screen::Welcome
        && model.welcome.input.is_empty()
        && matches!(chord.0, KeyCode::Char('?' | ':'));
    let typing = model.typing() && !asks;
    if typing && typed(model, chord) {
        return Vec::new();
    }
    keys::action(model.screen, chord, typing).map_or_else(Vec::new, |action| act(model, action))
}

/// Adds the lines for the shell to effects that end the UI.
fn finish(model: &mut Model, effects: Vec<Effect>) -> Vec<Effect> {
    if effects.contains(&Effect::Quit) {
        model.left = Some(goodbye(model));
    }
    effects
}

/// What leaving would lose.
fn unsaved(model: &Model) -> Vec<String> {
    let studio = &model.studio;
    let lost = [
        (studio.hand.is_some(), "Your edits of the draft aren't saved."),
        (!studio.input.is_empty(), "Your message in the Spec Studio isn't sent."),
        (studio.answering.is_some(), "An agent's answer is still coming."),
        (!model.run.hint.is_empty(), "Your hint isn't sent."),
        (model.start.busy, "The run is still being started."),
    ];
    lost.into_iter().filter(|(is_lost, _)| *is_lost).map(|(_, line)| line.to_owned()).collect()
}

/// What continues after leaving.
fn goodbye(model: &Model) -> Vec<String> {
    // A finished run doesn't continue, even while its process is cleaning up.
    let on = model.server.as_ref().map(|server| format!(" --server {server}")).unwrap_or_default();
    let is_over = |word: &str| Status::ALL.iter().any(|status| status.as_str() == word && status.is_over());
    // A server's runs mostly belong to others: mention only the watched one.
    let own = model.runs.iter().filter(|_| model.server.is_none());
    let going = own.filter(|run| run.driven && !is_over(&run.status));
    let mut ids: Vec<&str> = going.map(|run| run.id.as_str()).collect();
    let is_seen = matches!(model.screen, Screen::Run | Screen::Summary);
    let watched = model.run.view.as_ref().filter(|view| is_seen && view.driven && !view.status.is_over());
    let watched = watched.map(|view| view.run_id.as_str());
    ids.extend(watched.filter(|id| !ids.contains(id)).into_iter().collect::<Vec<_>>());
    let more = ids.len().saturating_sub(5);
    let mut lines: Vec<String> = ids
        .iter()
        .take(5)
        .map(|id| format!("run {id} continues; run `ralph attach {id}{on}` to watch it again"))
        .collect();
    if more > 0 {
        lines.push(format!("and {more} more continue; `ralph list --all` shows them"));
    }
    let typed = model.welcome.input.text();
    if !typed.trim().is_empty() {
        lines.push(format!("not started: ralph run {}", join_argv(&[typed.trim().to_owned()])));
    }
    lines
}

/// The active text input.
fn focused(model: &mut Model) -> Option<&mut Editor> {
    if let Some(over) = &mut model.overlay {
        return overlay::editor(over);
    }
    match model.screen {
        Screen::Welcome => Some(&mut model.welcome.input),
        Screen::Studio => Some(model.studio.hand.as_mut().unwrap_or(&mut model.studio.input)),
        Screen::Start => model.start.form.editor(),
        Screen::Setup if model.setup.at >= model.setup.agents.len() => model.setup.form.editor(),
        Screen::Run if model.run.hinting => Some(&mut model.run.hint),
        _ => None,
    }
}

/// Passes a key to the active text; returns whether it took it.
fn typed(model: &mut Model, chord: Chord) -> bool {
    let bound = keys::action(model.screen, chord, true).is_some();
    let forms = matches!(model.screen, Screen::Start | Screen::Setup);
    match chord.0 {
        KeyCode::Up | KeyCode::Down if forms => return false,
        KeyCode::Up | KeyCode::Down => return moved_line(model, chord.0 == KeyCode::Up),
        KeyCode::Home | KeyCode::End | KeyCode::Left | KeyCode::Right => {}
        _ if bound => return false,
        _ => {}
    }
    if forms && focused(model).is_none() {
        let form = if model.screen == Screen::Start { &mut model.start.form } else { &mut model.setup.form };
        return match chord.0 {
            KeyCode::Right | KeyCode::Char(' ') => form.turn(true),
            KeyCode::Left => form.turn(false),
            _ => is_text(chord),
        };
    }
    focused(model).is_some_and(|editor| edit(editor, chord))
}

/// Up and down: first through the lines, then through the history.
fn moved_line(model: &mut Model, up: bool) -> bool {
    match model.screen {
        Screen::Welcome if model.welcome.input.is_empty() || model.welcome.at.is_some() => false,
        Screen::Studio if model.studio.hand.is_none() && model.studio.input.at_edge(up) => {
            model.studio.input.look_back(up);
            true
        }
        _ => {
            if let Some(editor) = focused(model) {
                editor.go(if up { Move::Up } else { Move::Down });
            }
            true
        }
    }
}

/// Common editing keys; returns whether this was one.
fn edit(editor: &mut Editor, (code, modifiers): Chord) -> bool {
    let (ctrl, alt) = (modifiers.contains(KeyModifiers::CONTROL), modifiers.contains(KeyModifiers::ALT));
    match code {
        KeyCode::Char(c) if is_text((code, modifiers)) => editor.insert(c.encode_utf8(&mut [0; 4])),
        KeyCode::Backspace if ctrl || alt => editor.delete_word(),
        KeyCode::Backspace => editor.backspace(),
        KeyCode::Delete => editor.delete(),
        KeyCode::Left if ctrl || alt => editor.go(Move::WordLeft),
        KeyCode::Right if ctrl || alt => editor.go(Move::WordRight),
        KeyCode::Char('b') if alt => editor.go(Move::WordLeft),
        KeyCode::Char('f') if alt => editor.go(Move::WordRight),
        KeyCode::Left => editor.go(Move::Left),
        KeyCode::Right => editor.go(Move::Right),
        KeyCode::Home => editor.go(Move::LineStart),
        KeyCode::End => editor.go(Move::LineEnd),
        KeyCode::Char('a') if ctrl => editor.go(Move::LineStart),
        KeyCode::Char('w') if ctrl => editor.delete_word(),
        KeyCode::Char('u') if ctrl => editor.delete_to_start(),
        KeyCode::Char('k') if ctrl => editor.delete_to_end(),
        KeyCode::Char('d') if ctrl => editor.delete(),
        _ => return false,
    }
    true
}

/// Performs an action from a key, a click or the palette.
fn act(model: &mut Model, action: Action) -> Vec<Effect> {
    match action {
        Action::Help => model.overlay = Some(Overlay::Help { top: 0 }),
        Action::Palette => model.overlay = Some(Overlay::Palette { input: Editor::default(), at: 0 }),
        Action::Runs => {
            model.overlay = Some(Overlay::Runs { input: Editor::default(), at: 0 });
            return vec![Effect::ListRuns];
        }
        Action::Leave => {
            let lines = unsaved(model);
            if lines.is_empty() {
                return finish(model, vec![Effect::Quit]);
            }
            let question = "Quit?".to_owned();
            model.overlay = Some(Overlay::Confirm { question, lines, yes: vec![Effect::Quit], leave: true });
        }
        Action::Back => return back(model),
        Action::NewThread | Action::ApplyResult | Action::Restore | Action::Archive
            if model.server.is_some() =>
        {
            let fix = "do it where the run is, or take its branch or pull request from the code host";
            model.notice = Some(Notice::Wrong(Problem::new("the folder of this run is on the server", fix)));
        }
        other => return on_screen(model, other),
    }
    Vec::new()
}

fn on_screen(model: &mut Model, action: Action) -> Vec<Effect> {
    match model.screen {
        Screen::Welcome => welcome::update(model, action),
        Screen::Setup => setup::update(model, action),
        Screen::Studio => studio::update(model, action),
        Screen::Review => review::update(model, action),
        Screen::Finalize => finalize::update(model, action),
        Screen::Start => start::update(model, action),
        Screen::Run => run::update(model, action),
        Screen::Summary => summary::update(model, action),
    }
}

fn back(model: &mut Model) -> Vec<Effect> {
    match model.screen {
        Screen::Studio if model.studio.hand.is_some() => studio::update(model, Action::Back),
        Screen::Welcome => welcome::update(model, Action::Back),
        Screen::Run if model.run.hinting || model.run.inside().is_some() => run::update(model, Action::Back),
        Screen::Run | Screen::Summary if model.attached => finish(model, vec![Effect::Quit]),
        Screen::Run | Screen::Summary => {
            welcome::home(model);
            vec![Effect::Unwatch, Effect::LookAround, Effect::ListRuns]
        }
        _ => {
            model.screen = model.before.pop().unwrap_or(Screen::Welcome);
            Vec::new()
        }
    }
}

/// Handles the result of an effect.
fn told(model: &mut Model, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Repo(facts) => {
            let mut facts = *facts;
            // Rereading must not lose probe results.
            for agent in &mut facts.agents {
                let known = model.repo.agents.iter().find(|old| old.name == agent.name);
                if let Some(known) = known.filter(|_| agent.state == crate::data::AgentState::Found) {
                    agent.state = known.state.clone();
                }
            }
            model.repo = facts;
            model.looked = true;
            return welcome::looked(model);
        }
        Msg::Runs(mut runs) => {
            // Runs that need you first, then active ones, then by time.
            runs.sort_by_key(|run| (run.group(), std::cmp::Reverse(run.at)));
            model.runs = runs;
        }
        Msg::View(view) => return viewed(model, view),
        Msg::ViewFailed(problem) => model.run.problem = Some(problem),
        Msg::Told(happened, live) => run::told(&mut model.run, happened, live),
        Msg::Race(race) => {
            if model.run.race.replace(race).is_none() {
                model.run.tab = RACE_TAB;
            }
        }
        Msg::Tab(tab, lines) => drop(model.run.tabs.insert(tab, lines)),
        Msg::Details(found) => details::loaded(model, *found),
        Msg::Done(words) => model.notice = Some(Notice::Done(one_line(&words, 400))),
        Msg::Failed(problem) => failed(model, problem),
        Msg::Started(id) => {
            model.start.busy = false;
            model.welcome.input.take();
            model.before.clear();
            model.screen = Screen::Welcome;
            return run::open(model, &id);
        }
        Msg::NothingChecks(problem) => {
            model.start.busy = false;
            model.start.problem = Some(problem);
            let title = "Which command shows that it's done?";
            let hint = "no test command was found here, and nothing is done before something shows it";
            let input = Editor::default();
            model.overlay = Some(Overlay::Ask { title, hint, input, purpose: Purpose::Verify });
        }
        Msg::Consent(wish, mut lines) => {
            model.start.busy = false;
            lines.insert(0, "This repository asks for:".into());
            let question = "Allow this, from now on?".to_owned();
            let yes = vec![Effect::AllowAndStart(wish)];
            model.overlay = Some(Overlay::Confirm { question, lines, yes, leave: false });
        }
        other => return told_of_spec(model, other),
    }
    Vec::new()
}

fn told_of_spec(model: &mut Model, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Answering { thread, piece } => studio::answering(&mut model.studio, &thread, &piece),
        Msg::Answered { thread, agent, answer } => return studio::answered(model, &thread, &agent, answer),
        Msg::Reviewed(by, answer) => review::reviewed(model, &by, answer),
        Msg::Files(files) => model.studio.files = files,
        Msg::Threads(rows) => model.overlay = Some(Overlay::Threads { rows, at: 0 }),
        Msg::Thread(id, messages) => {
            let asked = model.studio.answering.is_some();
            studio::loaded(&mut model.studio, id, messages);
            return asked.then_some(Effect::StopAsking).into_iter().collect();
        }
        Msg::Linted { found, checks } => return finalize::linted(model, found, checks),
        // The draft may have changed while its checks ran.
        Msg::Baseline(Ok(over)) if over.draft != model.studio.draft.text() => {}
        Msg::Baseline(Ok(mut over)) => {
            model.finalize.lint = Some(std::mem::take(&mut over.lint));
            model.finalize.baseline = BaselineState::Over(over);
        }
        Msg::Baseline(Err(problem)) => model.finalize.baseline = BaselineState::Failed(problem),
        Msg::Wrote(files, lost) => {
            let mut words = format!("wrote {}", files.join(", "));
            if !lost.is_empty() {
                words.push_str(&format!("; without an equivalent there: {}", lost.join(", ")));
            }
            model.repo.tasks = files.into_iter().take(1).collect();
            model.welcome.input.take();
            let effects = start::open(model, None);
            model.notice = Some(Notice::Done(words));
            return effects;
        }
        Msg::Probed(name, state) => setup::probed(model, &name, state),
        Msg::Saved(words) => {
            model.setup.ready = false;
            model.repo.configured = true;
            welcome::home(model);
            model.notice = Some(Notice::Done(words));
            let mut effects = studio::open(model, None);
            effects.push(Effect::LookAround);
            return effects;
        }
        _ => {}
    }
    Vec::new()
}

fn failed(model: &mut Model, problem: Problem) {
    model.notice = None;
    if model.screen == Screen::Start && model.start.busy {
        model.start.busy = false;
        model.start.problem = Some(problem);
    } else {
        model.overlay = Some(Overlay::Trouble(problem));
    }
}

/// Handles a run's new view; opens the summary once at its end.
fn viewed(model: &mut Model, view: Box<ralph_loop_protocol::display::view::RunView>) -> Vec<Effect> {
    if view.run_id.as_str() != model.run.id {
        return Vec::new();
    }
    let changed = model.run.view.as_ref().is_none_or(|old| old.seq != view.seq);
    let over = view.status.is_over();
    model.run.problem = None;
    model.run.view = Some(view);
    let run = model.run.id.clone();
    if over && !model.run.summed_up {
        model.run.summed_up = true;
        // In a race the winner matters, not the end of one run.
        if model.screen == Screen::Run && model.run.race.is_none() {
            model.go(Screen::Summary);
        }
        return vec![Effect::LoadTab { run, tab: 3 }];
    }
    match model.run.tab {
        tab @ 3..=5 if changed => vec![Effect::LoadTab { run, tab }],
        _ => Vec::new(),
    }
}
