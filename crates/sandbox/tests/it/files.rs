//! The file methods, and every known way out of the workspace.

use crate::common::fresh;
use ralph_loop_domain::ports::{Sandbox as _, SandboxError, WriteMode};
use std::fs;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::Path;

fn outside<T>(result: &Result<T, SandboxError>) -> bool {
    matches!(result, Err(SandboxError::OutsideWorkspace(_)))
}

#[test]
fn write_read_append_list_remove() {
    let b = fresh();
    let s = &b.sandbox;
    let path = Path::new("a/b/c.txt");
    assert_eq!(s.read(path).unwrap(), None);
    assert_eq!(s.list(Path::new("a")).unwrap(), Vec::<String>::new());
    s.write(path, b"one", WriteMode::Replace).unwrap();
    s.write(path, b" two", WriteMode::Append).unwrap();
    s.write(Path::new("./a/new"), b"x", WriteMode::Append).unwrap();
    assert_eq!(s.read(path).unwrap().unwrap(), b"one two");
    assert_eq!(s.list(Path::new("a")).unwrap(), ["b", "new"]);
    assert_eq!(s.list(Path::new("")).unwrap(), ["a"], "no temporary file is left");
    assert_eq!(s.read(Path::new("a/new/below")).unwrap(), None);
    let write = |path: &str, mode| s.write(Path::new(path), b"", mode).unwrap_err().to_string();
    assert_eq!(s.read(Path::new("a")).unwrap_err().to_string(), "cannot read `a`: it is a folder");
    assert_eq!(write("a", WriteMode::Replace), "cannot write `a`: it is a folder");
    assert_eq!(write("a/new/below", WriteMode::Replace), "cannot write `a/new/below`: Not a directory");
    assert_eq!(write("", WriteMode::Append), "cannot write ``: it is a folder");
    assert_eq!(s.remove(Path::new("a")).unwrap_err().to_string(), "cannot remove `a`: Is a directory");
    s.remove(path).unwrap();
    s.remove(path).unwrap();
    s.remove(Path::new("no/such/folder/file")).unwrap();
    assert_eq!(s.read(path).unwrap(), None);
}

#[test]
fn replacing_is_atomic_and_keeps_the_mode() {
    let b = fresh();
    let file = b.path().join("run.sh");
    fs::write(&file, "old").unwrap();
    fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).unwrap();
    let before = fs::metadata(&file).unwrap().ino();
    let reader = fs::File::open(&file).unwrap();
    b.sandbox.write(Path::new("run.sh"), b"new", WriteMode::Replace).unwrap();
    assert_eq!(fs::metadata(&file).unwrap().mode() & 0o7777, 0o755);
    assert_ne!(fs::metadata(&file).unwrap().ino(), before);
    assert_eq!(std::io::read_to_string(reader).unwrap(), "old");
    b.sandbox.write(Path::new("fresh"), b"", WriteMode::Replace).unwrap();
    assert_eq!(fs::metadata(b.path().join("fresh")).unwrap().mode() & 0o111, 0);
}

