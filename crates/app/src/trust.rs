//! What a repo requests that only the user can allow: a wider sandbox, a server that gets a key, a push
//! target, a program that replaces a known agent's.
//!
//! An [`Ask`] is one such request with its location. The user allows it per repo and content; approvals are
//! kept in the user's state folder ([`store`]), never in the repo. Readers of repo files get [`TrustedSet`] and
//! drop what those don't allow.

pub mod consent;
pub mod pinned;
pub(crate) mod record_trust;
pub mod repo_file;
pub(crate) mod screen;
pub mod store;

use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::id::Digest;
use ralph_loop_task::config::join_argv;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Longest value shown.
const SHOWN_MAX: usize = 300;
/// Longest text: several values.
const TEXT_MAX: usize = 4 * SHOWN_MAX;

/// What kind of permission it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum PrivilegeKind {
    /// Beyond the default sandbox: hosts, variables, volumes, weaker isolation.
    Sandbox,
    /// A server that gets a key, a login or a message.
    Server,
    /// A push target.
    Push,
    /// Another repo, cloned with the user's rights.
    Clone,
    /// A program or arguments that replace a known agent's.
    Program,
    /// A key from the repo, which decides whose account is used.
    Account,
    Settings,
}

/// One request that only the user can allow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ask {
    pub kind: PrivilegeKind,
    /// The requesting file, relative to the top of the repo.
    pub source: String,
    /// Its key in that file.
    pub setting: String,
    /// Completes "This repository asks for".
    pub text: String,
    /// Identifies the exact content; a change makes it a new request.
    pub digest: Digest,
}

impl Ask {
    /// A request of `source` under `setting`; `content` is hashed, not stored.
    pub fn new(
        kind: PrivilegeKind,
        source: &str,
        setting: impl Into<String>,
        content: &str,
        text: impl Into<String>,
    ) -> Self {
        let setting = setting.into();
        let digest = Digest::of(format!("{kind:?}\0{setting}\0{content}").as_bytes());
        let text = one_line(&text.into(), TEXT_MAX);
        Self {
            kind,
            source: one_line(source, SHOWN_MAX),
            setting: one_line(&setting, SHOWN_MAX),
            text,
            digest,
        }
    }

    /// With its location, for lists.
    pub fn shown(&self) -> String {
        format!("{} ({}: {})", self.text, self.source, self.setting)
    }
}

/// A repo's value for display: in backticks, long ones cut in the middle so that neither end is hidden.
pub fn quoted(value: &str) -> String {
    let value = value.replace('`', "'");
    format!("`{}`", middle_cut(&value, SHOWN_MAX))
}

/// A command's arguments for display, each shortened separately so that a long one can't hide the next.
pub fn quoted_arguments(argv: &[String]) -> String {
    const WORD_MAX: usize = 60;
    const WORDS_MAX: usize = 14;
    let words: Vec<String> =
        argv.iter().take(WORDS_MAX).map(|word| middle_cut(&word.replace('`', "'"), WORD_MAX)).collect();
    let more = match argv.len().saturating_sub(WORDS_MAX) {
        0 => String::new(),
        more => format!(" and {more} further arguments, which do not fit here"),
    };
    format!("`{}`{more}", join_argv(&words))
}

/// A server for display: the host that is really contacted. A URL is shown in full only if it adds nothing;
/// one with a login, ambiguous characters or excessive length is reduced to its host.
pub fn quoted_server(address: &str) -> String {
    const PLAIN_MAX: usize = 120;
    let address = address.trim();
    let is_plain = |c: char| c.is_ascii_graphic() && !matches!(c, '\\' | '@' | '`' | '"' | '\'' | '<' | '>');
    if address.len() <= PLAIN_MAX && address.chars().all(is_plain) {
        return quoted(address);
    }
    match url_host(address) {
        Some(host) => format!("the host {} (by an address that does not show it plainly)", quoted(&host)),
        None => quoted(address),
    }
}

/// What running in a cloud means.
pub fn cloud_words(provider: &str) -> String {
    format!("commands to run in the cloud {}, where your code is sent with your key", quoted(provider))
}

/// Host and port of a URL as HTTP clients read it: any-case scheme, `\` as `/`, and everything before the
/// last `@` is a login.
pub fn url_host(text: &str) -> Option<String> {
    let (scheme, rest) = text.trim().split_once(':')?;
    let rest = rest.trim_start_matches(['/', '\\']);
    let scheme = scheme.to_ascii_lowercase();
    if !matches!(
        scheme.as_str(),
        "http" | "https" | "ws" | "wss" | "socks5" | "socks5h" | "postgres" | "postgresql"
    ) {
        return None;
    }
    let host = rest.split(['/', '\\', '?', '#']).next()?.rsplit('@').next()?;
    (!host.is_empty()).then(|| host.to_owned())
}

/// `text` on one line, cut in the middle to `max` bytes.
fn middle_cut(text: &str, max: usize) -> String {
    let whole = one_line(text, text.len().saturating_add(8));
    if whole.len() <= max {
        return whole;
    }
    let part = max / 2 - 8;
    let cut = whole.chars().count();
    format!(
        "{} […{cut} characters…] {}",
        ralph_loop_protocol::display::text::head(&whole, part),
        ralph_loop_protocol::display::text::tail(&whole, part)
    )
}

/// The hash of a whole set, for `RALPH_TRUST`.
pub fn hash<'a>(asks: impl IntoIterator<Item = &'a Ask>) -> Digest {
    let ids: BTreeSet<&str> = asks.into_iter().map(|ask| ask.digest.as_str()).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    Digest::of(ids.join("\n").as_bytes())
}

