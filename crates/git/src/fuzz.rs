//! Any bytes, read as each of git's answers and files that this crate understands: what fuzzing calls.

use crate::objects::index;
use crate::objects::oid::ObjectFormat;
use crate::publish::pushed_content;
use crate::snapshot::entry::parse_ls_tree;
use std::path::Path;

/// Reads any bytes as a listing of a tree, an index and the answer of `cat-file --batch`, and forgets it. Returns how much
/// was understood.
#[doc(hidden)]
pub fn read_anything(bytes: &[u8], piece: usize) -> usize {
    let listed = parse_ls_tree(bytes).map_or(0, |(entries, trees)| entries.len() + trees.len());
    let mut understood = listed;
    for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
        understood += index::parse(bytes, format, Path::new("index")).map_or(0, |index| index.entries.len());
        understood += pushed_content::read_pieces(bytes.chunks(piece.max(1)), format);
    }
    understood
}
