//! The entry point of fuzzing: reads any bytes as each of git's answers and files.

use crate::objects::index;
use crate::objects::oid::ObjectFormat;
use crate::publish::pushed_content;
use crate::snapshot::entry::parse_ls_tree;
use std::path::Path;

/// Parses the bytes as a tree listing, an index and the answer of `cat-file --batch`; returns how much was
/// understood.
#[doc(hidden)]
pub fn read_anything(bytes: &[u8], piece: usize) -> usize {
    let listed = parse_ls_tree(bytes).map_or(0, |entries| entries.len());
    let mut understood = listed;
    for format in [ObjectFormat::Sha1, ObjectFormat::Sha256] {
        understood += index::parse(bytes, format, Path::new("index")).map_or(0, |index| index.entries.len());
        understood += pushed_content::read_pieces(bytes.chunks(piece.max(1)), format);
    }
    understood
}
