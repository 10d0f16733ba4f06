//! What a push would show: every new commit, file name and content. Read as a stream, so that neither a huge file nor
//! a long history uses much memory.

use crate::error::{Error, Result};
use crate::objects::oid::ObjectFormat;
use crate::process::command::{Git, GitCall};
use ralph_loop_domain::ports::{Outgoing, OutgoingPart, OutgoingSide};
use ralph_loop_protocol::id::CommitId;
use std::fs::File;
use std::io::{Seek as _, SeekFrom, Write as _};
use std::path::Path;

const HEAD_MAX: usize = 64 * 1024;

/// Reads what the asked commits hold. `folder` is for a list of the objects, which may be long.
pub(crate) fn read(
    git: &Git,
    format: ObjectFormat,
    folder: &Path,
    asked: &Outgoing<'_>,
    each: &mut dyn FnMut(OutgoingPart<'_>),
) -> Result<()> {
    for commit in asked.commits {
        // The commands below would skip an unknown name.
        git.call(["cat-file", "-e", &format!("{commit}^{{commit}}")]).run()?;
    }
    let list = folder.join("outgoing");
    let mut file = File::create_new(&list).map_err(|e| Error::file("create", &list, e))?;
    let listed = match asked.side {
        OutgoingSide::New => list_new(git, asked, &mut file),
        OutgoingSide::Base => list_base(git, asked, &mut file),
    };
    let done = listed.and_then(|()| {
        file.seek(SeekFrom::Start(0)).map_err(|e| Error::file("read", &list, e))?;
        contents(git, format, file, asked.side == OutgoingSide::Base, each)
    });
    let _ = std::fs::remove_file(&list);
    done
}

/// The commits on the command's input: those asked for, without what the remote has.
fn range(asked: &Outgoing<'_>) -> Vec<u8> {
    let wanted = asked.commits.iter().map(CommitId::to_string);
    let known = asked.known.iter().map(|commit| format!("^{commit}"));
    wanted.chain(known).flat_map(|line| format!("{line}\n").into_bytes()).collect()
}

fn list_new(git: &Git, asked: &Outgoing<'_>, into: &mut File) -> Result<()> {
    // Commits that this repo lacks exclude nothing here.
    let call = git.call(["rev-list", "--objects", "--ignore-missing", "--stdin"]).stdin(range(asked));
    copy(call, into)
}

/// The trees of the parents of the new commits, which the remote has.
fn list_base(git: &Git, asked: &Outgoing<'_>, into: &mut File) -> Result<()> {
    let call = git.call(["rev-list", "--boundary", "--ignore-missing", "--stdin"]).stdin(range(asked));
    let commits = call.run()?.text();
    let base: String =
        commits.lines().filter_map(|line| Some(format!("{}\n", line.strip_prefix('-')?))).collect();
    if base.is_empty() {
        return Ok(());
    }
    copy(git.call(["rev-list", "--objects", "--no-walk", "--missing=allow-any", "--stdin"]).stdin(base), into)
}

fn copy(call: GitCall, into: &mut File) -> Result<()> {
    let mut written = Ok(());
    call.stream(&mut |piece| {
        if written.is_ok() {
            written = into.write_all(piece);
        }
    })?;
    written.map_err(|e| Error::unreadable("the list of new objects", e.to_string()))
}

fn contents(
    git: &Git,
    format: ObjectFormat,
    list: File,
    may_lack: bool,
    each: &mut dyn FnMut(OutgoingPart<'_>),
) -> Result<()> {
    let wish = "--batch=%(objectname) %(objecttype) %(objectsize) %(rest)";
    let mut reader = ObjectReader::new(format.len(), may_lack);
    let mut fault = None;
    git.call(["cat-file", "--buffer", wish]).stdin_file(list).stream(&mut |piece| {
        if fault.is_none() {
            fault = reader.push(piece, each).err();
        }
    })?;
    match fault {
        None if reader.is_between() => Ok(()),
        None => Err(Error::unreadable("the new objects", "git ended in the middle of one")),
        Some(fault) => Err(Error::unreadable("the new objects", fault)),
    }
}

/// Parses pieces as the answer of `cat-file --batch`; returns how many parts there were.
pub(crate) fn read_pieces<'a>(pieces: impl Iterator<Item = &'a [u8]>, format: ObjectFormat) -> usize {
    let mut reader = ObjectReader::new(format.len(), true);
    let mut parts = 0;
    for piece in pieces {
        if reader.push(piece, &mut |_| parts += 1).is_err() {
            break;
        }
    }
    parts
}

enum Place {
    Head,
    Body(u64),
    /// Inside a tree: the bytes left, and the position in an entry.
    Tree(u64, Entry),
    End,
}

enum Entry {
    Mode,
    Name,
    Id(usize),
}

/// Parses the answer of `cat-file --batch`, in pieces of any size.
struct ObjectReader {
    place: Place,
    head: Vec<u8>,
    path: Vec<u8>,
    id_bytes: usize,
    may_lack: bool,
}

impl ObjectReader {
    fn new(id_bytes: usize, may_lack: bool) -> Self {
        Self { place: Place::Head, head: Vec::new(), path: Vec::new(), id_bytes, may_lack }
    }

    fn is_between(&self) -> bool {
        matches!(self.place, Place::Head) && self.head.is_empty()
    }

    fn push(
        &mut self,
        mut piece: &[u8],
        each: &mut dyn FnMut(OutgoingPart<'_>),
    ) -> std::result::Result<(), String> {
        while !piece.is_empty() {
            let used = match &mut self.place {
                Place::Head => self.read_head(piece, each)?,
                Place::Body(left) => {
                    let take = usize::try_from(*left).unwrap_or(usize::MAX).min(piece.len());
                    each(OutgoingPart::Bytes(&piece[..take]));
                    *left -= take as u64;
                    if *left == 0 {
                        self.place = Place::End;
                    }
                    take
                }
                Place::Tree(..) => self.read_tree(piece, each),
                Place::End => {
                    self.place = Place::Head;
                    1
                }
            };
            piece = &piece[used..];
        }
        Ok(())
    }

    fn read_head(
        &mut self,
        piece: &[u8],
        each: &mut dyn FnMut(OutgoingPart<'_>),
    ) -> std::result::Result<usize, String> {
        let Some(end) = piece.iter().position(|b| *b == b'\n') else {
            self.head.extend_from_slice(piece);
            if self.head.len() > HEAD_MAX {
                return Err("git printed something that isn't an object".into());
            }
            return Ok(piece.len());
        };
        self.head.extend_from_slice(&piece[..end]);
        let head = std::mem::take(&mut self.head);
        let mut words = head.splitn(4, |b| *b == b' ');
        let mut word = || words.next().unwrap_or_default();
        let (id, kind) = (String::from_utf8_lossy(word()).into_owned(), word().to_vec());
        if kind == b"missing" && self.may_lack {
            return Ok(end + 1);
        }
        let size = std::str::from_utf8(word()).ok().and_then(|size| size.parse::<u64>().ok());
        let Some(size) = size else { return Err(format!("{id} cannot be read")) };
        let path = word().to_vec();
        each(OutgoingPart::Name(&path));
        each(OutgoingPart::Content);
        self.place = match (kind.as_slice(), size) {
            (_, 0) => Place::End,
            (b"tree", size) => Place::Tree(size, Entry::Mode),
            (_, size) => Place::Body(size),
        };
        self.path = path;
        Ok(end + 1)
    }

    /// Entries are `mode SPACE name NUL id`. The full path of each counts as a name.
    fn read_tree(&mut self, piece: &[u8], each: &mut dyn FnMut(OutgoingPart<'_>)) -> usize {
        let Place::Tree(left, entry) = &mut self.place else { return 0 };
        let piece = &piece[..usize::try_from(*left).unwrap_or(usize::MAX).min(piece.len())];
        let used = match entry {
            Entry::Mode => match piece.iter().position(|b| *b == b' ') {
                Some(at) => {
                    *entry = Entry::Name;
                    each(OutgoingPart::Name(&self.path));
                    if !self.path.is_empty() {
                        each(OutgoingPart::Bytes(b"/"));
                    }
                    at + 1
                }
                None => piece.len(),
            },
            Entry::Name => match piece.iter().position(|b| *b == 0) {
                Some(at) => {
                    each(OutgoingPart::Bytes(&piece[..at]));
                    *entry = Entry::Id(self.id_bytes);
                    at + 1
                }
                None => {
                    each(OutgoingPart::Bytes(piece));
                    piece.len()
                }
            },
            Entry::Id(rest) => {
                let take = (*rest).min(piece.len());
                *rest -= take;
                if *rest == 0 {
                    *entry = Entry::Mode;
                }
                take
            }
        };
        *left -= used as u64;
        if *left == 0 {
            self.place = Place::End;
        }
        used
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts(input: &[u8], size: usize) -> std::result::Result<Vec<Vec<u8>>, String> {
        let mut reader = ObjectReader::new(20, false);
        let mut all: Vec<Vec<u8>> = Vec::new();
        for piece in input.chunks(size) {
            reader.push(piece, &mut |part| match part {
                OutgoingPart::Name(path) => all.push(path.to_vec()),
                OutgoingPart::Content => all.push(Vec::new()),
                OutgoingPart::Bytes(bytes) => {
                    if let Some(last) = all.last_mut() {
                        last.extend_from_slice(bytes);
                    }
                }
            })?;
        }
        assert!(reader.is_between());
        all.retain(|text| !text.is_empty());
        Ok(all)
    }

    #[test]
    fn objects_parse_from_pieces_of_any_size() {
        let id = [b'\n'; 20];
        let entry = |name: &str| [b"100644 ", name.as_bytes(), b"\0", &id].concat();
        let tree = [entry("a b\nc"), entry("d")].concat();
        let head = |kind: &str, size: usize, path: &str| format!("{} {kind} {size} {path}\n", "0".repeat(40));
        let input = [
            head("commit", 5, "").as_bytes(),
            b"tree\n\n",
            head("tree", tree.len(), "sub").as_bytes(),
            &tree,
            b"\n",
            head("blob", 0, "empty").as_bytes(),
            b"\n",
            head("blob", 3, "sub/d").as_bytes(),
            b"\0\n\0\n",
        ]
        .concat();
        let want: Vec<&[u8]> =
            vec![b"tree\n", b"sub", b"sub/a b\nc", b"sub/d", b"empty", b"sub/d", b"\0\n\0"];
        for size in 1..input.len() {
            assert_eq!(texts(&input, size).unwrap(), want, "in pieces of {size}");
        }
    }

    #[test]
    fn missing_object_is_an_error() {
        let line = format!("{} missing\n", "0".repeat(40));
        assert!(texts(line.as_bytes(), 7).unwrap_err().contains("cannot be read"));
        assert!(texts(&[b'x'; HEAD_MAX + 2], 4096).is_err());
    }
}
