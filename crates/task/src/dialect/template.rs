//! Templates of branch names, titles and texts: one list of names for every dialect, written `{{name}}`. The forms
//! `{name}` and `$RALPH_ITERATION` of older files are accepted.

use std::collections::BTreeMap;

pub const NAMES: &[&str] = &[
    "task_id",
    "ticket_id",
    "task_summary",
    "summary",
    "diff_summary",
    "iteration",
    "n",
    "max_iterations",
    "iteration_count",
    "cost",
    "agent",
    "run_id",
    "branch",
];

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Vars(BTreeMap<&'static str, String>);

impl Vars {
    pub fn new() -> Self {
        Self::default()
    }
    /// Adds a value. Ignores a name that isn't in [`NAMES`].
    pub fn with(mut self, name: &str, value: impl Into<String>) -> Self {
        if let Some(known) = NAMES.iter().find(|known| **known == name) {
            self.0.insert(known, value.into());
        }
        self
    }
    /// Removes a value: for texts that are filled again once it is known.
    pub fn without(mut self, name: &str) -> Self {
        self.0.remove(name);
        self
    }
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

/// Fills in known values and leaves everything else unchanged. A value is never filled in again, so that text from
/// outside can't smuggle a name in.
pub fn fill(text: &str, vars: &Vars) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '$']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        match slot(rest) {
            Some((name, length)) => {
                match vars.get(name) {
                    Some(value) => out.push_str(value),
                    None => out.push_str(&rest[..length]),
                }
                rest = &rest[length..];
            }
            None => {
                out.push_str(&rest[..1]);
                rest = &rest[1..];
            }
        }
    }
    out.push_str(rest);
    out
}

/// Fills in known values and removes unknown ones, with the separator before them: for branches and titles, which
/// must not contain templates.
pub fn settled(text: &str, vars: &Vars) -> String {
    const SEPARATORS: [char; 5] = ['-', '_', '/', '.', ' '];
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['{', '$']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let known = slot(rest);
        let length = known.map(|(_, length)| length).or_else(|| unknown_slot(rest));
        let value = known.and_then(|(name, _)| vars.get(name)).filter(|value| !value.is_empty());
        match (length, value) {
            (Some(_), Some(value)) => out.push_str(value),
            (Some(_), None) => out.truncate(out.trim_end_matches(SEPARATORS).len()),
            (None, _) => out.push_str(&rest[..1]),
        }
        rest = &rest[length.unwrap_or(1)..];
    }
    out.push_str(rest);
    match out == text {
        true => out,
        false => out.trim_matches(SEPARATORS).to_owned(),
    }
}

/// The length of `{{anything}}` at the start of `text`.
fn unknown_slot(text: &str) -> Option<usize> {
    let inner = text.strip_prefix("{{")?;
    let end = inner.find("}}").filter(|end| *end <= NAME_MAX && !inner[..*end].contains(['{', '\n']))?;
    Some(end + 4)
}

/// Longest name between braces, in bytes.
const NAME_MAX: usize = 60;

/// The template names left in a text, in order and once each.
pub fn open_names(text: &str) -> Vec<&'static str> {
    let mut names: Vec<&'static str> = Vec::new();
    let mut rest = text;
    while let Some(at) = rest.find(['{', '$']) {
        rest = &rest[at..];
        let length = match slot(rest) {
            Some((name, length)) => {
                if let Some(known) = NAMES.iter().find(|known| **known == name)
                    && !names.contains(known)
                {
                    names.push(known);
                }
                length
            }
            None => 1,
        };
        rest = &rest[length..];
    }
    names
}

/// Names in double braces that aren't template names, with byte offsets.
pub fn unknown_names(text: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    let mut from = 0;
    while let Some(at) = text[from..].find("{{").map(|at| at + from) {
        from = at + 2;
        let name = word(text[from..].trim_start_matches(' '));
        let after = text[from..].trim_start_matches(' ').strip_prefix(name).unwrap_or_default();
        let closed = after.trim_start_matches(' ').starts_with("}}");
        if closed && !name.is_empty() && !NAMES.contains(&name) {
            found.push((at, name.to_owned()));
        }
    }
    found
}

/// The known name at the start of `text`, in any of the three forms, and its length.
fn slot(text: &str) -> Option<(&str, usize)> {
    if let Some(inner) = text.strip_prefix("{{") {
        let padded = inner.trim_start_matches(' ');
        let name = word(padded);
        let tail = padded.strip_prefix(name)?.trim_start_matches(' ').strip_prefix("}}")?;
        return NAMES.contains(&name).then_some((name, text.len() - tail.len()));
    }
    if let Some(inner) = text.strip_prefix('{') {
        let name = word(inner);
        let tail = inner.strip_prefix(name)?.strip_prefix('}')?;
        return NAMES.contains(&name).then_some((name, text.len() - tail.len()));
    }
    let inner = text.strip_prefix("$RALPH_")?;
    match word_upper(inner) {
        "ITERATION" => Some(("iteration", "$RALPH_ITERATION".len())),
        "MAX_ITERATIONS" => Some(("max_iterations", "$RALPH_MAX_ITERATIONS".len())),
        _ => None,
    }
}

fn word(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_lowercase() && c != '_').unwrap_or(text.len());
    &text[..end]
}

fn word_upper(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_ascii_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_form_is_filled_and_the_rest_is_left_alone() {
        let vars = Vars::new().with("ticket_id", "T-9").with("iteration", "4").with("nonsense", "x");
        let text = "a {{ticket_id}} {{ ticket_id }} {ticket_id} $RALPH_ITERATION/$RALPH_MAX_ITERATIONS {x} ${y} {{agent}} é";
        assert_eq!(fill(text, &vars), "a T-9 T-9 T-9 4/$RALPH_MAX_ITERATIONS {x} ${y} {{agent}} é");
        assert_eq!(open_names(text), ["ticket_id", "iteration", "max_iterations", "agent"]);
    }

    #[test]
    fn a_value_cannot_bring_another_name_in() {
        let vars = Vars::new().with("task_summary", "{{run_id}}").with("run_id", "secret");
        assert_eq!(fill("{{task_summary}}", &vars), "{{run_id}}");
    }

    #[test]
    fn a_misspelt_name_is_found() {
        assert_eq!(unknown_names("x {{tickt_id}} {{ticket_id}} {{ }} {{"), [(2, "tickt_id".to_owned())]);
        assert_eq!(
            fill("$RALPH_ITERATION_COUNT {{", &Vars::new().with("iteration", "1")),
            "$RALPH_ITERATION_COUNT {{"
        );
    }

    #[test]
    fn no_template_is_left_in_a_name() {
        let vars = Vars::new().with("task_id", "fix-router").with("run_id", "r1").with("ticket_id", "");
        for (text, want) in [
            ("feature/ralph-{{ticket_id}}", "feature/ralph"),
            ("{{task_id}}/{{nonsense}}-x", "fix-router-x"),
            ("ralph/{{ run_id }}/{n}", "ralph/r1"),
            ("{{ticket_id}}: Fix it", ": Fix it"),
            ("plain/name-", "plain/name-"),
            ("a {b} ${c}", "a {b} ${c}"),
        ] {
            assert_eq!(settled(text, &vars), want, "{text}");
        }
    }
}
