//! [`SandboxGit`]: git with the user's filters, in a sandbox without network. Files go in and come out as plain files;
//! what comes out is read as data.

use crate::error::{Error, Result};
use crate::process::engine_dir::EngineDir;
use crate::process::settings::{Driver, Settings};
use crate::repo::Repo;
use crate::snapshot::entry::on_disk;
use ralph_loop_domain::vars::Vars;
use ralph_loop_safe_fs::{Links, SafeDir};
use std::collections::{BTreeMap, BTreeSet};
use std::fs::{self, File};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

/// One git writes the files into an index, the other writes them out; one of them has the filters.
const SCRIPT: &str = r#"
export GIT_OBJECT_DIRECTORY="$PWD/objects" GIT_INDEX_FILE="$PWD/index"
git --git-dir="$PWD/$1" --work-tree="$PWD/files" -c core.safecrlf=false update-index --add -z --stdin < paths &&
git --git-dir="$PWD/$2" --work-tree="$PWD/files" checkout-index -q -z --stdin --prefix="$PWD/out/" < paths
"#;
const FILTERS: &str = "filters";
const PLAIN: &str = "plain";
/// Attributes of the git without filters.
const NOTHING: &str = "* -filter -ident -text -eol -working-tree-encoding\n";

/// A folder in which filters run, and what they need.
#[derive(Debug)]
pub struct FilterRoom<'a> {
    pub vars: &'a Vars,
    /// The only folder that the command sees of the engine, and can change. It starts there.
    pub folder: &'a Path,
    pub programs: &'a [PathBuf],
    pub argv: &'a [&'a str],
}

