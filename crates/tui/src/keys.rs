//! The key table: keys, actions and labels per screen. Help, key bar, palette and behavior all derive from
//! it.

use crate::data::Screen;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

/// A user action.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Action {
    Help,
    Palette,
    Leave,
    Back,
    Enter,
    Up,
    Down,
    PageUp,
    PageDown,
    Top,
    Bottom,
    NextTab,
    PrevTab,
    Tab(u8),
    Runs,
    Refresh,
    RunAtOnce,
    OpenSetup,
    OpenStudio,
    ProbeAll,
    LongerTimeout,
    Toggle,
    SaveConfig,
    NewLine,
    NextAgent,
    ReviewRound,
    Finalize,
    EditDraft,
    Undo,
    Threads,
    NewThread,
    StopAnswer,
    ApplyAll,
    WriteTask,
    Baseline,
    ToggleSpec,
    NextDialect,
    PauseResume,
    Cancel,
    Stop,
    Skip,
    CoolDown,
    Rotate,
    Note,
    Nudge,
    Guardrail,
    Diagnose,
    Diff,
    Search,
    SearchNext,
    SearchPrev,
    Follow,
    SaveBuffer,
    Approve,
    Summary,
    /// Marks an iteration, to compare it.
    Mark,
    Compare,
    /// Unfolds all results of a transcript, or folds them.
    FoldAll,
    ApplyResult,
    TakeBranch,
    PublishPr,
    OpenPr,
    Restore,
    Archive,
    ShowRun,
    /// Selects a row; only by mouse.
    Row(usize),
}

/// A key with its modifiers.
pub type Chord = (KeyCode, KeyModifiers);

/// One row of the table.
#[derive(Debug, Clone, Copy)]
pub struct Binding {
    /// The screen; `None` for all.
    pub screen: Option<Screen>,
    /// The keys.
    pub keys: &'static [Chord],
    /// The action.
    pub action: Action,
    pub label: &'static str,
    /// Shorter label for the key bar.
    pub short: Option<&'static str>,
}

const fn key(code: char) -> Chord {
    (KeyCode::Char(code), KeyModifiers::NONE)
}
const fn ctrl(code: char) -> Chord {
    (KeyCode::Char(code), KeyModifiers::CONTROL)
}
const fn alt(code: char) -> Chord {
    (KeyCode::Char(code), KeyModifiers::ALT)
}
const fn named(code: KeyCode) -> Chord {
    (code, KeyModifiers::NONE)
}

const fn row(
    screen: Option<Screen>,
    keys: &'static [Chord],
    action: Action,
    label: &'static str,
    short: Option<&'static str>,
) -> Binding {
    Binding { screen, keys, action, label, short }
}

const ENTER: &[Chord] = &[named(KeyCode::Enter)];
const WELCOME: Option<Screen> = Some(Screen::Welcome);
const SETUP: Option<Screen> = Some(Screen::Setup);
const STUDIO: Option<Screen> = Some(Screen::Studio);
const REVIEW: Option<Screen> = Some(Screen::Review);
const FINALIZE: Option<Screen> = Some(Screen::Finalize);
const START: Option<Screen> = Some(Screen::Start);
const RUN: Option<Screen> = Some(Screen::Run);
const SUMMARY: Option<Screen> = Some(Screen::Summary);

