//! Files that say nothing by being opened: dependencies, locks, product.

use crate::weakened::{is_snapshot, is_test_path};

/// Ends of names of sources that are the product, where they are no tests.
pub(super) const PRODUCT: &[&str] = &[
    "rs", "go", "py", "js", "jsx", "ts", "tsx", "mjs", "cjs", "java", "kt", "scala", "rb", "php", "cs", "c",
    "cc", "cpp", "h", "hpp", "swift", "ex", "exs", "md", "rst", "html", "css", "svg", "png", "lock", "sum",
];

/// Files that declare dependencies; what they say of tests is judged by key.
const DEPENDENCIES: &[&str] = &[
    "package.json",
    "package-lock.json",
    "npm-shrinkwrap.json",
    "pnpm-lock.yaml",
    "Cargo.toml",
    "rust-toolchain",
    "rust-toolchain.toml",
    "go.mod",
    "go.work",
    "pyproject.toml",
    "setup.py",
    "setup.cfg",
    "Pipfile",
    "Gemfile",
    "composer.json",
    "pom.xml",
    "build.gradle",
    "build.gradle.kts",
    "settings.gradle",
    "settings.gradle.kts",
    "CMakeLists.txt",
    "GNUmakefile",
    "makefile",
    "Makefile",
    "justfile",
    "Justfile",
];

/// Whether a file that something opened says nothing by that: dependencies, locks, product, tests, and files that are judged
/// by their keys.
pub fn is_free(path: &str) -> bool {
    let name = path.rsplit('/').next().unwrap_or(path);
    let end = name.rsplit_once('.').map_or("", |(_, end)| end);
    DEPENDENCIES.contains(&name)
        || name.starts_with("requirements")
        || PRODUCT.contains(&end)
        || is_test_path(path)
        || is_snapshot(path)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sources_and_locks_are_free_and_scripts_and_data_are_not() {
        assert!(is_free("Cargo.lock") && is_free("src/a.go") && is_free("requirements-dev.txt"));
        assert!(!is_free("tools/run.sh") && !is_free("data.json"));
    }
}
