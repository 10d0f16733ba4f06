//! The dashboard's files, embedded by `build.rs`.

/// One file.
#[derive(Debug)]
pub struct PageFile {
    /// Its path.
    pub name: &'static str,
    /// Its content type.
    pub kind: &'static str,
    /// Its content.
    pub bytes: &'static [u8],
    /// Whether the content is compressed.
    pub gzipped: bool,
}

include!(concat!(env!("OUT_DIR"), "/page_files.rs"));

pub fn find(path: &str) -> Option<&'static PageFile> {
    FILES.iter().find(|file| file.name == path)
}

/// The page's HTML.
pub fn index() -> &'static str {
    find("index.html").and_then(|file| std::str::from_utf8(file.bytes).ok()).unwrap_or_default()
}
