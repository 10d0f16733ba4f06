//! Where a lock takes the tools of tests from. A newer version from the same place is nobody's business, nor is another
//! dependency; another place, or another content under the same version, puts something else in the place of what runs tests.

use super::local_packages::{is_npm_lock, is_test_library};
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// Packages that tests of Python are run by or written with; those that begin like the first ones, too.
const PYTHON_FAMILIES: &[&str] = &["pytest", "unittest", "nose", "hypothesis", "robotframework"];
const PYTHON: &[&str] = &[
    "behave",
    "coverage",
    "freezegun",
    "green",
    "iniconfig",
    "mock",
    "nox",
    "pluggy",
    "responses",
    "stestr",
    "testtools",
    "tox",
    "vcrpy",
    "ward",
];
/// The same of Rust.
const RUST: &[&str] = &[
    "assert_cmd",
    "assert_fs",
    "criterion",
    "expect-test",
    "insta",
    "insta-cmd",
    "libtest-mimic",
    "mockall",
    "mockito",
    "predicates",
    "pretty_assertions",
    "proptest",
    "quickcheck",
    "quickcheck_macros",
    "rstest",
    "serial_test",
    "snapbox",
    "test-case",
    "test-log",
    "trybuild",
    "trycmd",
    "wiremock",
];
/// The same of Go: modules, and all below them.
const GO: &[&str] = &[
    "github.com/stretchr/testify",
    "github.com/onsi/ginkgo",
    "github.com/onsi/gomega",
    "gotest.tools",
    "github.com/google/go-cmp",
    "github.com/golang/mock",
    "go.uber.org/mock",
    "github.com/smartystreets/goconvey",
    "gopkg.in/check.v1",
    "github.com/frankban/quicktest",
    "github.com/matryer/is",
];

/// A package of a lock.
#[derive(Debug, Default, PartialEq, Eq)]
struct Locked {
    /// The key by which a change is told, where that is not its name and version.
    key: Option<String>,
    name: String,
    version: String,
    /// Where it comes from, without its version.
    source: String,
    /// What is in it.
    content: String,
}

impl Locked {
    fn key(&self) -> String {
        self.key.clone().unwrap_or_else(|| format!("package {} {}", self.name, self.version))
    }

    /// Whether this comes from where the other one comes from, and is the same where it has the same version.
    fn is_alike(&self, other: &Self) -> bool {
        self.source == other.source && (self.version != other.version || self.content == other.content)
    }
}

/// Whether a file is a lock whose sources are read.
pub(super) fn is_source_lock(name: &str) -> bool {
    is_npm_lock(name)
        || matches!(
            name,
            "yarn.lock"
                | "pnpm-lock.yaml"
                | "poetry.lock"
                | "uv.lock"
                | "pdm.lock"
                | "Cargo.lock"
                | "go.sum"
                | "go.mod"
        )
}

/// The places that the lock `text` takes tools of tests from, by key; `other` is the lock that it is compared with. A tool that
/// only one of them has counts where it comes from a place that nothing else comes from.
pub(super) fn tool_sources(name: &str, text: Option<&str>, other: Option<&str>) -> BTreeMap<String, String> {
    let (own, other) = (locked(name, text.unwrap_or_default()), locked(name, other.unwrap_or_default()));
    let usual: BTreeSet<&str> = other.iter().map(|one| place(&one.source)).collect();
    let mut found = BTreeMap::new();
    for one in own.iter().filter(|one| is_tool(name, &one.name)) {
        let there = other.iter().find(|o| o.key() == one.key());
        let mut named = other.iter().filter(|o| o.name == one.name).peekable();
        let is_known = match (there, named.peek()) {
            (Some(_), _) => false,
            (None, Some(_)) => named.any(|o| o.is_alike(one)),
            (None, None) => other.is_empty() || usual.contains(place(&one.source)),
        };
        if !is_known {
            let content = if there.is_some_and(|o| o.version == one.version) { &one.content } else { "" };
            found.insert(one.key(), format!("{} {content}", one.source));
        }
    }
    found
}

/// The server of a source; what is no address stands for itself.
fn place(source: &str) -> &str {
    // `name@npm`, `name@https://…`
    let source = source.get(name_before_at(source).len()..).filter(|rest| !rest.is_empty()).unwrap_or(source);
    let from = source.find("://").map_or(0, |at| at + 3);
    let end = source[from..].find('/').map_or(source.len(), |at| from + at);
    if from == 0 { source } else { &source[..end] }
}

