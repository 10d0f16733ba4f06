//! What an attacker puts below a folder: links out of it, FIFOs, sockets, names that leave it.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use ralph_loop_safe_fs::{Kind, Links, SafeDir};
use rustix::io::Errno;
use std::fs;
use std::io::{ErrorKind, Read as _, Write as _};
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixListener;
use std::path::Path;

struct Here {
    _base: tempfile::TempDir,
    dir: SafeDir,
    tree: std::path::PathBuf,
    secret: std::path::PathBuf,
}

fn here() -> Here {
    let base = tempfile::tempdir().unwrap();
    let (tree, secret) = (base.path().join("tree"), base.path().join("secret"));
    fs::create_dir_all(tree.join("sub")).unwrap();
    fs::write(&secret, "SECRET").unwrap();
    fs::write(tree.join("file"), "content").unwrap();
    Here { dir: SafeDir::open(&tree).unwrap(), _base: base, tree, secret }
}

fn fifo(path: &Path) {
    nix::unistd::mkfifo(path, nix::sys::stat::Mode::from_bits_truncate(0o666)).unwrap();
}

/// Why the system refused it.
fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> Option<Errno> {
    Errno::from_io_error(&result.unwrap_err())
}

#[test]
fn files_are_read_bounded_from_both_ends() {
    let here = here();
    assert_eq!(here.dir.read("file", Links::Refused, 3).unwrap(), b"con");
    assert_eq!(here.dir.read_text("./file", Links::Refused, 100).unwrap(), "content");
    assert_eq!(here.dir.read_end("file", Links::Refused, 3).unwrap(), (4, b"ent".to_vec()));
    assert_eq!(here.dir.read_end("file", Links::Refused, 300).unwrap(), (0, b"content".to_vec()));
    assert_eq!(here.dir.read("none", Links::Refused, 3).unwrap_err().kind(), ErrorKind::NotFound);
    assert_eq!(here.dir.facts("file").unwrap().kind, Kind::File);
    assert_eq!(here.dir.facts("none").unwrap_err().kind(), ErrorKind::NotFound);
}

#[test]
fn no_link_leads_out_of_the_folder() {
    let here = here();
    symlink(&here.secret, here.tree.join("absolute")).unwrap();
    symlink("../secret", here.tree.join("relative")).unwrap();
    symlink("..", here.tree.join("up")).unwrap();
    symlink("/proc/self/root", here.tree.join("magic")).unwrap();
    for path in ["absolute", "relative", "up/secret", "magic/etc/passwd"] {
        let refused = |links| errno(here.dir.open_file(path, links));
        assert_eq!(refused(Links::Refused), Some(Errno::LOOP), "{path}");
        assert_eq!(refused(Links::Inside), Some(Errno::XDEV), "{path}");
    }
    for path in ["/etc/passwd", "../secret", "sub/../../secret", "", "."] {
        let error = here.dir.open_file(path, Links::Inside).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::InvalidInput, "{path}: {error}");
    }
    assert_eq!(errno(here.dir.folder("up")), Some(Errno::LOOP));
    assert_eq!(errno(here.dir.create_folder("up/x")), Some(Errno::LOOP));
    assert_eq!(errno(here.dir.write("up/stolen", b"x")), Some(Errno::LOOP));
    assert!(!here.tree.with_file_name("stolen").exists());
}

#[test]
fn links_inside_are_followed_only_on_request() {
    let here = here();
    symlink("../file", here.tree.join("sub/link")).unwrap();
    assert_eq!(errno(here.dir.open_file("sub/link", Links::Refused)), Some(Errno::LOOP));
    assert_eq!(here.dir.read("sub/link", Links::Inside, 100).unwrap(), b"content");
}

#[test]
fn special_files_are_refused_without_blocking() {
    let here = here();
    fifo(&here.tree.join("fifo"));
    let _socket = UnixListener::bind(here.tree.join("socket")).unwrap();
    for path in ["fifo", "sub"] {
        let error = here.dir.read(path, Links::Inside, 10).unwrap_err();
        assert_eq!(error.to_string(), "not a regular file", "{path}");
    }
    assert_eq!(errno(here.dir.read("socket", Links::Inside, 10)), Some(Errno::NXIO));
    assert_eq!(here.dir.facts("fifo").unwrap().kind, Kind::Special);
    let kinds: Vec<_> = here.dir.entries(".", 100).unwrap().into_iter().map(|e| (e.name, e.kind)).collect();
    let kinds: Vec<_> = kinds.iter().map(|(name, kind)| (name.to_str().unwrap(), *kind)).collect();
    assert_eq!(
        kinds,
        [("fifo", Kind::Special), ("file", Kind::File), ("socket", Kind::Special), ("sub", Kind::Folder)]
    );
    assert_eq!(here.dir.entries(".", 2).unwrap().len(), 2);
}

#[test]
fn write_replaces_links_and_fifos_and_never_follows_them() {
    let here = here();
    symlink(&here.secret, here.tree.join("link")).unwrap();
    fifo(&here.tree.join("fifo"));
    for path in ["link", "fifo", "file", "new/deep/file"] {
        here.dir.write(path, b"written").unwrap();
        assert_eq!(fs::read(here.tree.join(path)).unwrap(), b"written", "{path}");
        assert_eq!(here.dir.facts(path).unwrap().kind, Kind::File, "{path}");
    }
    assert_eq!(fs::read_to_string(&here.secret).unwrap(), "SECRET");
    let error = here.dir.write("sub", b"x").unwrap_err();
    assert!(matches!(error.kind(), ErrorKind::IsADirectory | ErrorKind::AlreadyExists), "{error}");
    let left = fs::read_dir(&here.tree)
        .unwrap()
        .flatten()
        .filter(|e| e.file_name().to_string_lossy().ends_with(".tmp"));
    assert_eq!(left.count(), 0, "nothing of a write that failed is left");
}