#[test]
fn no_path_leads_out() {
    let b = fresh();
    let other = tempfile::tempdir().unwrap();
    fs::write(other.path().join("secret"), "secret").unwrap();
    fs::create_dir_all(b.path().join("sub/deep")).unwrap();
    fs::create_dir_all(b.path().join(".git")).unwrap();
    fs::write(b.path().join(".git/config"), "config").unwrap();
    let link = |to: &Path, name: &str| symlink(to, b.path().join(name)).unwrap();
    link(other.path(), "folder");
    link(&other.path().join("secret"), "file");
    link(&other.path().join("not-there-yet"), "dangling");
    link(Path::new("../.."), "sub/up");
    link(Path::new("sub/up"), "up");
    link(Path::new("deep/../../.."), "sub/crooked");
    link(Path::new("folder"), "chain");
    link(Path::new(".git"), "git");
    link(Path::new("../.git/config"), "sub/git-config");
    link(Path::new("/proc/self/root"), "magic");
    // Looks inside as text, but resolves outside.
    link(&b.sandbox.root().join("../").join(other.path().file_name().unwrap()), "prefix");
    let absolute = other.path().join("secret");
    for bad in [
        absolute.to_str().unwrap(),
        "../x",
        "sub/../../x",
        "sub/..",
        "folder/secret",
        "folder/new",
        "file",
        "dangling",
        "up/x",
        "sub/up/x",
        "sub/crooked/x",
        "chain/secret",
        "magic/etc/passwd",
        "prefix/secret",
        ".git/config",
        ".git",
        ".GIT/config",
        "sub/.git/hooks/x",
        "git/config",
        "sub/git-config",
    ] {
        let path = Path::new(bad);
        assert!(outside(&b.sandbox.read(path)), "read {bad}");
        for mode in [WriteMode::Replace, WriteMode::Append] {
            assert!(outside(&b.sandbox.write(path, b"x", mode)), "write {bad}");
        }
        assert!(outside(&b.sandbox.list(path)), "list {bad}");
    }
    for bad in ["folder/secret", "chain/secret", "git/config", "../x", ".git/config", "up/x"] {
        assert!(outside(&b.sandbox.remove(Path::new(bad))), "remove {bad}");
    }
    // A link itself is inside, wherever it leads.
    b.sandbox.remove(Path::new("file")).unwrap();
    let gone = fs::symlink_metadata(b.path().join("file")).unwrap_err();
    assert_eq!(gone.kind(), std::io::ErrorKind::NotFound);
    assert_eq!(fs::read_to_string(other.path().join("secret")).unwrap(), "secret");
    assert_eq!(fs::read_dir(other.path()).unwrap().count(), 1);
    assert_eq!(fs::read_to_string(b.path().join(".git/config")).unwrap(), "config");
}

#[test]
fn links_that_stay_inside_work() {
    let b = fresh();
    fs::create_dir_all(b.path().join("real/deep")).unwrap();
    fs::write(b.path().join("real/file"), "text").unwrap();
    symlink("real", b.path().join("alias")).unwrap();
    symlink("../real/deep/../file", b.path().join("real/again")).unwrap();
    symlink(b.sandbox.root().join("real/file"), b.path().join("full")).unwrap();
    symlink("real/later", b.path().join("later")).unwrap();
    symlink("circle", b.path().join("circle")).unwrap();
    for path in ["alias/file", "real/again", "alias/again", "full"] {
        assert_eq!(b.sandbox.read(Path::new(path)).unwrap().unwrap(), b"text", "{path}");
    }
    b.sandbox.write(Path::new("later"), b"now", WriteMode::Replace).unwrap();
    assert_eq!(fs::read_to_string(b.path().join("real/later")).unwrap(), "now");
    assert!(fs::symlink_metadata(b.path().join("later")).unwrap().is_symlink());
    assert_eq!(b.sandbox.list(Path::new("alias")).unwrap(), ["again", "deep", "file", "later"]);
    assert!(matches!(b.sandbox.read(Path::new("circle")), Err(SandboxError::File { .. })));
}

#[test]
fn odd_files_are_refused_and_second_names_are_spared() {
    let b = fresh();
    let other = tempfile::tempdir().unwrap();
    nix::unistd::mkfifo(&b.path().join("pipe"), nix::sys::stat::Mode::from_bits_truncate(0o600)).unwrap();
    for result in [
        b.sandbox.read(Path::new("pipe")).map(drop),
        b.sandbox.write(Path::new("pipe"), b"", WriteMode::Append),
        b.sandbox.write(Path::new("pipe"), b"", WriteMode::Replace),
    ] {
        assert!(matches!(result, Err(SandboxError::File { .. })));
    }
    let elsewhere = other.path().join("original");
    fs::write(&elsewhere, "one").unwrap();
    fs::hard_link(&elsewhere, b.path().join("second")).unwrap();
    b.sandbox.write(Path::new("second"), b" two", WriteMode::Append).unwrap();
    assert_eq!(fs::read_to_string(&elsewhere).unwrap(), "one");
    assert_eq!(fs::read_to_string(b.path().join("second")).unwrap(), "one two");
}
