//! Maps abstract actions to the tools that a request offers.

use super::ask::CallTag;
use super::script::Action;
use serde_json::{Map, Value, json};

#[derive(Debug, Clone)]
pub(super) struct Offered {
    pub name: String,
    pub shape: ToolShape,
    pub schema: Value,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ToolShape {
    Json,
    Custom,
}

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Part {
    Text(String),
    Call(ToolCall),
}

#[derive(Debug, Clone, PartialEq)]
pub(super) struct ToolCall {
    pub id: String,
    pub name: String,
    pub input: Value,
    pub shape: ToolShape,
}

const WRITERS: &[&str] =
    &["Write", "write_file", "write", "writeFile", "create_file", "fs_write", "apply_patch"];
const SHELLS: &[&str] = &[
    "Bash",
    "run_shell_command",
    "exec_command",
    "shell_command",
    "shell",
    "bash",
    "exec",
    "execute_command",
    "run_command",
    "runCommand",
    "terminal",
];
const PATH_KEYS: &[&str] = &["file_path", "filePath", "absolute_path", "path", "filename", "file"];
const CONTENT_KEYS: &[&str] = &["content", "contents", "file_text", "text", "data"];
const COMMAND_KEYS: &[&str] = &["command", "cmd", "script"];

pub(super) fn parts(actions: &[Action], tools: &[Offered], body: &Value, tag: CallTag) -> Vec<Part> {
    let mut parts = Vec::new();
    for (number, action) in actions.iter().enumerate() {
        parts.push(part(action, tools, body, tag.id("call", number)));
    }
    parts
}

fn part(action: &Action, tools: &[Offered], body: &Value, id: String) -> Part {
    match action {
        Action::Text(text) => Part::Text(text.clone()),
        Action::Tool { name, input } => {
            let offered = tools.iter().find(|t| t.name == *name);
            let shape = offered.map_or(ToolShape::Json, |t| t.shape);
            Part::Call(ToolCall { id, name: name.clone(), input: input.clone(), shape })
        }
        Action::Shell { command } => match pick(tools, SHELLS) {
            Some(tool) => Part::Call(run(tool, command, id)),
            None => Part::Text(format!("No tool that runs a command is offered: {command}")),
        },
        Action::Write { path, content } => match (pick(tools, WRITERS), pick(tools, SHELLS)) {
            (Some(tool), _) if tool.name == "apply_patch" => Part::Call(patch(tool, path, content, id)),
            (Some(tool), _) => Part::Call(write(tool, &absolute(path, body), content, id)),
            (None, Some(shell)) => Part::Call(run(shell, &written_by_shell(path, content), id)),
            (None, None) => Part::Text(format!("No tool that writes a file is offered: {path}")),
        },
    }
}

fn pick<'a>(tools: &'a [Offered], names: &[&str]) -> Option<&'a Offered> {
    names.iter().find_map(|name| tools.iter().find(|t| t.name == *name))
}

fn write(tool: &Offered, path: &str, content: &str, id: String) -> ToolCall {
    let mut input = Map::new();
    input.insert(key(tool, PATH_KEYS).into(), json!(path));
    input.insert(key(tool, CONTENT_KEYS).into(), json!(content));
    call(tool, input, id)
}

fn run(tool: &Offered, command: &str, id: String) -> ToolCall {
    let key = key(tool, COMMAND_KEYS);
    let wants_argv = tool.schema["properties"][key]["type"] == "array";
    let value = if wants_argv { json!(["bash", "-lc", command]) } else { json!(command) };
    call(tool, Map::from_iter([(key.to_owned(), value)]), id)
}

fn patch(tool: &Offered, path: &str, content: &str, id: String) -> ToolCall {
    let mut text = format!("*** Begin Patch\n*** Add File: {path}\n");
    for line in content.lines() {
        text.push('+');
        text.push_str(line);
        text.push('\n');
    }
    text.push_str("*** End Patch\n");
    let input = match tool.shape {
        ToolShape::Custom => json!(text),
        ToolShape::Json => json!({"input": text}),
    };
    ToolCall { id, name: tool.name.clone(), input, shape: tool.shape }
}

fn call(tool: &Offered, mut input: Map<String, Value>, id: String) -> ToolCall {
    for name in tool.schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
        if !input.contains_key(name) {
            input.insert(name.to_owned(), fitting(&tool.schema["properties"][name], 0));
        }
    }
    ToolCall { id, name: tool.name.clone(), input: Value::Object(input), shape: tool.shape }
}

