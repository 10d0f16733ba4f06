//! What commands see of the machine: an allowlist, whatever else is there.

use super::{fenced_with, options};
use crate::common::{run, sh};
use ralph_loop_domain::ports::Sandbox as _;
use ralph_loop_sandbox::LocalSandbox;
use ralph_loop_task::config::Isolation;
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// Folders outside the list; only root can write to all of them.
const OUTSIDE: &[&str] = &[
    "/srv",
    "/opt",
    "/mnt",
    "/media",
    "/boot",
    "/var/log",
    "/var/lib",
    "/var/cache",
    "/etc",
    "/home",
    "/root",
    "/",
];

/// Files in them, removed when dropped.
struct Canaries(Vec<PathBuf>);

impl Canaries {
    fn lay(mark: &str) -> Self {
        let mut laid = Vec::new();
        for folder in OUTSIDE {
            for (name, mode) in [("private", 0o600), ("open", 0o644)] {
                let file = Path::new(folder).join(format!("ralph-{mark}-{}-{name}", std::process::id()));
                if std::fs::write(&file, "CANARY\n").is_ok() {
                    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(mode)).unwrap();
                    laid.push(file);
                }
            }
        }
        Self(laid)
    }
    fn readable(&self, sandbox: &LocalSandbox) -> Vec<PathBuf> {
        let read = |file: &&PathBuf| {
            run(sandbox, &sh(&format!("cat '{}'", file.display()))).stdout.contains("CANARY")
        };
        self.0.iter().filter(read).cloned().collect()
    }
}

impl Drop for Canaries {
    fn drop(&mut self) {
        for file in &self.0 {
            std::fs::remove_file(file).ok();
        }
    }
}

#[test]
fn files_outside_the_list_cannot_be_read() {
    let canaries = Canaries::lay("bwrap");
    if canaries.0.is_empty() {
        return ralph_loop_testkit::skip("this user can't write outside the home");
    }
    let Some(fenced) = fenced_with(|_| {}) else { return };
    assert_eq!(canaries.readable(&fenced.sandbox), [] as [PathBuf; 0]);
    let seen = fenced.sh("ls -A / /etc /sys /var; cat /proc/self/mounts /etc/passwd");
    assert!(!seen.stdout.contains("ralph-bwrap-"), "{}", seen.stdout);
    for host in [" /boot", " /sys/", " /mnt", " /run/", "/srv"] {
        let mounts = fenced.sh("cut -d' ' -f2 /proc/self/mounts | sed 's/^/ /'").stdout;
        let own = mounts.lines().filter(|line| !line.starts_with(" /run/ralph/"));
        assert!(!own.into_iter().any(|line| line.starts_with(host)), "{host}: {mounts}");
    }
    assert!(fenced.sh("wc -l < /etc/passwd").stdout.trim().parse::<u32>().unwrap() <= 3);
    assert_eq!(fenced.sh("echo x > /new; echo x > /etc/new; mkdir /srv/new; ls /sys").stdout, "");
}

#[test]
fn landlock_follows_the_same_list() {
    let canaries = Canaries::lay("landlock");
    if canaries.0.is_empty() {
        return ralph_loop_testkit::skip("this user can't write outside the home");
    }
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let Some(options) = options(dir.path(), Isolation::Landlock, |_| {}) else { return };
    let sandbox = LocalSandbox::start(&work, options).unwrap();
    assert_eq!(canaries.readable(&sandbox), [] as [PathBuf; 0]);
    assert!(run(&sandbox, &sh("cat /etc/passwd; sh -c 'echo works'")).stdout.contains("works"));
}

#[test]
fn what_the_user_adds_can_be_read_and_the_rest_is_named() {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    std::fs::write(top.join("added"), "CANARY\n").unwrap();
    let added = top.join("added");
    let Some(fenced) = fenced_with(|spec| spec.read_only.push(added.clone())) else { return };
    assert_eq!(fenced.sh(&format!("cat {}", added.display())).stdout, "CANARY\n");
    for path in ["/srv/data", "/opt/x", "/etc/shadow", "/var/log"] {
        assert!(fenced.sandbox.hides(Path::new(path)), "{path}");
    }
    for path in ["/usr/bin/sh", "/tmp/x", "/proc/1", "/etc/hosts", "relative"] {
        assert!(!fenced.sandbox.hides(Path::new(path)), "{path}");
    }
    assert!(!fenced.sandbox.hides(&fenced.sandbox.root().join("file")));
}