type FilterSandbox = Box<dyn Fn(&FilterRoom<'_>) -> Result<(), String> + Send + Sync>;

static SANDBOX: OnceLock<FilterSandbox> = OnceLock::new();

/// Says how this process runs a command in a sandbox without network; its error says why it can't, or why the command
/// failed. The first one counts. Without one, filters are refused.
pub fn set_filter_sandbox(sandbox: impl Fn(&FilterRoom<'_>) -> Result<(), String> + Send + Sync + 'static) {
    let _ = SANDBOX.set(Box::new(sandbox));
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Direction {
    Clean,
    Smudge,
}

/// A file with a filter, and its attributes.
#[derive(Debug, Clone)]
pub(crate) struct Filtered {
    pub(crate) path: Vec<u8>,
    pub(super) filter: String,
    pub(super) attributes: Vec<(&'static str, String)>,
}

impl Filtered {
    /// Its line in a file of attributes.
    fn line(&self) -> Vec<u8> {
        let mut line = b"\"/".to_vec();
        for byte in &self.path {
            match byte {
                b'"' => line.extend(b"\\\""),
                // A backslash of the pattern, and one of the quotes for it.
                b'*' | b'?' | b'[' => line.extend([b'\\', b'\\', *byte]),
                b'\\' => line.extend(b"\\\\\\\\"),
                0..=31 | 127 => line.extend(format!("\\{byte:03o}").bytes()),
                byte => line.push(*byte),
            }
        }
        line.push(b'"');
        for (name, value) in &self.attributes {
            let setting = match value.as_str() {
                "unspecified" => format!(" !{name}"),
                "unset" => format!(" -{name}"),
                "set" => format!(" {name}"),
                value => format!(" {name}={value}"),
            };
            line.extend(setting.bytes());
        }
        line.push(b'\n');
        line
    }
}

pub(super) struct SandboxGit<'a> {
    repo: &'a Repo,
    settings: &'a Settings,
    drivers: &'a BTreeMap<String, Driver>,
    room: PathBuf,
    done: PathBuf,
}

impl<'a> SandboxGit<'a> {
    pub(super) fn new(
        repo: &'a Repo,
        settings: &'a Settings,
        drivers: &'a BTreeMap<String, Driver>,
        dir: &EngineDir,
    ) -> Result<Self> {
        let (room, done) = (dir.path().join("room"), dir.path().join("done"));
        fs::create_dir_all(&done).map_err(|e| Error::file("create", &done, e))?;
        Ok(Self { repo, settings, drivers, room, done })
    }

    /// Converts files, and returns where they are now. `open` opens one; a file that it can't open is left out.
    pub(super) fn convert(
        &self,
        direction: Direction,
        files: &[Filtered],
        open: impl Fn(&Filtered) -> Option<File>,
    ) -> Result<Vec<(Vec<u8>, PathBuf)>> {
        if files.is_empty() {
            return Ok(Vec::new());
        }
        let names: BTreeSet<&str> = files.iter().map(|file| file.filter.as_str()).collect();
        let filled = || -> std::io::Result<Vec<&Filtered>> {
            self.make_folders(&names, files)?;
            let mut paths = Vec::new();
            let mut taken = Vec::new();
            for file in files {
                let Some(mut from) = open(file) else { continue };
                let to = on_disk(&self.room.join("files"), &file.path);
                fs::create_dir_all(to.parent().unwrap_or(&self.room))?;
                std::io::copy(&mut from, &mut File::create_new(&to)?)?;
                paths.extend([&file.path, &b"\0"[..]].concat());
                taken.push(file);
            }
            fs::write(self.room.join("paths"), paths)?;
            Ok(taken)
        };
        let taken = filled().map_err(|e| Error::file("fill", &self.room, e))?;
        if !taken.is_empty() {
            self.run(direction, &names)?;
        }
        let out = self.room.join("out");
        let read = |(number, file): (usize, &Filtered)| -> std::io::Result<(Vec<u8>, PathBuf)> {
            let to = self.done.join(number.to_string());
            let path = std::os::unix::ffi::OsStrExt::from_bytes(&file.path);
            let path: &std::ffi::OsStr = path;
            let mut from = SafeDir::open(&out)?.open_file(path, Links::Refused)?;
            std::io::copy(&mut from, &mut File::create_new(&to)?)?;
            Ok((file.path.clone(), to))
        };
        let done: std::io::Result<Vec<_>> = taken.into_iter().enumerate().map(read).collect();
        let done = done.map_err(|e| Error::file("read what a filter wrote to", &out, e))?;
        ralph_loop_safe_fs::remove_tree(&self.room).map_err(|e| Error::file("remove", &self.room, e))?;
        Ok(done)
    }

    fn make_folders(&self, names: &BTreeSet<&str>, files: &[Filtered]) -> std::io::Result<()> {
        let attributes: Vec<u8> = files.iter().flat_map(Filtered::line).collect();
        // A filter that fails must not pass for one that changes nothing.
        let required: String =
            names.iter().map(|name| format!("[filter {:?}]\n\trequired = true\n", name)).collect();
        let format = match self.repo.object_format.as_str() {
            "sha1" => "[core]\n\trepositoryformatversion = 0\n".to_owned(),
            format => {
                format!("[core]\n\trepositoryformatversion = 1\n[extensions]\n\tobjectFormat = {format}\n")
            }
        };
        let with_filters = [&format, &self.settings.of_files(), &self.settings.of_filters(), &required];
        let with_filters: String = with_filters.map(String::as_str).concat();
        let plain = format!("{format}[core]\n\tautocrlf = false\n");
        for (name, config, attributes) in
            [(FILTERS, with_filters, attributes), (PLAIN, plain, NOTHING.as_bytes().to_vec())]
        {
            let folder = self.room.join(name);
            for name in ["info", "refs", "objects"] {
                fs::create_dir_all(folder.join(name))?;
            }
            fs::write(folder.join("HEAD"), "ref: refs/heads/none\n")?;
            fs::write(folder.join("config"), config)?;
            fs::write(folder.join("info/attributes"), attributes)?;
        }
        for name in ["files", "objects", "out"] {
            fs::create_dir_all(self.room.join(name))?;
        }
        // A filter's own files in the user's git folder, such as the key of git-crypt.
        for name in names {
            copy_own(&self.repo.common_dir.join(name), &self.room.join(FILTERS).join(name), 0)?;
        }
        Ok(())
    }

    fn run(&self, direction: Direction, names: &BTreeSet<&str>) -> Result<()> {
        let (first, second) = match direction {
            Direction::Clean => (FILTERS, PLAIN),
            Direction::Smudge => (PLAIN, FILTERS),
        };
        let drivers = names.iter().filter_map(|name| self.drivers.get(*name));
        let programs: Vec<PathBuf> = drivers
            .flat_map(|driver| driver.commands().filter_map(|command| program(&self.repo.vars, command)))
            .collect();
        let room = FilterRoom {
            vars: &self.repo.vars,
            folder: &self.room,
            programs: &programs,
            argv: &["/bin/sh", "-c", SCRIPT, "sh", first, second],
        };
        let done = match SANDBOX.get() {
            Some(sandbox) => sandbox(&room),
            None => Err("this program has no sandbox for filters".to_owned()),
        };
        let named: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        done.map_err(|why| {
            Error::refused(
                format!("the git filter {} did not run in the sandbox: {why}", named.join(", ")),
                "filters run without network and see no home folder: put the filter's program where the sandbox \
                 has it, for example in /usr/local/bin, or unset the filter",
            )
        })
    }
}

/// The program that a command line starts, by its full path.
fn program(vars: &Vars, command: &str) -> Option<PathBuf> {
    let first = command.trim_start();
    let first = match first.strip_prefix(['"', '\'']) {
        Some(rest) => rest.split(['"', '\'']).next()?,
        None => first.split_whitespace().next()?,
    };
    let is_program = |file: &PathBuf| {
        file.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
    };
    match first.contains('/') {
        true => Some(PathBuf::from(first)).filter(|path| path.is_absolute() && is_program(path)),
        false => std::env::split_paths(vars.own_path())
            .filter(|folder| folder.is_absolute())
            .map(|folder| folder.join(first))
            .find(is_program),
    }
}

/// Copies the small files of a folder, if it exists. Links stay out.
fn copy_own(from: &Path, to: &Path, depth: usize) -> std::io::Result<()> {
    const DEPTH_MAX: usize = 4;
    const FILES_MAX: usize = 100;
    let Ok(names) = fs::read_dir(from) else { return Ok(()) };
    for entry in names.flatten().take(FILES_MAX) {
        let kind = entry.file_type()?;
        let target = to.join(entry.file_name());
        if kind.is_dir() && depth < DEPTH_MAX {
            copy_own(&entry.path(), &target, depth + 1)?;
        } else if kind.is_file() {
            fs::create_dir_all(to)?;
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
