//! The archive that an engine builds an image from.

use ::tar::{Builder, EntryType, Header};

pub(super) fn archive(name: &str, content: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut header = Header::new_ustar();
    header.set_entry_type(EntryType::Regular);
    header.set_mode(0o644);
    header.set_mtime(0);
    header.set_uid(0);
    header.set_gid(0);
    header.set_size(content.len() as u64);
    let mut archive = Builder::new(Vec::new());
    archive.append_data(&mut header, name, content)?;
    archive.into_inner()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn archive_has_correct_sizes_and_checksum() {
        let bytes = archive("Dockerfile", b"FROM x\n").unwrap();
        assert_eq!(bytes.len(), 512 + 512 + 1024);
        let head = &bytes[..512];
        let field = std::str::from_utf8(&head[148..156]).unwrap().trim_matches(['\0', ' ']);
        let told = u32::from_str_radix(field, 8).unwrap();
        let blank =
            head.iter().enumerate().map(|(at, b)| if (148..156).contains(&at) { 32 } else { u32::from(*b) });
        assert_eq!(told, blank.sum::<u32>());
    }
}