#[test]
fn log_is_appended_and_never_a_link() {
    let here = here();
    for (path, before) in [("file", "content"), ("fresh/log", "")] {
        here.dir.open_log(path).unwrap().write_all(b"+one").unwrap();
        here.dir.open_log(path).unwrap().write_all(b"+two").unwrap();
        assert_eq!(fs::read_to_string(here.tree.join(path)).unwrap(), format!("{before}+one+two"));
    }
    symlink(&here.secret, here.tree.join("errors.log")).unwrap();
    symlink(here.tree.with_file_name("made-by-link"), here.tree.join("dangling.log")).unwrap();
    fifo(&here.tree.join("fifo.log"));
    let _socket = UnixListener::bind(here.tree.join("socket.log")).unwrap();
    for path in ["errors.log", "dangling.log", "fifo.log", "socket.log"] {
        here.dir.open_log(path).unwrap().write_all(b"entry").unwrap();
        assert_eq!(here.dir.read(path, Links::Refused, 100).unwrap(), b"entry", "{path}");
    }
    assert_eq!(fs::read_to_string(&here.secret).unwrap(), "SECRET");
    assert!(!here.tree.with_file_name("made-by-link").exists());
    assert_eq!(here.dir.open_log("sub").unwrap_err().kind(), ErrorKind::IsADirectory);
}

#[test]
fn removing_follows_nothing() {
    let here = here();
    let outside = here.tree.with_file_name("outside");
    fs::create_dir_all(outside.join("kept")).unwrap();
    fs::create_dir_all(here.tree.join("a/b/c")).unwrap();
    fs::write(here.tree.join("a/b/file"), "x").unwrap();
    symlink(&outside, here.tree.join("a/b/out")).unwrap();
    symlink(&here.secret, here.tree.join("a/b/secret")).unwrap();
    fifo(&here.tree.join("a/fifo"));
    here.dir.remove("a").unwrap();
    assert!(!here.tree.join("a").exists());
    symlink(&outside, here.tree.join("link")).unwrap();
    here.dir.remove("link").unwrap();
    here.dir.remove("none").unwrap();
    here.dir.remove("none/below").unwrap();
    assert!(outside.join("kept").is_dir() && here.secret.is_file() && here.tree.join("file").is_file());
}

/// The handle counts, not the path: swapping a folder for a link changes nothing.
#[test]
fn folder_swapped_for_a_link_is_not_followed() {
    let here = here();
    let sub = here.dir.folder("sub").unwrap();
    fs::rename(here.tree.join("sub"), here.tree.join("moved")).unwrap();
    symlink(here.tree.with_file_name("elsewhere"), here.tree.join("sub")).unwrap();
    fs::create_dir(here.tree.with_file_name("elsewhere")).unwrap();
    sub.write("file", b"here").unwrap();
    assert!(here.tree.join("moved/file").is_file());
    assert!(!here.tree.with_file_name("elsewhere").join("file").exists());
    assert_eq!(errno(here.dir.write("sub/file", b"there")), Some(Errno::LOOP));
}

#[test]
fn files_are_renamed_below_the_folder_only() {
    let here = here();
    here.dir.rename("file", "sub/renamed").unwrap();
    assert_eq!(here.dir.rename("sub/renamed", "../renamed").unwrap_err().kind(), ErrorKind::InvalidInput);
    let mut text = String::new();
    here.dir.open_file("sub/renamed", Links::Refused).unwrap().read_to_string(&mut text).unwrap();
    assert_eq!(text, "content");
    symlink("x/y", here.tree.join("link")).unwrap();
    assert_eq!(here.dir.read_link("link").unwrap(), Path::new("x/y"));
}

#[test]
fn new_file_never_overwrites_and_replaced_one_keeps_permissions() {
    use std::os::unix::fs::PermissionsExt as _;
    let here = here();
    let top = SafeDir::open(&here.tree).unwrap();
    top.write_new("new/file", b"one").unwrap();
    assert_eq!(top.write_new("new/file", b"two").unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    std::os::unix::fs::symlink(here.tree.join("nowhere"), here.tree.join("dangling")).unwrap();
    assert_eq!(top.write_new("dangling", b"two").unwrap_err().kind(), std::io::ErrorKind::AlreadyExists);
    assert!(!here.tree.join("nowhere").exists());
    let file = here.tree.join("new/file");
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o604)).unwrap();
    top.replace("new/file", b"three").unwrap();
    assert_eq!(std::fs::read(&file).unwrap(), b"three");
    assert_eq!(std::fs::metadata(&file).unwrap().permissions().mode() & 0o777, 0o604);
    assert!(top.replace("dangling", b"x").is_err() && top.replace("none", b"x").is_err());
    assert!(top.is_file("new/file", Links::Refused) && !top.is_file("new", Links::Refused));
}

#[test]
fn plain_open_follows_links_and_never_blocks() {
    let here = here();
    let file = here.tree.join("own");
    std::fs::write(&file, "x").unwrap();
    std::os::unix::fs::symlink("own", here.tree.join("link")).unwrap();
    fifo(&here.tree.join("pipe"));
    std::os::unix::fs::symlink("pipe", here.tree.join("to-pipe")).unwrap();
    assert!(
        ralph_loop_safe_fs::open_plain(&file).is_ok()
            && ralph_loop_safe_fs::open_plain(here.tree.join("link")).is_ok()
    );
    for name in ["pipe", "to-pipe", "."] {
        assert!(ralph_loop_safe_fs::open_plain(here.tree.join(name)).is_err(), "{name}");
    }
    assert!(ralph_loop_safe_fs::open_plain("/dev/zero").is_err());
}
