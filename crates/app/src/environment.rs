//! The environment of a run: variables, folders, user name. Captured once at the edge and passed down. A
//! repo's `.env` is layered over a copy per run; variables that need approval are held back until the user
//! allows them.

use crate::config::dotenv::parse_dotenv;
use crate::config::dotenv_lines::DotenvLines;
use crate::error::AppError;
use crate::start::hold::Hold;
use crate::trust::repo_file;
use crate::trust::store::TrustStore;
use crate::trust::{Ask, PrivilegeKind, TrustedSet, cloud_words, quoted, quoted_server, url_host};
use crate::variables::{Variable, of_dotenv};
use jiff::tz::TimeZone;
use ralph_loop_agents::tools::CustomTool;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::secret_name::is_secret_name;
use ralph_loop_domain::vars::Vars;
use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_protocol::id::Digest;
use ralph_loop_task::config::ProviderName;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

/// Selects where commands run.
pub(crate) const DEFAULT_PROVIDER: &str = "RALPH_DEFAULT_PROVIDER";
/// Names the database of the server's index.
pub const DATABASE: &str = "RALPH_DB_URL";
/// Lists the variables that a server took from its `.env`.
const DOTENV_NAMES: &str = "RALPH_DOTENV_NAMES";

/// The environment of a run, as captured. Cheap to clone.
#[derive(Debug, Clone)]
pub struct Environment {
    vars: Vars,
    /// The starting folder, or why it can't be determined.
    cwd: Result<PathBuf, String>,
    /// The `ralph` binary, if the caller named it.
    named: Option<PathBuf>,
    program: Option<PathBuf>,
    /// The interface users act through.
    face: &'static str,
    /// Approvals in addition to the stored ones.
    granted: TrustedSet,
    /// Variables of the repo's `.env` that need approval.
    asked: Vec<MissingVariable>,
    tools: Tools,
    hold: Option<Hold>,
    /// Whether it belongs to a server or to a run that one was asked for.
    of_server: bool,
    /// The configuration beside a task outside any repo, which counts like that of the repo it names.
    beside_task: Option<PathBuf>,
}

#[derive(Clone, Default)]
struct Tools(Vec<std::sync::Arc<dyn CustomTool>>);

impl std::fmt::Debug for Tools {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(self.0.iter().map(|tool| tool.spec().name)).finish()
    }
}

#[derive(Clone)]
pub struct MissingVariable {
    pub name: String,
    pub ask: Ask,
    value: String,
}

/// Omits the value, which may be a secret.
impl std::fmt::Debug for MissingVariable {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("MissingVariable").field("name", &self.name).field("ask", &self.ask).finish()
    }
}

impl Environment {
    /// Captures this process's environment: the only place that reads it.
    #[allow(clippy::disallowed_methods, reason = "the border: everything below is handed this value")]
    pub fn capture() -> Self {
        Self {
            vars: std::env::vars_os().collect(),
            cwd: std::env::current_dir().map_err(|e| e.to_string()),
            named: None,
            program: std::env::current_exe().ok(),
            face: "cli",
            granted: TrustedSet::default(),
            asked: Vec::new(),
            tools: Tools::default(),
            hold: None,
            of_server: false,
            beside_task: None,
        }
    }

    /// An environment chosen by the embedding program; relative paths start at `cwd`.
    pub fn new(vars: Vars, cwd: impl Into<PathBuf>) -> Self {
        Self {
            vars,
            cwd: Ok(cwd.into()),
            named: None,
            program: None,
            face: "library",
            granted: TrustedSet::default(),
            asked: Vec::new(),
            tools: Tools::default(),
            hold: None,
            of_server: false,
            beside_task: None,
        }
    }

