//! Classifies files by path: agents' notes, and generated files.

/// Agents' own notes: plans, progress files, memories. A planning iteration writes them; a run that writes nothing
/// else makes no progress. A manual or a readme doesn't count: it may be the task.
pub fn is_notes(path: &str) -> bool {
    const WORDS: [&str; 14] = [
        "plan",
        "note",
        "notes",
        "progress",
        "todo",
        "journal",
        "scratch",
        "memory",
        "status",
        "thoughts",
        "changelog",
        "agents",
        "claude",
        "worklog",
    ];
    let name = path.rsplit('/').next().unwrap_or(path).to_ascii_lowercase();
    let (stem, extension) = name.rsplit_once('.').unwrap_or((&name, ""));
    let prose = matches!(extension, "" | "md" | "txt" | "rst" | "log");
    let named = stem.split(|c: char| !c.is_alphanumeric()).any(|word| WORDS.contains(&word));
    (prose && named) || extension == "log" || path.starts_with(".ralph/")
}

/// Text for readers: `#` begins a heading there, and `*` an item.
pub fn is_prose(path: &str) -> bool {
    let extension = path.rsplit_once('.').map_or("", |(_, e)| e).to_ascii_lowercase();
    matches!(extension.as_str(), "md" | "mdx" | "txt" | "rst" | "adoc")
}

/// Written by a tool: lock files, snapshots, build results. They may alternate without the agent.
pub fn is_generated(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let folders =
        ["dist/", "build/", "target/", "node_modules/", "generated/", "gen/", "__snapshots__/", "vendor/"];
    let ends =
        [".lock", ".min.js", ".min.css", ".map", ".snap", ".pb.go", "_pb2.py", ".g.dart", ".pyc", ".sum"];
    let names = ["package-lock.json", "pnpm-lock.yaml", "npm-shrinkwrap.json", ".DS_Store"];
    names.contains(&name)
        || ends.iter().any(|end| name.ends_with(end))
        || name.contains(".generated.")
        || folders.iter().any(|f| path.starts_with(f) || path.contains(&format!("/{f}")))
}

/// Whether it shows work on the task.
pub fn is_work(path: &str) -> bool {
    !is_notes(path) && !is_generated(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn notes_generated_files_and_work_are_distinguished() {
        for path in ["PLAN.md", "docs/fix_plan.md", "progress.txt", ".ralph/progress.md", "debug.log"] {
            assert!(is_notes(path) && !is_work(path), "{path}");
        }
        for path in ["Cargo.lock", "web/package-lock.json", "api/generated/x.ts", "a.pb.go", "go.sum"] {
            assert!(is_generated(path) && !is_work(path), "{path}");
        }
        for path in
            ["src/lib.rs", "tests/test_a.py", "Makefile", "src/generator.rs", "docs/guide.md", "src/plan.rs"]
        {
            assert!(is_work(path), "{path}");
        }
    }
}
