//! Snapshots of what is shown.

use super::fixture::{COLORS, draw, needs_you, on, press, race, run_view, styles, text, with_run};
use crate::data::Screen;
use crate::model::Model;
use crate::msg::Msg;
use crate::update::update;
use crate::widget::theme::{Depth, Theme};
use ratatui::buffer::Buffer;
use ratatui::crossterm::event::{KeyCode, KeyModifiers};
use ratatui::style::Color;

const SIZES: [(u16, u16); 3] = [(80, 24), (120, 40), (200, 60)];
const SCREENS: [Screen; 8] = [
    Screen::Welcome,
    Screen::Setup,
    Screen::Studio,
    Screen::Review,
    Screen::Finalize,
    Screen::Start,
    Screen::Run,
    Screen::Summary,
];

fn shown(name: &str, buffer: &Buffer) {
    insta::assert_snapshot!(name, format!("{}\n{}", text(buffer), styles(buffer)));
}

#[test]
fn every_screen_in_three_sizes_with_its_styles() {
    for screen in SCREENS {
        for (columns, lines) in SIZES {
            let mut model = on(screen, COLORS, (columns, lines));
            assert_eq!(model.screen, screen);
            shown(&format!("{screen:?}-{columns}x{lines}").to_lowercase(), &draw(&mut model));
        }
    }
}

#[test]
fn race_active_and_won() {
    for (name, winner) in [("going", None), ("won", Some("20261115-143307-k3fb"))] {
        for (columns, lines) in [SIZES[0], SIZES[1]] {
            let mut model = on(Screen::Run, COLORS, (columns, lines));
            update(&mut model, Msg::Race(Box::new(race(winner))));
            shown(&format!("race-{name}-{columns}x{lines}"), &draw(&mut model));
        }
    }
}

#[test]
fn best_metric_is_shown_in_every_size() {
    for size in SIZES {
        let mut model = on(Screen::Run, COLORS, size);
        let mut view = run_view();
        view.best = Some(ralph_loop_protocol::display::view::BestNumber {
            name: "bench".into(),
            value: 61.0,
            noise: Some(0.8),
            target: Some(50.0),
            rises: false,
            iteration: 3,
        });
        update(&mut model, Msg::View(Box::new(view)));
        let seen = text(&draw(&mut model));
        assert!(seen.contains("best bench 61"), "{size:?}:\n{seen}");
    }
}

#[test]
fn screens_are_readable_without_colors() {
    for screen in SCREENS {
        for size in SIZES {
            let mut model = on(screen, Theme::MONO, size);
            let buffer = draw(&mut model);
            assert!(
                buffer.content().iter().all(|cell| cell.fg == Color::Reset && cell.bg == Color::Reset),
                "{screen:?}"
            );
            if size == SIZES[0] {
                shown(&format!("{screen:?}-no-color").to_lowercase(), &buffer);
            }
        }
    }
}

#[test]
fn ascii_terminal_gets_plain_symbols() {
    for screen in SCREENS {
        let theme = Theme { depth: Depth::Mono, light: false, unicode: false };
        let mut model = on(screen, theme, (120, 40));
        let signs = ['✓', '✗', '●', '○', '◐', '▮', '▯', '▸', '│', '─', '▁', '█'];
        let seen = text(&draw(&mut model));
        assert!(!seen.contains(signs), "{screen:?}:\n{seen}");
    }
}

#[test]
fn backgrounds_stay_unpainted_and_light_terminals_have_their_own_shades() {
    let frame =
        |light| draw(&mut on(Screen::Run, Theme { depth: Depth::True, light, unicode: true }, (120, 40)));
    let (dark, light) = (frame(false), frame(true));
    assert!(dark.content().iter().chain(light.content()).all(|cell| cell.bg == Color::Reset));
    assert_ne!(dark, light);
    assert_eq!(text(&dark), text(&light));
}

#[test]
fn every_tab_of_a_run() {
    for tab in 0..6_u8 {
        let mut model = on(Screen::Run, COLORS, (120, 40));
        press(&mut model, KeyCode::Char(char::from(b'1' + tab)), KeyModifiers::NONE);
        shown(&format!("run-tab-{}", tab + 1), &draw(&mut model));
    }
}

#[test]
fn question_shows_its_answers_as_keys() {
    let mut model = on(Screen::Run, COLORS, (120, 40));
    update(&mut model, Msg::View(Box::new(needs_you())));
    shown("run-needs-you", &draw(&mut model));
}

#[test]
fn every_overlay() {
    let over = |code, held| {
        let mut model = on(Screen::Run, COLORS, (100, 30));
        press(&mut model, code, held);
        text(&draw(&mut model))
    };
    insta::assert_snapshot!("over-help", over(KeyCode::Char('?'), KeyModifiers::NONE));
    insta::assert_snapshot!("over-palette", over(KeyCode::Char('p'), KeyModifiers::CONTROL));
    let mut model = on(Screen::Studio, COLORS, (100, 30));
    press(&mut model, KeyCode::Char('c'), KeyModifiers::CONTROL);
    insta::assert_snapshot!("over-leave", text(&draw(&mut model)));
    insta::assert_snapshot!("over-runs", over(KeyCode::Char('R'), KeyModifiers::NONE));
    insta::assert_snapshot!("over-note", over(KeyCode::Char('n'), KeyModifiers::NONE));
}

#[test]
fn agent_output_reaches_the_terminal_as_text_only() {
    let mut model = on(Screen::Run, COLORS, (120, 40));
    press(&mut model, KeyCode::Char('2'), KeyModifiers::NONE);
    let mut view = run_view();
    view.title = "evil \u{1b}]0;owned\u{7}\u{1b}[2J".into();
    view.now = "\u{1b}[31mred\u{1b}[0m".into();
    view.history[2].message = "a\u{1b}[5mb\u{202e}c".into();
    update(&mut model, Msg::View(Box::new(view)));
    for tab in 0..3 {
        model.run.tab = tab;
        let buffer = draw(&mut model);
        let clean = |cell: &ratatui::buffer::Cell| {
            !cell.symbol().contains(|c: char| c.is_control() || c == '\u{202e}')
        };
        assert!(buffer.content().iter().all(clean), "{}", text(&buffer));
        assert!(!text(&buffer).contains("owned") || tab != 0);
    }
}

#[test]
fn too_small_terminal_says_what_it_needs() {
    for screen in SCREENS {
        for columns in [1, 2, 10, 59, 60, 61, 90, 101] {
            for lines in [1, 2, 5, 14, 15, 16, 25] {
                let mut model: Model = on(screen, COLORS, (80, 24));
                update(&mut model, Msg::Resize(columns, lines));
                let seen = text(&draw(&mut model));
                if columns < 60 && columns > 30 && lines > 3 {
                    assert!(seen.contains("it needs 60×15"), "{seen}");
                }
                update(&mut model, Msg::Key((KeyCode::F(1), KeyModifiers::NONE)));
                draw(&mut model);
            }
        }
    }
    let mut model = on(Screen::Welcome, COLORS, (80, 24));
    with_run(&mut model);
    draw(&mut model);
}