    /// Sets the `ralph` binary, for programs other than `ralph`. Helper processes (guard, sandbox) and
    /// further runs start from it.
    #[must_use]
    pub fn with_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.named = Some(program.into());
        self
    }

    /// Sets the interface name that the journal records (`cli`, `web`, …).
    #[must_use]
    pub fn with_face(mut self, face: &'static str) -> Self {
        self.face = face;
        self
    }

    /// Adds a tool of the calling program, for agents of kind `tools`.
    #[must_use]
    pub fn with_tool(mut self, tool: impl CustomTool + 'static) -> Self {
        self.tools.0.push(std::sync::Arc::new(tool));
        self
    }

    /// Adds a hold on a run that several machines could drive: it is sealed where the hold says, and its
    /// commands end with the hold.
    #[must_use]
    pub fn with_hold(mut self, hold: Hold) -> Self {
        self.hold = Some(hold);
        self
    }

    pub(crate) fn hold(&self) -> Option<&Hold> {
        self.hold.as_ref()
    }

    pub(crate) fn tools(&self) -> Vec<Box<dyn CustomTool>> {
        self.tools.0.iter().map(|tool| -> Box<dyn CustomTool> { Box::new(tool.clone()) }).collect()
    }

    /// Replaces the variables.
    #[must_use]
    pub fn with_vars(&self, vars: Vars) -> Self {
        Self { vars, ..self.clone() }
    }

    pub fn vars(&self) -> &Vars {
        &self.vars
    }

    /// Variable lookup as a function.
    pub fn lookup(&self) -> impl Fn(&str) -> Option<String> + Clone + Send + Sync + 'static {
        let vars = self.vars.clone();
        move |name| vars.get(name)
    }

    /// Like [`Self::lookup`], but treats empty values as unset.
    pub fn lookup_filled(&self) -> impl Fn(&str) -> Option<String> + Clone + Send + Sync + 'static {
        let vars = self.vars.clone();
        move |name| vars.filled(name)
    }

    /// The time zone for displayed times: `TZ`, else the machine's.
    pub fn zone(&self) -> TimeZone {
        let named = self.vars.filled("TZ").and_then(|name| {
            let name = name.trim_start_matches(':');
            TimeZone::get(name).or_else(|_| TimeZone::posix(name)).ok()
        });
        named.unwrap_or_else(TimeZone::system)
    }

    /// The value of `PATH`.
    pub fn path(&self) -> String {
        self.vars.get("PATH").unwrap_or_default()
    }

    pub fn program(&self) -> Option<&Path> {
        self.named.as_deref().or(self.program.as_deref())
    }

    /// The program for helper processes, if it isn't this one.
    pub fn helper_program(&self) -> Option<&Path> {
        self.named.as_deref()
    }

    /// The starting folder.
    pub fn cwd(&self) -> Option<&Path> {
        self.cwd.as_deref().ok()
    }

    /// The folder a command works in.
    pub fn folder(&self, dir: Option<&Path>) -> Result<PathBuf, AppError> {
        let path = match (dir, &self.cwd) {
            (Some(dir), Ok(cwd)) => cwd.join(dir),
            (Some(dir), Err(_)) => dir.to_owned(),
            (None, Ok(cwd)) => cwd.clone(),
            (None, Err(why)) => {
                return Err(AppError::environment(format!("can't use the current folder: {why}")));
            }
        };
        path.canonicalize().map_err(|e| {
            let shown = dir.unwrap_or(&path);
            AppError::usage(format!("can't use `{}` as a folder: {e}", shown.display()))
                .hint("name an existing folder with `-C DIR`")
        })
    }

    /// `ralph`'s state folder outside any repo.
    pub fn state_home(&self) -> Result<StateHome, AppError> {
        let var = |name: &str| self.vars.get(name);
        StateHome::from_env(var("XDG_STATE_HOME").as_deref(), var("HOME").as_deref()).ok_or_else(|| {
            AppError::environment("neither XDG_STATE_HOME nor HOME is set")
                .hint("set HOME: runs are registered below it")
        })
    }

    /// The environment of a server and of the runs it starts: they obey the server's configuration, and never
    /// the owner's.
    #[must_use]
    pub fn for_server(self) -> Self {
        Self { of_server: true, ..self }
    }

    /// The environment for a run that `asked_by` asked a server for; without one, this environment.
    #[must_use]
    pub(crate) fn for_run_of(&self, asked_by: Option<&str>) -> Self {
        if asked_by.is_none() {
            return self.clone();
        }
        // A public host could redirect git to a private one.
        let count = self.vars.get("GIT_CONFIG_COUNT").and_then(|text| text.parse::<u32>().ok()).unwrap_or(0);
        let vars = self.vars.with([
            (format!("GIT_CONFIG_KEY_{count}"), "http.followRedirects".to_owned()),
            (format!("GIT_CONFIG_VALUE_{count}"), "false".to_owned()),
            ("GIT_CONFIG_COUNT".to_owned(), (count + 1).to_string()),
        ]);
        self.with_vars(vars).for_server()
    }

    pub fn is_of_server(&self) -> bool {
        self.of_server
    }

    /// The configuration that counts besides a repo's: the user's own file, or the server's.
    pub fn user_config(&self) -> Option<PathBuf> {
        let xdg = self.vars.get("XDG_CONFIG_HOME").filter(|p| p.starts_with('/')).map(PathBuf::from);
        let home = self.vars.filled("HOME").map(|h| Path::new(&h).join(".config"));
        let folder = if self.of_server { "ralph/server" } else { "ralph" };
        Some(xdg.or(home)?.join(folder).join("config.json"))
    }

    /// Also reads the configuration of a folder that is in no repo.
    #[must_use]
    pub(crate) fn with_config_beside_task(&self, path: PathBuf) -> Self {
        Self { beside_task: Some(path), ..self.clone() }
    }

    pub(crate) fn config_beside_task(&self) -> Option<&Path> {
        self.beside_task.as_deref()
    }

    /// The user name for the journal.
    pub fn actor(&self) -> String {
        let name = ["USER", "LOGNAME"].iter().find_map(|n| self.vars.filled(n));
        let name = name
            .or_else(|| nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().map(|u| u.name));
        format!("{} via {}", name.unwrap_or_else(|| "a user".into()), self.face)
    }

    /// TrustedSet every request: to find out what a repo requests, or for a run that was allowed everything.
    #[must_use]
    pub fn trusting_all(&self) -> Self {
        Self { granted: TrustedSet::everything(), ..self.clone() }
    }

    /// TrustedSet these requests in addition.
    #[must_use]
    pub fn granting(&self, asks: impl IntoIterator<Item = Digest>) -> Self {
        Self { granted: self.granted.clone().and(asks), ..self.clone() }
    }

    /// What is allowed to the repo at `top`. Approvals that can't be read don't count.
    pub fn grants(&self, top: &Path) -> TrustedSet {
        let kept = self.state_home().ok().and_then(|home| TrustStore::of(&home, top).allowed().ok());
        self.granted.clone().and(kept.into_iter().flatten().map(|ask| ask.digest))
    }

    /// Adds variables from a folder's `.env`: known keys only, never overriding. URLs count only if allowed;
    /// so do keys if git tracks the file or if they appeared during a run.
    pub fn with_dotenv(&self, folder: &Path) -> Result<Self, AppError> {
        let mut found: Vec<(String, String)> = Vec::new();
        let mut asked: Vec<MissingVariable> = Vec::new();
        let (mut origin, mut grants) = (None, None);
        let of_server = self.vars.get(DOTENV_NAMES).unwrap_or_default();
        let of_server: Vec<&str> = of_server.split(',').collect();
        for (key, value) in parse_dotenv(&dotenv_text(&self.vars, folder)?) {
            let is_open = match self.vars.get_os(&key) {
                None => true,
                Some(_) => !value.is_empty() && of_server.contains(&key.as_str()),
            };
            let Some(known) = of_dotenv(&key).filter(|_| is_open) else { continue };
            if found.iter().any(|(name, _)| *name == key) || asked.iter().any(|one| one.name == key) {
                continue;
            }
            // It decides which machine receives the code.
            let is_cloud =
                key == DEFAULT_PROVIDER && ProviderName::parse(&value).is_ok_and(ProviderName::is_cloud);
            let is_choice = !known.secret && !known.address && key.starts_with("RALPH_") && !is_cloud;
            let is_sent_there = known.address && !is_local_database(known, &value);
            let origin = origin.get_or_insert_with(|| self.origin_of_dotenv(folder))(&key, &value);
            if is_choice || value.is_empty() || !(is_sent_there || origin != DotenvOrigin::User) {
                found.push((key, value));
                continue;
            }
            let one = MissingVariable { ask: ask_of(known, &value, origin), name: key, value };
            if grants.get_or_insert_with(|| self.grants(folder)).allow(&one.ask) {
                found.push((one.name.clone(), one.value.clone()));
            }
            asked.push(one);
        }
        let vars = ralph_loop_git::outside_of_repo(&self.vars, folder);
        Ok(Self { vars: if found.is_empty() { vars } else { vars.with(found) }, asked, ..self.clone() })
    }

    /// Like [`Self::with_dotenv`], for a server started in a folder. Its runs get these values unless their
    /// own repo's `.env` sets others.
    pub fn with_server_dotenv(&self, folder: &Path) -> Result<Self, AppError> {
        let over = self.with_dotenv(folder)?;
        let names = over.vars.iter().filter_map(|(name, _)| name.to_str());
        let names: Vec<&str> = names.filter(|name| self.vars.get_os(name).is_none()).collect();
        let vars = over.vars.with([(DOTENV_NAMES, names.join(","))]);
        Ok(Self { vars, ..over })
    }

    /// Decides who wrote a variable of a folder's `.env`.
    fn origin_of_dotenv(&self, folder: &Path) -> VariableOrigin {
        if is_tracked(&self.vars, folder) {
            return Box::new(|_, _| DotenvOrigin::Tracked);
        }
        let Ok(home) = self.state_home() else { return Box::new(|_, _| DotenvOrigin::User) };
        // Only `ralph` writes to checkouts it made for runs.
        let is_checkout = folder.starts_with(home.path());
        let came_in_a_run = DotenvLines::of(&home, folder).judge();
        Box::new(move |name, value| match is_checkout || came_in_a_run(name, value) {
            true => DotenvOrigin::Run,
            false => DotenvOrigin::User,
        })
    }

    /// Variables of the `.env` that need approval and don't have it.
    pub fn refused_variables(&self) -> impl Iterator<Item = &MissingVariable> {
        self.asked.iter().filter(|one| self.vars.get(&one.name).as_deref() != Some(one.value.as_str()))
    }

    /// Variables of the `.env` that need approval, whether or not they have it.
    pub fn asked_variables(&self) -> &[MissingVariable] {
        &self.asked
    }

    /// Adds variables of the `.env` that the user has allowed.
    #[must_use]
    pub fn with_allowed<'a>(&self, variables: impl IntoIterator<Item = &'a MissingVariable>) -> Self {
        let pairs = variables.into_iter().map(|one| (one.name.clone(), one.value.clone()));
        Self { vars: self.vars.with(pairs), ..self.clone() }
    }

    /// A redactor for every secret a run can see: its variables, the whole `.env`, and agent logins.
    pub fn redactor(&self, folder: &Path) -> Redactor {
        // A refused `.env` isn't read, so there is nothing to redact.
        let dotenv = dotenv_pairs(&self.vars, folder);
        let named = self.vars.texts().chain(dotenv).filter(|(name, _)| is_secret_name(name));
        let home = self.vars.home().map(ralph_loop_sandbox::isolation::login_secrets);
        Redactor::new(named.chain(home.into_iter().flatten()))
    }
}

