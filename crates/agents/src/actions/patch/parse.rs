//! Parses a unified diff of one file.

use super::PatchError;

#[derive(Debug, Default)]
pub(super) struct Diff {
    /// It starts with `/dev/null`.
    pub(super) makes: bool,
    /// It ends with `/dev/null`.
    pub(super) removes: bool,
    pub(super) hunks: Vec<Hunk>,
}

#[derive(Debug, Default)]
pub(super) struct Hunk {
    /// The first old line as the diff counts it, from 1; 0 for an empty file; `None` without numbers.
    pub(super) at: Option<usize>,
    /// Lines that must exist.
    pub(super) old: Vec<Line>,
    /// Lines that will exist.
    pub(super) new: Vec<Line>,
    /// Lines of `old` that stay, with their index in `new`.
    pub(super) kept: Vec<(usize, usize)>,
}

/// A line without its end.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Line {
    pub(super) text: String,
    /// `\ No newline at end of file` follows it.
    pub(super) no_newline: bool,
}

pub(super) fn parse(patch: &str, path: &str) -> Result<Diff, PatchError> {
    let lines: Vec<&str> = patch.strip_suffix('\n').unwrap_or(patch).split('\n').collect();
    let mut reader = Reader { lines: &lines, at: 0, path };
    let mut diff = Diff::default();
    reader.header(&mut diff)?;
    while reader.at < lines.len() {
        let line = lines[reader.at];
        if line.starts_with("@@") {
            let hunk = reader.hunk(diff.hunks.len() + 1)?;
            diff.hunks.push(hunk);
        } else if line.trim().is_empty() {
            reader.at += 1;
        } else if line.starts_with("diff ") || line.starts_with("--- ") {
            return Err(reader.format("a second file begins; one action patches one file"));
        } else {
            return Err(reader.format("expected a line that begins with `@@`, ` `, `-` or `+`"));
        }
    }
    if diff.hunks.is_empty() {
        return Err(PatchError::NoHunk);
    }
    Ok(diff)
}

struct Reader<'a> {
    lines: &'a [&'a str],
    at: usize,
    path: &'a str,
}