/// All keys. Rows of a screen come before those for all screens, so that they win.
#[rustfmt::skip]
pub const TABLE: &[Binding] = &[
    row(WELCOME, ENTER, Action::Enter, "run the sentence; without one, do the next step", Some("next")),
    row(WELCOME, &[ctrl('r')], Action::RunAtOnce, "choose branch, agents and limits first, then run", Some("options")),
    row(WELCOME, &[ctrl('p'), ctrl('t')], Action::OpenStudio, "plan: discuss the sentence in the Spec Studio", Some("plan")),
    row(WELCOME, &[ctrl('e')], Action::OpenSetup, "set up agents and checks", Some("setup")),
    row(WELCOME, &[ctrl('l')], Action::Refresh, "refresh", None),

    row(SETUP, &[ctrl('s')], Action::SaveConfig, "save the configuration", Some("save")),
    row(SETUP, &[ctrl('t')], Action::ProbeAll, "send every chosen agent a test prompt", Some("try agents")),
    row(SETUP, &[ctrl('g')], Action::LongerTimeout, "wait longer for agents that didn't answer, and test them again", None),
    row(SETUP, &[key(' ')], Action::Toggle, "use this agent, or leave it out", Some("on/off")),
    row(SETUP, &[named(KeyCode::Tab), named(KeyCode::Enter)], Action::NextTab, "next line", None),
    row(SETUP, &[(KeyCode::BackTab, KeyModifiers::SHIFT)], Action::PrevTab, "previous line", None),

    row(STUDIO, ENTER, Action::Enter, "send", Some("send")),
    row(STUDIO, &[(KeyCode::Enter, KeyModifiers::ALT), ctrl('j')], Action::NewLine, "new line", None),
    row(STUDIO, &[ctrl('g')], Action::NextAgent, "talk to another agent", Some("agent")),
    row(STUDIO, &[ctrl('v'), named(KeyCode::F(3))], Action::ReviewRound, "let all other agents review the draft", Some("review")),
    row(STUDIO, &[ctrl('f')], Action::Finalize, "finalize: check the task and write it", Some("finalize")),
    row(STUDIO, &[ctrl('e')], Action::EditDraft, "edit the draft by hand; again to return", Some("edit draft")),
    row(STUDIO, &[ctrl('z')], Action::Undo, "undo the last change of the draft", Some("undo")),
    row(STUDIO, &[ctrl('o')], Action::Threads, "other threads", None),
    row(STUDIO, &[ctrl('n')], Action::NewThread, "new thread", None),
    row(STUDIO, &[ctrl('x')], Action::StopAnswer, "stop the answer", None),
    row(STUDIO, &[named(KeyCode::Tab)], Action::NextTab, "complete the name of a file after @", None),

    row(REVIEW, &[named(KeyCode::Enter), key(' ')], Action::Enter, "apply the finding to the draft", Some("apply")),
    row(REVIEW, &[key('A')], Action::ApplyAll, "apply all blockers and warnings", Some("apply all")),
    row(REVIEW, &[key('u'), ctrl('z')], Action::Undo, "undo", Some("undo")),
    row(REVIEW, &[key('r')], Action::ReviewRound, "another round", Some("another round")),
    row(REVIEW, &[key('f')], Action::Finalize, "finalize", Some("finalize")),

    row(FINALIZE, ENTER, Action::Enter, "go to the line to fix", Some("jump to fix")),
    row(FINALIZE, &[key('w')], Action::WriteTask, "write the task and go to Start", Some("write")),
    row(FINALIZE, &[key('b')], Action::Baseline, "run the checks before any work", Some("try checks")),
    row(FINALIZE, &[key('s')], Action::ToggleSpec, "also write SPEC.md: no, at the top, in .ralph/spec", Some("SPEC.md")),
    row(FINALIZE, &[key('d')], Action::NextDialect, "write it in another dialect", Some("dialect")),
    row(FINALIZE, &[key('e')], Action::EditDraft, "edit the draft by hand", None),

    row(START, ENTER, Action::Enter, "start the run", Some("start")),
    row(START, &[named(KeyCode::Tab)], Action::NextTab, "next line", Some("next line")),
    row(START, &[(KeyCode::BackTab, KeyModifiers::SHIFT)], Action::PrevTab, "previous line", None),

    row(RUN, &[key('a')], Action::Approve, "approve", Some("approve")),
    row(RUN, &[key('u')], Action::Nudge, "give the next session a hint", Some("hint")),
    row(RUN, ENTER, Action::Enter, "open the iteration; in a transcript, unfold or fold", Some("open")),
    row(RUN, &[key('v')], Action::Summary, "summary", Some("summary")),
    row(RUN, &[key(' ')], Action::Mark, "mark an iteration to compare", Some("mark")),
    row(RUN, &[key('=')], Action::Compare, "compare with the marked iteration", Some("compare")),
    row(RUN, &[key('E')], Action::FoldAll, "unfold or fold all results", Some("unfold all")),
    row(RUN, &[key('p')], Action::PauseResume, "pause after this session, or resume", Some("pause")),
    row(RUN, &[key('c')], Action::Cancel, "end the run now", Some("cancel")),
    row(RUN, &[key('x')], Action::Stop, "end the run after this session", None),
    row(RUN, &[key('g')], Action::Diff, "the whole diff in your pager", Some("diff")),
    row(RUN, &[key('n')], Action::Note, "add a note to all later prompts", Some("note")),
    row(RUN, &[key('l')], Action::Guardrail, "add a rule for this repo", None),
    row(RUN, &[key('s')], Action::Skip, "skip the agent that works now", Some("skip")),
    row(RUN, &[key('k')], Action::CoolDown, "cool down an agent", Some("cool down")),
    row(RUN, &[key('r')], Action::Rotate, "end this session and start a fresh one", Some("rotate")),
    row(RUN, &[key('d')], Action::Diagnose, "diagnose the run", Some("diagnose")),
    row(RUN, &[key('/')], Action::Search, "search in this tab", Some("search")),
    row(RUN, &[key('N')], Action::SearchPrev, "previous match (upward)", None),
    row(RUN, &[key('m')], Action::SearchNext, "next match (downward)", None),
    row(RUN, &[key('f'), key('G'), named(KeyCode::End)], Action::Follow, "follow new output", None),
    row(RUN, &[key('w')], Action::SaveBuffer, "save the agent's output to a file", None),
    row(RUN, &[key('R')], Action::Runs, "all runs of this machine", Some("runs")),
    row(RUN, &[named(KeyCode::Tab), named(KeyCode::Right)], Action::NextTab, "next tab", None),
    row(RUN, &[(KeyCode::BackTab, KeyModifiers::SHIFT), named(KeyCode::Left)], Action::PrevTab, "previous tab", None),
    row(RUN, &[key('1')], Action::Tab(0), "Timeline", None),
    row(RUN, &[key('2')], Action::Tab(1), "Agent output", None),
    row(RUN, &[key('3')], Action::Tab(2), "Verifiers", None),
    row(RUN, &[key('4')], Action::Tab(3), "Git", None),
    row(RUN, &[key('5')], Action::Tab(4), "Changelog", None),
    row(RUN, &[key('6')], Action::Tab(5), "Receipts", None),
    row(RUN, &[key('7')], Action::Tab(6), "Race", None),
    row(RUN, &[key('q')], Action::Back, "back; the run continues", Some("back")),

    row(SUMMARY, ENTER, Action::Enter, "take the result", None),
    row(SUMMARY, &[key('a')], Action::ApplyResult, "apply to your checkout", Some("apply")),
    row(SUMMARY, &[key('b')], Action::TakeBranch, "put it on a separate branch", Some("branch")),
    row(SUMMARY, &[key('p')], Action::PublishPr, "open a pull request", Some("pull request")),
    row(SUMMARY, &[key('o')], Action::OpenPr, "show the pull request in the browser", Some("show PR")),
    row(SUMMARY, &[key('g')], Action::Diff, "the whole diff in your pager", Some("diff")),
    row(SUMMARY, &[key('t')], Action::ShowRun, "timeline, output and receipts", Some("timeline")),
    row(SUMMARY, &[key('z')], Action::Restore, "restore the files from before the run", Some("restore")),
    row(SUMMARY, &[key('h')], Action::Archive, "archive the plan of this repo", Some("archive")),
    row(SUMMARY, &[key('n')], Action::NewThread, "new task", Some("new task")),
    row(SUMMARY, &[key('R')], Action::Runs, "all runs of this machine", None),
    row(SUMMARY, &[key('q')], Action::Back, "back", Some("back")),

    row(None, &[key('?'), named(KeyCode::F(1))], Action::Help, "help", Some("help")),
    row(None, &[ctrl('p'), named(KeyCode::F(2)), key(':')], Action::Palette, "all commands", None),
    row(None, &[alt('r'), ctrl('b')], Action::Runs, "all runs of this machine", None),
    row(None, &[named(KeyCode::Up)], Action::Up, "up", None),
    row(None, &[named(KeyCode::Down)], Action::Down, "down", None),
    row(None, &[named(KeyCode::PageUp)], Action::PageUp, "page up", None),
    row(None, &[named(KeyCode::PageDown)], Action::PageDown, "page down", None),
    row(None, &[named(KeyCode::Home)], Action::Top, "to the top", None),
    row(None, &[named(KeyCode::End)], Action::Bottom, "to the end", None),
    row(None, &[named(KeyCode::Enter)], Action::Enter, "open", None),
    row(None, &[named(KeyCode::Esc)], Action::Back, "back", None),
    row(None, &[ctrl('c'), ctrl('q')], Action::Leave, "quit; runs continue", Some("quit")),
];

