//! Paths from which programs load things that no argument names: installed packages, compiled sources, settings at
//! home.

use std::path::Path;

/// Names of settings in a home folder.
const SETTINGS: &[&str] = &[
    ".npmrc",
    ".yarnrc",
    ".yarnrc.yml",
    ".gitconfig",
    ".bashrc",
    ".bash_profile",
    ".profile",
    ".zshenv",
    ".zshrc",
    ".pydistutils.cfg",
    ".pytest.ini",
    ".mocharc.json",
    ".babelrc",
    ".gemrc",
    ".rspec",
    ".irbrc",
];
/// Folders of settings below `.config`.
const CONFIG: &[&str] = &["pip", "git", "go", "yarn", "pnpm", "npm", "uv"];

/// The package, program or compiled source that the file `below` the workspace belongs to; `None` for other files,
/// and for caches.
pub(super) fn in_workspace(below: &Path) -> Option<String> {
    let parts = parts(below);
    let at = |name: &str| parts.iter().rposition(|part| part == name);
    let upto = |end: usize| parts.get(..end).map(|parts| parts.join("/"));
    if let Some(at) = at("node_modules") {
        return match parts.get(at + 1)?.as_str() {
            ".bin" => upto(at + 3),
            scope if scope.starts_with('@') => upto(at + 3),
            package if package.starts_with('.') => None,
            _ => upto(at + 2),
        };
    }
    if let Some(at) = at("site-packages").or_else(|| at("dist-packages")) {
        return upto(at + 2);
    }
    if let Some(at) =
        at(".venv").or_else(|| at("venv")).filter(|at| parts.get(at + 1).is_some_and(|p| p == "bin"))
    {
        return upto(at + 3);
    }
    let compiled = at("__pycache__").is_some() && parts.last()?.ends_with(".pyc");
    compiled.then(|| parts.join("/"))
}

/// The same for a file below the home folder.
pub(super) fn at_home(below: &Path) -> Option<String> {
    let parts = parts(below);
    let words: Vec<&str> = parts.iter().map(String::as_str).collect();
    let depth = match words.as_slice() {
        [".local", "lib", _, "site-packages", _, ..] => 5,
        [".local", "bin", _, ..]
        | [".cargo", "bin", _, ..]
        | [".gradle", "init.d", _, ..]
        | ["go", "bin", _, ..] => 3,
        ["bin", _, ..] | [".node_modules" | ".node_libraries", _, ..] => 2,
        [".config", tool, ..] if CONFIG.contains(tool) => 2,
        [".cargo", "config" | "config.toml"] | [".m2", "settings.xml"] => 2,
        [".gradle", file] if file.ends_with(".gradle") || *file == "gradle.properties" => 2,
        [file] if SETTINGS.contains(file) => 1,
        _ => return None,
    };
    Some(format!("~/{}", words.get(..depth)?.join("/")))
}

fn parts(path: &Path) -> Vec<String> {
    path.components().map(|part| part.as_os_str().to_string_lossy().into_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packages_programs_and_settings_are_distinguished_from_caches_and_product() {
        for (path, place) in [
            ("node_modules/jest/build/a.js", Some("node_modules/jest")),
            ("a/node_modules/@jest/core/x/y.js", Some("a/node_modules/@jest/core")),
            ("node_modules/.bin/jest", Some("node_modules/.bin/jest")),
            (
                "node_modules/.pnpm/jest@29/node_modules/jest/a.js",
                Some("node_modules/.pnpm/jest@29/node_modules/jest"),
            ),
            ("node_modules/.cache/babel/x.json", None),
            (".venv/lib/python3.12/site-packages/a.pth", Some(".venv/lib/python3.12/site-packages/a.pth")),
            ("venv/bin/pytest", Some("venv/bin/pytest")),
            ("tests/__pycache__/test_a.cpython-312.pyc", Some("tests/__pycache__/test_a.cpython-312.pyc")),
            ("src/gen/types.py", None),
            ("target/debug/deps/a", None),
        ] {
            assert_eq!(in_workspace(Path::new(path)).as_deref(), place, "{path}");
        }
        for (path, place) in [
            (
                ".local/lib/python3.12/site-packages/a.pth",
                Some("~/.local/lib/python3.12/site-packages/a.pth"),
            ),
            (".local/bin/pytest", Some("~/.local/bin/pytest")),
            (".npmrc", Some("~/.npmrc")),
            (".config/go/env", Some("~/.config/go")),
            (".config/shop/a", None),
            (".cache/go-build/00/x", None),
            (".cargo/registry/x", None),
            ("notes.txt", None),
        ] {
            assert_eq!(at_home(Path::new(path)).as_deref(), place, "{path}");
        }
    }
}
