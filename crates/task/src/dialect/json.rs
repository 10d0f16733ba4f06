//! JSON with positions: a tree of byte ranges next to the typed value, so that every finding has its line and column
//! and a single value can be replaced without changing another byte.

use super::diagnostic::{Findings, Lines};
use super::keys::keys_of;
use ralph_loop_protocol::display::text::{head, nearest, one_line};
use serde::de::{DeserializeOwned, IgnoredAny};
use std::collections::BTreeMap;
use std::ops::Range;

/// The formats need five levels; the parser recurses.
const MAX_DEPTH: usize = 32;

#[derive(Debug)]
pub(crate) struct Node {
    pub range: Range<usize>,
    pub inner: NodeContent,
}

#[derive(Debug)]
pub(crate) enum NodeContent {
    Object(Vec<ObjectMember>),
    Array(Vec<Node>),
    Scalar,
}

#[derive(Debug)]
pub(crate) struct ObjectMember {
    pub key: String,
    pub at: usize,
    pub value: Node,
}

impl Node {
    /// The value of a key, if this is an object that has it.
    pub fn get(&self, key: &str) -> Option<&Node> {
        self.members().iter().find(|member| member.key == key).map(|member| &member.value)
    }
    pub fn items(&self) -> &[Node] {
        match &self.inner {
            NodeContent::Array(items) => items,
            _ => &[],
        }
    }
    pub fn members(&self) -> &[ObjectMember] {
        match &self.inner {
            NodeContent::Object(members) => members,
            _ => &[],
        }
    }
}

/// The allowed keys of an object, and the shapes of the objects below them.
#[derive(Debug)]
pub(crate) struct ObjectShape {
    keys: &'static [&'static str],
    below: Vec<(&'static str, ObjectShape)>,
}

impl ObjectShape {
    pub fn of<T: DeserializeOwned>() -> Self {
        Self { keys: keys_of::<T>(), below: Vec::new() }
    }
    /// Sets the shape of the object, or of the objects in the list, at `key`.
    pub fn with(mut self, key: &'static str, below: Self) -> Self {
        self.below.push((key, below));
        self
    }
}

/// A parsed file: typed, and as a tree of positions.
#[derive(Debug)]
pub(crate) struct Document<T> {
    pub value: T,
    pub root: Node,
}

/// Parses a file: syntax, unknown and repeated keys, types.
pub(crate) fn read<T: DeserializeOwned>(
    text: &str,
    shape: &ObjectShape,
    lines: &Lines<'_>,
    found: &mut Findings,
) -> Option<Document<T>> {
    let before = found.all.len();
    let root = match parse(text) {
        Ok(root) => root,
        Err(problem) => {
            problem.report("not-json", lines, found);
            return None;
        }
    };
    if !matches!(root.inner, NodeContent::Object(_)) {
        found.error(
            "not-json",
            lines.place(root.range.start),
            "the file is not a JSON object",
            "it starts with `{` and ends with `}`",
        );
        return None;
    }
    check_keys(&root, shape, lines, found);
    if found.all.len() > before {
        return None;
    }
    match serde_json::from_str(strip_mark(text).0) {
        Ok(value) => Some(Document { value, root }),
        Err(error) => {
            Problem::from_serde(&error, lines).report("wrong-type", lines, found);
            None
        }
    }
}

/// The positions of every key of an object and its nested objects; list elements aren't included.
pub(crate) fn key_places(root: &Node, lines: &Lines<'_>) -> BTreeMap<String, crate::criterion::Span> {
    let mut out = BTreeMap::new();
    for member in root.members() {
        out.insert(member.key.clone(), lines.place(member.at));
        for below in member.value.members() {
            out.insert(format!("{}.{}", member.key, below.key), lines.place(below.at));
        }
    }
    out
}