/// The bindings of a screen: its own, then the general ones it doesn't override.
pub fn bindings(screen: Screen) -> impl Iterator<Item = &'static Binding> + Clone {
    TABLE.iter().filter(move |binding| binding.screen.is_none_or(|of| of == screen))
}

/// The action of a key on a screen. While typing, plain characters are text.
pub fn action(screen: Screen, chord: Chord, typing: bool) -> Option<Action> {
    if typing && is_text(chord) {
        return None;
    }
    bindings(screen).find(|binding| binding.keys.contains(&chord)).map(|binding| binding.action)
}

/// Whether a key types a character.
pub fn is_text((code, modifiers): Chord) -> bool {
    matches!(code, KeyCode::Char(_)) && !modifiers.intersects(KeyModifiers::CONTROL | KeyModifiers::ALT)
}

pub fn name((code, modifiers): Chord) -> String {
    let base = match code {
        KeyCode::Char(' ') => "Space".to_owned(),
        KeyCode::Char(c) if modifiers.contains(KeyModifiers::CONTROL) => c.to_ascii_uppercase().to_string(),
        KeyCode::Char(c) => c.to_string(),
        KeyCode::Enter => "Enter".to_owned(),
        KeyCode::Esc => "Esc".to_owned(),
        KeyCode::Tab => "Tab".to_owned(),
        KeyCode::BackTab => return "Shift-Tab".to_owned(),
        KeyCode::Up => "↑".to_owned(),
        KeyCode::Down => "↓".to_owned(),
        KeyCode::Left => "←".to_owned(),
        KeyCode::Right => "→".to_owned(),
        KeyCode::PageUp => "PgUp".to_owned(),
        KeyCode::PageDown => "PgDn".to_owned(),
        KeyCode::F(n) => format!("F{n}"),
        other => format!("{other:?}"),
    };
    let mut out = String::new();
    if modifiers.contains(KeyModifiers::CONTROL) {
        out.push_str("Ctrl-");
    }
    if modifiers.contains(KeyModifiers::ALT) {
        out.push_str("Alt-");
    }
    out + &base
}

