//! Logins of agents in a local sandbox: in the run's home while a session of the agent runs, and otherwise invisible
//! to commands.
//!
//! An agent's folders go in and out with its login: what it remembers between sessions may hold a token as well, and
//! a check that could write there could write settings that the agent obeys while it is logged in.

mod account;
pub(super) mod auth;
pub(super) mod covers;
pub(super) mod login_secrets;
pub(super) mod mcp;
pub(super) mod shared;

use crate::local::isolation::logins::auth::{AuthFile, MOST, gather, own_places, take_back};
use crate::local::isolation::logins::shared::files_of;
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use ralph_loop_task::config::Share;
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The run's home, in its sandbox's folder.
pub(super) const HOME: &str = "home";
/// The folder next to the run's home where agents' folders are kept between their sessions. No command sees it.
pub(super) const KEPT: &str = "agents";

/// What the sessions of one agent program get of the user's home.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AgentLogin {
    /// Files that are copied in: its login, and what the user shares.
    files: Vec<AuthFile>,
    /// Its own files and folders.
    places: &'static [&'static str],
}

impl AgentLogin {
    /// The login of the known agent program `name`, for the user whose home is `home`.
    pub fn of(name: &str, home: &Path, share: &[Share]) -> Self {
        Self { files: files_of(name, home, share), places: own_places(name) }
    }

    /// Everything that must not be there when no session runs: its own paths, and files elsewhere.
    fn all(&self) -> impl Iterator<Item = &Path> {
        let places = self.places.iter().map(Path::new);
        let elsewhere = |path: &&Path| !self.places.iter().any(|place| path.starts_with(place));
        places.chain(self.files.iter().map(|file| file.path.as_path()).filter(elsewhere))
    }
}

#[derive(Debug)]
pub(super) struct Logins {
    user_home: PathBuf,
    /// The sandbox's folder, which holds the run's home.
    folder: PathBuf,
    by_program: BTreeMap<String, AgentLogin>,
    sessions: Mutex<BTreeMap<String, Sessions>>,
}

#[derive(Debug, Default)]
struct Sessions {
    count: usize,
    /// What they were given.
    files: Vec<(AuthFile, Vec<u8>)>,
}

/// A login that is in the sandbox now; removed when dropped.
#[derive(Debug)]
pub(crate) struct LoggedIn<'a> {
    logins: &'a Logins,
    program: &'a str,
}

impl Drop for LoggedIn<'_> {
    fn drop(&mut self) {
        self.logins.log_out(self.program);
    }
}

impl Logins {
    pub(super) fn new(user_home: &Path, folder: &Path, by_program: &BTreeMap<String, AgentLogin>) -> Self {
        Self {
            user_home: user_home.to_owned(),
            folder: folder.to_owned(),
            by_program: by_program.clone(),
            sessions: Mutex::default(),
        }
    }

