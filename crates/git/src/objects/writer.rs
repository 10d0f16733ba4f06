//! Writes trees, commits and blobs through git.

use crate::error::{Error, Result};
use crate::objects::oid::{Oid, oid};
use crate::process::command::Git;
use crate::snapshot::entry::{TreeEntry, index_line};
use std::fs;
use std::path::{Path, PathBuf};

#[derive(Debug, Clone)]
pub(crate) struct Objects {
    git: Git,
    folder: PathBuf,
}

impl Objects {
    pub(crate) fn new(git: Git, folder: PathBuf) -> Self {
        Self { git, folder }
    }

    pub(crate) fn tree(&self, entries: &[TreeEntry]) -> Result<Oid> {
        let index = self.folder.join(format!("tree-index-{}", std::process::id()));
        let _ = fs::remove_file(&index);
        let lines: Vec<u8> =
            entries.iter().flat_map(|entry| index_line((entry.path.as_slice(), entry))).collect();
        self.git.call(["update-index", "-z", "--index-info"]).index(&index).stdin(lines).run()?;
        let tree = self.git.call(["write-tree", "--missing-ok"]).index(&index).run()?.text();
        let _ = fs::remove_file(&index);
        oid(&tree)
    }

    /// Writes a commit that no ref names; `at` is seconds since 1970. The same input gives the same id.
    pub(crate) fn commit(
        &self,
        tree: &str,
        parent: Option<&str>,
        who: &CommitIdentity,
        at: i64,
        message: &str,
    ) -> Result<String> {
        let date = format!("@{} +0000", at.max(0));
        let args = ["commit-tree", tree, "-F", "-"].into_iter();
        let mut call = self.git.call(args.chain(parent.into_iter().flat_map(|parent| ["-p", parent])));
        for role in ["AUTHOR", "COMMITTER"] {
            for (key, value) in [("NAME", &who.name), ("EMAIL", &who.email), ("DATE", &date)] {
                call = call.env(format!("GIT_{role}_{key}"), value);
            }
        }
        let message = message.replace('\0', " ");
        Ok(call.config("i18n.commitEncoding=UTF-8").stdin(message).run()?.text())
    }

    pub(crate) fn blobs<'a>(&self, contents: impl IntoIterator<Item = &'a [u8]>) -> Result<Vec<Oid>> {
        let room = self.folder.join(format!("blobs-{}", std::process::id()));
        let _ = ralph_loop_safe_fs::remove_tree(&room);
        fs::create_dir_all(&room).map_err(|e| Error::file("create", &room, e))?;
        let mut files = Vec::new();
        for (number, content) in contents.into_iter().enumerate() {
            let path = room.join(number.to_string());
            fs::write(&path, content).map_err(|e| Error::file("write", &path, e))?;
            files.push(path);
        }
        let written = self.blobs_of(files.iter().map(PathBuf::as_path));
        let _ = ralph_loop_safe_fs::remove_tree(&room);
        written
    }

    /// Records files of the engine, by one process.
    pub(crate) fn blobs_of<'a>(&self, files: impl Iterator<Item = &'a Path>) -> Result<Vec<Oid>> {
        self.hash(&["-w"], files)
    }

    /// The ids that git gives them, by one process.
    pub(crate) fn hashes_of<'a>(&self, files: impl Iterator<Item = &'a Path>) -> Result<Vec<Oid>> {
        self.hash(&[], files)
    }

    fn hash<'a>(&self, more: &[&str], files: impl Iterator<Item = &'a Path>) -> Result<Vec<Oid>> {
        let names: Vec<u8> =
            files.flat_map(|path| [path.as_os_str().as_encoded_bytes(), b"\n"].concat()).collect();
        let args = ["hash-object", "--no-filters", "--stdin-paths"];
        let call = self.git.call(args.iter().chain(more));
        call.stdin(names).run()?.text().lines().map(oid).collect()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CommitIdentity {
    pub name: String,
    pub email: String,
}

impl CommitIdentity {
    /// Removes the characters that would break a commit's header or control a terminal.
    pub fn new(name: &str, email: &str) -> Self {
        let clean = |text: &str| {
            let text = ralph_loop_protocol::display::sanitize::line(text);
            let kept: String = text.chars().filter(|c| !matches!(c, '<' | '>')).collect();
            kept.trim().to_owned()
        };
        let name = clean(name);
        // Git refuses a name of only punctuation.
        let name = if name.contains(char::is_alphanumeric) { name } else { "Ralph".to_owned() };
        Self { name, email: clean(email) }
    }
}
