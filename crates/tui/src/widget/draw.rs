//! Drawing primitives (text in roles, bars, sparklines, lists) and click targets. Everything is clipped to
//! its area.

use crate::keys::Action;
use crate::model::Hit;
use crate::widget::editor::Editor;
use crate::widget::text::{fit, width, wrap};
use crate::widget::theme::{Role, Sign, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::Style;

pub type Span = (Role, String);

pub struct Canvas<'a> {
    buffer: &'a mut Buffer,
    pub theme: Theme,
    /// Click targets.
    pub hits: Vec<Hit>,
    pub cursor: Option<(u16, u16)>,
}

impl<'a> Canvas<'a> {
    pub fn new(buffer: &'a mut Buffer, theme: Theme) -> Self {
        Self { buffer, theme, hits: Vec::new(), cursor: None }
    }

    /// Draws text at a cell, at most this wide; returns the next cell.
    pub fn put(&mut self, x: u16, y: u16, cells: u16, role: Role, text: &str) -> u16 {
        let area = *self.buffer.area();
        if y >= area.bottom() || x >= area.right() || cells == 0 {
            return x;
        }
        // Clears what was there before.
        let style = Style::reset().patch(self.theme.style(role));
        let cells = cells.min(area.right() - x);
        let shown = fit(text, usize::from(cells));
        let shown = if self.theme.unicode { shown } else { plain(&shown) };
        self.buffer.set_stringn(x, y, shown, usize::from(cells), style).0
    }

    pub fn line(&mut self, area: Rect, row: u16, spans: &[Span]) {
        if row >= area.height {
            return;
        }
        let mut x = area.x;
        for (role, text) in spans {
            x = self.put(x, area.y + row, area.right().saturating_sub(x), *role, text);
        }
    }

    /// Draws text at the right end of a row.
    pub fn right(&mut self, area: Rect, row: u16, spans: &[Span]) {
        let all: usize = spans.iter().map(|(_, text)| width(text)).sum();
        let all = u16::try_from(all).unwrap_or(u16::MAX).min(area.width);
        let place = Rect { x: area.right() - all, width: all, ..area };
        self.line(place, row, spans);
    }

    /// Draws wrapped text; returns the row after it.
    pub fn text(&mut self, area: Rect, mut row: u16, role: Role, text: &str) -> u16 {
        for line in text.lines().flat_map(|line| wrap(line, usize::from(area.width))) {
            if row >= area.height {
                break;
            }
            self.put(area.x, area.y + row, area.width, role, line);
            row += 1;
        }
        row
    }

    /// A horizontal line.
    pub fn rule(&mut self, area: Rect, row: u16) {
        let sign = self.theme.sign(Sign::Rule);
        self.line(area, row, &[(Role::Muted, sign.repeat(usize::from(area.width)))]);
    }

    pub fn bar_down(&mut self, x: u16, area: Rect) {
        let sign = self.theme.sign(Sign::Bar);
        for y in area.y..area.bottom() {
            self.put(x, y, 1, Role::Muted, sign);
        }
    }

    /// Clears an area and draws a titled frame; returns the inside.
    pub fn boxed(&mut self, area: Rect, title: &str) -> Rect {
        for y in area.y..area.bottom() {
            self.put(area.x, y, area.width, Role::Text, &" ".repeat(usize::from(area.width)));
        }
        let (wide, across, down) =
            (usize::from(area.width), self.theme.sign(Sign::Rule), self.theme.sign(Sign::Bar));
        let corner = if self.theme.unicode { ["╭", "╮", "╰", "╯"] } else { ["+"; 4] };
        let name = fit(title, wide.saturating_sub(6));
        let rest = wide.saturating_sub(width(&name) + 5);
        let (bottom, right) = (area.bottom().saturating_sub(1), area.right().saturating_sub(1));
        self.line(
            area,
            0,
            &[
                (Role::Muted, format!("{}{across} ", corner[0])),
                (Role::Strong, name),
                (Role::Muted, format!(" {}{}", across.repeat(rest), corner[1])),
            ],
        );
        for y in area.y + 1..bottom {
            self.put(area.x, y, 1, Role::Muted, down);
            self.put(right, y, 1, Role::Muted, down);
        }
        let last = format!("{}{}{}", corner[2], across.repeat(wide.saturating_sub(2)), corner[3]);
        self.put(area.x, bottom, area.width, Role::Muted, &last);
        Rect {
            x: area.x + 2,
            y: area.y + 1,
            width: area.width.saturating_sub(4),
            height: area.height.saturating_sub(2),
        }
    }

