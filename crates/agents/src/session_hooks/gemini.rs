//! Gemini takes hooks only from settings. It reads the machine's, which would override all others, only if the file
//! and every folder above belong to root. So a session gets a private home, with the user's settings plus our hook,
//! and links to the rest of the user's `.gemini`.

use super::{HookPlace, SessionHooks, shim};
use serde_json::{Value, json};
use std::path::Path;

const NAME: &str = "ralph-guard";
/// The private home, below the hooks' folder.
const HOME: &str = "gemini";
/// Created in it.
const SETTINGS: &str = "settings.json";

/// The hooks of a session without a sandbox. In a sandbox the home is the sandbox's, and isolation is the boundary.
pub(super) fn hooks(place: &HookPlace<'_>) -> Option<SessionHooks> {
    if place.sandboxed {
        return None;
    }
    let var = |name: &str| (place.var)(name).filter(|value| !value.is_empty());
    let own = Path::new(&var("GEMINI_CLI_HOME").or_else(|| var("HOME"))?).join(".gemini");
    let before = match (place.read)(&own.join(SETTINGS)) {
        // Gemini itself reports a file that it can't read.
        Some(text) => parsed(&text)?,
        None => json!({}),
    };
    let settings = with_hook(before, &shim::command(place, "pre-tool-use", "gemini"))?;
    let names = (place.names)(&own);
    let others = names.iter().filter(|name| *name != SETTINGS);
    Some(SessionHooks {
        argv: Vec::new(),
        env: vec![("GEMINI_CLI_HOME".to_owned(), place.folder.join(HOME).display().to_string())],
        files: vec![(format!("{HOME}/.gemini/{SETTINGS}"), settings.to_string())],
        links: others.map(|name| (format!("{HOME}/.gemini/{name}"), own.join(name))).collect(),
    })
}

fn with_hook(mut settings: Value, command: &str) -> Option<Value> {
    let top = settings.as_object_mut()?;
    let config = top.entry("hooksConfig").or_insert_with(|| json!({}));
    config.as_object_mut()?.insert("enabled".to_owned(), json!(true));
    let hooks = top.entry("hooks").or_insert_with(|| json!({}));
    let list = hooks.as_object_mut()?.entry("BeforeTool").or_insert_with(|| json!([]));
    list.as_array_mut()?.push(json!({
        "matcher": ".*",
        "hooks": [{"type": "command", "name": NAME, "command": command, "timeout": 10_000}],
    }));
    // Nothing of a repo counts: neither its settings, nor app variables in them.
    for (area, key, value) in
        [("security", "folderTrust", json!({"enabled": true})), ("advanced", "ignoreLocalEnv", json!(true))]
    {
        let area = top.entry(area).or_insert_with(|| json!({}));
        area.as_object_mut()?.insert(key.to_owned(), value);
    }
    Some(settings)
}

/// JSON with comments.
fn parsed(text: &str) -> Option<Value> {
    serde_json::from_str(&without_comments(text)).ok().filter(Value::is_object)
}

fn without_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(at) = rest.find(['"', '/']) {
        out.push_str(&rest[..at]);
        rest = &rest[at..];
        let taken = if rest.starts_with('"') {
            let end = string_end(rest);
            out.push_str(&rest[..end]);
            end
        } else if rest.starts_with("//") {
            rest.find('\n').unwrap_or(rest.len())
        } else if rest.starts_with("/*") {
            rest.find("*/").map_or(rest.len(), |at| at + 2)
        } else {
            out.push('/');
            1
        };
        rest = &rest[taken..];
    }
    out + rest
}

/// The end of a quoted text, including quotes.
fn string_end(text: &str) -> usize {
    let mut escaped = false;
    for (at, c) in text.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            '"' => return at + 1,
            _ => {}
        }
    }
    text.len()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::PathBuf;

    fn of(sandboxed: bool, settings: Option<&str>) -> Option<SessionHooks> {
        let place = HookPlace {
            program: Path::new("/opt/ralph"),
            folder: Path::new("/r/hooks"),
            sandboxed,
            argv: &[],
            var: &|name| (name == "HOME").then(|| "/home/u".to_owned()),
            read: &|path| {
                settings.filter(|_| path == Path::new("/home/u/.gemini/settings.json")).map(str::to_owned)
            },
            names: &|_| vec!["settings.json".to_owned(), "oauth_creds.json".to_owned(), "tmp".to_owned()],
        };
        hooks(&place)
    }

    #[test]
    fn a_private_home_has_the_users_settings_and_our_hook() {
        let own = "{ // mine\n \"hooks\": {\"BeforeTool\": [{\"hooks\": []}]}, \"hooksConfig\": {\"enabled\": false}, \"security\": {\"auth\": 1, \"folderTrust\": {\"enabled\": false}},\n /* a \"b\" */ \"ui\": {\"theme\": \"http://x // y\"}}";
        let hooks = of(false, Some(own)).unwrap();
        assert_eq!(hooks.env, [("GEMINI_CLI_HOME".to_owned(), "/r/hooks/gemini".to_owned())]);
        assert_eq!(hooks.files[0].0, "gemini/.gemini/settings.json");
        let settings: Value = serde_json::from_str(&hooks.files[0].1).unwrap();
        assert_eq!(settings["ui"]["theme"], "http://x // y");
        assert_eq!(settings["hooksConfig"]["enabled"], true);
        assert_eq!(settings["security"], json!({"auth": 1, "folderTrust": {"enabled": true}}));
        assert_eq!(settings["advanced"]["ignoreLocalEnv"], true);
        assert_eq!(settings["hooks"]["BeforeTool"][1]["matcher"], ".*");
        let links = ["oauth_creds.json", "tmp"];
        let links =
            links.map(|name| (format!("gemini/.gemini/{name}"), PathBuf::from("/home/u/.gemini").join(name)));
        assert_eq!(hooks.links, links);
        assert_eq!(of(false, None).unwrap().files.len(), 1);
        assert_eq!(of(false, Some("not json")), None);
        assert_eq!(of(true, None), None, "a sandbox has its own home");
    }
}
