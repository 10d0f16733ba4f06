//! Text in columns: aligned by display width and cut to the terminal.

use crate::output::Out;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::sanitize;
use unicode_width::UnicodeWidthStr as _;

/// Default width.
const NARROW: usize = 80;
/// Minimum width of the flexible column.
const FLEX_MIN: usize = 8;

#[derive(Debug, Clone, Default)]
pub struct Cell {
    text: String,
    tone: Option<Tone>,
    right: bool,
}

impl Cell {
    pub fn new(text: impl Into<String>) -> Self {
        // Sanitized before measuring, because invisible characters take no room.
        let text: String = text.into();
        Self { text: sanitize::line(&text).into_owned(), ..Self::default() }
    }
    pub fn toned(tone: Tone, text: impl Into<String>) -> Self {
        Self { tone: Some(tone), ..Self::new(text) }
    }
    /// Right-aligned, for numbers.
    pub fn right(mut self) -> Self {
        self.right = true;
        self
    }
}

impl<T: Into<String>> From<T> for Cell {
    fn from(text: T) -> Self {
        Self::new(text)
    }
}

/// Rows of cells; the column `flex` is cut if space runs out.
#[derive(Debug, Default)]
pub struct Table {
    rows: Vec<Vec<Cell>>,
    flex: usize,
    indent: usize,
}

impl Table {
    /// An empty table with a flexible column.
    pub fn new(flex: usize) -> Self {
        Self { flex, ..Self::default() }
    }
    pub fn indent(mut self, spaces: usize) -> Self {
        self.indent = spaces;
        self
    }
    pub fn row(&mut self, cells: impl IntoIterator<Item = Cell>) {
        self.rows.push(cells.into_iter().collect());
    }
    /// Lines of at most `columns`, unless cutting the flexible column isn't enough.
    pub fn lines(&self, columns: usize, out: &Out) -> Vec<String> {
        let count = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut widths = vec![0; count];
        for row in &self.rows {
            for (at, cell) in row.iter().enumerate() {
                widths[at] = widths[at].max(width(&cell.text));
            }
        }
        let all = self.indent + widths.iter().sum::<usize>() + 2 * count.saturating_sub(1);
        if let Some(flex) = widths.get_mut(self.flex) {
            *flex = (*flex).min(flex.saturating_sub(all.saturating_sub(columns)).max(FLEX_MIN));
        }
        self.rows.iter().map(|row| self.line(row, &widths, out)).collect()
    }

    /// Rows as lists of lines: the flexible column, which must be last, is wrapped instead of cut.
    pub fn wrapped(&self, columns: usize, out: &Out) -> Vec<Vec<String>> {
        let width_of =
            |at: usize| self.rows.iter().filter_map(|row| row.get(at)).map(|c| width(&c.text)).max();
        let before: usize = (0..self.flex).map(|at| width_of(at).unwrap_or(0) + 2).sum();
        let room = columns.saturating_sub(self.indent + before).max(2 * FLEX_MIN);
        let mut rows = Vec::new();
        for row in &self.rows {
            let Some(last) = row.get(self.flex) else { continue };
            let mut pieces = wrap(&last.text, room).into_iter();
            let mut widths: Vec<usize> = (0..self.flex).map(|at| width_of(at).unwrap_or(0)).collect();
            widths.push(usize::MAX / 2);
            let mut first = row[..self.flex].to_vec();
            first.push(Cell { text: pieces.next().unwrap_or_default(), ..last.clone() });
            let mut lines = vec![self.line(&first, &widths, out)];
            lines.extend(pieces.map(|piece| format!("{:1$}{piece}", "", self.indent + before)));
            rows.push(lines);
        }
        rows
    }