/// Whether tests of Python are run by a package of this name, or written with it.
pub(super) fn is_python_tool(name: &str) -> bool {
    let name = name.to_ascii_lowercase().replace('_', "-");
    PYTHON.contains(&name.as_str()) || PYTHON_FAMILIES.iter().any(|family| name.starts_with(family))
}

fn is_tool(lock: &str, name: &str) -> bool {
    match lock {
        "Cargo.lock" => RUST.contains(&name),
        "poetry.lock" | "uv.lock" | "pdm.lock" => is_python_tool(name),
        "go.sum" | "go.mod" => GO.iter().any(|tool| name == *tool || name.starts_with(&format!("{tool}/"))),
        _ => is_test_library(name),
    }
}

fn locked(name: &str, text: &str) -> Vec<Locked> {
    match name {
        "yarn.lock" => of_yarn(text),
        "pnpm-lock.yaml" => of_pnpm(text),
        "go.sum" => of_go_sum(text),
        "go.mod" => of_go_mod(text),
        name if is_npm_lock(name) => of_npm(text),
        _ => of_toml(text),
    }
}

/// An address without the file at its end, which has the version in its name, and without what follows `#`.
fn folder_of(address: &str) -> String {
    let address = address.trim_matches(['"', '\'']).split('#').next().unwrap_or_default();
    match (address.contains("://"), address.rsplit_once('/')) {
        (true, Some((folder, _))) if !folder.ends_with('/') => folder.to_owned(),
        _ => address.to_owned(),
    }
}

fn of_npm(text: &str) -> Vec<Locked> {
    let lock: Value = serde_json::from_str(text).unwrap_or_default();
    let word = |entry: &Value, key: &str| entry[key].as_str().unwrap_or_default().to_owned();
    let packages = lock["packages"].as_object().into_iter().flatten();
    packages
        .filter(|(key, _)| key.contains("node_modules/"))
        .map(|(key, entry)| Locked {
            key: Some(format!("packages/{key}")),
            name: key.rsplit("node_modules/").next().unwrap_or(key).to_owned(),
            version: word(entry, "version"),
            // A name of its own means that another package stands under this one's.
            source: format!("{}{}", folder_of(&word(entry, "resolved")), word(entry, "name")),
            content: word(entry, "integrity"),
        })
        .collect()
}

/// Both forms of `yarn.lock`: blocks, each with the wishes that it answers in its head.
fn of_yarn(text: &str) -> Vec<Locked> {
    let mut found: Vec<Locked> = Vec::new();
    for line in text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with('#')) {
        if !line.starts_with(' ') {
            let first = line.split(',').next().unwrap_or_default().trim().trim_end_matches(':');
            let first = first.trim_matches('"');
            found.push(Locked { name: name_before_at(first).to_owned(), ..Locked::default() });
            continue;
        }
        let Some(block) = found.last_mut() else { continue };
        let (key, value) = line.trim().split_once([' ', ':']).unwrap_or_default();
        let value = value.trim().trim_matches('"');
        match key.trim_end_matches(':') {
            "version" => block.version = value.to_owned(),
            "resolved" => block.source = folder_of(value),
            // `name@npm:1.2.3`: the name that it really has, and the kind of place.
            "resolution" => {
                let rest = value.get(name_before_at(value).len()..).unwrap_or_default();
                let kind = if rest.starts_with("@npm:") { "@npm" } else { rest };
                block.source = format!("{}{kind}", name_before_at(value));
            }
            "integrity" | "checksum" => block.content = value.to_owned(),
            _ => {}
        }
    }
    found
}

/// The name of a package before the `@` of its version; the one of a scope is a part of it.
fn name_before_at(text: &str) -> &str {
    let at = text.char_indices().skip(1).find(|(_, c)| *c == '@').map(|(at, _)| at);
    at.map_or(text, |at| &text[..at])
}