/// The allowed requests.
#[derive(Debug, Clone, Default)]
pub struct TrustedSet {
    everything: bool,
    allowed: BTreeSet<Digest>,
}

impl TrustedSet {
    /// Allows everything, to find out what is requested.
    pub fn everything() -> Self {
        Self { everything: true, allowed: BTreeSet::new() }
    }

    pub fn of(allowed: impl IntoIterator<Item = Digest>) -> Self {
        Self { everything: false, allowed: allowed.into_iter().collect() }
    }

    #[must_use]
    pub fn and(mut self, more: impl IntoIterator<Item = Digest>) -> Self {
        self.allowed.extend(more);
        self
    }

    pub fn allow(&self, ask: &Ask) -> bool {
        self.everything || self.allowed.contains(&ask.digest)
    }
}

/// The folder that identifies a repo: shared by all worktrees; the folder itself outside a repo.
pub fn identity(top: &Path) -> PathBuf {
    common_dir(top).or_else(|| top.canonicalize().ok()).unwrap_or_else(|| top.to_owned())
}

/// Folders with files of the repo at `top`: its own, and the main worktree of a linked one.
pub fn folders(top: &Path) -> Vec<PathBuf> {
    let mut folders: Vec<PathBuf> = top.canonicalize().into_iter().collect();
    folders.push(top.to_owned());
    let common = identity(top);
    if common.ends_with(".git") {
        folders.extend(common.parent().map(Path::to_owned));
    }
    folders.sort();
    folders.dedup();
    folders
}

fn common_dir(top: &Path) -> Option<PathBuf> {
    let dot_git = top.join(".git");
    let meta = std::fs::symlink_metadata(&dot_git).ok()?;
    if meta.is_dir() {
        return dot_git.canonicalize().ok();
    }
    let read = |path: &Path| String::from_utf8(crate::trust::repo_file::read_own(path).ok()?).ok();
    let text = read(&dot_git)?;
    let git_dir = top.join(text.trim().strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let Some(common) = read(&git_dir.join("commondir")) else { return Some(git_dir) };
    // The repo must list the worktree too: anyone can write a `.git` file that names another repo.
    let back = read(&git_dir.join("gitdir"))?;
    if Path::new(back.trim()).canonicalize().ok()? != dot_git.canonicalize().ok()? {
        return None;
    }
    git_dir.join(common.trim()).canonicalize().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_privilege_is_identified_by_content_and_shows_no_control_characters() {
        let ask =
            |content: &str, text: &str| Ask::new(PrivilegeKind::Sandbox, "f", "allowed_hosts", content, text);
        assert_eq!(ask("a", "x").digest, ask("a", "y").digest);
        assert_ne!(ask("a", "x").digest, ask("b", "x").digest);
        assert_eq!(ask("a", "red \u{1b}[31m\nline").text, "red line");
        assert_eq!(hash([&ask("a", ""), &ask("b", "")]), hash([&ask("b", ""), &ask("a", ""), &ask("a", "")]));
        assert_ne!(hash([&ask("a", "")]), hash([&ask("b", "")]));
        let grants = TrustedSet::of([ask("a", "").digest]);
        assert!(grants.allow(&ask("a", "")) && !grants.allow(&ask("b", "")));
        assert!(TrustedSet::everything().allow(&ask("b", "")));
    }

    #[test]
    fn the_host_that_gets_a_key_is_always_shown() {
        let long = "v1-".repeat(200);
        for address in [
            format!("https://api.anthropic.com:{long}@evil.example/"),
            format!("https://api.anthropic.com@evil.example/{long}"),
            "https://evil.example\\@api.anthropic.com/".to_owned(),
            "HTTPS:\\\\evil.example\\x".to_owned(),
            format!("http://evil.example/{long}"),
        ] {
            let shown = quoted_server(&address);
            assert!(shown.starts_with("the host `evil.example` "), "{address}: {shown}");
        }
        assert_eq!(quoted_server("https://proxy.example:8443/v1"), "`https://proxy.example:8443/v1`");
        let host = format!("registry.npmjs.org.{}evil.example", "a.".repeat(400));
        assert!(quoted(&host).ends_with("evil.example`"), "{}", quoted(&host));
        assert_eq!(quoted("x` (your own flag), `y"), "`x' (your own flag), 'y`");
        let argv = ["--add-dir", &" x".repeat(400), "--settings", "evil.json"].map(str::to_owned);
        assert!(quoted_arguments(&argv).ends_with("--settings evil.json`"), "{}", quoted_arguments(&argv));
        let many = vec!["x".to_owned(); 100];
        assert!(quoted_arguments(&many).ends_with("` and 86 further arguments, which do not fit here"));
    }

    #[test]
    fn a_worktree_is_known_by_its_repo_and_a_folder_that_only_says_so_is_not() {
        let place = tempfile::tempdir().unwrap();
        let at = |name: &str| place.path().canonicalize().unwrap().join(name);
        std::fs::create_dir_all(at("main/.git/worktrees/w")).unwrap();
        for folder in ["linked", "liar"] {
            std::fs::create_dir(at(folder)).unwrap();
            let text = format!("gitdir: {}\n", at("main/.git/worktrees/w").display());
            std::fs::write(at(folder).join(".git"), text).unwrap();
        }
        std::fs::write(at("main/.git/worktrees/w/commondir"), "../..\n").unwrap();
        std::fs::write(at("main/.git/worktrees/w/gitdir"), at("linked/.git").to_str().unwrap()).unwrap();
        assert_eq!(identity(&at("main")), at("main/.git"));
        assert_eq!(identity(&at("linked")), at("main/.git"));
        assert_eq!(identity(&at("liar")), at("liar"));
        assert_eq!(folders(&at("linked")), [at("linked"), at("main")]);
    }
}
