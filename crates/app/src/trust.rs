//! What a repo asks for and only its user can allow: more than the sandbox gives, a server that is sent a key, a place that
//! results are pushed to, a program that stands in for a known agent's.
//!
//! An [`Ask`] is one such thing, with where it stands. The user allows them once per repo and content: what was allowed is
//! kept in the user's own state folder ([`store`]), never in the repo. Whoever reads a repo's files is handed [`Grants`] and
//! leaves out whatever they do not allow.

pub mod store;

use ralph_loop_protocol::id::Digest;
use ralph_loop_protocol::text::one_line;
use ralph_loop_task::config::join_argv;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Longest value that is shown.
const SHOWN_MAX: usize = 300;
/// Longest text of an ask: several values, each shown.
const TEXT_MAX: usize = 4 * SHOWN_MAX;

/// What kind of thing is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum AskKind {
    /// More than the sandbox gives: hosts, variables, volumes, a weaker one.
    Sandbox,
    /// A server that a key, a login or a message is sent to.
    Server,
    /// A place that results are pushed to.
    Push,
    /// Another repo, which is cloned with the user's own rights and worked on.
    Clone,
    /// A program, or its arguments, in the place of a known agent's.
    Program,
    /// A key that the repo brings along: whose account is used.
    Account,
    /// Settings of an agent CLI.
    Settings,
}

/// One thing that a repo asks for and only its user can allow.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Ask {
    /// What kind of thing.
    pub kind: AskKind,
    /// The file that asks, as seen from the top of the repo.
    pub source: String,
    /// The key in that file.
    pub setting: String,
    /// In words: what follows "This repository asks for".
    pub text: String,
    /// What exactly is asked for; a change of it is another ask.
    pub digest: Digest,
}

impl Ask {
    /// An ask of `source` under the key `setting`; `content` is what exactly is asked for, and is not kept.
    pub fn new(
        kind: AskKind,
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

    /// With where it stands, as lists show it.
    pub fn shown(&self) -> String {
        format!("{} ({}: {})", self.text, self.source, self.setting)
    }
}

/// A value of a repo as texts show it: in backticks of ours alone, and a long one with its beginning and its end, so that
/// neither hides behind the other.
pub fn quoted(value: &str) -> String {
    let value = value.replace('`', "'");
    format!("`{}`", middle_cut(&value, SHOWN_MAX))
}

/// The arguments of a command as texts show them: each one shortened by itself, so that no long one hides the next.
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

/// A server as texts show it: the host that is really talked to. An address is shown whole where it says nothing else; one with
/// a login, with characters that programs read differently, or without end is told by its host.
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

/// What it means to run in a cloud.
pub fn cloud_words(provider: &str) -> String {
    format!("commands to run in the cloud {}, where your code is sent with your key", quoted(provider))
}

/// Host and port of an address of a server, as those read it who call one: schemes in any case, `\` for `/`, and what stands
/// before the last `@` is a login.
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

/// `text` on one line and at most `max` bytes long, with its beginning and its end.
fn middle_cut(text: &str, max: usize) -> String {
    let whole = one_line(text, text.len().saturating_add(8));
    if whole.len() <= max {
        return whole;
    }
    let part = max / 2 - 8;
    let cut = whole.chars().count();
    format!(
        "{} […{cut} characters…] {}",
        ralph_loop_protocol::text::head(&whole, part),
        ralph_loop_protocol::text::tail(&whole, part)
    )
}

/// The name of a whole set of asks, for `RALPH_TRUST`.
pub fn hash<'a>(asks: impl IntoIterator<Item = &'a Ask>) -> Digest {
    let ids: BTreeSet<&str> = asks.into_iter().map(|ask| ask.digest.as_str()).collect();
    let ids: Vec<&str> = ids.into_iter().collect();
    Digest::of(ids.join("\n").as_bytes())
}

/// What of a repo's asks is allowed.
#[derive(Debug, Clone, Default)]
pub struct Grants {
    everything: bool,
    allowed: BTreeSet<Digest>,
}

impl Grants {
    /// Whatever is asked for: for whoever only wants to know what that is.
    pub fn everything() -> Self {
        Self { everything: true, allowed: BTreeSet::new() }
    }

    /// These.
    pub fn of(allowed: impl IntoIterator<Item = Digest>) -> Self {
        Self { everything: false, allowed: allowed.into_iter().collect() }
    }

    /// These, too.
    #[must_use]
    pub fn and(mut self, more: impl IntoIterator<Item = Digest>) -> Self {
        self.allowed.extend(more);
        self
    }

    /// Whether one is allowed.
    pub fn allow(&self, ask: &Ask) -> bool {
        self.everything || self.allowed.contains(&ask.digest)
    }
}

/// The folder that a repo is known by: the one that all of its worktrees share; the folder itself where there is no repo.
pub fn identity(top: &Path) -> PathBuf {
    common_dir(top).or_else(|| top.canonicalize().ok()).unwrap_or_else(|| top.to_owned())
}

/// The folders that hold files of the repo at `top`: its own, and the main worktree of a linked one.
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
    let read = |path: &Path| String::from_utf8(crate::repo_file::read_own(path).ok()?).ok();
    let text = read(&dot_git)?;
    let git_dir = top.join(text.trim().strip_prefix("gitdir:")?.trim()).canonicalize().ok()?;
    let Some(common) = read(&git_dir.join("commondir")) else { return Some(git_dir) };
    // A folder is a worktree of a repo where that repo says so, too: anybody can write a file that names another's.
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
    fn an_ask_is_known_by_what_it_asks_for_and_shows_no_control_characters() {
        let ask = |content: &str, text: &str| Ask::new(AskKind::Sandbox, "f", "allowed_hosts", content, text);
        assert_eq!(ask("a", "x").digest, ask("a", "y").digest);
        assert_ne!(ask("a", "x").digest, ask("b", "x").digest);
        assert_eq!(ask("a", "red \u{1b}[31m\nline").text, "red line");
        assert_eq!(hash([&ask("a", ""), &ask("b", "")]), hash([&ask("b", ""), &ask("a", ""), &ask("a", "")]));
        assert_ne!(hash([&ask("a", "")]), hash([&ask("b", "")]));
        let grants = Grants::of([ask("a", "").digest]);
        assert!(grants.allow(&ask("a", "")) && !grants.allow(&ask("b", "")));
        assert!(Grants::everything().allow(&ask("b", "")));
    }

    #[test]
    fn the_host_that_gets_a_key_is_shown_whatever_stands_before_it() {
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
