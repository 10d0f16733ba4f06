//! The state files of `.ralph/` that both sides of a sandbox write: the agent and the engine on one, the user on the other.

use crate::command::Git;
use crate::error::{Error, Result};
use crate::store::write_atomically;
use ralph_domain::vars::Vars;
use std::fs;
use std::path::{Path, PathBuf};

/// The files, by their names in `.ralph/`.
const NAMES: &[&str] =
    &["guardrails.md", "progress.md", "notes.md", "diagnostics.md", "errors.log", "DONE.md"];
/// A larger one is none that a person reads.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

/// Keeps the files of two `.ralph/` folders the same.
#[derive(Debug)]
pub(crate) struct RalphDirMirror {
    vars: Vars,
    user: PathBuf,
    agent: PathBuf,
    /// What both had when they were last the same.
    base: PathBuf,
}

impl RalphDirMirror {
    pub(crate) fn new(vars: &Vars, user: &Path, agent: &Path, folder: &Path) -> Self {
        let [user, agent] = [user, agent].map(|top| top.join(".ralph"));
        Self { vars: vars.clone(), user, agent, base: folder.join("state") }
    }

    /// Brings every file to where it has not changed; what both have changed is joined, nothing of either lost.
    pub(crate) fn sync(&self) -> Result<()> {
        let real = |folder: &Path| fs::symlink_metadata(folder).is_ok_and(|meta| meta.is_dir());
        if !real(&self.user) || !real(&self.agent) {
            return Ok(());
        }
        for name in NAMES {
            self.sync_one(name)?;
        }
        Ok(())
    }

    fn sync_one(&self, name: &str) -> Result<()> {
        let [user, agent, base] = [&self.user, &self.agent, &self.base].map(|folder| folder.join(name));
        let [theirs, ours, old] = [&user, &agent, &base].map(|path| read(path));
        let (Ok(theirs), Ok(ours), Ok(old)) = (theirs, ours, old) else { return Ok(()) };
        if theirs == ours {
            return if old == ours { Ok(()) } else { put(&base, ours.as_deref()) };
        }
        let new = if ours == old {
            theirs.clone()
        } else if theirs == old {
            ours.clone()
        } else {
            Some(self.joined(&user, &agent, &base, old.is_some())?)
        };
        // First what the agent is shown, then the user's, then the memory: each step can be repeated.
        for (path, has) in [(&agent, &ours), (&user, &theirs), (&base, &old)] {
            if *has != new {
                put(path, new.as_deref())?;
            }
        }
        Ok(())
    }

    fn joined(&self, user: &Path, agent: &Path, base: &Path, has_base: bool) -> Result<Vec<u8>> {
        let base = if has_base { base } else { Path::new("/dev/null") };
        let or_none = |path: &Path| if path.exists() { path.to_owned() } else { PathBuf::from("/dev/null") };
        let files = [or_none(agent), base.to_owned(), or_none(user)];
        let args = ["merge-file", "-p", "-q", "--union"].map(std::ffi::OsStr::new);
        let args = args.into_iter().chain(files.iter().map(|path| path.as_os_str()));
        Ok(Git::in_folder(&self.vars, &self.user).call(args).run()?.stdout)
    }
}

/// The content; `None` where there is no file, an error where there is something else or too much.
fn read(path: &Path) -> Result<Option<Vec<u8>>, ()> {
    match fs::symlink_metadata(path) {
        Err(_) => Ok(None),
        Ok(meta) if meta.is_file() && meta.len() <= BYTES_MAX => fs::read(path).map(Some).map_err(drop),
        Ok(_) => Err(()),
    }
}

fn put(path: &Path, text: Option<&[u8]>) -> Result<()> {
    match text {
        Some(text) => write_atomically(path, text),
        None => match fs::remove_file(path) {
            Err(e) if e.kind() != std::io::ErrorKind::NotFound => Err(Error::file("remove", path, e)),
            _ => Ok(()),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_side_gets_what_the_other_wrote_and_both_writings_stay() {
        let folder = tempfile::tempdir().unwrap();
        let [user, agent] = ["user", "agent"].map(|name| folder.path().join(name));
        for top in [&user, &agent] {
            fs::create_dir_all(top.join(".ralph")).unwrap();
        }
        #[allow(clippy::disallowed_methods, reason = "tests are a border, too")]
        let vars = std::env::vars_os().collect();
        let mirror = RalphDirMirror::new(&vars, &user, &agent, &folder.path().join("memory"));
        let [user, agent] = [&user, &agent].map(|top| top.join(".ralph/notes.md"));
        let read = |path: &Path| fs::read_to_string(path).unwrap();
        fs::write(&user, "a\n").unwrap();
        mirror.sync().unwrap();
        assert_eq!(read(&agent), "a\n");
        fs::write(&agent, "a\nagent\n").unwrap();
        mirror.sync().unwrap();
        assert_eq!(read(&user), "a\nagent\n");
        fs::write(&agent, "a\nagent\nmore\n").unwrap();
        fs::write(&user, "mine\na\nagent\n").unwrap();
        mirror.sync().unwrap();
        assert_eq!((read(&user), read(&agent)), ("mine\na\nagent\nmore\n".into(), read(&user)));
        fs::remove_file(&user).unwrap();
        mirror.sync().unwrap();
        assert!(!agent.exists());
        // A link of the agent's is not followed.
        std::os::unix::fs::symlink("/etc/hostname", &agent).unwrap();
        mirror.sync().unwrap();
        assert!(!user.exists());
    }
}