fn key(tool: &Offered, names: &[&'static str]) -> &'static str {
    let properties = &tool.schema["properties"];
    names.iter().find(|n| !properties[**n].is_null()).or(names.first()).copied().unwrap_or_default()
}

pub(super) fn fitting(schema: &Value, depth: usize) -> Value {
    if let Some(first) = schema["enum"].get(0) {
        return first.clone();
    }
    let kind = schema["type"].as_str().or(schema["type"][0].as_str()).unwrap_or("string");
    match kind.to_ascii_lowercase().as_str() {
        "object" if depth < 8 => {
            let properties = schema["properties"].as_object();
            let fitted = properties.into_iter().flatten().map(|(k, v)| (k.clone(), fitting(v, depth + 1)));
            Value::Object(fitted.collect())
        }
        "object" => json!({}),
        "array" => json!([]),
        "boolean" => json!(false),
        "integer" | "number" => json!(1),
        _ => json!("scripted"),
    }
}

fn written_by_shell(path: &str, content: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    let folder = match path.rsplit_once('/') {
        Some((folder, _)) if !folder.is_empty() => format!("mkdir -p {} && ", quoted(folder)),
        _ => String::new(),
    };
    format!("{folder}printf %s {} > {}", quoted(content), quoted(path))
}

/// The text before the working directory in the CLIs' prompts.
const MARKERS: &[&str] = &[
    "<cwd>",
    "Primary working directory: ",
    "Working directory: ",
    "working in the directory: ",
    "Current working directory: ",
    "**Workspace Directories:**\n  - ",
    "workspace directories:\n  - ",
    "cwd: ",
];

fn absolute(path: &str, body: &Value) -> String {
    if path.starts_with('/') {
        return path.to_owned();
    }
    match working_directory(body) {
        Some(folder) => format!("{}/{path}", folder.trim_end_matches('/')),
        None => path.to_owned(),
    }
}

pub(super) fn working_directory(body: &Value) -> Option<String> {
    match body {
        Value::String(text) => MARKERS.iter().find_map(|marker| after(text, marker)),
        Value::Array(list) => list.iter().find_map(working_directory),
        Value::Object(map) => {
            map.iter().filter(|(k, _)| *k != "tools").find_map(|(_, v)| working_directory(v))
        }
        _ => None,
    }
}

fn after(text: &str, marker: &str) -> Option<String> {
    text.match_indices(marker).find_map(|(at, _)| {
        let rest = &text[at + marker.len()..];
        let end = rest.find(['\n', '<', '`', '"']).unwrap_or(rest.len());
        let path = rest[..end].trim().trim_end_matches('.');
        path.starts_with('/').then(|| path.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tool(name: &str, schema: Value) -> Offered {
        Offered { name: name.into(), shape: ToolShape::Json, schema }
    }

    fn only_call(action: Action, tools: &[Offered], body: &Value) -> ToolCall {
        let tag = CallTag { session: 0, turn: 0 };
        match parts(&[action], tools, body, tag).remove(0) {
            Part::Call(call) => call,
            Part::Text(text) => panic!("a text: {text}"),
        }
    }

    #[test]
    fn relative_path_becomes_absolute_from_the_prompt() {
        let tools = [tool("Write", json!({"properties": {"file_path": {}, "content": {}}}))];
        for prompt in [
            "x\nPrimary working directory: /w/repo\n y",
            "<cwd>/w/repo</cwd>",
            "I'm currently working in the directory: /w/repo\n",
        ] {
            let body = json!({"tools": [{"d": "Working directory: /wrong"}], "system": [{"text": prompt}]});
            let call = only_call(Action::write("a/b.txt", "hi"), &tools, &body);
            assert_eq!(call.input, json!({"file_path": "/w/repo/a/b.txt", "content": "hi"}), "{prompt}");
        }
    }

    #[test]
    fn required_arguments_are_filled_in() {
        let schema = json!({"properties": {"cmd": {"type": "array"}, "why": {"type": "string"}, "wait": {"type": "boolean"}},
            "required": ["cmd", "why", "wait"]});
        let call = only_call(Action::shell("ls"), &[tool("shell", schema)], &json!({}));
        assert_eq!(call.input, json!({"cmd": ["bash", "-lc", "ls"], "why": "scripted", "wait": false}));
    }

    #[test]
    fn without_a_writing_tool_the_shell_writes() {
        let tools = [tool("bash", json!({"properties": {"command": {"type": "string"}}}))];
        let call = only_call(Action::write("d/a.txt", "it's\n"), &tools, &json!({}));
        assert_eq!(call.input["command"], "mkdir -p 'd' && printf %s 'it'\\''s\n' > 'd/a.txt'");
    }
}
