//! "Works on my machine": what the workspace has and the commit lacks, likeliest causes first.

use ralph_loop_protocol::display::text::count;

const NAMED: usize = 12;

/// One line for the agent about files only in the workspace. `output` is that of the failed checks.
pub(crate) fn line(unrecorded: &[String], dirty: &[String], output: &str) -> Option<String> {
    let mut named: Vec<(u8, String)> = Vec::new();
    for path in dirty.iter().filter(|p| !is_noise(p)) {
        named.push((rank(path, output), format!("{path} (changed or added before the run, not committed)")));
    }
    for path in unrecorded.iter().filter(|p| !is_noise(p)) {
        named.push((rank(path, output), format!("{path} (ignored by git)")));
    }
    if named.is_empty() {
        return None;
    }
    named.sort_by_key(|(rank, _)| *rank);
    let more = named.len().saturating_sub(NAMED);
    let list: Vec<String> = named.into_iter().take(NAMED).map(|(_, text)| text).collect();
    let more = if more > 0 { format!(", and {} more", count(more, "path")) } else { String::new() };
    Some(format!("in the workspace, but not in the commit: {}{more}", list.join(", ")))
}

/// Whether the output mentions a path.
pub(crate) fn is_named(path: &str, output: &str) -> bool {
    let path = path.trim_end_matches('/');
    let name = path.rsplit('/').next().unwrap_or(path);
    name.len() >= 3 && output.contains(name)
}

fn rank(path: &str, output: &str) -> u8 {
    const DEPENDENCIES: &[&str] =
        &["node_modules", ".venv", "venv", "vendor", ".env", "dist", "build", "deps"];
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    if is_named(path, output) {
        0
    } else if DEPENDENCIES.contains(&name) {
        1
    } else {
        2
    }
}

/// Files that checks don't depend on.
fn is_noise(path: &str) -> bool {
    const NAMES: &[&str] = &[
        ".DS_Store",
        "__pycache__",
        ".idea",
        ".vscode",
        ".pytest_cache",
        ".mypy_cache",
        ".ruff_cache",
        ".coverage",
        "Thumbs.db",
    ];
    let name = path.trim_end_matches('/').rsplit('/').next().unwrap_or(path);
    path.starts_with(".ralph/")
        || NAMES.contains(&name)
        || [".log", ".pyc", ".swp", ".tmp", "~"].iter().any(|end| name.ends_with(end))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_named_by_checks_come_first_and_noise_is_dropped() {
        let paths = |list: &[&str]| list.iter().map(|p| (*p).to_owned()).collect::<Vec<_>>();
        let ignored = paths(&["a.log", "cache/", "node_modules/", "secrets.json", "x/__pycache__/"]);
        let line = line(&ignored, &paths(&["mine.txt"]), "Error: no such file: secrets.json").unwrap();
        assert_eq!(
            line,
            "in the workspace, but not in the commit: secrets.json (ignored by git), node_modules/ (ignored by git), \
             mine.txt (changed or added before the run, not committed), cache/ (ignored by git)"
        );
        assert_eq!(super::line(&paths(&["b.log"]), &[], ""), None);
    }

    #[test]
    fn the_list_is_cut() {
        let many: Vec<String> = (0..100).map(|n| format!("file-{n:03}")).collect();
        let line = line(&many, &[], "").unwrap();
        assert!(line.ends_with(", and 88 paths more"), "{line}");
    }
}
