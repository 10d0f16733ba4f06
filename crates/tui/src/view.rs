//! Draws a frame: top bar, screen, key bar, overlay. Pure; returns the click targets.

use crate::data::Screen;
use crate::keys;
use crate::model::{Hit, Model, Notice};
use crate::screen::{self, finalize, review, run, setup, start, studio, summary, welcome};
use crate::widget::draw::{Canvas, rows, without};
use crate::widget::overlay;
use crate::widget::text::width;
use crate::widget::theme::{Role, Sign};
use ratatui::Frame;
use ratatui::layout::Rect;

/// The smallest supported terminal.
pub const SMALLEST: (u16, u16) = (60, 15);

#[derive(Debug, Default)]
pub struct Drawn {
    /// Click targets.
    pub hits: Vec<Hit>,
    /// Height of the run's tab.
    pub height: u16,
}

pub fn view(model: &Model, frame: &mut Frame<'_>) -> Drawn {
    let area = frame.area();
    let mut canvas = Canvas::new(frame.buffer_mut(), model.theme);
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        too_small(&mut canvas, area);
        return Drawn::default();
    }
    let body = without(area, 1, 2);
    match model.screen {
        Screen::Run | Screen::Summary => run::top_bar(model, &mut canvas, area),
        _ => top_bar(model, &mut canvas, area),
    }
    let inside = match model.screen {
        Screen::Run => body,
        _ => Rect { x: body.x + 1, width: body.width.saturating_sub(2), ..without(body, 1, 0) },
    };
    match model.screen {
        Screen::Welcome => welcome::view(model, &mut canvas, inside),
        Screen::Setup => setup::view(model, &mut canvas, inside),
        Screen::Studio => studio::view(model, &mut canvas, inside),
        Screen::Review => review::view(model, &mut canvas, inside),
        Screen::Finalize => finalize::view(model, &mut canvas, inside),
        Screen::Start => start::view(model, &mut canvas, inside),
        Screen::Run => run::view(model, &mut canvas, inside),
        Screen::Summary => summary::view(model, &mut canvas, inside),
    }
    notice(model, &mut canvas, rows(area, area.height - 2, 1));
    foot(model, &mut canvas, rows(area, area.height - 1, 1));
    overlay::view(model, &mut canvas, body);
    let (hits, cursor) = (canvas.hits, canvas.cursor);
    if let Some((x, y)) = cursor {
        frame.set_cursor_position((x.min(area.right() - 1), y.min(area.bottom() - 1)));
    }
    Drawn { hits, height: body.height.saturating_sub(4) }
}

fn too_small(canvas: &mut Canvas<'_>, area: Rect) {
    let words = format!(
        "This terminal is {}×{}; it needs {}×{}.\nMake it larger, or leave with Ctrl-C and use `ralph status`.",
        area.width, area.height, SMALLEST.0, SMALLEST.1
    );
    canvas.text(area, 0, Role::Attention, &words);
}

/// Navigation state.
fn top_bar(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let way = [
        Screen::Welcome,
        Screen::Setup,
        Screen::Studio,
        Screen::Review,
        Screen::Finalize,
        Screen::Start,
        Screen::Run,
    ];
    canvas.line(area, 0, &[(Role::Strong, " ralph  ".into()), (Role::Strong, model.screen.title().into())]);
    let all: usize = way.iter().map(|screen| width(screen.title()) + 3).sum();
    if usize::from(area.width) > all + 26 {
        let mut spans = Vec::new();
        for (n, screen) in way.into_iter().enumerate() {
            if n > 0 {
                spans.push((Role::Muted, format!(" {} ", canvas.theme.sign(Sign::Arrow))));
            }
            let role = if screen == model.screen { Role::Accent } else { Role::Muted };
            spans.push((role, screen.title().to_owned()));
        }
        spans.push((Role::Text, " ".into()));
        canvas.right(area, 0, &spans);
    }
}

fn notice(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    match &model.notice {
        None => canvas.rule(area, 0),
        Some(Notice::Done(words)) => {
            canvas.line(
                area,
                0,
                &[(Role::Good, format!(" {} ", canvas.theme.sign(Sign::Note))), (Role::Text, words.clone())],
            );
        }
        Some(Notice::Busy(words)) => {
            canvas.line(area, 0, &[(Role::Accent, format!(" {} {words}", canvas.theme.sign(Sign::Half)))]);
        }
        Some(Notice::Wrong(problem)) => {
            let sign = canvas.theme.sign(Sign::Bad);
            canvas.line(
                area,
                0,
                &[
                    (Role::Bad, format!(" {sign} {}", problem.what)),
                    (Role::Muted, format!("  next: {}", problem.fix)),
                ],
            );
        }
    }
}

/// The most used keys that fit; help has them all.
fn foot(model: &Model, canvas: &mut Canvas<'_>, area: Rect) {
    let mut x = area.x + 1;
    // While a text is typed, a character isn't a key.
    let named = |binding: &'static keys::Binding| {
        let acts =
            |key: &&keys::Chord| keys::action(model.screen, **key, model.typing()) == Some(binding.action);
        let key = binding.keys.iter().find(acts)?;
        Some((keys::name(*key), screen::short(model, binding)?, binding.action))
    };
    let cells = |(key, short, _): &(String, &str, keys::Action)| width(key) + width(short) + 3;
    let all = keys::bindings(model.screen);
    let last: Vec<_> = all.clone().filter(|one| one.screen.is_none()).filter_map(named).collect();
    // Help and quit always fit.
    let fixed: usize = last.iter().map(cells).sum();
    for one in all.filter(|one| one.screen.is_some()).filter_map(named) {
        if usize::from(area.right().saturating_sub(x)) < cells(&one) + fixed {
            break;
        }
        x = foot_key(canvas, area, x, &one);
    }
    for one in &last {
        x = foot_key(canvas, area, x, one);
    }
}

fn foot_key(
    canvas: &mut Canvas<'_>,
    area: Rect,
    x: u16,
    (key, short, action): &(String, &str, keys::Action),
) -> u16 {
    let room = |x: u16| area.right().saturating_sub(x);
    let from = x;
    let x = canvas.put(x, area.y, room(x), Role::Accent, key);
    let x = canvas.put(x, area.y, room(x), Role::Muted, &format!(" {short}"));
    canvas.hit(Rect { x: from, width: x.saturating_sub(from), ..area }, 0, *action);
    x + 2
}
