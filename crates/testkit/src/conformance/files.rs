//! The file methods.

use super::bench::{at, eq, wrong};
use super::{Bench, Check, Fault, Need};
use ralph_domain::ports::WriteMode::{Append, Replace};

pub(super) const CHECKS: &[Check] = &[
    Check { name: "files: write, append, read, list, remove", needs: &[], run: round },
    Check { name: "files: binary and empty files", needs: &[], run: binary },
    Check { name: "files: 32 MB", needs: &[], run: large },
    Check { name: "files: unicode and odd names", needs: &[], run: names },
    Check { name: "files: commands see what was written", needs: &[], run: seen_by_commands },
    Check { name: "files: folders are made and seen", needs: &[Need::Life], run: folders },
    Check { name: "files: permission bits", needs: &[Need::Life, Need::FileModes], run: modes },
    Check { name: "files: a folder is not a file", needs: &[], run: kinds },
];

fn round(bench: &Bench<'_>) -> Result<(), Fault> {
    let s = bench.sandbox();
    let (path, folder) = (bench.path("a/b/c.txt"), bench.path("a"));
    eq("a missing file", s.read(&path)?, None)?;
    eq("a missing folder", s.list(&folder)?, Vec::new())?;
    s.write(&path, b"one", Replace)?;
    s.write(&path, b" two", Append)?;
    s.write(&bench.path("a/new"), b"x", Append)?;
    eq("the file", s.read(&path)?, Some(b"one two".to_vec()))?;
    eq("the folder", s.list(&folder)?, vec!["b".to_owned(), "new".to_owned()])?;
    s.write(&path, b"3", Replace)?;
    eq("the file, replaced", s.read(&path)?, Some(b"3".to_vec()))?;
    s.remove(&path)?;
    s.remove(&path)?;
    s.remove(&bench.path("no/such/file"))?;
    eq("the file, removed", s.read(&path)?, None)?;
    // Whether an empty folder stays is the backend's own affair; its former file must not.
    eq("what is left in it", s.list(&bench.path("a/b"))?, Vec::new())
}

fn binary(bench: &Bench<'_>) -> Result<(), Fault> {
    let s = bench.sandbox();
    let bytes: Vec<u8> = (0..=255u8).cycle().take(70_001).collect();
    s.write(&bench.path("bin"), &bytes, Replace)?;
    eq("binary", s.read(&bench.path("bin"))?, Some(bytes))?;
    s.write(&bench.path("empty"), b"", Replace)?;
    eq("empty", s.read(&bench.path("empty"))?, Some(Vec::new()))?;
    s.write(&bench.path("newlines"), b"\n\n", Replace)?;
    eq("newlines", s.read(&bench.path("newlines"))?, Some(b"\n\n".to_vec()))
}

fn large(bench: &Bench<'_>) -> Result<(), Fault> {
    let mut state = 0x9e37_79b9_u32;
    let bytes: Vec<u8> = std::iter::repeat_with(|| {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        state.to_le_bytes()
    })
    .take(8 * 1024 * 1024)
    .flatten()
    .collect();
    bench.sandbox().write(&bench.path("large"), &bytes, Replace)?;
    let back = bench.sandbox().read(&bench.path("large"))?.unwrap_or_default();
    eq("size", back.len(), bytes.len())?;
    if back == bytes { Ok(()) } else { wrong("the bytes are not the same") }
}

fn names(bench: &Bench<'_>) -> Result<(), Fault> {
    let odd = ["-rf", "a b", "q'uote", "ünïcödé-∆-日本", "$HOME", "back\\slash", "semi;colon", "tab\there"];
    let mut sorted: Vec<String> = odd.iter().map(|name| (*name).to_owned()).collect();
    sorted.sort();
    for name in odd {
        bench.sandbox().write(&bench.path(name), name.as_bytes(), Replace)?;
    }
    eq("the names", bench.sandbox().list(&bench.path(""))?, sorted)?;
    for name in odd {
        eq(name, bench.sandbox().read(&bench.path(name))?, Some(name.as_bytes().to_vec()))?;
        bench.sandbox().remove(&bench.path(name))?;
    }
    eq("the names, removed", bench.sandbox().list(&bench.path(""))?, Vec::new())
}

fn seen_by_commands(bench: &Bench<'_>) -> Result<(), Fault> {
    bench.sandbox().write(&bench.path("in.txt"), b"from outside\n", Replace)?;
    let mut request = ralph_domain::ports::ExecRequest::new(["cat", "in.txt"].map(String::from).to_vec());
    request.cwd = bench.folder()?;
    eq("what a command reads", bench.exec(&request)?.stdout(), "from outside\n".to_owned())
}

fn folders(bench: &Bench<'_>) -> Result<(), Fault> {
    let managed = bench.managed()?;
    let (deep, above) = (bench.path("x/y/z"), bench.path("x"));
    eq("before", managed.exists(&deep)?, false)?;
    managed.make_dir(&deep)?;
    managed.make_dir(&deep)?;
    eq("after", managed.exists(&deep)?, true)?;
    eq("the folder above", managed.list(&above)?, vec!["y".to_owned()])?;
    managed.write(&bench.path("file"), b"", Replace)?;
    eq("a file", managed.exists(&bench.path("file"))?, true)
}

fn modes(bench: &Bench<'_>) -> Result<(), Fault> {
    let managed = bench.managed()?;
    let path = bench.path("tool");
    managed.write(&path, b"#!/bin/sh\necho ran\n", Replace)?;
    managed.set_mode(&path, 0o750)?;
    eq("as a command", bench.run("./tool")?.trim(), "ran")?;
    eq("bits", bench.run("ls -l tool | cut -c1-10")?.trim(), "-rwxr-x---")?;
    // Replacing keeps them.
    managed.write(&path, b"#!/bin/sh\necho again\n", Replace)?;
    eq("as a command, replaced", bench.run("./tool")?.trim(), "again")
}

fn kinds(bench: &Bench<'_>) -> Result<(), Fault> {
    let s = bench.sandbox();
    s.write(&bench.path("folder/file"), b"x", Replace)?;
    if s.write(&bench.path("folder"), b"x", Replace).is_ok() {
        return wrong("a folder was overwritten");
    }
    if s.write(&bench.path("folder/file/below"), b"x", Replace).is_ok() {
        return wrong("a file was used as a folder");
    }
    if s.write(at(""), b"x", Replace).is_ok() {
        return wrong("the root was overwritten");
    }
    eq("the file", s.read(&bench.path("folder/file"))?, Some(b"x".to_vec()))
}
