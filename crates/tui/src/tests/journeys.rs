//! Keys, pastes and clicks, from the first sentence to the finished run.

use super::fixture::{COLORS, draw, finished, model, needs_you, on, press, race, run_view, text, type_text};
use crate::data::{Baseline, LintLine, Problem, Screen, ToneLine};
use crate::log::Kind;
use crate::model::{Model, Notice, Overlay};
use crate::msg::{Details, Effect, Live, Msg};
use crate::update::update;
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::id::RunId;
use ralph_loop_protocol::status::Status;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};

fn key(model: &mut Model, c: char) -> Vec<Effect> {
    press(model, KeyCode::Char(c), KeyModifiers::NONE)
}
fn ctrl(model: &mut Model, c: char) -> Vec<Effect> {
    press(model, KeyCode::Char(c), KeyModifiers::CONTROL)
}
fn enter(model: &mut Model) -> Vec<Effect> {
    press(model, KeyCode::Enter, KeyModifiers::NONE)
}

#[test]
fn sentence_becomes_a_watched_run_with_a_summary() {
    let mut model = model(COLORS, (100, 30));
    type_text(&mut model, "Fix the router");
    let effects = enter(&mut model);
    assert_eq!(model.screen, Screen::Start);
    let [Effect::Start(wish)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(wish.text.as_deref(), Some("Fix the router"));
    assert_eq!((wish.branch.as_str(), wish.agents.as_str()), ("ralph/fix-the-router", "claude,codex"));
    assert!(enter(&mut model).is_empty(), "two Enters start one run");
    let watched = update(&mut model, Msg::Started("20261115-143307-k3f9".into()));
    assert_eq!(watched, [Effect::Watch("20261115-143307-k3f9".into())]);
    update(&mut model, Msg::View(Box::new(run_view())));
    assert_eq!(model.screen, Screen::Run);
    update(&mut model, Msg::View(Box::new(finished())));
    assert_eq!(model.screen, Screen::Summary);
    key(&mut model, 't');
    update(&mut model, Msg::View(Box::new(finished())));
    assert_eq!(model.screen, Screen::Run, "the summary opens only once");
    key(&mut model, 'q');
    assert_eq!(model.screen, Screen::Welcome);
}

#[test]
fn input_before_the_repo_scan_waits_for_it() {
    let known = model(COLORS, (100, 30));
    let fast = || Model::new(COLORS, (100, 30), known.now, jiff::tz::TimeZone::UTC);
    let looked = |model: &mut Model| update(model, Msg::Repo(Box::new(known.repo.clone())));
    // Unknown must not count as no commit.
    let mut empty = fast();
    assert_eq!(enter(&mut empty), []);
    assert_eq!(looked(&mut empty), []);
    assert_eq!(empty.screen, Screen::Start, "there is a task to start");
    let mut sentence = fast();
    type_text(&mut sentence, "Fix the router");
    assert_eq!(enter(&mut sentence), []);
    assert_eq!(sentence.screen, Screen::Welcome);
    assert!(text(&draw(&mut sentence)).contains("then it continues"));
    let effects = looked(&mut sentence);
    assert!(matches!(effects.as_slice(), [Effect::Start(_)]), "{effects:?}");
    // What can't start stays in its field, to be changed or planned.
    update(&mut sentence, Msg::Failed(Problem::new("`claude` is not logged in", "log in")));
    assert!(text(&draw(&mut sentence)).contains("not logged in"));
    press(&mut sentence, KeyCode::Esc, KeyModifiers::NONE);
    press(&mut sentence, KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(sentence.welcome.input.text(), "Fix the router");
    let effects = ctrl(&mut sentence, 'p');
    assert_eq!(sentence.screen, Screen::Studio);
    assert!(
        effects.iter().any(|effect| matches!(effect, Effect::Ask { .. })),
        "the agent gets a prompt: {effects:?}"
    );
    press(&mut sentence, KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!(ctrl(&mut sentence, 'p'), [], "asks once");
    press(&mut sentence, KeyCode::Esc, KeyModifiers::NONE);
    ctrl(&mut sentence, 'c');
    ctrl(&mut sentence, 'c');
    assert_eq!(sentence.left.unwrap(), ["not started: ralph run 'Fix the router'"]);
    // Navigating away cancels the pending action.
    let mut back = fast();
    type_text(&mut back, "Fix the router");
    ctrl(&mut back, 'r');
    press(&mut back, KeyCode::Esc, KeyModifiers::NONE);
    looked(&mut back);
    assert_eq!(back.screen, Screen::Welcome);
}

#[test]
fn streaming_draft_blocks_the_next_step() {
    let mut model = model(COLORS, (100, 30));
    type_text(&mut model, "Keep the order");
    ctrl(&mut model, 'p');
    let thread = model.studio.thread.clone();
    let piece =
        "I understand.\n```draft\n# Keep the order\n\n## Task\n\nMessages arrive in order.\n".to_owned();
    update(&mut model, Msg::Answering { thread, piece });
    let shown = text(&draw(&mut model));
    assert!(shown.contains("Messages arrive in order.") && shown.contains("answering for"), "{shown}");
    for c in ['v', 'f'] {
        assert_eq!(ctrl(&mut model, c), []);
        assert_eq!(model.screen, Screen::Studio);
        assert!(text(&draw(&mut model)).contains("an answer is still coming"), "Ctrl-{c}");
    }
    let whole = "I understand.\n```draft\n# Keep the order\n\n## Task\n\nMessages arrive in order.\n```\n";
    super::fixture::answer(&mut model, Ok(whole));
    ctrl(&mut model, 'v');
    assert_eq!(model.screen, Screen::Review);
}

#[test]
fn race_starts_from_the_form_and_shows_a_table() {
    let mut model = model(COLORS, (100, 30));
    type_text(&mut model, "Fix the router");
    ctrl(&mut model, 'r');
    model.start.form.set("race", "claude, codex");
    model.start.form.at = model.start.form.fields.iter().position(|field| field.key == "best").unwrap();
    model.start.form.turn(false);
    let effects = enter(&mut model);
    let [Effect::Start(wish)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!((wish.race.as_str(), wish.best.as_str()), ("claude, codex", "cost"));
    update(&mut model, Msg::Started("20261115-143307-k3f9".into()));
    update(&mut model, Msg::Race(Box::new(race(None))));
    update(&mut model, Msg::View(Box::new(run_view())));
    let seen = text(&draw(&mut model));
    for words in ["Race", "the first proven result wins", "claude", "codex", "together: $1.50, $10 at most"] {
        assert!(seen.contains(words), "{words}: {seen}");
    }
    key(&mut model, '1');
    key(&mut model, '7');
    assert!(enter(&mut model).is_empty(), "the run that is watched is open already");
    press(&mut model, KeyCode::Down, KeyModifiers::NONE);
    press(&mut model, KeyCode::Down, KeyModifiers::NONE);
    assert_eq!(enter(&mut model), [Effect::Watch("20261115-143307-k3fb".into())]);
    assert_eq!((model.run.tab, model.run.tabs()), (0, 7), "the other run, with the race tab");
    let mut other = finished();
    other.run_id = RunId::new("20261115-143307-k3fb");
    update(&mut model, Msg::View(Box::new(other)));
    assert_eq!(model.screen, Screen::Run, "it counts who won");
    update(&mut model, Msg::Race(Box::new(race(Some("20261115-143307-k3fb")))));
    key(&mut model, '7');
    let seen = text(&draw(&mut model));
    assert!(seen.contains("codex wins") && seen.contains("a takes the winning result"), "{seen}");
    key(&mut model, 'a');
    let apply = ["apply", "20261115-143307-k3fb"].map(str::to_owned).to_vec();
    let effects = key(&mut model, 'y');
    assert!(matches!(effects.as_slice(), [Effect::Command { words, .. }] if *words == apply), "{effects:?}");
}

#[test]
fn permission_question_answered_no_starts_nothing() {
    let mut model = model(COLORS, (100, 30));
    ctrl(&mut model, 'r');
    let effects = enter(&mut model);
    let [Effect::Start(wish)] = effects.as_slice() else { panic!("{effects:?}") };
    let ask = |model: &mut Model| {
        update(model, Msg::Consent(wish.clone(), vec!["+ network access to `a.example`".into()]));
        text(&draw(model))
    };
    let seen = ask(&mut model);
    assert!(seen.contains("This repository asks for:") && seen.contains("a.example"), "{seen}");
    assert!(enter(&mut model).is_empty() && model.overlay.is_some(), "Enter alone allows nothing");
    assert!(key(&mut model, 'n').is_empty() && model.overlay.is_none());
    ask(&mut model);
    assert_eq!(key(&mut model, 'y'), [Effect::AllowAndStart(wish.clone())]);
}

#[test]
fn missing_check_asks_for_a_command() {
    let mut model = model(COLORS, (100, 30));
    ctrl(&mut model, 'r');
    enter(&mut model);
    update(&mut model, Msg::NothingChecks(Problem::new("nothing checks it", "say what does")));
    type_text(&mut model, "make test");
    let effects = enter(&mut model);
    let [Effect::Start(wish)] = effects.as_slice() else { panic!("{effects:?}") };
    assert_eq!(wish.verify, "make test");
}

#[test]
fn refused_start_is_shown_on_the_start_screen() {
    let mut model = model(COLORS, (100, 30));
    ctrl(&mut model, 'r');
    enter(&mut model);
    update(&mut model, Msg::Failed(Problem::new("run x is running here", "`ralph cancel x`")));
    let seen = text(&draw(&mut model));
    assert!(seen.contains("run x is running here") && seen.contains("next: `ralph cancel x`"), "{seen}");
    assert!(!enter(&mut model).is_empty(), "it can be tried again");
}

#[test]
fn every_control_of_a_run_has_its_key() {
    let mut model = on(Screen::Run, COLORS, (120, 40));
    let sent = |effects: Vec<Effect>| match effects.into_iter().next() {
        Some(Effect::Send { control, .. }) => control.name(),
        other => panic!("{other:?}"),
    };
    assert_eq!(sent(key(&mut model, 'p')), "pause");
    assert_eq!(sent(key(&mut model, 'r')), "rotate");
    assert_eq!(sent(key(&mut model, 's')), "skip");
    assert_eq!(sent(key(&mut model, 'd')), "diagnose");
    assert!(key(&mut model, 'a').is_empty(), "there is no question");
    for (k, name) in [('n', "note"), ('u', "nudge"), ('l', "guardrail")] {
        key(&mut model, k);
        type_text(&mut model, "look at the drain path?");
        assert_eq!(sent(enter(&mut model)), name);
    }
    key(&mut model, 'k');
    press(&mut model, KeyCode::Down, KeyModifiers::NONE);
    let effects = enter(&mut model);
    let [Effect::Send { control: Control::Cooldown { agent, seconds: 900 }, .. }] = effects.as_slice() else {
        panic!("{effects:?}")
    };
    assert_eq!(agent.as_str(), "claude");
    key(&mut model, 'c');
    assert!(model.overlay.is_some(), "ending the run needs a confirmation");
    assert_eq!(key(&mut model, 'y'), [Effect::End { run: model.run.id.clone(), now: true }]);
    let mut view = run_view();
    (view.status, view.driven) = (Status::Paused, true);
    update(&mut model, Msg::View(Box::new(view)));
    assert_eq!(sent(key(&mut model, 'p')), "resume");
    let mut view = run_view();
    view.driven = false;
    update(&mut model, Msg::View(Box::new(view)));
    assert_eq!(key(&mut model, 'p'), [Effect::Resume(model.run.id.clone())]);
}

#[test]
fn finished_run_is_not_steered() {
    let mut model = on(Screen::Summary, COLORS, (120, 40));
    key(&mut model, 't');
    for k in ['p', 'r', 's', 'd', 'a', 'c', 'n'] {
        assert!(key(&mut model, k).is_empty() && model.overlay.is_none(), "{k}");
        assert!(matches!(model.notice, Some(Notice::Done(_))));
    }
}

#[test]
fn output_is_followed_searched_and_saved() {
    let mut model = on(Screen::Run, COLORS, (120, 40));
    key(&mut model, '2');
    for n in 0..500 {
        let line = crate::msg::Live::Line(crate::log::Kind::Said, format!("line {n}"));
        update(&mut model, Msg::Told(Vec::new(), vec![line]));
    }
    assert!(text(&draw(&mut model)).contains("line 499"));
    press(&mut model, KeyCode::PageUp, KeyModifiers::NONE);
    assert!(!text(&draw(&mut model)).contains("line 499"));
    let line = crate::msg::Live::Line(crate::log::Kind::Said, "new".into());
    update(&mut model, Msg::Told(Vec::new(), vec![line]));
    assert!(!text(&draw(&mut model)).contains(" new"), "what is read stays in its place");
    key(&mut model, '/');
    type_text(&mut model, "line 42");
    enter(&mut model);
    assert!(text(&draw(&mut model)).contains("line 42"));
    key(&mut model, 'f');
    assert!(text(&draw(&mut model)).contains("new"));
    key(&mut model, 'w');
    let effects = enter(&mut model);
    let [Effect::SaveText { name, text }] = effects.as_slice() else { panic!("{effects:?}") };
    assert!(name.ends_with("-output.txt") && text.contains("line 7\n"));
}

#[test]
fn quitting_lists_active_runs_and_asks_only_if_something_would_be_lost() {
    let mut model = on(Screen::Run, COLORS, (120, 40));
    model.studio.input.insert("not sent yet");
    ctrl(&mut model, 'c');
    assert!(text(&draw(&mut model)).contains("Your message in the Spec Studio isn't sent."));
    assert!(model.left.is_none());
    key(&mut model, 'n');
    assert!(model.overlay.is_none() && model.left.is_none());
    model.studio.input.take();
    assert_eq!(ctrl(&mut model, 'c'), [Effect::Quit]);
    assert_eq!(
        model.left.unwrap(),
        ["run 20261115-143307-k3f9 continues; run `ralph attach 20261115-143307-k3f9` to watch it again"]
    );
}

#[test]
fn studio_draft_by_an_agent_can_be_edited_and_undone() {
    let mut model = on(Screen::Studio, COLORS, (120, 40));
    let effects = enter(&mut model);
    assert!(matches!(effects.as_slice(), [Effect::Remember { .. }, Effect::Ask { .. }]), "{effects:?}");
    let (thread, piece) = (model.studio.thread.clone(), "Good.\n```draft\n# Half".to_owned());
    update(&mut model, Msg::Answering { thread, piece });
    assert!(text(&draw(&mut model)).contains("Half"), "the draft fills while it comes");
    let answer = "Good.\n```draft\n# Whole\n\n## Task\n\nDo it.\n```\n";
    let effects = super::fixture::answer(&mut model, Ok(answer));
    assert!(matches!(effects.as_slice(), [Effect::Remember { .. }]));
    assert_eq!(model.studio.draft.title(), Some("Whole"));
    ctrl(&mut model, 'z');
    assert_eq!(model.studio.draft.title(), Some("Keep the order"));
    ctrl(&mut model, 'e');
    type_text(&mut model, "by hand");
    press(&mut model, KeyCode::Esc, KeyModifiers::NONE);
    assert!(model.studio.draft.text().contains("by hand") && model.screen == Screen::Studio);
    model.studio.input.set("next");
    let effects = enter(&mut model);
    let Some(Effect::Ask { draft, .. }) = effects.last() else { panic!("{effects:?}") };
    assert!(draft.contains("by hand"), "the next prompt contains the edited draft");
    super::fixture::answer(&mut model, Err(Problem::new("claude did not answer", "log in")));
    let seen = text(&draw(&mut model));
    assert!(seen.contains("claude did not answer") && seen.contains("next: log in"), "{seen}");
}

#[test]
fn answer_goes_to_the_thread_and_agent_that_asked() {
    let mut model = on(Screen::Studio, COLORS, (120, 40));
    enter(&mut model);
    let asked = model.studio.thread.clone();
    ctrl(&mut model, 'g');
    super::fixture::answer(&mut model, Ok("from the one that was asked"));
    assert_eq!(model.studio.messages.last().unwrap().who, "claude", "not the one that was switched to");
    model.studio.input.set("more");
    enter(&mut model);
    let effects = update(&mut model, Msg::Thread("20260101-000000".into(), Vec::new()));
    assert_eq!(effects, [Effect::StopAsking]);
    let late = Msg::Answered { thread: asked, agent: "claude".into(), answer: Ok("late".into()) };
    assert!(update(&mut model, late).is_empty() && model.studio.messages.is_empty());
}

#[test]
fn server_run_offers_only_run_controls() {
    let mut model = on(Screen::Summary, COLORS, (120, 40));
    (model.server, model.attached) = (Some("https://ralph.example.com".into()), true);
    assert!(text(&draw(&mut model)).contains("ralph on ralph.example.com"));
    for word in ['a', 'z', 'h', 'n'] {
        assert!(key(&mut model, word).is_empty() && model.overlay.is_none(), "{word}");
        let seen = text(&draw(&mut model));
        assert!(seen.contains("the folder of this run is on the server"), "{seen}");
    }
    let mut model = on(Screen::Run, COLORS, (120, 40));
    (model.server, model.attached) = (Some("https://ralph.example.com".into()), true);
    assert!(matches!(key(&mut model, 'p').as_slice(), [Effect::Send { .. }]));
    assert_eq!(key(&mut model, 'q'), [Effect::Quit]);
    assert_eq!(
        model.left.unwrap(),
        [
            "run 20261115-143307-k3f9 continues; run `ralph attach 20261115-143307-k3f9 --server https://ralph.example.com` to watch it again"
        ]
    );
}

#[test]
fn studio_without_agents_is_a_plain_form() {
    let mut model = model(COLORS, (120, 40));
    model.repo.agents.clear();
    ctrl(&mut model, 't');
    for answer in
        ["Keep the order", "Messages arrive out of order.", "tests pass\nno new dependency", "make test"]
    {
        update(&mut model, Msg::Paste(answer.into()));
        enter(&mut model);
    }
    let draft = &model.studio.draft;
    assert_eq!(draft.title(), Some("Keep the order"));
    assert_eq!(draft.section("Acceptance"), "- tests pass\n- no new dependency");
    assert_eq!(draft.section("Verification"), "```sh\nmake test\n```");
    let effects = ctrl(&mut model, 'f');
    assert!(matches!(effects.as_slice(), [Effect::Lint(_)]), "{effects:?}");
    assert_eq!(model.studio.draft.promise(), Some("COMPLETE"));
    assert!(key(&mut model, 'w').is_empty(), "nothing is written before it was looked through");
    let checks = vec!["make test (PROMPT.md:9)".to_owned()];
    let effects = update(&mut model, Msg::Linted { found: Vec::new(), checks });
    assert!(matches!(effects.as_slice(), [Effect::TryChecks(_)]), "{effects:?}");
    assert!(key(&mut model, 'w').is_empty(), "nothing is written while the checks run");
    let draft = model.studio.draft.text().to_owned();
    let not_found = LintLine { error: true, line: 9, message: "not found".into(), fix: "install it".into() };
    let over = |lint| Msg::Baseline(Ok(Baseline { draft: draft.clone(), lint, ..Baseline::default() }));
    update(&mut model, over(vec![not_found]));
    assert!(key(&mut model, 'w').is_empty(), "an error is never written past");
    update(&mut model, over(Vec::new()));
    assert!(key(&mut model, 'w').is_empty(), "neither is a red section");
    model.studio.change(model.studio.draft.with_section("Constraints", "none"));
    let effects = key(&mut model, 'w');
    assert!(matches!(effects.as_slice(), [Effect::WriteTask { .. }]), "{effects:?}");
    update(&mut model, Msg::Wrote(vec!["PROMPT.md".into()], Vec::new()));
    assert_eq!((model.screen, model.start.file.as_deref()), (Screen::Start, Some("PROMPT.md")));
}

#[test]
fn findings_are_applied_and_undone() {
    let mut model = on(Screen::Review, COLORS, (120, 40));
    enter(&mut model);
    assert!(model.studio.draft.section("Acceptance").contains("after a reconnect"));
    assert!(model.review.findings[0].applied);
    key(&mut model, 'u');
    assert!(!model.review.findings[0].applied && !model.studio.draft.text().contains("reconnect"));
}

#[test]
fn lint_error_blocks_writing_and_links_to_its_line() {
    let mut model = on(Screen::Finalize, COLORS, (120, 40));
    model.finalize.lint.as_mut().unwrap()[0].error = true;
    assert!(key(&mut model, 'w').is_empty());
    enter(&mut model);
    assert_eq!(model.screen, Screen::Studio);
    type_text(&mut model, "FIXED ");
    press(&mut model, KeyCode::Esc, KeyModifiers::NONE);
    let line = model.studio.draft.text().lines().nth(2).unwrap().to_owned();
    assert!(line.ends_with("FIXED ") || line.starts_with("FIXED "), "{line}");
}

#[test]
fn the_mouse_chooses_and_scrolls() {
    let mut model = on(Screen::Run, COLORS, (120, 40));
    draw(&mut model);
    let tab = model.hits.iter().find(|hit| hit.action == crate::keys::Action::Tab(2)).copied().unwrap();
    update(&mut model, Msg::Click(tab.area.x + 1, tab.area.y));
    assert_eq!(model.run.tab, 2);
    update(&mut model, Msg::Wheel(1));
    assert_eq!(model.run.top, 3);
    update(&mut model, Msg::Click(0, 39));
    ctrl(&mut model, 'p');
    assert!(matches!(model.overlay, Some(Overlay::Palette { .. })));
    type_text(&mut model, "rotate");
    press(&mut model, KeyCode::Esc, KeyModifiers::NONE);
    ctrl(&mut model, 'p');
    type_text(&mut model, "start a fresh");
    let effects = enter(&mut model);
    assert!(matches!(effects.as_slice(), [Effect::Send { control: Control::Rotate, .. }]), "{effects:?}");
}

#[test]
fn answers_are_on_the_screen_in_every_size() {
    for size in [(120, 40), (80, 24), (60, 20), (60, 15)] {
        let mut model = on(Screen::Run, COLORS, size);
        update(&mut model, Msg::View(Box::new(needs_you())));
        let seen = text(&draw(&mut model));
        assert!(seen.contains("a approve") && seen.contains("u reject"), "{size:?}\n{seen}");
        let foot = seen.lines().last().unwrap();
        assert!(!foot.contains("skip") && !foot.contains("rotate"), "{foot}");
        key(&mut model, 'u');
        let seen = text(&draw(&mut model));
        assert!(seen.contains("hint: Keep the original tests."), "{size:?}\n{seen}");
        assert!(seen.lines().last().unwrap().contains("F1 help"), "? is typed: {seen}");
        type_text(&mut model, " Really?");
        press(&mut model, KeyCode::Esc, KeyModifiers::NONE);
        assert!(text(&draw(&mut model)).contains("Timeline"), "the tabs stay");
        key(&mut model, 'u');
        let effects = enter(&mut model);
        let [Effect::Send { control: Control::Nudge { text }, then_resume: true, .. }] = effects.as_slice()
        else {
            panic!("{effects:?}")
        };
        assert!(text.ends_with("until they pass. Really?"), "what was typed stays: {text}");
        let effects = key(&mut model, 'a');
        assert!(
            matches!(effects.as_slice(), [Effect::Send { control: Control::Approve, .. }]),
            "{effects:?}"
        );
    }
}

#[test]
fn an_iteration_opens_with_its_transcript_and_two_are_compared() {
    let mut model = on(Screen::Run, COLORS, (120, 40));
    press(&mut model, KeyCode::Down, KeyModifiers::NONE);
    let effects = enter(&mut model);
    let load = |from, iteration| Effect::LoadDetails { run: "20261115-143307-k3f9".into(), from, iteration };
    assert_eq!(effects, [load(None, 6)]);
    let line = |text: &str| vec![ToneLine::new(Tone::Plain, text)];
    let output = vec![
        Live::Line(Kind::Did, "running `make`".into()),
        Live::Result(false, (1..=9).map(|n| format!("row {n}\n")).collect()),
    ];
    let (prompt, diff) = (line("the prompt"), line("+ the diff"));
    let details = Details { iteration: 6, output, prompt, diff, ..Details::default() };
    update(&mut model, Msg::Details(Box::new(details)));
    let seen = text(&draw(&mut model));
    assert!(seen.contains("row 9") && seen.contains("… 4 more lines") && !seen.contains("row 4"), "{seen}");
    enter(&mut model);
    assert!(text(&draw(&mut model)).contains("row 4"), "the block is unfolded");
    press(&mut model, KeyCode::Right, KeyModifiers::NONE);
    assert!(text(&draw(&mut model)).contains("the prompt"));
    press(&mut model, KeyCode::Right, KeyModifiers::NONE);
    assert!(text(&draw(&mut model)).contains("+ the diff"));
    press(&mut model, KeyCode::Esc, KeyModifiers::NONE);
    assert_eq!((model.screen, model.run.opened.is_none()), (Screen::Run, true));
    key(&mut model, ' ');
    press(&mut model, KeyCode::Down, KeyModifiers::NONE);
    press(&mut model, KeyCode::Down, KeyModifiers::NONE);
    assert_eq!(key(&mut model, '='), [load(Some(4), 6)]);
    let checks = line("fixed   test_div");
    let details = Details { from: Some(4), iteration: 6, checks, ..Details::default() };
    update(&mut model, Msg::Details(Box::new(details)));
    press(&mut model, KeyCode::Right, KeyModifiers::NONE);
    assert!(text(&draw(&mut model)).contains("fixed   test_div"));
}

#[test]
fn proven_result_is_taken_with_two_keys_and_published_with_two() {
    let words = |effects: &[Effect]| match effects {
        [Effect::Command { words, .. }] => words.join(" "),
        other => panic!("{other:?}"),
    };
    let mut model = on(Screen::Summary, COLORS, (80, 24));
    let mut view = finished();
    view.history.iter_mut().for_each(|it| it.files = 1);
    (view.pr, view.workspace) = (None, "/elsewhere".into());
    update(&mut model, Msg::View(Box::new(view)));
    let seen = text(&draw(&mut model));
    assert!(seen.contains("Enter  apply to your checkout") && !seen.contains("show PR"), "{seen}");
    enter(&mut model);
    assert_eq!(words(&key(&mut model, 'y')), "apply 20261115-143307-k3f9");
    key(&mut model, 'p');
    assert_eq!(words(&enter(&mut model)), "publish 20261115-143307-k3f9 --title Keep the order of messages");
    key(&mut model, 'b');
    assert!(words(&enter(&mut model)).ends_with("--branch ralph/keep-the-order-of-messages"));
}

#[test]
fn runs_are_found_by_typing() {
    let mut model = on(Screen::Run, COLORS, (80, 24));
    key(&mut model, 'R');
    let seen = text(&draw(&mut model));
    assert!(seen.contains("Active") && seen.contains("Finished") && seen.contains("router"), "{seen}");
    type_text(&mut model, "flaky");
    let seen = text(&draw(&mut model));
    assert!(seen.contains("Fix flaky test") && !seen.contains("Active"), "{seen}");
    assert_eq!(enter(&mut model), [Effect::Watch("20261114-090000-aaaa".into())]);
}

#[test]
fn saving_the_setup_goes_on_to_the_studio() {
    let mut model = on(Screen::Setup, COLORS, (80, 24));
    update(&mut model, Msg::Saved("saved".into()));
    assert_eq!(model.screen, Screen::Studio);
}
