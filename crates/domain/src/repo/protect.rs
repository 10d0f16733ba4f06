//! Protected paths: files that must stay unchanged during a run.

pub use ralph_loop_protocol::proof::protected::{ProtectedChange, ProtectedKind};

/// Whether `path` (relative, `/`-separated) is covered by one of `patterns`: an exact path, a folder (everything
/// below it), or a glob with `*`, `**`, `?`, `[…]`, `{a,b}`.
pub fn covers(patterns: &[String], path: &str) -> bool {
    patterns.iter().any(|pattern| {
        let pattern = pattern.trim_start_matches("./").trim_end_matches('/');
        if pattern.is_empty() {
            return false;
        }
        path == pattern
            || path.strip_prefix(pattern).is_some_and(|rest| rest.starts_with('/'))
            || fast_glob::glob_match(pattern, path)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn paths_folders_and_globs_cover() {
        let patterns: Vec<String> =
            ["tests", "Makefile", "src/**/*.golden", "./docs/"].map(String::from).to_vec();
        for yes in ["tests/a/b.rs", "tests", "Makefile", "src/x/y.golden", "src/y.golden", "docs/a.md"] {
            assert!(covers(&patterns, yes), "{yes}");
        }
        for no in ["testsuite/a.rs", "src/y.rs", "sub/Makefile", ""] {
            assert!(!covers(&patterns, no), "{no}");
        }
    }
}
