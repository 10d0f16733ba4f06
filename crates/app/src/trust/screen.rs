//! Screens a repo's configuration or task: finds every request that only the user can allow, and removes what
//! isn't allowed.

mod agents;

use crate::agents::programs::Programs;
use crate::trust::{Ask, PrivilegeKind, TrustedSet, cloud_words, quoted};
use ralph_loop_task::config::{ConfigFile, Isolation, ProviderName, Publish};
use std::path::Path;

pub use agents::{fetched_agent, loader_asks};

/// The setting that publishes results.
pub const PUBLISH: &str = "publish";

/// What a repo's file is compared with.
#[derive(Debug)]
pub struct Screen<'a> {
    /// The file's display name.
    pub source: &'a str,
    /// The user's own configuration; what it also says needs no approval.
    pub user: &'a ConfigFile,
    /// The sandbox provider the user chose, in their configuration or the environment.
    pub provider: Option<ProviderName>,
    pub programs: &'a Programs,
    pub grants: &'a TrustedSet,
}

impl Screen<'_> {
    /// Returns every request in `file` and removes what isn't allowed.
    pub fn config(&self, file: &mut ConfigFile) -> Vec<Ask> {
        let mut asks = Vec::new();
        self.sandbox(file, &mut asks);
        self.lists(file, &mut asks);
        self.push(file, &mut asks);
        if let Some(agents) = &mut file.agents {
            agents.retain_mut(|agent| self.agent(agent, &mut asks));
        }
        asks
    }

    /// Records a request and returns whether it is allowed.
    fn note(&self, ask: Ask, asks: &mut Vec<Ask>) -> bool {
        let allowed = self.grants.allow(&ask);
        asks.push(ask);
        allowed
    }

    fn ask(&self, kind: PrivilegeKind, setting: impl Into<String>, content: &str, text: String) -> Ask {
        Ask::new(kind, self.source, setting, content, text)
    }

    /// A weaker sandbox than the default, or another one than the user's. (`none` never counts from a repo,
    /// so it isn't a request.)
    fn sandbox(&self, file: &mut ConfigFile, asks: &mut Vec<Ask>) {
        if file.isolation == Some(Isolation::Landlock) && self.user.isolation != Some(Isolation::Landlock) {
            let text = "the weaker sandbox `landlock`".to_owned();
            if !self.note(self.ask(PrivilegeKind::Sandbox, "isolation", "landlock", text), asks) {
                file.isolation = None;
            }
        }
        let Some(sandbox) = &mut file.sandbox else { return };
        if let Some(other) = sandbox.provider.filter(|other| self.provider != Some(*other)) {
            let name = other.as_str();
            let text = match self.provider {
                Some(own) => {
                    Some(format!("commands to run with `{name}` instead of your `{}`", own.as_str()))
                }
                None => other.is_cloud().then(|| cloud_words(name)),
            };
            let allowed = text.is_none_or(|text| {
                self.note(self.ask(PrivilegeKind::Sandbox, "sandbox.provider", name, text), asks)
            });
            if !allowed {
                sandbox.provider = None;
            }
        }
        let own = self.user.sandbox.as_ref().map(|own| &own.volumes);
        sandbox.volumes.retain(|name, place| {
            if own.is_some_and(|own| own.get(name) == Some(place)) {
                return true;
            }
            let text = format!("the volume {} at {} inside the sandbox", quoted(name), quoted(place));
            let content = format!("{name}\0{place}");
            self.note(self.ask(PrivilegeKind::Sandbox, "sandbox.volumes", &content, text), asks)
        });
    }

    /// Additional hosts and variables.
    fn lists(&self, file: &mut ConfigFile, asks: &mut Vec<Ask>) {
        let said = |own: &Option<Vec<String>>, word: &String| own.iter().flatten().any(|known| known == word);
        if let Some(hosts) = &mut file.allowed_hosts {
            hosts.retain(|host| {
                let text = format!("network access to {}", quoted(host));
                said(&self.user.allowed_hosts, host)
                    || self.note(self.ask(PrivilegeKind::Sandbox, "allowed_hosts", host, text), asks)
            });
        }
        if let Some(names) = &mut file.pass_env {
            names.retain(|name| {
                let text = format!("your environment variable {} inside the sandbox", quoted(name));
                said(&self.user.pass_env, name)
                    || self.note(self.ask(PrivilegeKind::Sandbox, "pass_env", name, text), asks)
            });
        }
        if let Some(workspace) = &mut file.workspace {
            let own = self.user.workspace.as_ref();
            workspace.include.retain(|path| {
                let text = format!("the ignored files {} in the agent's copy of the repo", quoted(path));
                own.is_some_and(|own| own.include.contains(path))
                    || self.note(self.ask(PrivilegeKind::Sandbox, "workspace.include", path, text), asks)
            });
            // Like `isolation: none`, it never counts from a repo.
            workspace.history = own.and_then(|own| own.history);
        }
        // The user's own entries stay when a repo adds some.
        for (list, own) in
            [(&mut file.allowed_hosts, &self.user.allowed_hosts), (&mut file.pass_env, &self.user.pass_env)]
        {
            let Some(list) = list else { continue };
            let missing: Vec<String> = own.iter().flatten().filter(|w| !list.contains(w)).cloned().collect();
            list.extend(missing);
        }
    }

    /// Whether and where results are pushed.
    fn push(&self, file: &mut ConfigFile, asks: &mut Vec<Ask>) {
        let own = self.user.publish.unwrap_or(Publish::None);
        if let Some(publish) = file.publish.filter(|wanted| !matches!(own, Publish::Pr) && own != *wanted) {
            let wanted = match publish {
                Publish::None => None,
                Publish::Push => Some(("push", "results to be pushed")),
                Publish::Pr => Some(("pr", "results to be pushed, and a pull request to be opened")),
            };
            let allowed = wanted.is_none_or(|(word, text)| {
                self.note(self.ask(PrivilegeKind::Push, PUBLISH, word, text.to_owned()), asks)
            });
            if !allowed {
                file.publish = None;
            }
        }
        if let Some(remote) = file.remote.clone() {
            let own = self.user.remote.as_deref().unwrap_or("origin");
            let text = format!("results to be pushed to the remote {}", quoted(&remote));
            if remote != own && !self.note(self.ask(PrivilegeKind::Push, "remote", &remote, text), asks) {
                file.remote = None;
            }
        }
        if let Some(folder) = file.local_forge.clone() {
            let text = format!("results to be pushed to the folder {}", quoted(&folder));
            if self.user.local_forge.as_ref() != Some(&folder)
                && !self.note(self.ask(PrivilegeKind::Push, "local_forge", &folder, text), asks)
            {
                file.local_forge = None;
            }
        }
    }
}

