//! The git folder of an agent's copy, which the agent can write.
//!
//! Two things keep it harmless. The engine's git has a separate folder ([`make_own`]) with the original settings,
//! excludes and attributes, and takes only objects from the copy. Before git or the engine reads the copy's folder,
//! [`seal`] removes everything that is neither a file nor a folder, and restores the files that say where objects
//! are.

use crate::agent_copy::lent::{lender, users_store};
use crate::checkout::clean::Settings;
use crate::error::{Error, Result};
use crate::objects::files::write_atomically;
use crate::repo::Repo;
use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub(crate) const CONFIG_COPY: &str = "twin-config";
const OWN: &str = "engine.git";
/// Files that would redirect git. The copy never has them.
const REDIRECTS: &[&str] = &["commondir", "config.worktree", "objects/info/http-alternates", "info/grafts"];
/// More than any honest git folder has in one place.
const NAMES_MAX: usize = 1_000_000;
/// Deeper than any honest branch name.
const DEPTH_MAX: usize = 64;
const CONFIG_MAX: u64 = 16 * 1024 * 1024;

fn replaced(path: &Path) -> Error {
    Error::refused(
        format!("`{}` is no longer a git folder: the agent has replaced it", path.display()),
        "your own folder has what was handed back; start a new run",
    )
}

/// Removes everything from the copy's git folder that leads out of it or makes git run programs. No agent runs at the
/// same time.
pub(crate) fn seal(agent_copy: &Path, user: &Repo, kept: &Path) -> Result<()> {
    let path = agent_copy.join(".git");
    let fail = |error: std::io::Error| Error::file("look at", &path, error);
    let real = |path: &Path| fs::symlink_metadata(path).is_ok_and(|meta| meta.is_dir());
    // If an agent took permissions from itself, the engine as owner lacks them, too.
    ralph_loop_safe_fs::restore_owner(agent_copy).map_err(fail)?;
    if !real(agent_copy) || !real(&path) {
        return Err(replaced(&path));
    }
    ralph_loop_safe_fs::restore_owner(&path).map_err(fail)?;
    let own = agent_copy.join(".ralph");
    if real(&own) {
        ralph_loop_safe_fs::restore_owner_below(&own).map_err(|e| Error::file("look at", &own, e))?;
    }
    let git_dir = SafeDir::open(&path).map_err(fail)?;
    remove_links(&git_dir).map_err(fail)?;
    for name in REDIRECTS {
        git_dir.remove(name).map_err(fail)?;
    }
    if git_dir.facts("HEAD").is_err() {
        // Without `HEAD` git doesn't see a repo.
        let head = user.branch.as_ref().map(|branch| format!("ref: refs/heads/{branch}\n"));
        let head = head.unwrap_or_else(|| format!("{}\n", user.head));
        git_dir.write("HEAD", head.as_bytes()).map_err(fail)?;
    }
    let alternates = lender(user, kept)?;
    if git_dir.read("objects/info/alternates", Links::Refused, CONFIG_MAX).ok().as_ref() != Some(&alternates)
    {
        git_dir.remove("objects/info/alternates").map_err(fail)?;
        git_dir.write("objects/info/alternates", &alternates).map_err(fail)?;
    }
    let Ok(made) = fs::read(kept.join(CONFIG_COPY)) else { return Ok(()) };
    if git_dir.read("config", Links::Refused, CONFIG_MAX).ok().as_ref() != Some(&made) {
        git_dir.remove("config").map_err(fail)?;
        git_dir.write("config", &made).map_err(fail)?;
    }
    Ok(())
}

/// Removes everything that is neither a file nor a folder; git never creates such.
fn remove_links(git_dir: &SafeDir) -> std::io::Result<()> {
    let mut folders = vec![(PathBuf::from("."), 0)];
    while let Some((folder, depth)) = folders.pop() {
        if depth > 0 {
            git_dir.restore_owner(&folder)?;
        }
        let entries = git_dir.entries(&folder, NAMES_MAX)?;
        if depth >= DEPTH_MAX || entries.len() >= NAMES_MAX {
            let what =
                format!("`{}` has too many names, or too many folders in each other", folder.display());
            return Err(std::io::Error::new(ErrorKind::InvalidData, what));
        }
        for entry in entries {
            let path = if depth == 0 { PathBuf::from(&entry.name) } else { folder.join(&entry.name) };
            match entry.kind {
                Kind::File => {}
                Kind::Folder => folders.push((path, depth + 1)),
                Kind::Link | Kind::Special => git_dir.remove(&path)?,
            }
        }
    }
    Ok(())
}

/// Opens the copy at `top` without asking git, since nothing in it can be trusted. `folder` holds the run's records
/// of the copy, `kept` those of the user's repo.
pub(crate) fn open(top: &Path, user: &Repo, folder: &Path, kept: &Path) -> Result<Repo> {
    seal(top, user, kept)?;
    let git_dir = top.join(".git");
    let own = make_own(&git_dir, user, folder, kept)?;
    let mut repo = Repo {
        vars: user.vars.clone(),
        top: top.to_owned(),
        git_dir: git_dir.clone(),
        common_dir: git_dir,
        object_format: user.object_format,
        ref_format: crate::repo::RefFormat::Files,
        head: user.head.clone(),
        branch: None,
        engine_git_dir: Some(own),
    };
    repo.branch = repo.current_branch()?;
    Ok(repo)
}

/// Creates the engine's git folder for the copy, unless it exists: from the copy's before an agent could write it, or
/// from the saved configuration.
fn make_own(copy: &Path, user: &Repo, folder: &Path, kept: &Path) -> Result<PathBuf> {
    let own = folder.join(OWN);
    if own.join("HEAD").is_file() {
        return Ok(own);
    }
    for name in ["objects/info", "refs", "info"] {
        let folder = own.join(name);
        fs::create_dir_all(&folder).map_err(|e| Error::file("create", &folder, e))?;
    }
    let config = match fs::read(kept.join(CONFIG_COPY)) {
        Ok(config) => config,
        // A run of an older version; the copy was just sealed.
        Err(_) => fs::read(copy.join("config")).map_err(|e| Error::file("read", &copy.join("config"), e))?,
    };
    // The user's filters, which the agent's git doesn't get.
    let mut config = config;
    for (key, value) in Settings::load(user, kept)?.iter() {
        if let Some((section, name)) = key.rsplit_once('.') {
            config.extend_from_slice(setting(section, name, value).as_bytes());
        }
    }
    write_atomically(&own.join("config"), &config)?;
    for (from, to) in [
        (user.common_dir.join("shallow"), "shallow"),
        (user.common_dir.join("info/exclude"), "info/exclude"),
        (user.common_dir.join("info/attributes"), "info/attributes"),
    ] {
        if let Ok(bytes) = fs::read(&from) {
            write_atomically(&own.join(to), &bytes)?;
        }
    }
    // Objects come from the copy's folder. Where submodules are is looked up here, where no agent writes.
    write_atomically(&own.join("objects/info/alternates"), &users_store(user)?)?;
    // Written last, to mark the folder as complete. It names no branch: the copy's refs are read from its files.
    write_atomically(&own.join("HEAD"), b"ref: refs/heads/none\n")?;
    Ok(own)
}

pub(crate) fn setting(section: &str, name: &str, value: &str) -> String {
    let quoted = |text: &str| text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n");
    let heading = match section.split_once('.') {
        Some((section, sub)) => format!("[{section} \"{}\"]", quoted(sub)),
        None => format!("[{section}]"),
    };
    format!("{heading}\n\t{name} = \"{}\"\n", quoted(value))
}