impl Reader<'_> {
    fn format(&self, what: &str) -> PatchError {
        PatchError::Format { line: self.at + 1, what: what.to_owned() }
    }

    fn header(&mut self, diff: &mut Diff) -> Result<(), PatchError> {
        let mut names = 0;
        while let Some(line) = self.lines.get(self.at) {
            if line.starts_with("@@") {
                break;
            } else if let Some(name) = line.strip_prefix("--- ") {
                diff.makes = self.name(name, "a/")?;
                names += 1;
            } else if let Some(name) = line.strip_prefix("+++ ") {
                diff.removes = self.name(name, "b/")?;
                names += 1;
            } else if line.starts_with("rename ") || line.starts_with("copy ") {
                return Err(self.format("a patch cannot rename or copy; use `run`"));
            } else if line.starts_with("old mode ") || *line == "new file mode 100755" {
                return Err(self.format("a patch cannot change a file's mode; use `run` with chmod"));
            } else if line.starts_with("new file mode 120") || line.starts_with("new file mode 160") {
                return Err(self.format("a patch makes plain files only"));
            } else if line.starts_with("GIT binary patch") || line.starts_with("Binary files ") {
                return Err(self.format("a binary patch cannot be applied"));
            } else if line.starts_with("*** ") {
                return Err(self.format("this is not a unified diff; expected `---`, `+++` and `@@` lines"));
            } else if !(line.trim().is_empty()
                || ["diff --git ", "index ", "new file mode ", "deleted file mode ", "similarity index "]
                    .iter()
                    .any(|known| line.starts_with(known)))
            {
                return Err(self.format("expected the header of a unified diff or a `@@` line"));
            }
            self.at += 1;
        }
        match names {
            0 | 2 if !(diff.makes && diff.removes) => Ok(()),
            _ => Err(self.format("expected one `---` and one `+++` line before the first hunk")),
        }
    }

    /// Whether the name is `/dev/null`; any other name must be the action's path.
    fn name(&self, name: &str, prefix: &str) -> Result<bool, PatchError> {
        // A timestamp follows a tab.
        let name = name.split('\t').next().unwrap_or_default().trim_end();
        if name == "/dev/null" {
            return Ok(true);
        }
        let name = name.strip_prefix('"').and_then(|name| name.strip_suffix('"')).unwrap_or(name);
        let plain = |name: &str| {
            let names = name.split('/').filter(|part| !part.is_empty() && *part != ".");
            names.collect::<Vec<_>>().join("/")
        };
        let whole = plain(name) == self.path && !name.starts_with('/');
        if whole || name.strip_prefix(prefix).is_some_and(|name| plain(name) == self.path) {
            return Ok(false);
        }
        Err(PatchError::OtherFile { found: name.to_owned(), path: self.path.to_owned() })
    }

    fn hunk(&mut self, number: usize) -> Result<Hunk, PatchError> {
        let counts = self.counts()?;
        self.at += 1;
        let mut hunk = Hunk { at: counts.map(|c| c.at), ..Hunk::default() };
        let mut changes = false;
        // Trailing blank lines: the end of the text, or context without its space. The counts decide.
        let mut blanks = 0;
        while let Some(line) = self.lines.get(self.at) {
            let complete = counts.is_some_and(|c| hunk.old.len() >= c.old && hunk.new.len() >= c.new);
            if line.starts_with("@@") || (complete && self.next_file()) {
                break;
            }
            if line.is_empty() {
                blanks += 1;
                self.at += 1;
                continue;
            }
            if line.starts_with('\\') {
                mark_end(&mut hunk, self.lines.get(self.at.wrapping_sub(1)).copied().unwrap_or_default());
                self.at += 1;
                continue;
            }
            for _ in 0..std::mem::take(&mut blanks) {
                hunk.keep("");
            }
            let text = &line[1..];
            match line.as_bytes()[0] {
                b' ' => hunk.keep(text),
                b'-' => hunk.old.push(Line { text: text.to_owned(), no_newline: false }),
                b'+' => hunk.new.push(Line { text: text.to_owned(), no_newline: false }),
                _ => return Err(self.format("a line of a hunk begins with ` `, `-`, `+` or `\\`")),
            }
            changes |= !line.starts_with(' ');
            self.at += 1;
        }
        while blanks > 0 && counts.is_some_and(|c| hunk.old.len() < c.old && hunk.new.len() < c.new) {
            hunk.keep("");
            blanks -= 1;
        }
        if !changes {
            return Err(PatchError::Hunk { hunk: number, what: "it changes nothing".to_owned() });
        }
        Ok(hunk)
    }

    /// Whether another file's header begins here. Only checked after a complete hunk, as a removed line may look the
    /// same.
    fn next_file(&self) -> bool {
        let line = self.lines.get(self.at).copied().unwrap_or_default();
        let next = self.lines.get(self.at + 1).copied().unwrap_or_default();
        line.starts_with("diff --git ") || (line.starts_with("--- ") && next.starts_with("+++ "))
    }

    /// The numbers of a hunk's first line; `None` without any.
    fn counts(&self) -> Result<Option<Counts>, PatchError> {
        let bad = || self.format("expected `@@ -line,count +line,count @@`");
        let line = self.lines[self.at].trim_start_matches('@').trim_start();
        if !line.starts_with('-') {
            return Ok(None);
        }
        let mut words = line.split_whitespace();
        let old = words.next().and_then(|word| range(word, '-')).ok_or_else(bad)?;
        let new = words.next().and_then(|word| range(word, '+')).ok_or_else(bad)?;
        Ok(Some(Counts { at: old.0, old: old.1, new: new.1 }))
    }
}

#[derive(Clone, Copy)]
struct Counts {
    at: usize,
    old: usize,
    new: usize,
}

fn range(word: &str, sign: char) -> Option<(usize, usize)> {
    let word = word.strip_prefix(sign)?;
    match word.split_once(',') {
        Some((at, count)) => Some((at.parse().ok()?, count.parse().ok()?)),
        None => Some((word.parse().ok()?, 1)),
    }
}

/// Marks the line before `\ No newline at end of file`.
fn mark_end(hunk: &mut Hunk, before: &str) {
    let mark = |lines: &mut Vec<Line>| {
        if let Some(last) = lines.last_mut() {
            last.no_newline = true;
        }
    };
    if !before.starts_with('+') {
        mark(&mut hunk.old);
    }
    if !before.starts_with('-') {
        mark(&mut hunk.new);
    }
}

impl Hunk {
    fn keep(&mut self, text: &str) {
        self.kept.push((self.old.len(), self.new.len()));
        let line = Line { text: text.to_owned(), no_newline: false };
        self.old.push(line.clone());
        self.new.push(line);
    }
}