fn check_keys(node: &Node, shape: &ObjectShape, lines: &Lines<'_>, found: &mut Findings) {
    let mut seen: BTreeMap<&str, usize> = BTreeMap::new();
    for member in node.members() {
        let place = lines.place(member.at);
        if let Some(first) = seen.insert(&member.key, place.line) {
            found.error(
                "duplicate-key",
                place,
                format!("`{}` is given twice; the first is in line {first}", member.key),
                "remove one of them",
            );
        }
        if !shape.keys.contains(&member.key.as_str()) {
            let message = format!("unknown key `{}`", one_line(&member.key, 60));
            let fix = unknown_key_fix(&member.key, shape.keys.iter().copied());
            found.error("unknown-key", place, message, fix);
        } else if let Some((_, below)) = shape.below.iter().find(|(key, _)| *key == member.key) {
            check_keys(&member.value, below, lines, found);
        }
    }
    for item in node.items() {
        check_keys(item, shape, lines, found);
    }
}

/// The fix for an unknown key: the likely one, or all.
pub(crate) fn unknown_key_fix<'a>(key: &str, known: impl Iterator<Item = &'a str> + Clone) -> String {
    // A key of a megabyte isn't a typo, and the edit distance is quadratic.
    match nearest(head(key, 64), known.clone()) {
        Some(near) => format!("did you mean `{near}`?"),
        None => {
            let all: Vec<String> =
                known.filter(|key| !key.starts_with('$')).map(|key| format!("`{key}`")).collect();
            format!("remove it; the keys are {}", all.join(", "))
        }
    }
}

#[derive(Debug)]
pub(crate) struct Problem {
    pub offset: usize,
    pub message: String,
    pub fix: String,
}

impl Problem {
    fn report(self, rule: &'static str, lines: &Lines<'_>, found: &mut Findings) {
        found.error(rule, lines.place(self.offset), self.message, self.fix);
    }

    fn from_serde(error: &serde_json::Error, lines: &Lines<'_>) -> Self {
        let full = error.to_string();
        let message = full.split(" at line ").next().unwrap_or(&full).to_owned();
        let fix = if error.is_eof() {
            "the file ends too early: a bracket or quote is not closed"
        } else if error.is_syntax() {
            "fix the JSON here; comments and trailing commas aren't allowed"
        } else if message.starts_with("missing field") {
            "add it; `docs/TASKS.md` shows every key, and `ralph init --plan` or `--json-task` writes an example"
        } else {
            "give a value of the right kind; `docs/TASKS.md` shows every key"
        };
        let offset = lines.start_of(error.line()) + error.column().saturating_sub(1);
        Self { offset, message: one_line(&message, 300), fix: fix.into() }
    }
}

pub(crate) fn parse(text: &str) -> Result<Node, Problem> {
    let (body, base) = strip_mark(text);
    if body.trim().is_empty() {
        return Err(Problem {
            offset: 0,
            message: "the file is empty".into(),
            fix: "`ralph init --plan --force` writes a plan to fill in, `ralph init --json-task --force` a `ralph.json`"
                .into(),
        });
    }
    // serde_json checks the syntax; the scan below can then rely on it.
    if let Err(error) = serde_json::from_str::<IgnoredAny>(body) {
        return Err(Problem::from_serde(&error, &Lines::new(text)));
    }
    let mut scan = Scan { text, at: base };
    scan.value(0)
}

fn strip_mark(text: &str) -> (&str, usize) {
    match text.strip_prefix('\u{feff}') {
        Some(rest) => (rest, '\u{feff}'.len_utf8()),
        None => (text, 0),
    }
}

struct Scan<'a> {
    text: &'a str,
    at: usize,
}

