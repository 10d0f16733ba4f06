//! `readFile`: a file, or some of its lines.

use super::{Tool, ToolContext, ToolOutcome, spec};
use crate::tools::args::Args;
use crate::tools::path_rules::PathAccess;
use ralph_loop_domain::model::ToolSpec;
use ralph_loop_protocol::display::text;
use serde_json::json;
use std::fs::File;
use std::io::Read as _;
use std::path::Path;

const LINES: u64 = 1000;
const BYTES: usize = 48 * 1024;
const LOG_MAX: u64 = 64 * 1024 * 1024;

pub(super) struct ReadFile;

impl Tool for ReadFile {
    fn spec(&self) -> ToolSpec {
        spec(
            "readFile",
            "Read a text file of the workspace, whole or by lines. Also reads the logs that other tools name.",
            json!({
                "path": { "type": "string", "minLength": 1, "description": "Path relative to the workspace" },
                "offset": { "type": "integer", "minimum": 1, "description": "First line, from 1" },
                "limit": { "type": "integer", "minimum": 1, "maximum": LINES, "description": "How many lines" },
            }),
            &["path"],
        )
    }

    fn beside_others(&self) -> bool {
        true
    }

    fn what(&self, args: &Args<'_>) -> String {
        args.str("path").to_owned()
    }

    fn call(&self, args: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let given = args.str("path");
        let bytes = match own_log(given, context.folder) {
            Some(bytes) => bytes?,
            None => {
                let path = context.path_rules.file(given, PathAccess::Read)?;
                let found = context.sandbox.read(&path).map_err(|error| error.to_string())?;
                found.ok_or_else(|| missing(given, &path, context))?
            }
        };
        let content = String::from_utf8(bytes)
            .map_err(|_| format!("`{given}` is not text; use `exec` to look at it"))?;
        Ok(show(given, &content, args.number("offset").unwrap_or(1), args.number("limit").unwrap_or(LINES)))
    }
}

fn show(given: &str, content: &str, from: u64, limit: u64) -> ToolOutcome {
    let total = content.lines().count() as u64;
    let mut shown = String::new();
    let mut last = from.saturating_sub(1);
    let mut cut = false;
    let skip = usize::try_from(from.saturating_sub(1)).unwrap_or(usize::MAX);
    for line in content.split_inclusive('\n').skip(skip).take(usize::try_from(limit).unwrap_or(usize::MAX)) {
        if shown.len() + line.len() > BYTES {
            cut = true;
            // One very long line is cut.
            if shown.is_empty() {
                shown.push_str(text::head(line, BYTES));
                shown.push_str("… [line cut]");
                last += 1;
            }
            break;
        }
        shown.push_str(line);
        last += 1;
    }
    let line = match (total, last < from) {
        (0, _) => format!("`{given}` is empty"),
        (_, true) => format!("`{given}` has {} only", text::count(total as usize, "line")),
        _ if cut || from > 1 || last < total => format!("lines {from} to {last} of {total} of `{given}`"),
        _ => format!("`{given}`, {}", text::count(total as usize, "line")),
    };
    ToolOutcome { text: format!("[{line}]\n{shown}"), line, ..ToolOutcome::default() }
}

/// The bytes of a log that one of this session's tools has written.
fn own_log(given: &str, folder: &Path) -> Option<Result<Vec<u8>, String>> {
    let path = Path::new(given);
    let name = path.file_name()?.to_str()?;
    let number = name.strip_prefix("tool-")?.strip_suffix(".log")?;
    if path.parent()? != folder || !number.chars().all(|c| c.is_ascii_digit()) {
        return None;
    }
    // A link that a command has put in its place isn't ours.
    if !path.symlink_metadata().is_ok_and(|found| found.is_file()) {
        return Some(Err(format!("there is no log `{given}`")));
    }
    let mut bytes = Vec::new();
    let read = File::open(path).and_then(|file| file.take(LOG_MAX).read_to_end(&mut bytes));
    Some(match read {
        Ok(_) => Ok(String::from_utf8_lossy(&bytes).into_owned().into_bytes()),
        Err(error) => Err(format!("cannot read `{given}`: {error}")),
    })
}

fn missing(given: &str, path: &Path, context: &ToolContext<'_>) -> String {
    let folder = path.parent().unwrap_or(Path::new(""));
    let names = context.sandbox.list(folder).unwrap_or_default();
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    match text::nearest(name, names.iter().map(String::as_str)) {
        Some(near) => format!("there is no file `{given}`; did you mean `{}`?", folder.join(near).display()),
        None => format!("there is no file `{given}`; listFiles shows the existing files"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whole_files_ranges_and_long_lines() {
        assert_eq!(show("a", "x\ny\n", 1, 1000).text, "[`a`, 2 lines]\nx\ny\n");
        assert_eq!(show("a", "x\ny\nz", 2, 1).text, "[lines 2 to 2 of 3 of `a`]\ny\n");
        assert_eq!(show("a", "x\n", 5, 1).text, "[`a` has 1 line only]\n");
        assert_eq!(show("a", "", 1, 1).text, "[`a` is empty]\n");
        let long = show("a", &"é".repeat(100_000), 1, 1).text;
        assert!(long.len() < BYTES + 100 && long.contains("[line cut]"), "{}", long.len());
        let many = show("a", &"0123456789\n".repeat(10_000), 1, 1000);
        assert!(many.line.starts_with("lines 1 to 1000 of 10000"), "{}", many.line);
    }
}
