//! Whose place a path is: the project's, the user's home, the machine's, a login, something that starts by itself, or the guard's
//! own.

use super::category::Category;
use super::links::led_to;
use super::value::UNKNOWN;
use super::wild;

/// The places of a session.
#[derive(Debug, Clone, Default)]
pub struct Places {
    /// The user's home.
    pub home: String,
    /// The project.
    pub project: String,
    /// Where commands start.
    pub cwd: String,
    /// Files and folders that the guard stands on: the binary, its state and its settings.
    pub own: Vec<String>,
}

/// A danger, and why it is one.
pub type Danger = (Category, &'static str);

const SYSTEM: &[&str] = &[
    "/bin",
    "/boot",
    "/dev",
    "/etc",
    "/home",
    "/lib",
    "/lib32",
    "/lib64",
    "/opt",
    "/proc",
    "/root",
    "/run",
    "/sbin",
    "/srv",
    "/sys",
    "/usr",
    "/var",
    "/Users",
    "/System",
    "/Library",
    "/Applications",
    "/private",
];
/// Below those, and nobody's.
const SHARED: &[&str] = &[
    "/dev/null",
    "/dev/stdout",
    "/dev/stderr",
    "/dev/stdin",
    "/dev/tty",
    "/dev/fd",
    "/dev/shm",
    "/dev/zero",
    "/dev/full",
    "/dev/random",
    "/dev/urandom",
    "/dev/ptmx",
    "/run/user",
    "/var/tmp",
    "/var/folders",
    "/private/tmp",
    "/private/var/folders",
    "/proc/self/fd",
    "/dev/tcp",
    "/dev/udp",
];
const DISKS: &[&str] = &[
    "sd", "hd", "vd", "xvd", "nvme", "mmcblk", "disk", "rdisk", "mapper/", "md", "dm-", "loop", "mem", "kmem",
];
/// Caches directly below a home, which come again.
const CACHES: &[&str] =
    &[".cache", ".npm", ".gradle", ".m2", ".yarn", ".pnpm-store", ".bun", ".nuget", ".ivy2"];
/// What logs in somewhere, below a home.
const LOGINS: &[&str] = &[
    ".aws",
    ".kube",
    ".config/gh",
    ".aws/credentials",
    ".aws/cli/**",
    ".aws/sso/**",
    ".netrc",
    ".git-credentials",
    ".config/gh/hosts.yml",
    ".config/git/credentials",
    ".kube/config",
    ".docker/config.json",
    ".npmrc",
    ".yarnrc.yml",
    ".pypirc",
    ".gnupg/**",
    ".config/gcloud/**",
    ".azure/**",
    ".claude/.credentials.json",
    ".claude.json",
    ".codex/auth.json",
    ".gemini/oauth_creds.json",
    ".qwen/oauth_creds.json",
    ".local/share/opencode/auth.json",
    ".password-store/**",
    ".config/op/**",
    "Library/Keychains/**",
    ".local/share/keyrings/**",
    ".cargo/credentials*",
    ".gem/credentials",
    ".config/hub",
    ".terraform.d/credentials*",
    ".vault-token",
    ".databrickscfg",
    ".pgpass",
    ".my.cnf",
    ".config/rclone/**",
    ".mozilla/**",
    ".config/google-chrome/**",
    ".bash_history",
    ".zsh_history",
];
/// What starts by itself, below a home.
const STARTS: &[&str] = &[
    ".bashrc",
    ".bash_profile",
    ".bash_login",
    ".bash_logout",
    ".bash_aliases",
    ".profile",
    ".zshrc",
    ".zshenv",
    ".zprofile",
    ".zlogin",
    ".zlogout",
    ".kshrc",
    ".inputrc",
    ".xinitrc",
    ".xprofile",
    ".xsession",
    ".config/fish/**",
    ".config/autostart/**",
    ".config/systemd/**",
    ".local/share/systemd/**",
    "Library/LaunchAgents/**",
    ".ssh/authorized_keys*",
    ".ssh/config",
    ".ssh/rc",
    ".ssh/environment",
    ".gitconfig",
    ".config/git/config",
    ".vimrc",
    ".config/nvim/init.*",
    ".pam_environment",
    ".local/bin/**",
];
/// The same of the machine.
const STARTS_HERE: &[&str] = &[
    "/etc/cron*",
    "/var/spool/cron*",
    "/etc/systemd/**",
    "/lib/systemd/**",
    "/usr/lib/systemd/**",
    "/etc/init.d/**",
    "/etc/profile*",
    "/etc/bash.bashrc",
    "/etc/zsh/**",
    "/etc/ld.so.preload",
    "/etc/rc.local",
    "/etc/environment",
    "/etc/pam.d/**",
    "/Library/Launch*",
    "/etc/anacrontab",
    "/etc/xdg/autostart/**",
];
/// What the guard and the hooks of agents stand on, below a home or a project.
const GUARDS: &[&str] = &[
    ".claude/settings*.json",
    ".claude/hooks*",
    ".claude/plugins*",
    ".claude",
    ".codex/config.toml",
    ".codex/hooks*",
    ".codex",
    ".gemini/settings.json",
    ".gemini/hooks*",
    ".qwen/settings.json",
    ".opencode/plugin*",
    ".config/opencode/plugin*",
    ".config/opencode/opencode.json*",
    ".config/ralph*",
    ".local/state/ralph*",
    ".ralph/active.json",
    ".ralph/config.json",
    ".ralph/runs*",
    ".ralph",
];

/// Those of them that are meant wherever they lie.
const ANYWHERE: &[&str] =
    &["*/.ralph/active.json", "*/.claude/settings.json", "*/.claude/settings.local.json"];

impl Places {
    /// A path as it is meant in a folder: absolute, without `.` and `..`, its wildcards and unknown parts kept.
    pub fn resolve(&self, cwd: &str, text: &str) -> String {
        let whole = match text.strip_prefix('~') {
            Some(rest) if rest.is_empty() || rest.starts_with('/') => format!("{}{rest}", self.home),
            _ if text.starts_with('/') || text.starts_with(UNKNOWN) => text.to_owned(),
            _ => format!("{cwd}/{text}"),
        };
        let mut parts: Vec<&str> = Vec::new();
        for part in whole.split('/') {
            match part {
                "" | "." => {}
                ".." => drop(parts.pop()),
                part => parts.push(part),
            }
        }
        // Other names of the same file system.
        match parts.as_slice() {
            ["proc", _, "root", ..] => drop(parts.drain(..3)),
            ["proc", "self", "cwd", rest @ ..] if !cwd.starts_with("/proc/") => {
                return self.resolve("/", &format!("{cwd}/{}", rest.join("/")));
            }
            _ => {}
        }
        match whole.starts_with('/') {
            true => format!("/{}", parts.join("/")),
            false => parts.join("/"),
        }
    }

    /// Why a path may not be removed or changed as a whole.
    pub fn removal(&self, path: &str) -> Option<Danger> {
        let files = |why| Some((Category::Files, why));
        let any_top = path
            .strip_prefix('/')
            .is_some_and(|rest| !rest.is_empty() && rest.chars().all(|c| c == UNKNOWN || c == '/'));
        if any_top {
            return files("It would take folders of the machine with it.");
        }
        if covers(path, &self.project) {
            return files("It would take the whole project with it.");
        }
        if covers(path, &self.home) {
            return files("It would take the home folder with it.");
        }
        if covers(path, &format!("{}/.git", self.project))
            || path.ends_with("/.git") && self.below_project(path)
        {
            return files("The repository's history is in there.");
        }
        if let Some(danger) = self.writing(path) {
            return Some(danger);
        }
        let rest = below(path, &self.home)?;
        let own = !rest.contains('/') && !self.below_project(path) && !CACHES.contains(&rest);
        if own { files("It is a whole folder of the user's home.") } else { None }
    }

    /// Why a path may not be written, under its own name or that of the file that it leads to.
    pub fn writing(&self, path: &str) -> Option<Danger> {
        self.writing_at(path).or_else(|| {
            let real = led_to(path, &[&self.project, &self.home])?;
            // A folder of the project may lie elsewhere on the machine.
            self.writing_at(&real).filter(|(category, _)| *category != Category::Files)
        })
    }

    fn writing_at(&self, path: &str) -> Option<Danger> {
        if self.is_guards(path) {
            return Some((Category::Guard, "The guard stands on it."));
        }
        if is_disk(path) {
            return Some((Category::Disk, "It is a disk."));
        }
        if path.starts_with("/proc/sys") || path.starts_with("/sys/") {
            return Some((Category::Kernel, "It changes the running kernel."));
        }
        if path.starts_with("/etc/sudoers") || path == "/etc/passwd" || path == "/etc/group" {
            return Some((Category::Privilege, "It says who has which rights."));
        }
        if self.is_history(path) {
            return Some((Category::GitHistory, "The repository's history is in there."));
        }
        if self.starts_by_itself(path) {
            return Some((Category::Persistence, "What is written there starts by itself later."));
        }
        if self.logs_in(path) {
            return Some((Category::Credentials, "It holds a login."));
        }
        self.is_system(path).then_some((Category::Files, "It belongs to the machine, not to the project."))
    }

    /// Why a path may not be read, under its own name or that of the file that it leads to.
    pub fn reading(&self, path: &str) -> Option<Danger> {
        self.reading_at(path).or_else(|| self.reading_at(&led_to(path, &[&self.project, &self.home])?))
    }

    fn reading_at(&self, path: &str) -> Option<Danger> {
        if self.logs_in(path) {
            return Some((Category::Credentials, "It holds a login."));
        }
        if wild::matches("/proc/*/environ", path) || covers(path, "/proc/self/environ") && path.len() > 6 {
            return Some((Category::Environment, "It is the whole environment, with its keys."));
        }
        is_disk(path).then_some((Category::Disk, "It is a disk."))
    }

    /// Whether a path is the user's home, or a folder that it lies in.
    pub fn holds_home(&self, path: &str) -> bool {
        covers(path, &self.home)
    }

    /// Whether a file holds something that must not leave this machine.
    pub fn holds_secrets(&self, path: &str) -> bool {
        let name = path.rsplit('/').next().unwrap_or(path);
        let env = name == ".env"
            || name.starts_with(".env.") && !name.ends_with("example") && !name.ends_with("sample");
        let key = [".pem", ".key", ".p12", ".pfx", ".kdbx"].iter().any(|end| name.ends_with(end));
        env || key || self.logs_in(path) || ["/etc/passwd", "/etc/shadow"].contains(&path)
    }

    /// Whether a path is the project, or in it.
    pub fn below_project(&self, path: &str) -> bool {
        !self.project.is_empty() && (path == self.project || below(path, &self.project).is_some())
    }

    fn logs_in(&self, path: &str) -> bool {
        if ["/etc/shadow", "/etc/gshadow", "/etc/shadow-", "/etc/krb5.keytab"]
            .iter()
            .any(|one| hits(path, one))
        {
            return true;
        }
        let in_home = self.homes().any(|home| {
            let Some(rest) = below(path, &home) else { return false };
            let (first, file) =
                rest.split_once('/').map_or((rest, None), |(first, file)| (first, Some(file)));
            let ssh = first.starts_with('.')
                && hits(first, ".ssh")
                && file.is_none_or(|file| {
                    let open = ["known_hosts", "config", "authorized_keys", "allowed_signers"];
                    !file.ends_with(".pub") && !open.iter().any(|name| file.starts_with(name))
                });
            ssh || listed(rest, LOGINS)
        });
        // The project's own `.npmrc` and the like hold settings.
        in_home && !self.below_project(path)
    }

    /// What a repository's history is made of.
    fn is_history(&self, path: &str) -> bool {
        below(path, &self.project).and_then(|rest| rest.strip_prefix(".git/")).is_some_and(|rest| {
            let first = rest.split('/').next().unwrap_or(rest);
            ["objects", "refs", "HEAD", "packed-refs", "logs"].iter().any(|part| hits(first, part))
        })
    }

    fn starts_by_itself(&self, path: &str) -> bool {
        let hooks = below(path, &self.project).is_some_and(|rest| rest.starts_with(".git/hooks/"));
        let of_home = || self.homes().any(|home| below(path, &home).is_some_and(|rest| listed(rest, STARTS)));
        hooks || listed(path, STARTS_HERE) || !self.below_project(path) && of_home()
    }

    fn is_guards(&self, path: &str) -> bool {
        let named = |base: &str| below(path, base).is_some_and(|rest| listed(rest, GUARDS));
        self.own.iter().any(|own| path == own || below(path, own).is_some())
            || named(&self.project)
            || named(&self.cwd)
            || self.homes().any(|home| named(&home))
            || ANYWHERE.iter().any(|file| wild::matches(file, path))
    }

    fn is_system(&self, path: &str) -> bool {
        let shared = |path: &str| SHARED.iter().any(|one| path == *one || below(path, one).is_some());
        if path == "/" || path == "/*" {
            return true;
        }
        if self.below_project(path) || shared(path) {
            return false;
        }
        if path == self.home || below(path, &self.home).is_some() {
            return false;
        }
        SYSTEM.iter().any(|one| hits(path, one) || below(path, one).is_some())
            || path.contains(['*', '?', '[']) && SYSTEM.iter().any(|one| covers(path, one))
    }

    /// Homes on this machine: the user's, root's, anybody's that is named.
    fn homes(&self) -> impl Iterator<Item = String> {
        [self.home.clone(), "/root".to_owned()].into_iter().filter(|home| !home.is_empty() && home != "/")
    }
}

/// The part of a path below a folder.
fn below<'a>(path: &'a str, folder: &str) -> Option<&'a str> {
    if folder.is_empty() || folder == "/" {
        return None;
    }
    path.strip_prefix(folder)?.strip_prefix('/').filter(|rest| !rest.is_empty())
}

/// Whether a path, or what its wildcards stand for, is this file.
fn hits(path: &str, file: &str) -> bool {
    path == file || path.contains(['*', '?', '[']) && wild::matches(path, file)
}

/// Whether removing a path would take this folder with it.
fn covers(path: &str, folder: &str) -> bool {
    !folder.is_empty() && (hits(path, folder) || path == "/" || below(folder, path).is_some())
}

/// Whether the rest of a path is on a list. `**` at an entry's end stands for the folder and all in it.
fn listed(rest: &str, list: &[&str]) -> bool {
    list.iter().any(|entry| match entry.strip_suffix("/**") {
        Some(folder) => rest == folder || below(rest, folder).is_some() || hits(rest, folder),
        None => {
            wild::matches(entry, rest)
                || rest.contains(['*', '?', '[']) && !rest.starts_with('*') && wild::matches(rest, entry)
        }
    })
}

fn is_disk(path: &str) -> bool {
    path.strip_prefix("/dev/").is_some_and(|name| DISKS.iter().any(|disk| name.starts_with(disk)))
}
