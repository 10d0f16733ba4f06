//! Applies hunks to a file.

use super::PatchError;
use super::parse::{Hunk, Line};
use std::borrow::Cow;

/// A file's line ends.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Ends {
    /// Line feeds or mixed; carriage returns are part of the text.
    Verbatim,
    /// All CR LF; a diff rarely shows the CR.
    Crlf,
}

pub(super) fn content(old: &[u8], hunks: &[Hunk]) -> Result<Vec<u8>, PatchError> {
    let first = put(old, hunks, Ends::Verbatim);
    if first.is_err() && all_crlf(old) {
        // The second try is the intended one, so report its error.
        return put(old, hunks, Ends::Crlf);
    }
    first
}

fn all_crlf(content: &[u8]) -> bool {
    let ends = content.iter().filter(|byte| **byte == b'\n').count();
    ends > 0 && content.windows(2).filter(|pair| pair == b"\r\n").count() == ends
}

fn put(old: &[u8], hunks: &[Hunk], ends: Ends) -> Result<Vec<u8>, PatchError> {
    let file = File::read(old, ends);
    let mut new = Vec::with_capacity(old.len() + 256);
    let mut done = 0;
    for (nth, hunk) in hunks.iter().enumerate() {
        let wrong = |what: String| PatchError::Hunk { hunk: nth + 1, what };
        let at = file.find(hunk, done).map_err(wrong)?;
        file.copy(done..at, &mut new);
        file.replace(hunk, at, &mut new).map_err(wrong)?;
        done = at + hunk.old.len();
    }
    file.copy(done..file.lines.len(), &mut new);
    Ok(new)
}

struct File<'a> {
    lines: Vec<&'a [u8]>,
    closed: bool,
    ends: Ends,
}

impl<'a> File<'a> {
    fn read(content: &'a [u8], ends: Ends) -> Self {
        let closed = content.ends_with(b"\n");
        let body = content.strip_suffix(b"\n").unwrap_or(content);
        let mut lines: Vec<&[u8]> =
            if content.is_empty() { Vec::new() } else { body.split(|byte| *byte == b'\n').collect() };
        if ends == Ends::Crlf {
            lines.iter_mut().for_each(|line| *line = line.strip_suffix(b"\r").unwrap_or(line));
        }
        Self { lines, closed, ends }
    }