#[cfg(test)]
mod tests {
    use super::*;

    const ALL: [Screen; 8] = [
        Screen::Welcome,
        Screen::Setup,
        Screen::Studio,
        Screen::Review,
        Screen::Finalize,
        Screen::Start,
        Screen::Run,
        Screen::Summary,
    ];

    #[test]
    fn no_screen_has_a_key_twice() {
        for screen in ALL {
            let own = TABLE.iter().filter(|binding| binding.screen == Some(screen));
            let mut seen: Vec<Chord> = own.flat_map(|binding| binding.keys.iter().copied()).collect();
            let all = seen.len();
            seen.sort_by_key(|chord| name(*chord));
            seen.dedup();
            assert_eq!(seen.len(), all, "{screen:?}");
        }
    }

    #[test]
    fn help_keys_match_active_keys() {
        for screen in ALL {
            for binding in TABLE.iter().filter(|binding| binding.screen == Some(screen)) {
                for chord in binding.keys {
                    assert_eq!(action(screen, *chord, false), Some(binding.action), "{}", name(*chord));
                }
            }
        }
        assert_eq!(action(Screen::Studio, key('?'), true), None, "it is typed there");
        assert_eq!(action(Screen::Run, ctrl('c'), false), Some(Action::Leave));
    }
}