impl Scan<'_> {
    fn value(&mut self, depth: usize) -> Result<Node, Problem> {
        self.blank();
        let start = self.at;
        if depth > MAX_DEPTH {
            return Err(self.problem("the values are nested too deep"));
        }
        let inner = match self.peek() {
            Some(b'{') => self.object(depth)?,
            Some(b'[') => self.array(depth)?,
            Some(b'"') => {
                self.skip_string()?;
                NodeContent::Scalar
            }
            Some(_) => {
                while self.peek().is_some_and(|b| !b",]} \t\r\n".contains(&b)) {
                    self.at += 1;
                }
                NodeContent::Scalar
            }
            None => return Err(self.problem("a value is missing")),
        };
        Ok(Node { range: start..self.at, inner })
    }

    fn object(&mut self, depth: usize) -> Result<NodeContent, Problem> {
        let mut members = Vec::new();
        self.at += 1;
        loop {
            self.blank();
            match self.peek() {
                Some(b'"') => {
                    let at = self.at;
                    let key = self.key()?;
                    self.blank();
                    // The colon.
                    self.at += 1;
                    let value = self.value(depth + 1)?;
                    members.push(ObjectMember { key, at, value });
                }
                Some(b',') => self.at += 1,
                Some(b'}') => {
                    self.at += 1;
                    return Ok(NodeContent::Object(members));
                }
                _ => return Err(self.problem("an object is not closed")),
            }
        }
    }

    fn array(&mut self, depth: usize) -> Result<NodeContent, Problem> {
        let mut items = Vec::new();
        self.at += 1;
        loop {
            self.blank();
            match self.peek() {
                Some(b',') => self.at += 1,
                Some(b']') => {
                    self.at += 1;
                    return Ok(NodeContent::Array(items));
                }
                Some(_) => items.push(self.value(depth + 1)?),
                None => return Err(self.problem("a list is not closed")),
            }
        }
    }

    /// Skips a string and returns its bytes, including quotes.
    fn skip_string(&mut self) -> Result<&str, Problem> {
        let start = self.at;
        self.at += 1;
        while let Some(byte) = self.peek() {
            self.at += 1;
            match byte {
                b'\\' => self.at += 1,
                b'"' => return Ok(self.text.get(start..self.at).unwrap_or_default()),
                _ => {}
            }
        }
        Err(self.problem("a text is not closed"))
    }

    fn key(&mut self) -> Result<String, Problem> {
        let offset = self.at;
        let raw = self.skip_string()?;
        if !raw.contains('\\') {
            return Ok(raw.trim_matches('"').to_owned());
        }
        serde_json::from_str(raw).map_err(|_| Problem {
            offset,
            message: "the key contains an invalid escape".into(),
            fix: "write the character itself".into(),
        })
    }

    fn blank(&mut self) {
        while self.peek().is_some_and(|b| b" \t\r\n".contains(&b)) {
            self.at += 1;
        }
    }

    fn peek(&self) -> Option<u8> {
        self.text.as_bytes().get(self.at).copied()
    }

    fn problem(&self, message: &str) -> Problem {
        Problem { offset: self.at, message: message.into(), fix: "fix the JSON here".into() }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_knows_its_bytes() {
        let text = "\u{feff}{ \"a\" : [ true , {\"b\\u0063\": -1.5e3} ], \"é\":\"x\\\"]\"}";
        let root = parse(text).unwrap();
        let list = root.get("a").unwrap();
        assert_eq!(&text[list.items()[0].range.clone()], "true");
        assert_eq!(&text[list.items()[1].get("bc").unwrap().range.clone()], "-1.5e3");
        assert_eq!(&text[root.get("é").unwrap().range.clone()], "\"x\\\"]\"");
    }

    #[test]
    fn invalid_json_is_reported_with_its_position() {
        assert!(parse("").unwrap_err().message.contains("empty"));
        assert_eq!(parse("{\n \"a\": 1,\n}").unwrap_err().offset, 11);
        assert_eq!(parse(&"[".repeat(100_000)).unwrap_err().message, "EOF while parsing a list");
        let deep = format!("{}{}", "[".repeat(100), "]".repeat(100));
        assert!(parse(&deep).unwrap_err().message.contains("too deep"));
        assert!(parse("{\"\\ud800\": 1}").unwrap_err().message.contains("contains an invalid escape"));
    }
}