    /// A framed input with a title above and a hint below; returns the inside.
    pub fn field(&mut self, area: Rect, title: &str, below: &str) -> Rect {
        let inside = self.boxed(area, title);
        let below = fit(below, usize::from(area.width).saturating_sub(6));
        if !below.is_empty() && area.height > 1 {
            let cells = u16::try_from(width(&below) + 2).unwrap_or(u16::MAX);
            let x = area.right().saturating_sub(cells + 2).max(area.x);
            self.put(x, area.bottom() - 1, cells, Role::Muted, &format!(" {below} "));
        }
        inside
    }

    pub fn hit(&mut self, area: Rect, row: u16, action: Action) {
        if row < area.height {
            self.hits.push(Hit { area: Rect { y: area.y + row, height: 1, ..area }, action });
        }
    }

    pub fn editor(&mut self, area: Rect, editor: &Editor) {
        let shown = editor.shown(usize::from(area.width), usize::from(area.height));
        for (row, line) in (0..).zip(&shown.lines) {
            self.line(area, row, &[(Role::Text, line.clone())]);
        }
        let (x, y) = shown.cursor;
        self.cursor = Some((area.x + x.min(area.width.saturating_sub(1)), area.y + y));
    }

    /// A bar for a used share.
    pub fn steps(&self, share: f64, cells: usize) -> String {
        let full =
            if share.is_finite() { (share.clamp(0.0, 1.0) * cells as f64).round() as usize } else { 0 };
        self.theme.sign(Sign::Full).repeat(full) + &self.theme.sign(Sign::Empty).repeat(cells - full)
    }

    /// A sparkline, newest value last.
    pub fn spark(&self, values: &[f64], cells: usize) -> String {
        let steps = self.theme.steps();
        let values = &values[values.len().saturating_sub(cells)..];
        let most = values.iter().copied().fold(0.0_f64, f64::max);
        let step = |value: f64| {
            let share = if most > 0.0 { (value / most).clamp(0.0, 1.0) } else { 0.0 };
            steps[(share * (steps.len() - 1) as f64).round() as usize]
        };
        values.iter().map(|value| step(*value)).collect()
    }
}

/// Replaces our own symbols with one-cell ASCII; other text stays.
fn plain(text: &str) -> String {
    let one = |c: char| match c {
        '…' => '~',
        '·' | '−' | '–' => '-',
        '×' => 'x',
        '“' | '”' => '"',
        '‹' | '←' => '<',
        '›' | '→' => '>',
        '↑' => '^',
        '↓' => 'v',
        other => other,
    };
    text.chars().map(one).collect()
}

/// The color role of a used share: neutral, attention from 80 %, bad at 100 %.
pub fn share_role(share: f64) -> Role {
    match share {
        s if s >= 1.0 => Role::Bad,
        s if s >= 0.8 => Role::Attention,
        _ => Role::Muted,
    }
}

/// The first visible list entry such that the chosen one is shown.
pub fn list_top(at: usize, height: u16, count: usize) -> usize {
    let height = usize::from(height).max(1);
    at.saturating_sub(height / 2).min(count.saturating_sub(height))
}

/// Splits an area in two with a line between.
pub fn beside(area: Rect, left: u16) -> (Rect, Rect) {
    let left = left.min(area.width.saturating_sub(2));
    let first = Rect { width: left, ..area };
    let rest = Rect { x: area.x + left + 2, width: area.width.saturating_sub(left + 2), ..area };
    (first, rest)
}

/// An area without rows at the top and bottom.
pub fn without(area: Rect, top: u16, bottom: u16) -> Rect {
    let top = top.min(area.height);
    Rect { y: area.y + top, height: area.height.saturating_sub(top + bottom), ..area }
}

/// Some rows of an area.
pub fn rows(area: Rect, from: u16, count: u16) -> Rect {
    let from = from.min(area.height);
    Rect { y: area.y + from, height: count.min(area.height - from), ..area }
}

/// A centered area of at most this size.
pub fn middle(area: Rect, cells: u16, lines: u16) -> Rect {
    let (cells, lines) = (cells.min(area.width), lines.min(area.height));
    Rect {
        x: area.x + (area.width - cells) / 2,
        y: area.y + (area.height - lines) / 2,
        width: cells,
        height: lines,
    }
}
