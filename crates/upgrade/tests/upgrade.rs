//! Upgrades from a server on this machine: taken, refused, torn, and never half done.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "tests fail by panicking")]
#![allow(clippy::disallowed_methods, reason = "tests start programs")]

use ralph_upgrade::{Place, Releases, UpgradeError, Version, take};
use sha2::{Digest as _, Sha256};
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Write as _};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};

const TARGET: &str = "x86_64-unknown-linux-gnu";

/// What is answered for a path.
#[derive(Clone)]
enum Answer {
    File(Vec<u8>),
    /// Announces all of it and ends in the middle.
    Torn(Vec<u8>),
    To(String),
    Status(u16),
}

struct Server {
    address: String,
    answers: Arc<Mutex<BTreeMap<String, Answer>>>,
    seen: Arc<Mutex<Vec<String>>>,
}

impl Server {
    fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = format!("http://{}", listener.local_addr().unwrap());
        let answers: Arc<Mutex<BTreeMap<String, Answer>>> = Arc::default();
        let seen: Arc<Mutex<Vec<String>>> = Arc::default();
        let (known, noted) = (Arc::clone(&answers), Arc::clone(&seen));
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let _ = answer(stream, &known, &noted);
            }
        });
        Self { address, answers, seen }
    }

    fn put(&self, path: &str, answer: Answer) {
        self.answers.lock().unwrap().insert(path.to_owned(), answer);
    }

    fn releases(&self) -> Releases {
        let address = self.address.clone();
        Releases::from_vars(&move |name| (name == "RALPH_DOWNLOAD_URL").then(|| address.clone())).unwrap()
    }

    /// A release whose program is `script`.
    fn release(&self, version: &str, archive: Vec<u8>) -> String {
        let name = format!("ralph-{version}-{TARGET}.tar.gz");
        let sum: String = Sha256::digest(&archive).iter().map(|b| format!("{b:02x}")).collect();
        let sums = format!("{sum}  {name}\n").into_bytes();
        self.put(&format!("/download/v{version}/SHA256SUMS"), Answer::File(sums.clone()));
        self.put("/latest/download/SHA256SUMS", Answer::File(sums));
        self.put(&format!("/download/v{version}/{name}"), Answer::File(archive));
        sum
    }
}

fn answer(
    mut stream: TcpStream,
    answers: &Mutex<BTreeMap<String, Answer>>,
    seen: &Mutex<Vec<String>>,
) -> std::io::Result<()> {
    let mut lines = BufReader::new(stream.try_clone()?).lines();
    let first = lines.next().unwrap_or_else(|| Ok(String::new()))?;
    while lines.next().is_some_and(|line| line.is_ok_and(|line| !line.is_empty())) {}
    let path = first.split(' ').nth(1).unwrap_or_default().to_owned();
    let found = answers.lock().unwrap().get(&path).cloned().unwrap_or(Answer::Status(404));
    seen.lock().unwrap().push(path);
    let head = |status: &str, length: usize, more: &str| {
        format!("HTTP/1.1 {status}\r\nContent-Length: {length}\r\nConnection: close\r\n{more}\r\n")
    };
    match found {
        Answer::File(bytes) => {
            stream.write_all(head("200 OK", bytes.len(), "").as_bytes())?;
            stream.write_all(&bytes)
        }
        Answer::Torn(bytes) => {
            stream.write_all(head("200 OK", bytes.len(), "").as_bytes())?;
            stream.write_all(&bytes[..bytes.len() / 2])
        }
        Answer::To(to) => stream.write_all(head("302 Found", 0, &format!("Location: {to}\r\n")).as_bytes()),
        Answer::Status(code) => stream.write_all(head(&format!("{code} No"), 0, "").as_bytes()),
    }
}

fn script(version: &str) -> String {
    format!("#!/bin/sh\necho 'ralph {version}'\n")
}

/// An archive of files with their modes.
fn archive(files: &[(&str, &str, u32)]) -> Vec<u8> {
    let gz = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let mut tar = tar::Builder::new(gz);
    for (path, text, mode) in files {
        let mut header = tar::Header::new_ustar();
        // Also names that a well-behaved builder refuses.
        let name = &mut header.as_old_mut().name;
        name[..path.len()].copy_from_slice(path.as_bytes());
        header.set_size(text.len() as u64);
        header.set_mode(*mode);
        let link = [("-> ", tar::EntryType::Symlink), ("=> ", tar::EntryType::Link)]
            .into_iter()
            .find_map(|(arrow, kind)| text.strip_prefix(arrow).map(|to| (to, kind)));
        header.set_entry_type(link.map_or(tar::EntryType::Regular, |(_, kind)| kind));
        if let Some((to, _)) = link {
            header.set_link_name(to).unwrap();
            header.set_size(0);
        }
        header.set_cksum();
        let body: &[u8] = if link.is_some() { b"" } else { text.as_bytes() };
        tar.append(&header, body).unwrap();
    }
    tar.into_inner().unwrap().finish().unwrap()
}