    fn line(&self, row: &[Cell], widths: &[usize], out: &Out) -> String {
        let mut line = " ".repeat(self.indent);
        for (at, cell) in row.iter().enumerate() {
            let text = fit(&cell.text, widths[at]);
            let space = if cell.right || at + 1 < row.len() { widths[at] - width(&text) } else { 0 };
            let space = " ".repeat(space);
            let painted = match cell.tone {
                Some(tone) if !text.is_empty() => out.out(tone, &text),
                _ => text,
            };
            if at > 0 {
                line.push_str("  ");
            }
            if cell.right {
                line.push_str(&space);
            }
            line.push_str(&painted);
            if !cell.right && at + 1 < row.len() {
                line.push_str(&space);
            }
        }
        line.truncate(line.trim_end().len());
        line
    }
}

/// Width available for lines.
pub fn columns() -> usize {
    match crate::process::terminal::columns() {
        // An explicit width wins.
        Some(asked) => asked.clamp(40, 1000),
        None => crate::output::stdout_columns().unwrap_or(NARROW).clamp(40, 200),
    }
}

/// Display width of a text.
pub fn width(text: &str) -> usize {
    text.width()
}

/// Cuts the text to `columns`, with `…` if something is missing.
pub fn fit(text: &str, columns: usize) -> String {
    if width(text) <= columns {
        return text.to_owned();
    }
    // Measures whole prefixes, because a symbol can consist of several characters.
    let ends = text.char_indices().map(|(at, c)| at + c.len_utf8());
    let end = ends.take_while(|end| width(&text[..*end]) < columns).last().unwrap_or(0);
    format!("{}…", &text[..end])
}

/// Cuts the text to `columns` after a word, with `…` if something is missing. A word longer than half of that
/// is cut.
pub fn fit_words(text: &str, columns: usize) -> String {
    let cut = fit(text, columns);
    if cut.len() >= text.len() || width(text) <= columns {
        return cut;
    }
    let kept = cut.trim_end_matches('…');
    let whole = text[kept.len()..].starts_with(char::is_whitespace);
    match kept.rfind(char::is_whitespace) {
        Some(at) if !whole && width(&kept[..at]) * 2 >= columns => format!("{}…", kept[..at].trim_end()),
        _ => format!("{}…", kept.trim_end()),
    }
}

/// The end of a path cut to `columns`; its last folders identify it.
pub fn fit_path(path: &str, columns: usize) -> String {
    if width(path) <= columns {
        return path.to_owned();
    }
    let starts = path.char_indices().map(|(at, _)| at).rev();
    let start = starts.take_while(|start| width(&path[*start..]) < columns).last().unwrap_or(path.len());
    format!("…{}", &path[start..])
}

/// Parts joined with ` · `, wrapped between parts; an overlong part is wrapped at spaces. Continuation lines
/// are indented.
pub fn flow(parts: &[String], columns: usize, indent: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    let room = columns.saturating_sub(indent).max(20);
    for part in parts.iter().filter(|p| !p.is_empty()) {
        let line = lines.last_mut().map(|l| (width(l), l));
        match line {
            Some((0, line)) if width(part) <= room => line.push_str(part),
            Some((used, line)) if used > 0 && used + 3 + width(part) <= room => {
                line.push_str(" · ");
                line.push_str(part);
            }
            _ => {
                if lines.last().is_some_and(String::is_empty) {
                    lines.pop();
                }
                lines.extend(wrap(part, room));
            }
        }
    }
    let pad = " ".repeat(indent);
    lines.into_iter().enumerate().map(|(n, l)| if n == 0 { l } else { format!("{pad}{l}") }).collect()
}

/// Wraps text at spaces to `columns`. Text in backticks stays on one line so that it can be copied.
pub fn wrap(text: &str, columns: usize) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for piece in pieces(text) {
        match lines.last_mut() {
            Some(line) if width(line) + 1 + width(&piece) <= columns => {
                line.push(' ');
                line.push_str(&piece);
            }
            _ => lines.push(piece),
        }
    }
    lines
}