/// All variables of a folder's `.env`.
pub(crate) fn dotenv_pairs(vars: &Vars, folder: &Path) -> Vec<(String, String)> {
    parse_dotenv(&dotenv_text(vars, folder).unwrap_or_default())
}

/// Text of a folder's `.env`; empty if it is missing or a folder (a virtual environment). A link out of the
/// repo counts only if git ignores it, because neither a clone nor a handover can create such a link.
fn dotenv_text(vars: &Vars, folder: &Path) -> Result<String, AppError> {
    let path = folder.join(".env");
    let bytes = match repo_file::read(&path) {
        Err(e) if e.kind() == ErrorKind::CrossesDevices && is_ignored(vars, folder) => {
            repo_file::read_own(&path)
        }
        read => read,
    };
    match bytes {
        Ok(bytes) => Ok(String::from_utf8_lossy(&bytes).into_owned()),
        Err(e) if e.kind() == ErrorKind::InvalidInput && path.is_dir() => Ok(String::new()),
        Err(e) if e.kind() == ErrorKind::CrossesDevices => Err(repo_file::unreadable(&path, &e).hint(
            "put the file itself there; a link of your own counts where git ignores it (`.gitignore`)",
        )),
        Err(e) if repo_file::remedy(&e).is_some() => Err(repo_file::unreadable(&path, &e)),
        // Missing, or unreadable for this user.
        Err(_) => Ok(String::new()),
    }
}

