//! The file methods.

use super::fixture::{at, eq, wrong};
use super::{Check, Fault, Fixture, Need};
use ralph_loop_domain::ports::WriteMode::{Append, Replace};

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

fn round(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let s = fixture.sandbox();
    let (path, folder) = (fixture.path("a/b/c.txt"), fixture.path("a"));
    eq("a missing file", s.read(&path)?, None)?;
    eq("a missing folder", s.list(&folder)?, Vec::new())?;
    s.write(&path, b"one", Replace)?;
    s.write(&path, b" two", Append)?;
    s.write(&fixture.path("a/new"), b"x", Append)?;
    eq("the file", s.read(&path)?, Some(b"one two".to_vec()))?;
    eq("the folder", s.list(&folder)?, vec!["b".to_owned(), "new".to_owned()])?;
    s.write(&path, b"3", Replace)?;
    eq("the file, replaced", s.read(&path)?, Some(b"3".to_vec()))?;
    s.remove(&path)?;
    s.remove(&path)?;
    s.remove(&fixture.path("no/such/file"))?;
    eq("the file, removed", s.read(&path)?, None)?;
    // The backend may keep an empty folder; its former file must be gone.
    eq("what is left in it", s.list(&fixture.path("a/b"))?, Vec::new())
}

fn binary(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let s = fixture.sandbox();
    let bytes: Vec<u8> = (0..=255u8).cycle().take(70_001).collect();
    s.write(&fixture.path("bin"), &bytes, Replace)?;
    eq("binary", s.read(&fixture.path("bin"))?, Some(bytes))?;
    s.write(&fixture.path("empty"), b"", Replace)?;
    eq("empty", s.read(&fixture.path("empty"))?, Some(Vec::new()))?;
    s.write(&fixture.path("newlines"), b"\n\n", Replace)?;
    eq("newlines", s.read(&fixture.path("newlines"))?, Some(b"\n\n".to_vec()))
}

fn large(fixture: &Fixture<'_>) -> Result<(), Fault> {
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
    fixture.sandbox().write(&fixture.path("large"), &bytes, Replace)?;
    let back = fixture.sandbox().read(&fixture.path("large"))?.unwrap_or_default();
    eq("size", back.len(), bytes.len())?;
    if back == bytes { Ok(()) } else { wrong("the bytes are not the same") }
}

fn names(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let odd = ["-rf", "a b", "q'uote", "ünïcödé-∆-日本", "$HOME", "back\\slash", "semi;colon", "tab\there"];
    let mut sorted: Vec<String> = odd.iter().map(|name| (*name).to_owned()).collect();
    sorted.sort();
    for name in odd {
        fixture.sandbox().write(&fixture.path(name), name.as_bytes(), Replace)?;
    }
    eq("the names", fixture.sandbox().list(&fixture.path(""))?, sorted)?;
    for name in odd {
        eq(name, fixture.sandbox().read(&fixture.path(name))?, Some(name.as_bytes().to_vec()))?;
        fixture.sandbox().remove(&fixture.path(name))?;
    }
    eq("the names, removed", fixture.sandbox().list(&fixture.path(""))?, Vec::new())
}

fn seen_by_commands(fixture: &Fixture<'_>) -> Result<(), Fault> {
    fixture.sandbox().write(&fixture.path("in.txt"), b"from outside\n", Replace)?;
    let mut request =
        ralph_loop_domain::ports::ExecRequest::new(["cat", "in.txt"].map(String::from).to_vec());
    request.cwd = fixture.folder()?;
    eq("what a command reads", fixture.exec(&request)?.stdout(), "from outside\n".to_owned())
}

fn folders(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let managed = fixture.managed()?;
    let (deep, above) = (fixture.path("x/y/z"), fixture.path("x"));
    eq("before", managed.exists(&deep)?, false)?;
    managed.make_dir(&deep)?;
    managed.make_dir(&deep)?;
    eq("after", managed.exists(&deep)?, true)?;
    eq("the folder above", managed.list(&above)?, vec!["y".to_owned()])?;
    managed.write(&fixture.path("file"), b"", Replace)?;
    eq("a file", managed.exists(&fixture.path("file"))?, true)
}

fn modes(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let managed = fixture.managed()?;
    let path = fixture.path("tool");
    managed.write(&path, b"#!/bin/sh\necho ran\n", Replace)?;
    managed.set_mode(&path, 0o750)?;
    eq("as a command", fixture.run("./tool")?.trim(), "ran")?;
    eq("bits", fixture.run("ls -l tool | cut -c1-10")?.trim(), "-rwxr-x---")?;
    // Replacing a file keeps its permissions.
    managed.write(&path, b"#!/bin/sh\necho again\n", Replace)?;
    eq("as a command, replaced", fixture.run("./tool")?.trim(), "again")
}

fn kinds(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let s = fixture.sandbox();
    s.write(&fixture.path("folder/file"), b"x", Replace)?;
    if s.write(&fixture.path("folder"), b"x", Replace).is_ok() {
        return wrong("a folder was overwritten");
    }
    if s.write(&fixture.path("folder/file/below"), b"x", Replace).is_ok() {
        return wrong("a file was used as a folder");
    }
    if s.write(at(""), b"x", Replace).is_ok() {
        return wrong("the root was overwritten");
    }
    eq("the file", s.read(&fixture.path("folder/file"))?, Some(b"x".to_vec()))
}
