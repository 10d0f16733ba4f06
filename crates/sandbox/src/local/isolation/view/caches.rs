//! Packages that the user has downloaded. Commands read them below a private layer, which takes what they write: tools
//! write locks, indexes and new packages next to them.

use std::ffi::OsStr;
use std::path::{Path, PathBuf};

/// Tells `__fence` of a folder and the folder of its private layer.
pub(in crate::local::isolation) const LAYER: &str = "--layer";

/// A cache of a package manager: its folder below the home, the variable that moves it with the folder below that,
/// and what of it commands never see: clones keep the address that they came from, maybe with a token.
struct Known(&'static str, Option<(&'static str, &'static str)>, &'static [&'static str]);

/// None of them holds logins: those are next to them (`credentials.toml`, `settings.xml`, `.npmrc`).
const KNOWN: [Known; 15] = [
    Known(".cargo/registry", Some(("CARGO_HOME", "registry")), &[]),
    Known("go/pkg/mod", Some(("GOMODCACHE", "")), &["cache/vcs"]),
    Known("go/pkg/mod", Some(("GOPATH", "pkg/mod")), &["cache/vcs"]),
    Known(".npm/_cacache", Some(("npm_config_cache", "_cacache")), &["tmp"]),
    Known(".yarn/berry/cache", None, &[]),
    Known(".cache/yarn", Some(("YARN_CACHE_FOLDER", "")), &[]),
    Known(".bun/install/cache", None, &[]),
    Known(".cache/pip", Some(("PIP_CACHE_DIR", "")), &[]),
    Known(".cache/uv", Some(("UV_CACHE_DIR", "")), &["git-v0"]),
    Known(".m2/repository", None, &[]),
    Known(".gradle/caches/modules-2", Some(("GRADLE_USER_HOME", "caches/modules-2")), &[]),
    Known(".gradle/wrapper/dists", Some(("GRADLE_USER_HOME", "wrapper/dists")), &[]),
    Known(".cache/coursier/v1", Some(("COURSIER_CACHE", "")), &[]),
    Known(".nuget/packages", Some(("NUGET_PACKAGES", "")), &[]),
    Known(".cache/composer/files", None, &[]),
];

#[derive(Debug, Clone, PartialEq, Eq)]
pub(in crate::local::isolation) struct Cache {
    /// The user's folder.
    pub(in crate::local::isolation) from: PathBuf,
    /// Where commands find it: tools don't get the variables that move it.
    pub(in crate::local::isolation) place: PathBuf,
    /// The sandbox's folder with its private layer.
    pub(in crate::local::isolation) layer: PathBuf,
    /// Folders in it that stay empty.
    pub(in crate::local::isolation) left_out: Vec<PathBuf>,
}

impl Cache {
    /// What a layer's folder is made of.
    pub(in crate::local::isolation) const PARTS: [&str; 3] = ["upper", "work", "merged"];

    /// The cache and its layer, as one folder.
    pub(in crate::local::isolation) fn merged(&self) -> PathBuf {
        self.layer.join("merged")
    }
}

/// The caches that exist, with layers below `folder`.
pub(in crate::local::isolation) fn caches<'a>(
    home: &Path,
    folder: &Path,
    var: impl Fn(&str) -> Option<&'a OsStr>,
) -> Vec<Cache> {
    let mut found: Vec<Cache> = Vec::new();
    for Known(place, moved, left_out) in KNOWN {
        let moved = moved.and_then(|(name, below)| Some(Path::new(var(name)?).join(below)));
        let folders = moved.filter(|path| path.is_absolute()).into_iter().chain([home.join(place)]);
        let place = home.join(place);
        let Some(from) = folders.filter_map(|path| path.canonicalize().ok()).find(|path| path.is_dir())
        else {
            continue;
        };
        // Those separate the parts of a mount's options.
        let is_plain = |path: &Path| path.to_str().is_some_and(|path| !path.contains([',', ':', '\\']));
        let layer = folder.join(found.len().to_string());
        let is_known = found.iter().any(|known| known.place == place);
        if is_known || home.starts_with(&from) || !is_plain(&from) || !is_plain(&layer) {
            continue;
        }
        let left_out = left_out.iter().filter(|name| from.join(name).is_dir()).map(|name| place.join(name));
        found.push(Cache { left_out: left_out.collect(), from, place, layer });
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn caches_are_found_where_they_are_and_keep_their_usual_place() {
        let dir = tempfile::tempdir().unwrap();
        let home = dir.path().canonicalize().unwrap().join("me");
        let moved = dir.path().canonicalize().unwrap().join("cargo");
        for folder in [home.join("go/pkg/mod/cache/vcs"), home.join(".m2/repository"), moved.join("registry")]
        {
            std::fs::create_dir_all(folder).unwrap();
        }
        let layers = Path::new("/state/caches");
        let found = caches(&home, layers, |name| (name == "CARGO_HOME").then_some(moved.as_os_str()));
        let of = |from: PathBuf, place: &str, number: &str, left_out: &[&str]| Cache {
            from,
            place: home.join(place),
            layer: layers.join(number),
            left_out: left_out.iter().map(|name| home.join(name)).collect(),
        };
        let want = [
            of(moved.join("registry"), ".cargo/registry", "0", &[]),
            of(home.join("go/pkg/mod"), "go/pkg/mod", "1", &["go/pkg/mod/cache/vcs"]),
            of(home.join(".m2/repository"), ".m2/repository", "2", &[]),
        ];
        assert_eq!(found, want);
        // A variable that names the home, or a folder around it, doesn't count.
        let found = caches(&home, layers, |name| (name == "PIP_CACHE_DIR").then_some(home.as_os_str()));
        assert!(found.iter().all(|cache| cache.from != home), "{found:?}");
    }
}
