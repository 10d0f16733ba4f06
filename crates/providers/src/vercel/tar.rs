//! An archive with one file, as `fs/write` takes it.

use flate2::Compression;
use flate2::write::GzEncoder;
use std::io::Write as _;

/// `path` is absolute; the archive is unpacked at `/`.
pub(crate) fn gzipped(path: &str, bytes: &[u8], mode: u32) -> std::io::Result<Vec<u8>> {
    let name = path.trim_start_matches('/');
    let mut out = GzEncoder::new(Vec::new(), Compression::fast());
    if name.len() > 100 || !name.is_ascii() {
        // The old header has no room for it: a header before it names the file.
        let record = record("path", name);
        out.write_all(&header("long-name", record.len(), 0o644, b'x'))?;
        padded(&mut out, record.as_bytes())?;
    }
    out.write_all(&header(name, bytes.len(), mode, b'0'))?;
    padded(&mut out, bytes)?;
    out.write_all(&[0; 1024])?;
    out.finish()
}

fn padded(out: &mut impl std::io::Write, bytes: &[u8]) -> std::io::Result<()> {
    out.write_all(bytes)?;
    out.write_all(&vec![0; bytes.len().next_multiple_of(512) - bytes.len()])
}

/// A record that begins with its own length.
fn record(key: &str, value: &str) -> String {
    let rest = format!(" {key}={value}\n");
    let mut length = rest.len();
    while length != rest.len() + length.to_string().len() {
        length = rest.len() + length.to_string().len();
    }
    format!("{length}{rest}")
}

fn header(name: &str, size: usize, mode: u32, kind: u8) -> [u8; 512] {
    let mut block = [0; 512];
    let mut put = |at: usize, text: &[u8]| block[at..at + text.len()].copy_from_slice(text);
    put(0, &name.as_bytes()[..name.len().min(100)]);
    put(100, format!("{:07o}", mode & 0o7777).as_bytes());
    put(108, b"0000000");
    put(116, b"0000000");
    put(124, format!("{size:011o}").as_bytes());
    put(136, b"00000000000");
    put(148, b"        ");
    put(156, &[kind]);
    put(257, b"ustar\x0000");
    let sum: u32 = block.iter().map(|b| u32::from(*b)).sum();
    block[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    block
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_record_counts_itself() {
        assert_eq!(record("path", "abc"), "12 path=abc\n");
        let long = record("path", &"x".repeat(90));
        assert_eq!(long.split(' ').next().unwrap().parse::<usize>().unwrap(), long.len());
    }
}
