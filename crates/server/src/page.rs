//! The dashboard's files, built into the binary by `build.rs`.

/// One file.
#[derive(Debug)]
pub struct PageFile {
    /// Its path below the page.
    pub name: &'static str,
    /// What it is.
    pub kind: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
    /// Whether that is compressed.
    pub gzipped: bool,
}

include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

/// The file of this path.
pub fn find(path: &str) -> Option<&'static PageFile> {
    FILES.iter().find(|file| file.name == path)
}

/// The page itself.
pub fn index() -> &'static str {
    find("index.html").and_then(|file| std::str::from_utf8(file.bytes).ok()).unwrap_or_default()
}
