//! Lists the dashboard's files, in `page`, for the binary. `scripts/generate` builds them from `web`.
#![allow(clippy::disallowed_methods, reason = "cargo tells a build script its folders by variables")]

use flate2::Compression;
use flate2::write::GzEncoder;
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};

fn main() {
    let root = PathBuf::from(std::env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default());
    let dist = root.join("page");
    println!("cargo::rerun-if-changed={}", dist.display());
    println!("cargo::rerun-if-changed=build.rs");
    let mut files = Vec::new();
    collect(&dist, &dist, &mut files);
    files.sort();
    let out = PathBuf::from(std::env::var_os("OUT_DIR").unwrap_or_default());
    let mut text = String::from("/// The files.\npub static FILES: &[PageFile] = &[\n");
    for (number, (name, path)) in files.iter().enumerate() {
        if name.ends_with(".map") {
            continue;
        }
        // The page itself gets a new nonce with each answer, so it stays plain.
        let small = if name == "index.html" {
            None
        } else {
            compressed(path, &out.join(format!("page-{number}.gz")))
        };
        let (path, gzipped) = small.map_or_else(|| (path.clone(), false), |small| (small, true));
        let _ = writeln!(
            text,
            "    PageFile {{ name: {name:?}, kind: {:?}, bytes: include_bytes!({:?}), gzipped: {gzipped} }},",
            kind(name),
            path.display().to_string()
        );
    }
    text.push_str("];\n");
    if !files.iter().any(|(name, _)| name == "index.html") {
        println!("cargo::error={} has no index.html", dist.display());
    }
    let list = out.join("page_files.rs");
    if let Err(error) = std::fs::write(&list, text) {
        println!("cargo::error=cannot write {}: {error}", list.display());
    }
}

/// The file compressed, where that makes it smaller.
fn compressed(path: &Path, to: &Path) -> Option<PathBuf> {
    let bytes = std::fs::read(path).ok()?;
    let mut encoder = GzEncoder::new(Vec::new(), Compression::best());
    encoder.write_all(&bytes).ok()?;
    let small = encoder.finish().ok().filter(|small| small.len() < bytes.len())?;
    std::fs::write(to, small).ok()?;
    Some(to.to_owned())
}

fn collect(folder: &Path, top: &Path, files: &mut Vec<(String, PathBuf)>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let path = entry.path();
        if path.is_dir() {
            println!("cargo::rerun-if-changed={}", path.display());
            collect(&path, top, files);
        } else if let Some(name) = path.strip_prefix(top).ok().and_then(Path::to_str) {
            files.push((name.to_owned(), path.clone()));
        }
    }
}

fn kind(name: &str) -> &'static str {
    match name.rsplit('.').next().unwrap_or_default() {
        "html" => "text/html; charset=utf-8",
        "js" => "text/javascript; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "json" | "webmanifest" => "application/json",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "ico" => "image/x-icon",
        "woff2" => "font/woff2",
        "wasm" => "application/wasm",
        _ => "application/octet-stream",
    }
}
