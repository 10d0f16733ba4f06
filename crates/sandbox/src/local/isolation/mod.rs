//! The sandbox: what a command may see, change and reach of the machine it runs on.
//!
//! A sandboxed command is started as `ralph __fence … bwrap … ralph __inside … command`. `__fence` ([`launch`]) joins
//! the limits and becomes bubblewrap, which builds the namespaces. `__inside` ([`inside`]) is the first process in
//! there: it locks itself in (no new privileges, system call filter, limits), connects to the egress proxy and starts
//! the command. If user namespaces aren't allowed, Landlock does a part of it ([`landlock`]). Everything stays below
//! the guard, so nothing outlives its command either way.

pub mod detect;
mod env;
mod kernel;
mod logins;
mod runtime;
mod view;
mod wrap;

pub use detect::{Finding, IsolationReport, detect};
pub use kernel::limits::Limits;
pub use logins::AgentLogin;
pub use logins::auth::{AuthFile, auth_files, key_variables};
pub(crate) use logins::auth::{gather, take_back};
pub use logins::covers::{Covers, folders_to, place_below};
pub use logins::login_secrets::login_secrets;
pub use logins::shared::files_of;
pub use view::git::{git_mounts, tidy_git};
pub use view::system::SystemView;

#[cfg(target_os = "linux")]
pub(crate) use kernel::inside::main as inside_main;
#[cfg(target_os = "linux")]
pub(crate) use kernel::launch::main as launch_main;
pub(super) use logins::LoggedIn;
pub(super) use runtime::Runtime;
pub(super) use view::same_path::Workspace;
pub(super) use wrap::{LeftBehind, Wrapped};

use super::egress::EgressPolicy;
use crate::GitIdentity;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};

/// The isolation of commands on this machine: bubblewrap, Landlock or none.
#[derive(Debug, Clone, Default)]
pub enum LocalIsolation {
    /// None: a command has all rights of this user.
    #[default]
    None,
    /// Namespaces, through bubblewrap.
    Bwrap(IsolationSpec),
    /// Landlock rules and a system call filter; weaker, see [`detect::LANDLOCK_GAPS`].
    Landlock(IsolationSpec),
}

impl LocalIsolation {
    /// `none`, `bwrap`, `landlock`.
    pub fn name(&self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Bwrap(_) => "bwrap",
            Self::Landlock(_) => "landlock",
        }
    }

    /// The same sandbox with a separate folder and home, and with these folders lent; its workspace may borrow this
    /// one's objects.
    pub(super) fn with_new_folder(&self, workspace: &Workspace, lent: Vec<PathBuf>) -> Self {
        static NEXT: AtomicU32 = AtomicU32::new(1);
        let mut other = self.clone();
        if let Self::Bwrap(spec) | Self::Landlock(spec) = &mut other {
            let mut name = spec.folder.file_name().unwrap_or_default().to_owned();
            name.push(format!("-{}", NEXT.fetch_add(1, Ordering::Relaxed)));
            spec.folder.set_file_name(name);
            spec.lent = lent;
            if !spec.objects.is_empty() {
                spec.objects.extend(view::git::own_objects(&workspace.host));
            }
        }
        other
    }

    /// What it allows; `None` without a sandbox.
    pub fn spec(&self) -> Option<&IsolationSpec> {
        match self {
            Self::None => None,
            Self::Bwrap(spec) | Self::Landlock(spec) => Some(spec),
        }
    }
}

/// What a sandboxed command may see and reach.
#[derive(Debug, Clone)]
pub struct IsolationSpec {
    /// A folder of the run on the host, outside the workspace, for its home and its proxy's socket. Created if
    /// missing, for this user only; the home is removed with the sandbox, as it may hold copies of tokens.
    pub folder: PathBuf,
    /// What it may do with the repo's git folder.
    pub git: GitAccess,
    /// Agent logins, by the full path of their program: present while their sessions run, and for no other command.
    pub logins: BTreeMap<String, AgentLogin>,
    /// Variables of this process that every command gets, in addition to the harmless ones.
    pub pass_env: Vec<String>,
    /// Variables that only sessions of this program get, by its full path: an agent's keys.
    pub keys: BTreeMap<String, Vec<String>>,
    /// What sessions of a program, by its full path, get instead of the user's variables: placeholders for keys, and
    /// the address of the [`InsideServer`](super::egress::InsideServer) that knows them. Not with Landlock.
    pub instead: BTreeMap<String, Vec<(String, String)>>,
    /// What of the workspace a program's sessions find empty, by its full path. Only bubblewrap supports this.
    pub covers: BTreeMap<String, Covers>,
    /// Where commands see the workspace: the path of the user's repo, whose copy or checkout it is. Only bubblewrap
    /// supports this; otherwise, and if that path holds the home or parts of the system, the workspace keeps its own
    /// path. Its `.git` must then be a folder.
    pub workspace_at: Option<PathBuf>,
    /// Object folders that the workspace's git borrows from.
    pub objects: Vec<PathBuf>,
    /// Who commits.
    pub identity: Option<GitIdentity>,
    /// Programs that are given keys, by path: each is available with the links to its file and with its tool. The
    /// agent can't change those inside the workspace: they are mounted elsewhere.
    pub programs: Vec<PathBuf>,
    /// More readable files and folders outside the system's view.
    pub read_only: Vec<PathBuf>,
    /// Folders with installed dependencies of the user's repo, read-only in the workspace.
    pub lent: Vec<PathBuf>,
    /// Virtual environments that commands use, whose base installations are readable as well.
    pub environments: Vec<PathBuf>,
    /// More writable folders.
    pub writable: Vec<PathBuf>,
    /// Paths that stay hidden even if something around them is visible, such as the state of other runs.
    pub hidden: Vec<PathBuf>,
    /// Network access; `None` for no network.
    pub egress: Option<EgressPolicy>,
    /// How much of the machine it may use.
    pub limits: Limits,
}

impl IsolationSpec {
    /// A sandbox without network, logins or passed variables.
    pub fn new(folder: impl Into<PathBuf>) -> Self {
        Self {
            folder: folder.into(),
            git: GitAccess::ReadOnly,
            logins: BTreeMap::new(),
            pass_env: Vec::new(),
            keys: BTreeMap::new(),
            instead: BTreeMap::new(),
            covers: BTreeMap::new(),
            workspace_at: None,
            objects: Vec::new(),
            identity: None,
            programs: Vec::new(),
            read_only: Vec::new(),
            lent: Vec::new(),
            environments: Vec::new(),
            writable: Vec::new(),
            hidden: Vec::new(),
            egress: None,
            limits: Limits::default(),
        }
    }
}

/// What a sandboxed command may do with git.
///
/// In a clone, everything is writable except what makes git run programs. In a worktree, whose git folder is the
/// user's, this decides.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum GitAccess {
    /// Read only: `git status`, `diff` and `log` work, `add` and `commit` don't.
    #[default]
    ReadOnly,
    /// Also `git add` and `commit` on the run's branch. Objects are then added to the user's store, which a hostile
    /// command could damage; a clone has no such risk.
    Commit,
}