fn is_ignored(vars: &Vars, folder: &Path) -> bool {
    ralph_loop_git::Repo::discover(vars, folder)
        .is_ok_and(|repo| repo.git().call(["check-ignore", "-q", "--", ".env"]).run().is_ok())
}

fn is_tracked(vars: &Vars, folder: &Path) -> bool {
    ralph_loop_git::Repo::discover(vars, folder)
        .is_ok_and(|repo| repo.git().call(["ls-files", "--error-unmatch", "--", ".env"]).run().is_ok())
}

/// Tells from a variable's name and value who wrote it.
type VariableOrigin = Box<dyn Fn(&str, &str) -> DotenvOrigin>;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum DotenvOrigin {
    User,
    /// The repo: git tracks the file.
    Tracked,
    /// An agent: it appeared during a run.
    Run,
}

/// Whether the value names a local database file.
fn is_local_database(known: &Variable, value: &str) -> bool {
    known.name == DATABASE && value.starts_with("sqlite:")
}

/// What a `.env` variable requests.
fn ask_of(known: &Variable, value: &str, origin: DotenvOrigin) -> Ask {
    let name = known.name;
    if name == DEFAULT_PROVIDER {
        return Ask::new(PrivilegeKind::Sandbox, ".env", name, value, cloud_words(value));
    }
    if !known.address {
        let file = match origin {
            DotenvOrigin::Run => "that was added to `.env` during a run",
            DotenvOrigin::User | DotenvOrigin::Tracked => "of a `.env` that git tracks",
        };
        let text = format!("the key {name} {file} to be used: whose account it is, only you know");
        return Ask::new(PrivilegeKind::Account, ".env", name, value, text);
    }
    let what = match (name == DATABASE, known.secret) {
        (true, _) => "the index of your runs",
        (false, true) => "notifications",
        (false, false) => "your keys",
    };
    let server = match known.secret {
        _ if is_local_database(known, value) => quoted(value),
        // Show only the host: a webhook URL is itself a key, and a database URL holds a password.
        true => quoted(&url_host(value).unwrap_or_default()),
        false => quoted_server(value),
    };
    let tracked = origin == DotenvOrigin::Tracked;
    let file = if tracked { "a `.env` that git tracks" } else { "the repo's `.env`" };
    let text = format!("{what} to be sent to {server}, as {name} in {file} says");
    Ask::new(PrivilegeKind::Server, ".env", name, value, text)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_journal_hears_through_which_face_people_act() {
        let env = Environment::new([("USER", "ann")].into_iter().collect(), "/");
        assert_eq!(env.actor(), "ann via library");
        assert_eq!(env.with_face("web").actor(), "ann via web");
    }

    #[test]
    fn a_dotenv_completes_a_copy_and_never_overrides() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(
            folder.path().join(".env"),
            "ZAI_API_KEY=a\nZAI_API_KEY=b\nE2B_API_KEY=c\nPATH=/evil\n",
        )
        .unwrap();
        let vars = [("E2B_API_KEY", "mine"), ("PATH", "/bin")].into_iter().collect();
        let env = Environment::new(vars, "/");
        let over = env.with_dotenv(folder.path()).unwrap();
        assert_eq!(over.vars().get("ZAI_API_KEY").as_deref(), Some("a"));
        assert_eq!(over.vars().get("E2B_API_KEY").as_deref(), Some("mine"));
        assert_eq!(over.path(), "/bin");
        assert_eq!(env.vars().get("ZAI_API_KEY"), None);
        assert!(over.redactor(folder.path()).text("say c").as_ref() == "say c", "too short to be a secret");
    }

    #[test]
    fn the_dotenv_of_a_server_completes_and_that_of_a_run_wins() {
        let folder = tempfile::tempdir().unwrap();
        let write = |name: &str, text: &str| {
            std::fs::create_dir(folder.path().join(name)).unwrap();
            std::fs::write(folder.path().join(name).join(".env"), text).unwrap();
        };
        write(
            "server",
            "RALPH_DB_URL=sqlite:///./ralph.db\nOPENAI_API_KEY=server\nZAI_API_KEY=server\nGITHUB_PAT=server\n",
        );
        write("repo", "OPENAI_API_KEY=repo\nZAI_API_KEY=\nGITHUB_PAT=repo\n");
        let vars = [("GITHUB_PAT", "set")].into_iter().collect();
        let server = Environment::new(vars, "/").with_server_dotenv(&folder.path().join("server")).unwrap();
        assert_eq!(server.vars().get("RALPH_DB_URL").as_deref(), Some("sqlite:///./ralph.db"));
        let run = server.with_dotenv(&folder.path().join("repo")).unwrap();
        let values =
            ["OPENAI_API_KEY", "ZAI_API_KEY", "GITHUB_PAT"].map(|name| run.vars().get(name).unwrap());
        assert_eq!(values, ["repo", "server", "set"]);
    }

    #[test]
    fn a_database_server_in_a_dotenv_waits_for_the_users_word() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::write(folder.path().join(".env"), "RALPH_DB_URL=postgres://me:Pass@db.example/x\n").unwrap();
        let vars = [("XDG_STATE_HOME", folder.path().join("state"))].into_iter().collect();
        let env = Environment::new(vars, "/").with_server_dotenv(folder.path()).unwrap();
        assert_eq!(env.vars().get("RALPH_DB_URL"), None);
        let refused: Vec<&str> = env.refused_variables().map(|one| one.ask.text.as_str()).collect();
        assert_eq!(
            refused,
            ["the index of your runs to be sent to `db.example`, as RALPH_DB_URL in the repo's `.env` says"]
        );
    }

    #[test]
    fn an_address_of_a_dotenv_waits_for_the_users_word() {
        let folder = tempfile::tempdir().unwrap();
        let text = "OPENAI_BASE_URL=https://me:pass@evil.example/v1\nSLACK_WEBHOOK_URL=https://hooks.example/T0/secret\nOPENAI_API_KEY=k\nZAI_API_BASE=\n";
        std::fs::write(folder.path().join(".env"), text).unwrap();
        let vars = [("XDG_STATE_HOME", folder.path().join("state"))].into_iter().collect();
        let env = Environment::new(vars, "/");
        let over = env.with_dotenv(folder.path()).unwrap();
        assert_eq!(over.vars().get("OPENAI_BASE_URL"), None);
        assert_eq!(over.vars().get("OPENAI_API_KEY").as_deref(), Some("k"));
        let asked = over.asked_variables();
        assert_eq!(asked.len(), 2, "{asked:?}");
        assert!(asked[0].ask.text.contains("the host `evil.example`"), "{asked:?}");
        assert!(asked[1].ask.text.contains("`hooks.example`") && !format!("{asked:?}").contains("secret"));
        let allowed = env.granting([asked[0].ask.digest.clone()]).with_dotenv(folder.path()).unwrap();
        assert_eq!(allowed.vars().get("OPENAI_BASE_URL").as_deref(), Some("https://me:pass@evil.example/v1"));
        assert_eq!(allowed.vars().get("SLACK_WEBHOOK_URL"), None);
    }
}