/// Words, with quoted commands as one; an odd number of backticks quotes nothing.
fn pieces(text: &str) -> Vec<String> {
    let quotes = |word: &str| word.matches('`').count() % 2 == 1;
    let text = sanitize::line(text);
    let paired = !quotes(&text);
    let mut found: Vec<String> = Vec::new();
    let mut open = false;
    for word in text.split_whitespace() {
        match found.last_mut() {
            Some(last) if open => {
                last.push(' ');
                last.push_str(word);
            }
            _ => found.push(word.to_owned()),
        }
        open ^= paired && quotes(word);
    }
    found
}

#[cfg(test)]
pub mod tests {
    use super::*;
    use crate::output::{Color, Style};

    /// Output without color, for tests.
    pub fn plain() -> Out {
        let env = ralph_loop_app::Environment::new(Default::default(), "/");
        let style = Style { json: false, quiet: false, verbose: false, color: Color::Never };
        Out::new(style, &env)
    }

    #[test]
    fn columns_are_aligned_by_what_is_seen_and_cut_to_the_width() {
        let mut table = Table::new(1).indent(2);
        table.row(["a".into(), "日本".into(), Cell::new("7").right()]);
        table.row(["bcd".into(), "a title that is much too long".into(), Cell::new("12").right()]);
        let lines = table.lines(24, &plain());
        assert_eq!(lines, ["  a    日本            7", "  bcd  a title that…  12"]);
        assert!(lines.iter().all(|l| width(l) <= 24), "{lines:?}");
    }

    #[test]
    fn a_long_last_column_wraps_below_itself() {
        let mut table = Table::new(1).indent(2);
        table.row(["a".into(), "passed".into()]);
        table.row(["bcd".into(), "failed 6 s ago: exit code 1, current tree".into()]);
        let rows = table.wrapped(30, &plain());
        assert_eq!(rows[0], ["  a    passed"]);
        assert_eq!(rows[1], ["  bcd  failed 6 s ago: exit", "       code 1, current tree"]);
    }

    #[test]
    fn cuts_say_that_something_is_missing() {
        assert_eq!(fit("abcdef", 4), "abc…");
        assert_eq!(fit("abcd", 4), "abcd");
        assert_eq!(fit("日本語", 4), "日…");
        assert_eq!(fit_words("reading the tests of the router", 15), "reading the…");
        assert_eq!(fit_words("reading tests", 8), "reading…");
        assert_eq!(fit_words("a verylongwordthatdoesnotend", 12), "a verylongw…");
        assert_eq!(fit_words("as it is", 8), "as it is");
        assert_eq!(fit_path("/home/me/work/repo", 8), "…rk/repo");
        assert_eq!(fit_path("/日本/語", 5), "…/語");
    }

    #[test]
    fn a_sign_of_several_characters_is_one_sign() {
        for (sign, columns) in
            [("é", 1), ("e\u{301}", 1), ("👩\u{200d}💻", 2), ("❤\u{fe0f}", 2), ("🇩🇪", 2), ("｡", 1)]
        {
            assert_eq!(width(sign), columns, "{sign}");
        }
    }

    #[test]
    fn parts_break_between_each_other_before_they_break_inside() {
        let parts = [
            "one two".to_owned(),
            "three".into(),
            String::new(),
            "a longer part of the line that must wrap".into(),
        ];
        let lines = flow(&parts, 24, 2);
        assert_eq!(lines, ["one two · three", "  a longer part of the", "  line that must wrap"]);
    }

    #[test]
    fn a_command_is_never_broken() {
        let text = "look at it, then `ralph approve 20261115` and `ralph resume 20261115`.";
        let want = ["look at it, then", "`ralph approve 20261115`", "and", "`ralph resume 20261115`."];
        assert_eq!(wrap(text, 24), want);
        assert_eq!(wrap("a lone ` breaks as words do", 12), ["a lone `", "breaks as", "words do"]);
    }

    #[test]
    fn no_text_gives_no_words() {
        assert!(wrap("  ", 10).is_empty());
        assert_eq!(flow(&[], 80, 0), [""]);
    }
}