    /// Copies a program's login into the run's home, if it has one.
    pub(super) fn log_in(&self, program: &str) -> io::Result<Option<LoggedIn<'_>>> {
        let Some((program, login)) = self.by_program.get_key_value(program) else { return Ok(None) };
        let mut all = self.sessions();
        let sessions = all.entry(program.clone()).or_default();
        sessions.count += 1;
        // On any later failure, what was copied in is removed.
        let logged_in = LoggedIn { logins: self, program };
        let placed = if sessions.count == 1 { self.put_in(login, &mut sessions.files) } else { Ok(()) };
        drop(all);
        placed.map(|()| Some(logged_in))
    }

    fn put_in(&self, login: &AgentLogin, given: &mut Vec<(AuthFile, Vec<u8>)>) -> io::Result<()> {
        // Commands have written in the home: no link in it is followed.
        let folder = SafeDir::open(&self.folder)?;
        for place in login.all() {
            clear_the_way(&folder, place)?;
        }
        for place in login.places {
            match folder.rename(Path::new(KEPT).join(place), Path::new(HOME).join(place)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
        *given = gather(&self.user_home, login.files.clone());
        for file in &login.files {
            let path = Path::new(HOME).join(&file.path);
            match given.iter().find(|(given, _)| given.path == file.path) {
                Some((_, bytes)) => folder.write_with(path, bytes, 0o600)?,
                None => folder.remove(path)?,
            }
        }
        Ok(())
    }

    /// Takes it out again; a renewed token goes to the user.
    fn log_out(&self, program: &str) {
        let Some(login) = self.by_program.get(program) else { return };
        let mut all = self.sessions();
        let Some(sessions) = all.get_mut(program) else { return };
        sessions.count = sessions.count.saturating_sub(1);
        let Ok(folder) = SafeDir::open(&self.folder) else { return };
        take_back(&self.user_home, &mut sessions.files, |path| {
            folder.read(Path::new(HOME).join(path), Links::Refused, MOST + 1).ok()
        });
        if sessions.count > 0 {
            return;
        }
        sessions.files.clear();
        for place in login.all() {
            let (inside, kept) = (Path::new(HOME).join(place), Path::new(KEPT).join(place));
            let keep = login.places.iter().any(|own| Path::new(own) == place);
            let _ = folder.remove(&kept);
            if keep && folder.rename(&inside, &kept).is_ok() {
                continue;
            }
            if folder.remove(&inside).is_err() && folder.facts(&inside).is_ok() {
                ralph_loop_safe_fs::remove_tree(self.folder.join(&inside)).ok();
            }
        }
    }

    fn sessions(&self) -> MutexGuard<'_, BTreeMap<String, Sessions>> {
        self.sessions.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Removes what a command has put in place of an agent's file or folder, and anything but folders on the way there.
fn clear_the_way(folder: &SafeDir, place: &Path) -> io::Result<()> {
    let mut way = PathBuf::from(HOME);
    for part in place.parent().into_iter().flat_map(Path::components) {
        way.push(part);
        if folder.facts(&way).is_ok_and(|facts| facts.kind != Kind::Folder) {
            folder.remove(&way)?;
        }
    }
    let there = Path::new(HOME).join(place);
    if folder.remove(&there).is_err() {
        ralph_loop_safe_fs::remove_tree(folder.path().join(&there)).ok();
    }
    match folder.facts(&there) {
        Ok(_) => Err(io::Error::other(format!("`{}` in the run's home cannot be removed", place.display()))),
        Err(_) => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::fs;

    const TOKEN: &str = ".claude/.credentials.json";
    const OWNER: &str = r#"{"oauthAccount":{"accountUuid":"ana"}}"#;

    fn login(token: u8) -> String {
        format!(r#"{{"a":{token},"organizationUuid":"o"}}"#)
    }

    struct Homes {
        folder: tempfile::TempDir,
        user: tempfile::TempDir,
        logins: Logins,
    }

    impl Homes {
        fn new() -> Self {
            let (folder, user) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
            fs::create_dir(folder.path().join(HOME)).unwrap();
            fs::create_dir(user.path().join(".claude")).unwrap();
            fs::write(user.path().join(TOKEN), login(1)).unwrap();
            fs::write(user.path().join(".claude.json"), OWNER).unwrap();
            let login = AgentLogin::of("claude", user.path(), &[]);
            let by_program = BTreeMap::from([("/bin/claude".to_owned(), login)]);
            let logins = Logins::new(user.path(), folder.path(), &by_program);
            Self { folder, user, logins }
        }

        fn inside(&self, name: &str) -> PathBuf {
            self.folder.path().join(HOME).join(name)
        }

        fn token(&self) -> String {
            fs::read_to_string(self.user.path().join(TOKEN)).unwrap()
        }
    }

    #[test]
    fn login_is_present_only_during_its_session_and_renewed_token_is_kept() {
        let homes = Homes::new();
        assert!(homes.logins.log_in("/bin/sh").unwrap().is_none());
        assert!(!homes.inside(".claude").exists());
        let session = homes.logins.log_in("/bin/claude").unwrap();
        assert_eq!(fs::read_to_string(homes.inside(TOKEN)).unwrap(), login(1));
        fs::write(homes.inside(TOKEN), login(2)).unwrap();
        fs::write(homes.inside(".claude/history"), "what it remembers").unwrap();
        let second = homes.logins.log_in("/bin/claude").unwrap();
        drop(session);
        assert!(homes.inside(TOKEN).exists(), "another session is still active");
        drop(second);
        assert!(!homes.inside(".claude").exists());
        assert_eq!(homes.token(), login(2));
        let _session = homes.logins.log_in("/bin/claude").unwrap();
        assert_eq!(fs::read_to_string(homes.inside(".claude/history")).unwrap(), "what it remembers");
    }

    #[test]
    fn files_planted_at_login_paths_are_ignored() {
        let homes = Homes::new();
        let elsewhere = tempfile::tempdir().unwrap();
        fs::write(elsewhere.path().join(".credentials.json"), login(7)).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), homes.inside(".claude")).unwrap();
        fs::create_dir(homes.inside(".claude.json")).unwrap();
        let session = homes.logins.log_in("/bin/claude").unwrap();
        assert_eq!(fs::read_to_string(homes.inside(".claude.json")).unwrap(), OWNER);
        assert_eq!(fs::read_to_string(homes.inside(TOKEN)).unwrap(), login(1));
        drop(session);
        // Settings that a check created are gone when the agent runs.
        fs::create_dir(homes.inside(".claude")).unwrap();
        fs::write(homes.inside(".claude/settings.json"), "{\"apiKeyHelper\":\"x\"}").unwrap();
        fs::write(homes.inside(TOKEN), login(8)).unwrap();
        let session = homes.logins.log_in("/bin/claude").unwrap();
        assert!(!homes.inside(".claude/settings.json").exists());
        // A link to a secret isn't a token, and neither is one behind a folder that leads elsewhere.
        fs::remove_file(homes.inside(TOKEN)).unwrap();
        std::os::unix::fs::symlink(elsewhere.path().join(".credentials.json"), homes.inside(TOKEN)).unwrap();
        drop(session);
        assert_eq!(homes.token(), login(1));
        let session = homes.logins.log_in("/bin/claude").unwrap();
        fs::rename(homes.inside(".claude"), homes.inside("moved")).unwrap();
        std::os::unix::fs::symlink(elsewhere.path(), homes.inside(".claude")).unwrap();
        drop(session);
        assert_eq!(homes.token(), login(1));
        assert_eq!(fs::read_to_string(elsewhere.path().join(".credentials.json")).unwrap(), login(7));
        assert!(!homes.inside(".claude").exists());
    }
}
