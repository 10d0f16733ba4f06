//! The versions that the user has chosen for asdf and mise, without which their shims start nothing. Commands can
//! only read them, or one command could choose another program for the next.

use std::path::Path;

const VERSIONS_MAX: u64 = 256 * 1024;

/// Files below a home, and whether only their table `tools` is passed: the rest may hold variables with keys.
const FILES: [(&str, bool); 3] =
    [(".tool-versions", false), (".config/mise/config.toml", true), (".mise.toml", true)];

/// The files that exist below `home`, with what a sandbox gets of them.
pub(in crate::local::isolation) fn chosen(home: &Path) -> Vec<(&'static Path, Vec<u8>)> {
    let read = |(name, tools_only): (&'static str, bool)| {
        let bytes = ralph_loop_safe_fs::read_plain(home.join(name), VERSIONS_MAX).ok()?;
        Some((Path::new(name), if tools_only { tools_of(&bytes) } else { bytes }))
    };
    FILES.into_iter().filter_map(read).collect()
}

/// The tables `tools` and `tools.NAME` of a TOML file.
fn tools_of(bytes: &[u8]) -> Vec<u8> {
    let text = String::from_utf8_lossy(bytes);
    let mut keeping = false;
    let kept = text.split_inclusive('\n').filter(|line| {
        if let Some(table) = line.trim_start().strip_prefix('[') {
            let name = table.split(']').next().unwrap_or_default().trim();
            keeping = name == "tools" || name.starts_with("tools.");
        }
        keeping
    });
    kept.collect::<String>().into_bytes()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tool_versions_are_passed_and_variables_are_not() {
        let home = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(home.path().join(".config/mise")).unwrap();
        let toml = "[env]\nKEY = \"secret\"\n[tools]\nnode = \"22\"\n[ tools.python ]\nversion = \"3\"\n[settings]\nx = \"secret\"\n";
        std::fs::write(home.path().join("mine.toml"), toml).unwrap();
        let place = home.path().join(".config/mise/config.toml");
        std::os::unix::fs::symlink("../../mine.toml", place).unwrap();
        std::fs::write(home.path().join(".tool-versions"), "nodejs 22\n").unwrap();
        let given: Vec<(String, String)> = chosen(home.path())
            .into_iter()
            .map(|(name, bytes)| (name.display().to_string(), String::from_utf8(bytes).unwrap()))
            .collect();
        let tools = "[tools]\nnode = \"22\"\n[ tools.python ]\nversion = \"3\"\n";
        let wanted = [(".tool-versions", "nodejs 22\n"), (".config/mise/config.toml", tools)];
        assert_eq!(given, wanted.map(|(name, text)| (name.to_owned(), text.to_owned())));
    }
}