/// `pnpm-lock.yaml`: what the packages of the repo ask for, and what stands behind each package.
fn of_pnpm(text: &str) -> Vec<Locked> {
    let mut found: Vec<Locked> = Vec::new();
    let (mut section, mut asked) = ("", String::new());
    for line in text.lines() {
        let depth = line.len() - line.trim_start().len();
        let trimmed = line.trim();
        if depth == 0 && trimmed.ends_with(':') {
            section = trimmed.trim_end_matches(':');
            continue;
        }
        let value = |key: &str| trimmed.strip_prefix(key).map(|rest| rest.trim().trim_matches('\''));
        match section {
            "importers" | "dependencies" | "devDependencies" => {
                if let Some(name) = trimmed.strip_suffix(':') {
                    asked = name.trim_matches('\'').to_owned();
                } else if let Some(version) = value("version:") {
                    // A plain version is the registry's; anything else says where it comes from.
                    let plain = version.starts_with(|c: char| c.is_ascii_digit());
                    let source =
                        if plain { "registry".to_owned() } else { name_before_at(version).to_owned() };
                    found.push(Locked {
                        key: Some(format!("asked {asked}")),
                        name: asked.clone(),
                        version: version.to_owned(),
                        source,
                        content: String::new(),
                    });
                }
            }
            "packages" if depth == 2 => {
                let id = trimmed.trim_end_matches(':').trim_matches('\'').trim_start_matches('/');
                let name = name_before_at(id);
                let name = if name == id { id.rsplit_once('/').map_or(id, |(name, _)| name) } else { name };
                let version = id.get(name.len() + 1..).unwrap_or_default().to_owned();
                found.push(Locked { name: name.to_owned(), version, ..Locked::default() });
            }
            "packages" => {
                let Some((block, rest)) = found.last_mut().zip(value("resolution:")) else { continue };
                for part in rest.trim_matches(['{', '}']).split(", ") {
                    match part.split_once(": ") {
                        Some(("integrity", hash)) => block.content = hash.to_owned(),
                        Some(("tarball", address)) => block.source = folder_of(address),
                        Some((kind @ ("directory" | "repo"), place)) => {
                            block.source = format!("{kind} {place}")
                        }
                        _ => {}
                    }
                }
            }
            _ => {}
        }
    }
    found
}

/// Locks with blocks `[[package]]`: of cargo, poetry, pdm and uv.
fn of_toml(text: &str) -> Vec<Locked> {
    let mut found: Vec<Locked> = Vec::new();
    let mut inside = false;
    for line in text.lines().map(str::trim) {
        if line == "[[package]]" {
            found.push(Locked::default());
            inside = true;
            continue;
        }
        if line.starts_with('[') && line.ends_with(']') && !line.contains('=') && line.contains('.') {
            inside = line == "[package.source]";
            continue;
        }
        let Some(block) = found.last_mut() else { continue };
        // The files of a package stand in a list over several lines.
        if let Some((_, hash)) = line.split_once("hash = \"") {
            block.content.push_str(hash.split('"').next().unwrap_or_default());
            block.content.push(' ');
        }
        let Some((key, value)) = line.split_once(" = ").filter(|_| inside) else { continue };
        let value = value.trim_matches('"');
        match key {
            "name" => block.name = value.to_owned(),
            "version" => block.version = value.to_owned(),
            "source" => block.source = value.split('#').next().unwrap_or_default().to_owned(),
            // The two of poetry that say where; the commit is content.
            "type" | "url" => block.source.push_str(&format!("{key} {value} ")),
            "checksum" | "resolved_reference" => block.content = value.to_owned(),
            _ => {}
        }
    }
    for block in &mut found {
        let mut hashes: Vec<&str> = block.content.split_whitespace().collect();
        hashes.sort_unstable();
        block.content = hashes.join(" ");
    }
    found
}

fn of_go_sum(text: &str) -> Vec<Locked> {
    let one = |line: &str| {
        let [name, version, hash] = line.split_whitespace().collect::<Vec<_>>().try_into().ok()?;
        Some(Locked {
            key: Some(format!("module {name} {version}")),
            name: name.to_owned(),
            version: version.to_owned(),
            source: String::new(),
            content: hash.to_owned(),
        })
    };
    text.lines().filter_map(one).collect()
}

