//! Syncs the state files of `.ralph/` that both sides of a sandbox write: the agent and the engine on one, the user
//! on the other.

use crate::error::{Error, Result};
use crate::objects::files::write_atomically;
use crate::process::command::Git;
use ralph_loop_domain::vars::Vars;
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use std::fs;
use std::path::{Path, PathBuf};

const NAMES: &[&str] =
    &["guardrails.md", "progress.md", "notes.md", "diagnostics.md", "errors.log", "DONE.md"];
/// Larger files aren't meant for reading.
const BYTES_MAX: u64 = 8 * 1024 * 1024;

#[derive(Debug)]
pub(crate) struct RalphDirMirror {
    vars: Vars,
    user: PathBuf,
    agent: PathBuf,
    base: PathBuf,
}

impl RalphDirMirror {
    pub(crate) fn new(vars: &Vars, user: &Path, agent: &Path, folder: &Path) -> Self {
        let [user, agent] = [user, agent].map(|top| top.join(".ralph"));
        Self { vars: vars.clone(), user, agent, base: folder.join("state") }
    }

    /// Copies every file to the side that hasn't changed it; merges what both have changed, losing nothing.
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
        let [theirs, ours, old] = [&self.user, &self.agent, &self.base].map(|folder| read(folder, name));
        let (Ok(theirs), Ok(ours), Ok(old)) = (theirs, ours, old) else { return Ok(()) };
        if theirs == ours {
            return if old == ours { Ok(()) } else { put(&self.base, name, ours.as_deref()) };
        }
        let new = if ours == old {
            theirs.clone()
        } else if theirs == old {
            ours.clone()
        } else {
            Some(self.joined(name, [ours.as_deref(), old.as_deref(), theirs.as_deref()])?)
        };
        for (folder, has) in [(&self.agent, &ours), (&self.user, &theirs), (&self.base, &old)] {
            if *has != new {
                put(folder, name, new.as_deref())?;
            }
        }
        Ok(())
    }

    /// Merges the agent's, the common and the user's version. Git gets copies that only the engine writes, so an
    /// agent can't change them after they were read.
    fn joined(&self, name: &str, sides: [Option<&[u8]>; 3]) -> Result<Vec<u8>> {
        let mut files = Vec::new();
        for (side, text) in ["ours", "old", "theirs"].into_iter().zip(sides) {
            let copy = self.base.join(format!("{name}.{side}"));
            write_atomically(&copy, text.unwrap_or_default())?;
            files.push(copy);
        }
        let args = ["merge-file", "-p", "-q", "--union"].map(std::ffi::OsStr::new);
        let args = args.into_iter().chain(files.iter().map(|path| path.as_os_str()));
        let joined = Git::in_folder(&self.vars, &self.user).call(args).run();
        for copy in &files {
            let _ = fs::remove_file(copy);
        }
        Ok(joined?.stdout)
    }
}

/// The content; `None` if the file doesn't exist, an error if it is too large or not a file.
fn read(folder: &Path, name: &str) -> Result<Option<Vec<u8>>, ()> {
    let above = SafeDir::open(folder.parent().unwrap_or(Path::new("/")));
    let folder = match above.and_then(|above| above.folder(folder.file_name().unwrap_or_default())) {
        Ok(folder) => folder,
        Err(e) if e.kind() == std::io::ErrorKind::NotFound => return Ok(None),
        // A link or a file instead of the folder doesn't count as a missing file.
        Err(_) => return Err(()),
    };
    match folder.facts(name) {
        Err(_) => Ok(None),
        Ok(facts) if facts.kind == Kind::File && facts.length <= BYTES_MAX => {
            folder.read(name, Links::Refused, BYTES_MAX).map(Some).map_err(drop)
        }
        Ok(_) => Err(()),
    }
}

/// Writes or removes the file. The folder may be an agent's, so links are never followed.
fn put(folder: &Path, name: &str, text: Option<&[u8]>) -> Result<()> {
    let failed = |e| Error::file("write", &folder.join(name), e);
    let above = folder.parent().unwrap_or(Path::new("/"));
    fs::create_dir_all(above).map_err(|e| Error::file("create", above, e))?;
    let above = SafeDir::open(above).map_err(failed)?;
    let folder_name = folder.file_name().unwrap_or_default();
    let dir = above.create_folder(folder_name).map_err(failed)?;
    match text {
        Some(text) => dir.write(name, text).map_err(failed),
        None => dir.remove(name).map_err(failed),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn edits_of_both_sides_are_merged() {
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
        std::os::unix::fs::symlink("/etc/hostname", &agent).unwrap();
        mirror.sync().unwrap();
        assert!(!user.exists());
    }
}
