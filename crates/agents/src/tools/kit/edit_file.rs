//! `editFile`: one exact replacement.

use super::{Tool, ToolContext, ToolOutcome, spec};
use crate::tools::args::Args;
use crate::tools::path_rules::PathAccess;
use ralph_loop_domain::model::ToolSpec;
use ralph_loop_domain::ports::WriteMode;
use ralph_loop_protocol::display::text;
use serde_json::json;

pub(super) struct EditFile;

impl Tool for EditFile {
    fn spec(&self) -> ToolSpec {
        spec(
            "editFile",
            "Replace one exact piece of text in a file. `old` must be in the file exactly once: take enough lines \
             around it, with their spaces.",
            json!({
                "path": { "type": "string", "minLength": 1, "description": "Path relative to the workspace" },
                "old": { "type": "string", "description": "The text as it is now" },
                "new": { "type": "string", "description": "The text that takes its place" },
            }),
            &["path", "old", "new"],
        )
    }
    fn what(&self, args: &Args<'_>) -> String {
        args.str("path").to_owned()
    }
    fn call(&self, args: &Args<'_>, context: &ToolContext<'_>) -> Result<ToolOutcome, String> {
        let given = args.str("path");
        let path = context.path_rules.file(given, PathAccess::Write)?;
        let bytes = context.sandbox.read(&path).map_err(|error| error.to_string())?;
        let bytes = bytes.ok_or_else(|| format!("there is no file `{given}`; writeFile makes one"))?;
        let content = String::from_utf8(bytes).map_err(|_| format!("`{given}` is not text"))?;
        let (edited, line) = replaced(given, &content, args.str("old"), args.str("new"))?;
        context
            .sandbox
            .write(&path, edited.as_bytes(), WriteMode::Replace)
            .map_err(|error| error.to_string())?;
        Ok(ToolOutcome::text(format!("edited `{given}` at line {line}")))
    }
}

/// The new content and the changed line.
fn replaced(given: &str, content: &str, old: &str, new: &str) -> Result<(String, usize), String> {
    if old.is_empty() {
        return Err("`old` is empty; use writeFile for a whole file".to_owned());
    }
    if old == new {
        return Err("`old` and `new` are the same; nothing would change".to_owned());
    }
    let places: Vec<usize> = content.match_indices(old).map(|(at, _)| at).collect();
    let line = |at: usize| content[..at].matches('\n').count() + 1;
    match places.as_slice() {
        [at] => Ok((content.replacen(old, new, 1), line(*at))),
        [] => Err(not_there(given, content, old)),
        many => {
            let lines: Vec<String> = many.iter().take(10).map(|at| line(*at).to_string()).collect();
            Err(format!(
                "`old` is {} times in `{given}` (lines {}); take more lines around the one you mean",
                many.len(),
                lines.join(", ")
            ))
        }
    }
}

fn not_there(given: &str, content: &str, old: &str) -> String {
    let squeeze = |text: &str| text.split_whitespace().collect::<Vec<_>>().join(" ");
    if squeeze(content).contains(&squeeze(old)) {
        return format!(
            "`old` is not in `{given}` exactly: its spaces or line ends differ; read the file again"
        );
    }
    let first = old.lines().find(|line| !line.trim().is_empty()).unwrap_or_default().trim();
    let near = content.lines().enumerate().find(|(_, line)| line.trim() == first);
    match near {
        Some((at, _)) => format!(
            "`old` is not in `{given}`; its first line `{}` is at line {}, but what follows differs; read the file again",
            text::one_line(first, 80),
            at + 1
        ),
        None => format!("`old` is not in `{given}`; read the file again, it may have changed"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_exact_place_or_a_reason() {
        let content = "fn a() {\n    one();\n}\nfn b() {\n    one();\n}\n";
        assert_eq!(replaced("f", content, "fn b", "fn c").unwrap().1, 4);
        let said = |old: &str| replaced("f", content, old, "x").unwrap_err();
        assert!(said("one();").contains("2 times in `f` (lines 2, 5)"), "{}", said("one();"));
        assert!(said("fn a() {\n\tone();").contains("spaces or line ends"));
        assert!(said("fn a() {\n    two();").contains("first line `fn a() {` is at line 1"));
        assert!(said("zzz").contains("may have changed"));
        assert!(said("").contains("writeFile") && said("x").contains("same"));
    }
}
