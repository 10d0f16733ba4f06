//! Environment variables as a value: read once at the edge of the program, then passed down. A copy holds the values
//! of that moment plus overlays, and nothing of other runs.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A snapshot of variables. Cloning it is cheap.
#[derive(Clone, Default, PartialEq, Eq)]
pub struct Vars {
    all: Arc<BTreeMap<OsString, OsString>>,
    /// The PATH for this program's own tools, if it is narrower than `PATH`.
    own_path: Option<Arc<OsStr>>,
}

/// Names only: values may be secrets.
impl std::fmt::Debug for Vars {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_set().entries(self.all.keys()).finish()
    }
}

impl<K: Into<OsString>, V: Into<OsString>> FromIterator<(K, V)> for Vars {
    fn from_iter<I: IntoIterator<Item = (K, V)>>(pairs: I) -> Self {
        let all = pairs.into_iter().map(|(name, value)| (name.into(), value.into())).collect();
        Self { all: Arc::new(all), own_path: None }
    }
}

impl Vars {
    /// The value, if set and valid text.
    pub fn get(&self, name: &str) -> Option<String> {
        self.get_os(name)?.to_str().map(str::to_owned)
    }

    /// The value, if set, valid text and not empty.
    pub fn filled(&self, name: &str) -> Option<String> {
        self.get(name).filter(|value| !value.is_empty())
    }

    pub fn get_os(&self, name: &str) -> Option<&OsStr> {
        self.all.get(OsStr::new(name)).map(OsString::as_os_str)
    }

    /// Whether it is set and not empty.
    pub fn is_filled(&self, name: &str) -> bool {
        self.get_os(name).is_some_and(|value| !value.is_empty())
    }

    pub fn iter(&self) -> impl Iterator<Item = (&OsStr, &OsStr)> {
        self.all.iter().map(|(name, value)| (name.as_os_str(), value.as_os_str()))
    }

    /// Those whose names and values are text.
    pub fn texts(&self) -> impl Iterator<Item = (String, String)> {
        self.iter().filter_map(|(name, value)| Some((name.to_str()?.to_owned(), value.to_str()?.to_owned())))
    }

    /// A copy with more variables laid over it.
    #[must_use]
    pub fn with<K: Into<OsString>, V: Into<OsString>>(
        &self,
        pairs: impl IntoIterator<Item = (K, V)>,
    ) -> Self {
        let mut all = BTreeMap::clone(&self.all);
        all.extend(pairs.into_iter().map(|(name, value)| (name.into(), value.into())));
        Self { all: Arc::new(all), own_path: self.own_path.clone() }
    }

    /// A copy with another PATH for this program's own tools: agents can write in some folders of `PATH`.
    #[must_use]
    pub fn with_own_path(&self, path: &OsStr) -> Self {
        Self { own_path: Some(path.into()), ..self.clone() }
    }

    pub fn has_own_path(&self) -> bool {
        self.own_path.is_some()
    }

    /// The `PATH` for tools that this program starts itself, outside any sandbox.
    pub fn own_path(&self) -> &OsStr {
        self.own_path.as_deref().or_else(|| self.get_os("PATH")).unwrap_or_default()
    }

    /// The absolute folders of `PATH`.
    pub fn path_folders(&self) -> Vec<PathBuf> {
        let path = self.get_os("PATH").unwrap_or_default();
        std::env::split_paths(path).filter(|folder| folder.is_absolute()).collect()
    }

    /// `HOME`, if set.
    pub fn home(&self) -> Option<&Path> {
        self.get_os("HOME").filter(|home| !home.is_empty()).map(Path::new)
    }

    /// The folder for temporary files: `TMPDIR`, else `/tmp`.
    pub fn temp_dir(&self) -> PathBuf {
        self.get_os("TMPDIR").filter(|dir| !dir.is_empty()).map_or_else(|| "/tmp".into(), PathBuf::from)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tools_of_this_program_may_come_from_fewer_folders() {
        let vars: Vars = [("PATH", "/repo/bin:/usr/bin")].into_iter().collect();
        assert_eq!((vars.own_path(), vars.has_own_path()), (OsStr::new("/repo/bin:/usr/bin"), false));
        let own = vars.with_own_path(OsStr::new("/usr/bin")).with([("A", "1")]);
        assert_eq!(
            (own.own_path(), own.get("PATH").as_deref()),
            (OsStr::new("/usr/bin"), Some("/repo/bin:/usr/bin"))
        );
    }

    #[test]
    fn overlay_does_not_change_the_snapshot() {
        let vars: Vars = [("A", "1"), ("HOME", "/home/me"), ("E", "")].into_iter().collect();
        let over = vars.with([("A", "2"), ("B", "3")]);
        assert_eq!((vars.get("A").as_deref(), vars.get("B")), (Some("1"), None));
        assert_eq!((over.get("A").as_deref(), over.get("B").as_deref()), (Some("2"), Some("3")));
        assert_eq!(vars.home(), Some(Path::new("/home/me")));
        assert_eq!((vars.filled("E"), vars.is_filled("E")), (None, false));
        assert_eq!(vars.temp_dir(), Path::new("/tmp"));
    }

    #[test]
    fn relative_folders_of_the_path_do_not_count() {
        let vars: Vars = [("PATH", "/bin:relative::/usr/bin")].into_iter().collect();
        assert_eq!(vars.path_folders(), [PathBuf::from("/bin"), PathBuf::from("/usr/bin")]);
    }

    #[test]
    fn values_are_not_shown() {
        let vars: Vars = [("KEY", "secret-value")].into_iter().collect();
        assert_eq!(format!("{vars:?}"), "{\"KEY\"}");
    }
}