fn good(version: &str) -> Vec<u8> {
    archive(&[
        ("ralph-x/bin/ralph", &script(version), 0o755),
        ("ralph-x/share/man/man1/ralph.1", "page", 0o644),
    ])
}

/// A prefix with version 0.1.0 in it.
fn installed() -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let prefix = folder.path().canonicalize().unwrap().join("own");
    for dir in ["bin", "share/ralph", "share/man/man1"] {
        std::fs::create_dir_all(prefix.join(dir)).unwrap();
    }
    std::fs::write(prefix.join("bin/ralph"), script("0.1.0")).unwrap();
    std::fs::set_permissions(prefix.join("bin/ralph"), std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(prefix.join("share/man/man1/ralph-old.1"), "old").unwrap();
    let list = "ralph 0.1.0 t\nbin/ralph\nshare/man/man1/ralph-old.1\nshare/ralph/installed\n";
    std::fs::write(prefix.join("share/ralph/installed"), list).unwrap();
    (folder, prefix)
}

fn says(prefix: &Path) -> String {
    let output = std::process::Command::new(prefix.join("bin/ralph")).output().unwrap();
    String::from_utf8_lossy(&output.stdout).trim().to_owned()
}

/// What is in `share/ralph` beside the list and the lock.
fn leftovers(prefix: &Path) -> Vec<String> {
    let entries = std::fs::read_dir(prefix.join("share/ralph")).unwrap().flatten();
    let names = entries.map(|e| e.file_name().to_string_lossy().into_owned());
    names.filter(|n| n != "installed" && n != ".lock").collect()
}

fn upgrade(
    server: &Server,
    prefix: &Path,
    pinned: Option<&str>,
) -> Result<ralph_upgrade::Taken, UpgradeError> {
    let releases = server.releases();
    let sums = releases.latest()?;
    take(&releases, &sums, TARGET, &Place::of(&prefix.join("bin/ralph"))?, pinned)
}

#[test]
fn a_newer_version_takes_the_place_of_the_old_and_its_list_is_new() {
    let (server, (_folder, prefix)) = (Server::start(), installed());
    let sum = server.release("0.2.0", good("0.2.0"));
    std::fs::create_dir(prefix.join("share/ralph/.upgrade-killed")).unwrap();
    let taken = upgrade(&server, &prefix, Some(&sum.to_uppercase())).unwrap();
    assert_eq!((taken.files, taken.removed, taken.sha256), (2, 1, sum));
    assert_eq!(says(&prefix), "ralph 0.2.0");
    assert!(!prefix.join("share/man/man1/ralph-old.1").exists());
    assert_eq!(leftovers(&prefix), [""; 0]);
    let list = std::fs::read_to_string(prefix.join("share/ralph/installed")).unwrap();
    assert_eq!(
        list,
        format!("ralph 0.2.0 {TARGET}\nbin/ralph\nshare/man/man1/ralph.1\nshare/ralph/installed\n")
    );
    // And again.
    upgrade(&server, &prefix, None).unwrap();
    assert_eq!(says(&prefix), "ralph 0.2.0");
}

#[test]
fn redirects_are_followed_and_a_named_version_is_found() {
    let (server, (_folder, prefix)) = (Server::start(), installed());
    server.release("0.3.0-rc.1", good("0.3.0-rc.1"));
    let name = format!("/download/v0.3.0-rc.1/ralph-0.3.0-rc.1-{TARGET}.tar.gz");
    server.put("/elsewhere", Answer::File(good("0.3.0-rc.1")));
    server.put(&name, Answer::To("/elsewhere".into()));
    let releases = server.releases();
    let version = Version::parse("0.3.0-rc.1").unwrap();
    let sums = releases.of(&version).unwrap();
    let place = Place::of(&prefix.join("bin/ralph")).unwrap();
    take(&releases, &sums, TARGET, &place, None).unwrap();
    assert_eq!(says(&prefix), "ralph 0.3.0-rc.1");
    let missing = releases.of(&Version::parse("9.9.9").unwrap()).unwrap_err();
    assert!(missing.hint().contains("a version that was released"), "{}", missing.hint());
    server.put("/loop", Answer::To("/loop".into()));
    server.put(&name, Answer::To("/loop".into()));
    assert!(matches!(take(&releases, &sums, TARGET, &place, None), Err(UpgradeError::Fetch { .. })));
}

