//! Paths that a sandboxed command doesn't see.

use std::os::unix::fs::FileTypeExt as _;
use std::path::{Path, PathBuf};

/// Always hidden: homes, sockets of services, state of other programs.
const FOLDERS: [&str; 16] = [
    "/home",
    "/root",
    "/run",
    "/var/run",
    "/tmp",
    "/var/tmp",
    "/var/lib/docker",
    "/var/lib/containerd",
    "/var/spool/cron",
    "/var/mail",
    "/var/lib/private",
    "/etc/ssl/private",
    "/etc/kubernetes",
    "/etc/sudoers.d",
    "/etc/NetworkManager/system-connections",
    "/lost+found",
];

/// Files that root could read.
const FILES: [&str; 9] = [
    "/etc/shadow",
    "/etc/shadow-",
    "/etc/gshadow",
    "/etc/gshadow-",
    "/etc/sudoers",
    "/etc/krb5.keytab",
    "/etc/ssh/ssh_host_rsa_key",
    "/etc/ssh/ssh_host_ecdsa_key",
    "/etc/ssh/ssh_host_ed25519_key",
];

/// The folders that exist here, without links, none inside another.
pub(in crate::local::isolation) fn folders(home: &Path, more: &[PathBuf]) -> Vec<PathBuf> {
    let mut found: Vec<PathBuf> = FOLDERS
        .iter()
        .map(PathBuf::from)
        .chain(homes_of_people())
        .chain([home.to_owned()])
        .chain(more.iter().cloned())
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| path.is_dir() && path != Path::new("/"))
        .collect();
    found.sort();
    let mut outer: Vec<PathBuf> = Vec::new();
    for path in found {
        if !outer.last().is_some_and(|last| path.starts_with(last)) {
            outer.push(path);
        }
    }
    outer
}

pub(in crate::local::isolation) fn files() -> impl Iterator<Item = &'static Path> {
    FILES.iter().map(Path::new).filter(|path| path.is_file())
}

/// Sockets of services outside `shown`: a process that can name one can use its service, even from a separate
/// network.
pub(in crate::local::isolation) fn sockets(hidden: &[PathBuf], shown: &[&Path]) -> Vec<PathBuf> {
    /// The flag of a listening socket.
    const LISTENS: &str = "00010000";
    /// No machine has this many outside the hidden folders.
    const MOST: usize = 200;
    let text = std::fs::read_to_string("/proc/net/unix").unwrap_or_default();
    let mut found: Vec<PathBuf> = text
        .lines()
        .filter_map(|line| {
            (field(line, 3)?.0 == LISTENS).then_some(())?;
            // The rest of the line, whatever it holds.
            let path = field(line, 6)?.1;
            path.starts_with('/').then(|| PathBuf::from(path))
        })
        .filter_map(|path| path.canonicalize().ok())
        .filter(|path| {
            !hidden.iter().any(|place| path.starts_with(place))
                && !shown.iter().any(|place| path.starts_with(place))
        })
        .filter(|path| path.metadata().is_ok_and(|about| about.file_type().is_socket()))
        .take(MOST)
        .collect();
    found.sort();
    found.dedup();
    found
}

fn field(line: &str, number: usize) -> Option<(&str, &str)> {
    let mut rest = line.trim_start();
    for _ in 0..number {
        rest = rest.split_once(' ')?.1.trim_start();
    }
    Some(rest.split_once(' ').unwrap_or((rest, "")))
}

/// Homes of users that aren't below `/home`.
fn homes_of_people() -> Vec<PathBuf> {
    let text = std::fs::read_to_string("/etc/passwd").unwrap_or_default();
    let home = |line: &str| {
        let mut fields = line.split(':').skip(2);
        let uid: u32 = fields.next()?.parse().ok()?;
        let home = fields.nth(2)?;
        let system =
            ["/usr", "/bin", "/sbin", "/lib", "/etc", "/var", "/dev", "/proc", "/sys", "/nonexistent"];
        let own = (1000..60000).contains(&uid) && !system.iter().any(|s| home.starts_with(s));
        own.then(|| PathBuf::from(home))
    };
    text.lines().filter_map(home).collect()
}
