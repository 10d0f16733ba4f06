//! An archive of one file for `fs/write`.

use ::tar::{Builder, EntryType, Header};
use flate2::Compression;
use flate2::write::GzEncoder;

/// Longest name in a header.
const NAME_MAX: usize = 100;

/// `path` is absolute; the archive is unpacked at `/`.
pub(crate) fn gzipped(path: &str, bytes: &[u8], mode: u32) -> std::io::Result<Vec<u8>> {
    let name = path.trim_start_matches('/');
    let mut archive = Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(mode & 0o7777);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(bytes.len() as u64);
    if name.len() > NAME_MAX || !name.is_ascii() {
        // Too long for the old header: an extension header before it names the file.
        archive.append_pax_extensions([("path", name.as_bytes())])?;
        header.set_path("long-name")?;
    } else {
        header.set_path(name)?;
    }
    header.set_cksum();
    archive.append(&header, bytes)?;
    archive.into_inner()?.finish()
}

#[cfg(test)]
mod tests {
    use super::*;
    use flate2::read::GzDecoder;
    use std::io::Read as _;

    #[test]
    fn long_and_unicode_names_round_trip() {
        let long = format!("/work/{}/x.txt", "folder".repeat(30));
        for path in ["/a.txt", "/vercel/sandbox/ü/run.sh", &long] {
            let packed = gzipped(path, b"hello", 0o755).unwrap();
            let mut archive = ::tar::Archive::new(GzDecoder::new(packed.as_slice()));
            let mut entries = archive.entries().unwrap();
            let mut entry = entries.next().unwrap().unwrap();
            assert_eq!(entry.path_bytes().as_ref(), path.trim_start_matches('/').as_bytes());
            assert_eq!(entry.header().mode().unwrap(), 0o755);
            let mut text = String::new();
            entry.read_to_string(&mut text).unwrap();
            assert_eq!((text.as_str(), entries.next().is_none()), ("hello", true), "{path}");
        }
    }
}
