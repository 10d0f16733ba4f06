//! Publishing packages, images and releases.

use super::Call;
use crate::guard::category::{Category, Refusal};

/// A program, and a verb of its that publishes.
const VERBS: &[(&str, &str)] = &[
    ("npm", "publish"),
    ("npm", "unpublish"),
    ("npm", "deprecate"),
    ("npm", "dist-tag"),
    ("npm", "owner"),
    ("npm", "access"),
    ("pnpm", "publish"),
    ("yarn", "publish"),
    ("bun", "publish"),
    ("lerna", "publish"),
    ("cargo", "publish"),
    ("cargo", "yank"),
    ("cargo", "owner"),
    ("cargo", "release"),
    ("cargo-release", ""),
    ("poetry", "publish"),
    ("flit", "publish"),
    ("hatch", "publish"),
    ("uv", "publish"),
    ("pdm", "publish"),
    ("twine", "upload"),
    ("maturin", "publish"),
    ("maturin", "upload"),
    ("gem", "push"),
    ("gem", "yank"),
    ("docker", "push"),
    ("podman", "push"),
    ("nerdctl", "push"),
    ("buildah", "push"),
    ("vsce", "publish"),
    ("ovsx", "publish"),
    ("jsr", "publish"),
    ("deno", "publish"),
    ("changeset", "publish"),
    ("wasm-pack", "publish"),
    ("mvn", "deploy"),
    ("gradle", "publish"),
    ("gradlew", "publish"),
    ("dotnet", "nuget"),
    ("nuget", "push"),
    ("helm", "push"),
    ("pod", "trunk"),
    ("fastlane", "release"),
    ("np", ""),
    ("semantic-release", ""),
    ("release-it", ""),
    ("conan", "upload"),
    ("luarocks", "upload"),
    ("snapcraft", "upload"),
    ("goreleaser", "release"),
    ("wrangler", "deploy"),
    ("wrangler", "publish"),
    ("vercel", "deploy"),
    ("netlify", "deploy"),
    ("firebase", "deploy"),
    ("gh-pages", ""),
    ("surge", ""),
    ("oras", "push"),
    ("crane", "push"),
    ("skopeo", "copy"),
];

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let dry = call.option(&["--dry-run", "--help", "-h", "--version", "--snapshot", "--list"])
        || call.has(&["-n"]) && call.name == "cargo";
    if dry {
        return None;
    }
    let verbs = call.verbs();
    let first = verbs.first().copied().unwrap_or_default();
    let refuse = || call.refuse(Category::Publish, "It publishes something that cannot be taken back.");
    let found = VERBS.iter().any(|(name, verb)| *name == call.name && (verb.is_empty() || first == *verb));
    let nested = call.is("yarn", &["npm", "publish"])
        || call.is("docker", &["image", "push"])
        || call.is("docker", &["manifest", "push"])
        || call.is("dotnet", &["nuget", "push"])
        || call.is("gh", &["release"])
        || call.name == "docker" && call.option(&["--push"])
        || call.is("python", &["twine", "upload"])
        || (call.name == "pnpm" || call.name == "yarn" || call.name == "npm")
            && first != "run"
            && verbs.contains(&"publish")
            && call.operands().count() <= 3;
    let only_shows = match (call.name, first) {
        ("npm", "owner" | "access" | "dist-tag") => {
            verbs.get(1).is_some_and(|verb| ["ls", "list", "get"].contains(verb))
        }
        ("gh", _) => verbs.get(1).is_some_and(|verb| ["list", "view", "download"].contains(verb)),
        ("dotnet", "nuget") => verbs.get(1).is_some_and(|verb| *verb != "push"),
        ("pod", "trunk") => verbs.get(1).is_some_and(|verb| *verb != "push"),
        _ => false,
    };
    let module =
        call.name.starts_with("python") && call.value(&["-m"]) == Some("twine") && call.has(&["upload"]);
    if (found || nested || module) && !only_shows { refuse() } else { None }
}