    /// A diff line with this file's line ends.
    fn text<'l>(&self, line: &'l Line) -> &'l [u8] {
        let text = line.text.as_bytes();
        if self.ends == Ends::Crlf { text.strip_suffix(b"\r").unwrap_or(text) } else { text }
    }

    fn has_end(&self, at: usize) -> bool {
        self.closed || at + 1 < self.lines.len()
    }

    /// Where a hunk belongs, at or after line `from` (from 0).
    fn find(&self, hunk: &Hunk, from: usize) -> Result<usize, String> {
        let want: Vec<&[u8]> = hunk.old.iter().map(|line| self.text(line)).collect();
        if want.is_empty() {
            return match self.lines.is_empty() {
                true => Ok(0),
                false => Err("it has no old line, so its position is unclear; add lines around it".into()),
            };
        }
        let fits = |at: usize| {
            self.lines.get(at..at + want.len()).is_some_and(|lines| lines == want.as_slice())
                && self.marks_hold(hunk, at)
        };
        if let Some(at) = hunk.at.and_then(|at| at.checked_sub(1))
            && at >= from
            && fits(at)
        {
            return Ok(at);
        }
        let mut places = all(&self.lines, &want, from).filter(|at| self.marks_hold(hunk, *at));
        match (places.next(), places.next()) {
            (Some(at), None) => Ok(at),
            (None, _) => Err(self.nearest(hunk, &want, from)),
            (Some(one), Some(other)) => Err(format!(
                "its old lines match at line {} and again at line {}, and its line number fits neither; add lines around it",
                one + 1,
                other + 1
            )),
        }
    }

    /// `\ No newline at end of file` must be true for old lines.
    fn marks_hold(&self, hunk: &Hunk, at: usize) -> bool {
        hunk.old.iter().enumerate().all(|(n, line)| !line.no_newline || !self.has_end(at + n))
    }

    /// Why a hunk fits nowhere: the first differing line at the best partial match.
    fn nearest(&self, hunk: &Hunk, want: &[&[u8]], from: usize) -> String {
        let shown = |text: &[u8]| {
            let text: Cow<'_, str> = String::from_utf8_lossy(text);
            format!("`{}`", ralph_loop_protocol::display::text::head(&text, 120))
        };
        if all(&self.lines, want, 0).any(|at| at < from) {
            return "its old lines come before those of the previous hunk; put hunks in the file's order"
                .to_owned();
        }
        let agree = |at: usize, most: usize| {
            let pairs = want.iter().zip(self.lines.iter().skip(at)).take(most);
            pairs.take_while(|(want, have)| want == have).count()
        };
        let stated = hunk.at.unwrap_or(1).saturating_sub(1);
        // Only near the stated line, where a reader would look; a whole large file is too slow.
        let near = stated.saturating_sub(2000)..self.lines.len().min(stated.saturating_add(2000));
        let best = near.max_by_key(|at| (agree(*at, 50), usize::MAX - at.abs_diff(stated)));
        let Some((at, same)) = best.map(|at| (at, agree(at, usize::MAX))) else {
            return format!("the file has {} lines, the hunk names line {}", self.lines.len(), stated + 1);
        };
        if same == 0 {
            return format!("its first old line {} is not where it should be", shown(want[0]));
        }
        match (want.get(same), self.lines.get(at + same)) {
            (Some(want), Some(have)) => {
                format!("line {} of the file is {}, the hunk has {}", at + same + 1, shown(have), shown(want))
            }
            (Some(want), None) => format!("the file ends before {}", shown(want)),
            _ => "it says that the file has no newline at its end, which is not so".to_owned(),
        }
    }

    fn copy(&self, range: std::ops::Range<usize>, new: &mut Vec<u8>) {
        for at in range {
            new.extend_from_slice(self.lines[at]);
            if self.has_end(at) {
                self.end_line(new);
            }
        }
    }

    fn end_line(&self, new: &mut Vec<u8>) {
        new.extend_from_slice(if self.ends == Ends::Crlf { b"\r\n" } else { b"\n" });
    }

    fn replace(&self, hunk: &Hunk, at: usize, new: &mut Vec<u8>) -> Result<(), String> {
        let ends_file = at + hunk.old.len() == self.lines.len();
        for (n, line) in hunk.new.iter().enumerate() {
            new.extend_from_slice(self.text(line));
            let last = n + 1 == hunk.new.len() && ends_file;
            if line.no_newline && !last {
                return Err("it takes the newline from a line that is not the file's last".to_owned());
            }
            // An unchanged last line keeps its missing end, unless something follows it now.
            let stays_open =
                || hunk.kept.last().is_some_and(|(from, to)| *to == n && !self.has_end(at + from));
            if !(line.no_newline || (last && stays_open())) {
                self.end_line(new);
            }
        }
        Ok(())
    }
}

/// All positions of `want` in `lines` from `from` on, in linear time (Knuth, Morris, Pratt).
fn all<'l>(
    lines: &'l [&'l [u8]],
    want: &'l [&'l [u8]],
    from: usize,
) -> impl Iterator<Item = usize> + use<'l> {
    let mut back = vec![0; want.len()];
    let mut same = 0;
    for at in 1..want.len() {
        while same > 0 && want[at] != want[same] {
            same = back[same - 1];
        }
        if want[at] == want[same] {
            same += 1;
        }
        back[at] = same;
    }
    let mut same = 0;
    lines.iter().enumerate().skip(from).filter_map(move |(at, line)| {
        while same > 0 && (same == want.len() || *line != want[same]) {
            same = back[same - 1];
        }
        if !want.is_empty() && *line == want[same] {
            same += 1;
        }
        (same == want.len()).then(|| at + 1 - want.len())
    })
}
