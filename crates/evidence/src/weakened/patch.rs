//! A patch, as far as the search for weakened tests needs it: files, hunks, and changed lines with their numbers.

/// Bytes of a line that are looked at.
const LINE_MAX: usize = 1024;

/// What a patch does to one file.
#[derive(Debug, Default)]
pub(super) struct FilePatch<'a> {
    /// The path, of the old file where the new one is gone.
    pub(super) path: String,
    pub(super) added: bool,
    pub(super) deleted: bool,
    pub(super) hunks: Vec<Hunk<'a>>,
}

/// A hunk without its context lines.
#[derive(Debug, Default)]
pub(super) struct Hunk<'a> {
    /// What git prints behind the second `@@`: the last line before it that begins without a space.
    heading: &'a str,
    /// Whether its context speaks of Rust's tests.
    rust_tests: bool,
    pub(super) changes: Vec<LineChange<'a>>,
}

/// A line that was taken away or added.
#[derive(Debug)]
pub(super) struct LineChange<'a> {
    pub(super) removed: bool,
    /// Of the old file for a removed line, of the new one for an added line.
    pub(super) line: u64,
    pub(super) text: &'a str,
    /// The target of a makefile that it belongs to, as far as the hunk shows.
    pub(super) target: Option<&'a str>,
}

impl FilePatch<'_> {
    pub(super) fn changes(&self) -> impl Iterator<Item = &LineChange<'_>> {
        self.hunks.iter().flat_map(|h| &h.changes)
    }
}

impl Hunk<'_> {
    /// Whether it is in the tests of a Rust source file.
    pub(super) fn is_rust_tests(&self) -> bool {
        self.rust_tests || self.heading.contains("mod tests") || self.heading.contains("mod test ")
    }
}

/// The files of a patch. What is no patch is passed over.
pub(super) fn files(patch: &str) -> Vec<FilePatch<'_>> {
    let mut files: Vec<FilePatch<'_>> = Vec::new();
    let (mut old, mut new) = (0, 0);
    // Lines that the hunk under way still has of the old and the new file: inside, no line is a header.
    let (mut old_left, mut new_left) = (0_u64, 0_u64);
    let mut target = None;
    for line in patch.lines() {
        if old_left == 0 && new_left == 0 {
            if let Some(rest) = line.strip_prefix("diff --git ") {
                files.push(FilePatch { path: path_of(rest), ..FilePatch::default() });
                continue;
            }
            let Some(file) = files.last_mut() else { continue };
            if let Some(path) = line.strip_prefix("+++ ").or_else(|| line.strip_prefix("--- ")) {
                let path = path.trim_end_matches('\t');
                if let Some(path) = unquoted(path).strip_prefix(['a', 'b']).and_then(|p| p.strip_prefix('/'))
                {
                    file.path = path.to_owned();
                }
            } else if line.starts_with("deleted file mode") {
                file.deleted = true;
            } else if line.starts_with("new file mode") {
                file.added = true;
            } else if let Some((start, counts, heading)) = hunk_header(line) {
                (old, new) = start;
                (old_left, new_left) = counts;
                target = target_of(heading);
                file.hunks.push(Hunk { heading, ..Hunk::default() });
            }
            continue;
        }
        let Some(hunk) = files.last_mut().and_then(|f| f.hunks.last_mut()) else { continue };
        let (sign, text) = line.split_at_checked(1).unwrap_or((" ", ""));
        // A generated line of a megabyte is no assertion that somebody wrote.
        let text = ralph_loop_protocol::text::head(text, LINE_MAX);
        if sign == "\\" {
            continue;
        }
        target = target_of(text).or(target);
        hunk.rust_tests |=
            text.contains("#[cfg(test)]") || text.contains("#[test]") || text.contains("::test]");
        match sign {
            "-" => {
                hunk.changes.push(LineChange { removed: true, line: old, text, target });
                (old, old_left) = (old + 1, old_left.saturating_sub(1));
            }
            "+" => {
                hunk.changes.push(LineChange { removed: false, line: new, text, target });
                (new, new_left) = (new + 1, new_left.saturating_sub(1));
            }
            _ => {
                (old, old_left) = (old + 1, old_left.saturating_sub(1));
                (new, new_left) = (new + 1, new_left.saturating_sub(1));
            }
        }
    }
    files
}

type HunkHeader<'a> = ((u64, u64), (u64, u64), &'a str);

/// `@@ -12,3 +12,4 @@ heading`: starts, counts, heading.
fn hunk_header(line: &str) -> Option<HunkHeader<'_>> {
    let rest = line.strip_prefix("@@ -")?;
    let (old, rest) = rest.split_once(" +")?;
    let (new, heading) = rest.split_once(" @@")?;
    let numbers = |text: &str| {
        let (start, count) = text.split_once(',').unwrap_or((text, "1"));
        Some((start.parse().ok()?, count.parse().ok()?))
    };
    let ((old, old_count), (new, new_count)) = (numbers(old)?, numbers(new)?);
    Some(((old, new), (old_count, new_count), heading.trim()))
}

/// The path in `a/x b/x`, both being the same without renames.
fn path_of(rest: &str) -> String {
    let rest = rest.trim();
    if rest.starts_with('"') {
        let first = rest.trim_start_matches('"').split("\" ").next().unwrap_or_default();
        return first.strip_prefix("a/").unwrap_or(first).to_owned();
    }
    let half = rest.len() / 2;
    let first = rest.get(..half).unwrap_or(rest);
    first.strip_prefix("a/").unwrap_or(first).to_owned()
}

fn unquoted(path: &str) -> &str {
    path.strip_prefix('"').and_then(|p| p.strip_suffix('"')).unwrap_or(path)
}

/// `test: build` and `test arg:` name a target; an indented line and a variable do not.
fn target_of(text: &str) -> Option<&str> {
    if text.starts_with([' ', '\t', '#', '.']) {
        return None;
    }
    let (head, rest) = text.split_once(':')?;
    (!rest.starts_with('=')).then(|| head.split_whitespace().next()).flatten()
}