/// `replace` in `go.mod`: another module, or a folder, in the place of a tool. What is only required is in `go.sum`.
fn of_go_mod(text: &str) -> Vec<Locked> {
    let mut found = vec![Locked { source: "required".to_owned(), ..Locked::default() }];
    for line in text.lines().map(|line| line.split("//").next().unwrap_or_default().trim()) {
        let Some((from, to)) = line.split_once("=>") else { continue };
        let Some(name) = from.trim().trim_start_matches("replace ").split_whitespace().next() else {
            continue;
        };
        found.push(Locked {
            key: Some(format!("replace {name}")),
            name: name.to_owned(),
            version: String::new(),
            source: to.trim().to_owned(),
            content: String::new(),
        });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The keys that differ between two locks.
    fn told(name: &str, old: &str, new: &str) -> Vec<String> {
        let (before, now) =
            (tool_sources(name, Some(old), Some(new)), tool_sources(name, Some(new), Some(old)));
        let keys: BTreeSet<&String> = before.keys().chain(now.keys()).collect();
        keys.into_iter().filter(|key| before.get(*key) != now.get(*key)).cloned().collect()
    }

    /// An honest upgrade and another dependency say nothing; another place, and another content of the same version do.
    fn holds(name: &str, old: &str, upgraded: &str, swaps: &[&str], key: &str) {
        assert_eq!(told(name, old, old), [""; 0], "{name}");
        assert_eq!(told(name, old, upgraded), [""; 0], "{name}: an upgrade");
        assert_eq!(told(name, "", old), [""; 0], "{name}: the first lock");
        for swap in swaps {
            let told = told(name, old, swap);
            assert!(
                !told.is_empty() && told.iter().all(|one| one.starts_with(key)),
                "{name}: {told:?}: {swap}"
            );
        }
    }

    #[test]
    fn locks_of_npm() {
        let lock = |address: &str, version: &str, hash: &str, more: &str| {
            format!(
                r#"{{"packages":{{"node_modules/uvu":{{"version":"{version}","resolved":"{address}/uvu/-/uvu-{version}.tgz","integrity":"{hash}"}}{more}}}}}"#
            )
        };
        let old = lock("https://registry.npmjs.org", "0.5.5", "a", "");
        let more = r#","node_modules/ava":{"version":"6.0.0","resolved":"https://registry.npmjs.org/ava/-/ava-6.0.0.tgz","integrity":"x"}"#;
        let upgraded = lock("https://registry.npmjs.org", "0.5.6", "b", more);
        let elsewhere = lock("https://evil.example", "0.5.6", "b", "");
        let other = lock("https://registry.npmjs.org", "0.5.5", "z", "");
        let alias = old.replace("\"version\"", "\"name\":\"evil\",\"version\"");
        holds(
            "package-lock.json",
            &old,
            &upgraded,
            &[&elsewhere, &other, &alias],
            "packages/node_modules/uvu",
        );
        let new = lock(
            "https://registry.npmjs.org",
            "0.5.5",
            "a",
            &more.replace("https://registry.npmjs.org/ava", "https://evil.example/ava"),
        );
        assert_eq!(told("package-lock.json", &old, &new), ["packages/node_modules/ava"]);
    }

    #[test]
    fn locks_of_yarn_and_pnpm() {
        let one = |address: &str, version: &str, hash: &str| {
            format!(
                "# yarn lockfile v1\n\n\nuvu@^0.5.0:\n  version \"{version}\"\n  resolved \"{address}/uvu/-/uvu-{version}.tgz#abc\"\n  integrity {hash}\n"
            )
        };
        let npm = "https://registry.yarnpkg.com";
        let old = one(npm, "0.5.5", "a");
        let more = format!("{}\nleft-pad@1:\n  version \"1.0.0\"\n", one(npm, "0.5.6", "b"));
        holds(
            "yarn.lock",
            &old,
            &more,
            &[&one("https://evil.example", "0.5.6", "b"), &one(npm, "0.5.5", "z")],
            "package uvu",
        );
        let berry = |resolution: &str, hash: &str| {
            format!(
                "\"uvu@npm:^0.5.0\":\n  version: 0.5.5\n  resolution: \"{resolution}\"\n  checksum: {hash}\n"
            )
        };
        let old = berry("uvu@npm:0.5.5", "a");
        let upgraded = old.replace("0.5.5", "0.5.6").replace(": a", ": b");
        holds(
            "yarn.lock",
            &old,
            &upgraded,
            &[
                &berry("evil@npm:0.5.5", "a"),
                &berry("uvu@npm:0.5.5", "z"),
                &berry("uvu@https://evil.example/x.tgz", "a"),
            ],
            "package uvu",
        );
        let pnpm = |version: &str, resolution: &str| {
            format!(
                "lockfileVersion: '9.0'\n\nimporters:\n\n  .:\n    devDependencies:\n      uvu:\n        specifier: ^0.5.0\n        version: {version}\n\npackages:\n\n  uvu@{version}:\n    resolution: {{{resolution}}}\n"
            )
        };
        let old = pnpm("0.5.5", "integrity: a");
        holds(
            "pnpm-lock.yaml",
            &old,
            &pnpm("0.5.6", "integrity: b"),
            &[
                &pnpm("0.5.5", "integrity: z"),
                &pnpm("0.5.5", "tarball: https://evil.example/x.tgz, integrity: a"),
            ],
            "package uvu",
        );
        let alias = old.replace("        version: 0.5.5", "        version: evil@1.0.0");
        assert_eq!(told("pnpm-lock.yaml", &old, &alias), ["asked uvu"]);
    }

    #[test]
    fn locks_with_blocks() {
        let cargo = |version: &str, source: &str, sum: &str| {
            format!(
                "version = 4\n\n[[package]]\nname = \"insta\"\nversion = \"{version}\"\nsource = \"{source}\"\n{sum}dependencies = [\n \"once_cell\",\n]\n"
            )
        };
        let index = "registry+https://github.com/rust-lang/crates.io-index";
        let old = cargo("1.40.0", index, "checksum = \"a\"\n");
        let upgraded = cargo("1.41.0", index, "checksum = \"b\"\n")
            + "\n[[package]]\nname = \"once_cell\"\nversion = \"1.0.0\"\n";
        let swaps = [
            cargo("1.40.0", "git+https://evil.example/insta#1234", ""),
            cargo("1.40.0", index, "checksum = \"z\"\n"),
        ];
        holds("Cargo.lock", &old, &upgraded, &[&swaps[0], &swaps[1]], "package insta");
        let uv = |version: &str, source: &str, hash: &str| {
            format!(
                "version = 1\n\n[[package]]\nname = \"pytest\"\nversion = \"{version}\"\nsource = {{ {source} }}\nwheels = [\n    {{ url = \"https://f/x.whl\", hash = \"sha256:{hash}\", size = 1 }},\n]\n"
            )
        };
        let pypi = "registry = \"https://pypi.org/simple\"";
        let old = uv("8.0.0", pypi, "a");
        let swaps = [uv("8.0.0", "url = \"https://evil.example/x.whl\"", "a"), uv("8.0.0", pypi, "z")];
        holds("uv.lock", &old, &uv("8.1.0", pypi, "b"), &[&swaps[0], &swaps[1]], "package pytest");
        let poetry = |version: &str, hash: &str, source: &str| {
            format!(
                "[[package]]\nname = \"pytest\"\nversion = \"{version}\"\nfiles = [\n    {{file = \"x.whl\", hash = \"sha256:{hash}\"}},\n]\n\n[package.dependencies]\npluggy = \">=1\"\n{source}"
            )
        };
        let old = poetry("8.0.0", "a", "");
        let git = "\n[package.source]\ntype = \"git\"\nurl = \"https://evil.example/pytest\"\nresolved_reference = \"12\"\n";
        holds(
            "poetry.lock",
            &old,
            &poetry("8.1.0", "b", ""),
            &[&poetry("8.0.0", "a", git), &poetry("8.0.0", "z", "")],
            "package pytest",
        );
    }

    #[test]
    fn modules_of_go() {
        let old =
            "github.com/stretchr/testify v1.8.0 h1:a=\ngithub.com/stretchr/testify v1.8.0/go.mod h1:b=\n";
        let more = format!("{old}github.com/stretchr/testify v1.9.0 h1:c=\nexample.org/x v1.0.0 h1:d=\n");
        holds(
            "go.sum",
            old,
            &more,
            &[&old.replace("h1:a=", "h1:z=")],
            "module github.com/stretchr/testify v1.8.0",
        );
        let old = "module x\n\nrequire github.com/stretchr/testify v1.8.0\n";
        let upgraded = "module x\n\nrequire (\n\tgithub.com/stretchr/testify v1.9.0\n\texample.org/x v1.0.0\n)\nreplace example.org/x => ../x\n";
        for swap in [
            "replace github.com/stretchr/testify => ./fake\n",
            "replace (\n\tgithub.com/stretchr/testify v1.8.0 => evil.example/t v1.0.0\n)\n",
        ] {
            assert_eq!(
                told("go.mod", old, &format!("{old}{swap}")),
                ["replace github.com/stretchr/testify"],
                "{swap}"
            );
        }
        assert_eq!(told("go.mod", old, upgraded), [""; 0]);
    }
}