/// A repo file's path from the top, for display.
pub fn source_of(top: &Path, file: &Path) -> String {
    file.strip_prefix(top).unwrap_or(file).display().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_task::config::WorkspaceConfig;

    fn screened(user: &str, repo: &str, grants: &TrustedSet) -> (Vec<String>, ConfigFile) {
        let user = ConfigFile::parse(user).unwrap();
        let mut file = ConfigFile::parse(repo).unwrap();
        let programs = Programs::new(Path::new("/nonexistent/repo"), "");
        let provider = user.sandbox.as_ref().and_then(|own| own.provider);
        let screen =
            Screen { source: ".ralph/config.json", user: &user, provider, programs: &programs, grants };
        let asks = screen.config(&mut file);
        (asks.into_iter().map(|ask| ask.setting).collect(), file)
    }

    const EVERYTHING: &str = r#"{"isolation":"landlock","allowed_hosts":["evil.example"],"pass_env":["SECRET"],
        "workspace":{"include":["prod.env"]},"sandbox":{"provider":"local","volumes":{"home":"/home"}},
        "remote":"evil","local_forge":"/tmp/forge","publish":"push"}"#;

    #[test]
    fn privileged_settings_are_found_and_removed() {
        let user = r#"{"sandbox":{"provider":"sbx"}}"#;
        let (asks, file) = screened(user, EVERYTHING, &TrustedSet::default());
        let all = [
            "isolation",
            "sandbox.provider",
            "sandbox.volumes",
            "allowed_hosts",
            "pass_env",
            "workspace.include",
            "publish",
            "remote",
            "local_forge",
        ];
        assert_eq!(asks, all);
        assert_eq!((file.isolation, file.remote, file.local_forge, file.publish), (None, None, None, None));
        assert_eq!((file.allowed_hosts, file.pass_env), (Some(vec![]), Some(vec![])));
        assert_eq!(file.workspace, Some(WorkspaceConfig::default()));
        let sandbox = file.sandbox.unwrap();
        assert!(sandbox.provider.is_none() && sandbox.volumes.is_empty());
        let (asks, file) = screened(user, EVERYTHING, &TrustedSet::everything());
        assert_eq!(asks, all);
        assert_eq!(file, ConfigFile::parse(EVERYTHING).unwrap());
    }

    #[test]
    fn user_allowed_and_plain_settings_need_no_approval() {
        assert!(screened(EVERYTHING, EVERYTHING, &TrustedSet::default()).0.is_empty());
        let plain = r#"{"isolation":"bwrap","max_iterations":3,"publish":"none","remote":"origin","setup_commands":["make"],
            "sandbox":{"provider":"docker","vcpu":2},"commit_state":true,"verifiers":[{"name":"t","command_argv":["./t"]}],
            "agents":[{"name":"mine","command_argv":["./agent.sh"],"env":{"A":"b"}}]}"#;
        assert!(screened("{}", plain, &TrustedSet::default()).0.is_empty());
        let cloud = r#"{"sandbox":{"provider":"e2b"}}"#;
        let (asked, file) = screened("{}", cloud, &TrustedSet::default());
        assert_eq!((asked, file.sandbox.unwrap().provider), (vec!["sandbox.provider".to_owned()], None));
        assert!(screened(cloud, cloud, &TrustedSet::default()).0.is_empty());
        assert!(
            screened("{}", r#"{"isolation":"none"}"#, &TrustedSet::default()).0.is_empty(),
            "it never counts"
        );
        let full = r#"{"workspace":{"history":"full"}}"#;
        let (asked, file) = screened("{}", full, &TrustedSet::everything());
        assert_eq!((asked, file.workspace), (vec![], Some(WorkspaceConfig::default())), "nor does this");
        let (_, file) = screened(
            r#"{"allowed_hosts":["own.example"]}"#,
            r#"{"allowed_hosts":["x.example"]}"#,
            &TrustedSet::default(),
        );
        assert_eq!(file.allowed_hosts, Some(vec!["own.example".to_owned()]), "the user's own stay");
    }

    #[test]
    fn a_repo_publishes_no_more_than_the_user_does() {
        let publish = |user: &str, repo: &str| {
            let of = |word: &str| format!(r#"{{"publish":{word}}}"#);
            let (asks, file) = screened(&of(user), &of(repo), &TrustedSet::default());
            assert_eq!(asks.is_empty(), file.publish.is_some() || repo == "null", "{user} {repo}");
            file.publish
        };
        for own in ["null", r#""none""#] {
            assert_eq!(publish(own, r#""push""#), None);
            assert_eq!(publish(own, r#""pr""#), None);
            assert_eq!(publish(own, r#""none""#), Some(Publish::None));
        }
        assert_eq!(publish(r#""push""#, r#""push""#), Some(Publish::Push));
        assert_eq!(publish(r#""push""#, r#""pr""#), None);
        assert_eq!(publish(r#""pr""#, r#""push""#), Some(Publish::Push));
        assert_eq!(publish(r#""pr""#, r#""pr""#), Some(Publish::Pr));
    }
}