#[test]
fn whatever_goes_wrong_leaves_the_old_version_as_it_was() {
    let (server, (_folder, prefix)) = (Server::start(), installed());
    let name = format!("/download/v0.2.0/ralph-0.2.0-{TARGET}.tar.gz");
    let untouched = |what: &str| {
        assert_eq!(says(&prefix), "ralph 0.1.0", "{what}");
        assert!(prefix.join("share/man/man1/ralph-old.1").exists(), "{what}");
        assert_eq!(leftovers(&prefix), [""; 0], "{what}");
    };

    server.release("0.2.0", good("0.2.0"));
    let pinned = "0".repeat(64);
    assert!(matches!(upgrade(&server, &prefix, Some(&pinned)), Err(UpgradeError::WrongSum { .. })));
    untouched("a sum that was got another way");

    server.put(&name, Answer::Torn(good("0.2.0")));
    let torn = upgrade(&server, &prefix, None).unwrap_err();
    assert!(matches!(torn, UpgradeError::Fetch { .. }), "{torn}");
    untouched("a torn download");
    assert_eq!(
        server.seen.lock().unwrap().iter().filter(|path| **path == name).count(),
        3,
        "it is tried again"
    );

    server.put(&name, Answer::File(good("0.2.1")));
    assert!(matches!(upgrade(&server, &prefix, None), Err(UpgradeError::WrongSum { .. })));
    untouched("another archive");

    server.release("0.2.0", good("0.1.9"));
    assert!(matches!(upgrade(&server, &prefix, None), Err(UpgradeError::DoesNotStart { .. })));
    untouched("a program that is another version");

    server.release("0.2.0", archive(&[("x/bin/ralph", "#!/bin/sh\nexit 3\n", 0o755)]));
    assert!(matches!(upgrade(&server, &prefix, None), Err(UpgradeError::DoesNotStart { .. })));
    untouched("a program that does not start");

    for (path, text) in [
        ("x/../../evil", "x"),
        ("/evil", "x"),
        ("x/bin/link", "-> /etc/passwd"),
        ("x/bin/link", "=> /etc/passwd"),
        ("x/share/a\nbin/other", "x"),
        ("x/share/\u{1b}[2J", "x"),
    ] {
        server.release("0.2.0", archive(&[("x/bin/ralph", &script("0.2.0"), 0o755), (path, text, 0o644)]));
        assert!(matches!(upgrade(&server, &prefix, None), Err(UpgradeError::Archive { .. })), "{path}");
        untouched(path);
    }

    server.put("/latest/download/SHA256SUMS", Answer::Status(404));
    assert!(matches!(upgrade(&server, &prefix, None), Err(UpgradeError::Fetch { .. })));
    server.put("/latest/download/SHA256SUMS", Answer::File(b"<html>hello</html>".to_vec()));
    assert!(matches!(upgrade(&server, &prefix, None), Err(UpgradeError::Sums { .. })));
    untouched("no list of sums");
}

#[test]
fn rights_are_those_of_a_program_for_everybody_whatever_the_archive_and_the_process_say() {
    // It is the version that it should be only where nobody else may look at it, or change it, before it is in its place.
    let wary = "#!/bin/sh\ncase \"$(ls -ld \"${0%/*}/../..\")\" in drwx------*) echo 'ralph 0.2.0' ;; esac\n";
    let files = [("x/bin/ralph", wary, 0o6777), ("x/share/new/page", "page", 0o666)];
    let mode = |path: PathBuf| std::fs::metadata(path).unwrap().permissions().mode() & 0o7777;
    // Each in a process of its own: the mask is that of the whole process.
    for mask in ["000", "077"] {
        let (server, (_folder, prefix)) = (Server::start(), installed());
        server.release("0.2.0", archive(&files));
        let this = std::env::current_exe().unwrap();
        let done = std::process::Command::new("sh")
            .args(["-c", &format!("umask {mask}; exec \"$@\""), "sh"])
            .arg(this)
            .args(["--ignored", "--exact", "upgrades_what_it_is_told"])
            .env("TEST_SERVER", &server.address)
            .env("TEST_PREFIX", &prefix)
            .output()
            .unwrap();
        assert!(done.status.success(), "{mask}: {}", String::from_utf8_lossy(&done.stdout));
        for (path, wanted) in [
            ("bin/ralph", 0o755),
            ("share/new", 0o755),
            ("share/new/page", 0o644),
            ("share/ralph/installed", 0o644),
        ] {
            assert_eq!(mode(prefix.join(path)), wanted, "{mask}: {path}");
        }
    }
}

#[test]
#[ignore = "a part of the test above, which starts it"]
fn upgrades_what_it_is_told() {
    let (Ok(address), Ok(prefix)) = (std::env::var("TEST_SERVER"), std::env::var("TEST_PREFIX")) else {
        return;
    };
    let releases =
        Releases::from_vars(&move |name| (name == "RALPH_DOWNLOAD_URL").then(|| address.clone())).unwrap();
    let place = Place::of(&Path::new(&prefix).join("bin/ralph")).unwrap();
    take(&releases, &releases.latest().unwrap(), TARGET, &place, None).unwrap();
}

#[test]
fn two_upgrades_of_one_place_do_not_meet() {
    let (server, (_folder, prefix)) = (Server::start(), installed());
    server.release("0.2.0", good("0.2.0"));
    let lock =
        std::fs::OpenOptions::new().create(true).append(true).open(prefix.join("share/ralph/.lock")).unwrap();
    lock.try_lock().unwrap();
    assert!(matches!(upgrade(&server, &prefix, None), Err(UpgradeError::Busy { .. })));
    drop(lock);
    upgrade(&server, &prefix, None).unwrap();
}