#[test]
fn a_package_below_opt_on_the_path_is_visible_alone() {
    let package = PathBuf::from(format!("/opt/ralph-test-{}", std::process::id()));
    if std::fs::create_dir_all(package.join("tool/bin")).is_err() {
        return ralph_loop_testkit::skip("this user can't write to /opt");
    }
    let other = Canaries::lay("opt");
    let program = package.join("tool/bin/ralph-tool");
    std::fs::write(&program, "#!/bin/sh\ncat \"${0%/*}/../data\"\n").unwrap();
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    std::fs::write(package.join("tool/data"), "works\n").unwrap();
    let dir = tempfile::tempdir().unwrap();
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let seen = options(dir.path(), Isolation::Bwrap, |_| {}).map(|mut options| {
        let path = format!("{}:/usr/bin:/bin", package.join("tool/bin").display());
        options.vars = options.vars.with([("PATH", path)]);
        let sandbox = LocalSandbox::start(&work, options).unwrap();
        (run(&sandbox, &sh("ralph-tool")).stdout, other.readable(&sandbox))
    });
    std::fs::remove_dir_all(&package).unwrap();
    let Some((stdout, readable)) = seen else { return };
    assert_eq!((stdout.as_str(), readable), ("works\n", Vec::new()));
}

#[test]
#[allow(clippy::disallowed_methods, reason = "tries whether this machine can mount a layer")]
fn downloaded_packages_are_there_below_a_private_layer() {
    let dir = tempfile::tempdir().unwrap();
    let home = dir.path().canonicalize().unwrap().join("me");
    for folder in [".cargo/registry/cache", ".m2/repository", "go/pkg/mod/cache/vcs"] {
        std::fs::create_dir_all(home.join(folder)).unwrap();
    }
    for file in [
        ".cargo/registry/cache/itoa",
        ".cargo/credentials.toml",
        ".m2/settings.xml",
        "go/pkg/mod/cache/vcs/url",
    ] {
        std::fs::write(home.join(file), "kept").unwrap();
    }
    let Some(mut options) = super::options(dir.path(), Isolation::Bwrap, |_| {}) else { return };
    options.vars = options
        .vars
        .with([("HOME", home.as_os_str())])
        .with(["CARGO_HOME", "GOPATH", "GOMODCACHE"].map(|name| (name, "")));
    let work = dir.path().join("work");
    std::fs::create_dir(&work).unwrap();
    let layer =
        "mkdir l u w m && unshare -Urm mount -t overlay x -o userxattr,lowerdir=l,upperdir=u,workdir=w m";
    let tried = std::process::Command::new("sh").args(["-c", layer]).current_dir(dir.path()).status();
    if !tried.is_ok_and(|status| status.success()) {
        return ralph_loop_testkit::skip("this machine allows no layers");
    }
    let sandbox = LocalSandbox::start(&work, options).unwrap();
    let said = run(
        &sandbox,
        &sh(
            "cat ~/.cargo/registry/cache/itoa && echo new > ~/.cargo/registry/cache/new && rm ~/.cargo/registry/cache/itoa",
        ),
    );
    assert_eq!((super::code(&said), said.stdout.as_str()), (Some(0), "kept"), "{}", said.stderr);
    // The next command finds what the last one wrote, and the user's folder is as before.
    assert_eq!(
        run(&sandbox, &sh("ls ~/.cargo/registry/cache; ls ~/.cargo ~/.m2 ~/go/pkg/mod/cache/vcs"))
            .stdout
            .lines()
            .next(),
        Some("new")
    );
    let secrets = run(
        &sandbox,
        &sh("cat ~/.cargo/credentials.toml ~/.m2/settings.xml ~/go/pkg/mod/cache/vcs/url; echo end"),
    );
    assert_eq!(secrets.stdout, "end\n");
    assert_eq!(std::fs::read_to_string(home.join(".cargo/registry/cache/itoa")).unwrap(), "kept");
    assert!(!home.join(".cargo/registry/cache/new").exists());
    drop(sandbox);
    assert!(!dir.path().join("run").exists());
}
