//! What the guard refuses, in eighteen categories, and what is said of a refusal.

use serde::{Deserialize, Serialize};

/// A kind of danger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Category {
    /// Removing or overwriting what is not the project's.
    Files,
    /// Raw disks and file systems.
    Disk,
    /// Becoming somebody else.
    Privilege,
    /// Running what the network sends, or what hides what it is.
    RemoteCode,
    /// A shell for somebody far away.
    ReverseShell,
    /// Sending files or secrets away.
    Exfiltration,
    /// Reading what logs in somewhere.
    Credentials,
    /// Rewriting history, here or on a remote.
    GitHistory,
    /// Publishing packages, images and releases.
    Publish,
    /// Leaving a container, or starting one that is none.
    Container,
    /// Being started again later.
    Persistence,
    /// Kernel, firewall, shutting down.
    Kernel,
    /// Looking for machines and ports.
    NetworkScan,
    /// Ending processes that are not the session's own.
    Kill,
    /// Printing the environment, with its keys.
    Environment,
    /// Deleting infrastructure.
    Cloud,
    /// Dropping data.
    Database,
    /// Changing the guard itself.
    Guard,
    /// What cannot be read within the guard's bounds.
    Unreadable,
}

impl Category {
    /// The word of settings and lists.
    pub fn word(self) -> &'static str {
        match self {
            Self::Files => "files",
            Self::Disk => "disk",
            Self::Privilege => "privilege",
            Self::RemoteCode => "remote-code",
            Self::ReverseShell => "reverse-shell",
            Self::Exfiltration => "exfiltration",
            Self::Credentials => "credentials",
            Self::GitHistory => "git-history",
            Self::Publish => "publish",
            Self::Container => "container",
            Self::Persistence => "persistence",
            Self::Kernel => "kernel",
            Self::NetworkScan => "network-scan",
            Self::Kill => "kill",
            Self::Environment => "environment",
            Self::Cloud => "cloud",
            Self::Database => "database",
            Self::Guard => "guard",
            Self::Unreadable => "unreadable",
        }
    }

    /// What to do instead.
    pub fn instead(self) -> &'static str {
        match self {
            Self::Files => "Work on files of the project, and name the one file or folder that must go.",
            Self::Disk => "No task needs a raw disk. Use a file in the project.",
            Self::Privilege => {
                "Do it without other rights; if it needs them, say so in your answer and let the person do it."
            }
            Self::RemoteCode => {
                "Use the package manager of the project, or write the commands out so that they can be read."
            }
            Self::ReverseShell => "No task needs this.",
            Self::Exfiltration => {
                "Keep files and secrets on this machine; name in your answer what should be sent."
            }
            Self::Credentials => "Work without the login. A program that needs one finds it by itself.",
            Self::GitHistory => "Add a commit instead of rewriting one; leave pushing to the engine.",
            Self::Publish => "Leave publishing to the person. A dry run is fine (`--dry-run`).",
            Self::Container => "Run the container without the host's folders, devices and rights.",
            Self::Persistence => "Change files of the project only; nothing may start by itself later.",
            Self::Kernel => "Leave the machine as it is.",
            Self::NetworkScan => "Ask for the one address that you need.",
            Self::Kill => "End only a process that you started, by its id.",
            Self::Environment => "Print the one variable that you need, if it is no secret.",
            Self::Cloud => "Leave deleting infrastructure to the person; a plan (`terraform plan`) is fine.",
            Self::Database => "Use a database of the tests, or write a migration that the person runs.",
            Self::Guard => {
                "The guard's own files stay as they are. The person can allow commands in their guard.json."
            }
            Self::Unreadable => "Write it as several plain commands.",
        }
    }

    /// In words of a sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::Files => "destructive file operation",
            Self::Disk => "raw disk",
            Self::Privilege => "other rights",
            Self::RemoteCode => "code that nobody has read",
            Self::ReverseShell => "remote shell",
            Self::Exfiltration => "sending data away",
            Self::Credentials => "credentials",
            Self::GitHistory => "git history",
            Self::Publish => "publishing",
            Self::Container => "container with the host's rights",
            Self::Persistence => "starting by itself later",
            Self::Kernel => "kernel or machine",
            Self::NetworkScan => "network scan",
            Self::Kill => "ending other processes",
            Self::Environment => "dump of the environment",
            Self::Cloud => "deleting infrastructure",
            Self::Database => "dropping data",
            Self::Guard => "change of the guard",
            Self::Unreadable => "not readable within bounds",
        }
    }
}

/// Why something was refused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refusal {
    /// The kind of danger.
    pub category: Category,
    /// The command or file that it is about, as it was understood.
    pub what: String,
    /// Why.
    pub why: String,
}

/// Longest excerpt of a command in a message.
const SHOWN: usize = 160;

impl Refusal {
    /// A refusal; `what` is cut to an excerpt.
    pub fn new(category: Category, what: impl AsRef<str>, why: impl Into<String>) -> Self {
        let what = ralph_loop_protocol::text::one_line(what.as_ref(), SHOWN).replace('\u{fffc}', "…");
        Self { category, what, why: why.into() }
    }

    /// What the agent is told: what was refused, why, and what to do instead.
    pub fn message(&self) -> String {
        format!(
            "Refused by ralph's guard ({}): `{}`. {} {}",
            self.category.words(),
            self.what,
            self.why,
            self.category.instead()
        )
    }
}
