//! Removes MCP servers from the settings of agent programs.

use std::path::Path;

/// A settings file without its MCP servers. A file of an unexpected form stays unchanged.
pub(in crate::local::isolation) fn without_mcp(path: &Path, bytes: Vec<u8>) -> Vec<u8> {
    match path.extension().and_then(|end| end.to_str()) {
        Some("json") => {
            let Ok(mut value) = serde_json::from_slice::<serde_json::Value>(&bytes) else { return bytes };
            if !strip(&mut value) {
                return bytes;
            }
            serde_json::to_vec_pretty(&value).unwrap_or(bytes)
        }
        Some("toml") => {
            let text = String::from_utf8_lossy(&bytes);
            let mut dropping = false;
            let kept = text.split_inclusive('\n').filter(|line| {
                if let Some(table) = line.trim_start().strip_prefix('[') {
                    let name = table.trim_start_matches(['[', ' ', '"']);
                    dropping = name.starts_with("mcp_servers");
                }
                !dropping && !line.trim_start().starts_with("mcp_servers.")
            });
            kept.collect::<String>().into_bytes()
        }
        _ => bytes,
    }
}

/// Removes the servers, including those of single projects; returns whether there were any.
fn strip(value: &mut serde_json::Value) -> bool {
    let Some(object) = value.as_object_mut() else { return false };
    let mut had = object.remove("mcpServers").is_some();
    had |= object.remove("mcp").is_some();
    if let Some(projects) = object.get_mut("projects").and_then(|projects| projects.as_object_mut()) {
        for project in projects.values_mut().filter_map(|project| project.as_object_mut()) {
            had |= project.remove("mcpServers").is_some();
        }
    }
    had
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mcp_servers_are_removed_and_other_settings_stay() {
        let json = br#"{"mcpServers":{"a":{}},"theme":"dark","projects":{"/x":{"mcpServers":{},"seen":1}}}"#;
        let left: serde_json::Value =
            serde_json::from_slice(&without_mcp(Path::new(".claude.json"), json.to_vec())).unwrap();
        assert_eq!(left, serde_json::json!({"theme": "dark", "projects": {"/x": {"seen": 1}}}));
        let plain = br#"{ "theme" : 1 }"#.to_vec();
        assert_eq!(without_mcp(Path::new("settings.json"), plain.clone()), plain);
        let toml = "model = \"x\"\n[mcp_servers.docs]\ncommand = \"npx\"\n[mcp_servers.docs.env]\nA = \"b\"\n[otel]\nx = 1\n";
        let left = without_mcp(Path::new("config.toml"), toml.into());
        assert_eq!(String::from_utf8(left).unwrap(), "model = \"x\"\n[otel]\nx = 1\n");
        assert_eq!(without_mcp(Path::new("CLAUDE.md"), b"mcpServers".to_vec()), b"mcpServers");
    }
}
