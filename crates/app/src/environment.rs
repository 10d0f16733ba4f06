//! What a run is told by its surroundings: variables, folders, the user's name. Read once, at the border of the program, and
//! handed down from there; the `.env` of a repo is laid over a copy, one per run.

use crate::error::AppError;
use crate::variables::is_of_dotenv;
use ralph_domain::config::SLACK_VARIABLE;
use ralph_domain::redact::Redactor;
use ralph_domain::vars::Vars;
use ralph_journal::layout::StateHome;
use std::path::{Path, PathBuf};

/// The surroundings of a run, as they were when they were captured. Cloning them is cheap.
#[derive(Debug, Clone)]
pub struct Environment {
    vars: Vars,
    /// The folder that the program was started in, or why that cannot be found out.
    cwd: Result<PathBuf, String>,
    /// The `ralph` binary, where somebody named it.
    named: Option<PathBuf>,
    /// The program itself.
    program: Option<PathBuf>,
    /// Through which face people act.
    face: &'static str,
}

impl Environment {
    /// The surroundings of this process. The one place that asks for them.
    #[allow(clippy::disallowed_methods, reason = "the border: everything below is handed this value")]
    pub fn capture() -> Self {
        Self {
            vars: std::env::vars_os().collect(),
            cwd: std::env::current_dir().map_err(|e| e.to_string()),
            named: None,
            program: std::env::current_exe().ok(),
            face: "cli",
        }
    }

    /// Surroundings of an embedder's choice; `cwd` is where relative paths are meant from.
    pub fn new(vars: Vars, cwd: impl Into<PathBuf>) -> Self {
        Self { vars, cwd: Ok(cwd.into()), named: None, program: None, face: "library" }
    }

    /// The same with the `ralph` binary at this place: for programs that are not `ralph` themselves. Its helper processes
    /// (the guard, the sandbox) and further runs are started from there.
    #[must_use]
    pub fn with_program(mut self, program: impl Into<PathBuf>) -> Self {
        self.named = Some(program.into());
        self
    }

    /// The same for another face: what the journal says people acted through (`cli`, `web`, …).
    #[must_use]
    pub fn with_face(mut self, face: &'static str) -> Self {
        self.face = face;
        self
    }

    /// The variables.
    pub fn vars(&self) -> &Vars {
        &self.vars
    }

    /// A way to look variables up, for whoever wants a function.
    pub fn lookup(&self) -> impl Fn(&str) -> Option<String> + Clone + Send + Sync + 'static {
        let vars = self.vars.clone();
        move |name| vars.get(name)
    }

    /// The same, for whoever takes an empty value for none.
    pub fn lookup_filled(&self) -> impl Fn(&str) -> Option<String> + Clone + Send + Sync + 'static {
        let vars = self.vars.clone();
        move |name| vars.filled(name)
    }

    /// The value of `PATH`.
    pub fn path(&self) -> String {
        self.vars.get("PATH").unwrap_or_default()
    }

    /// The `ralph` binary that further processes are started from.
    pub fn program(&self) -> Option<&Path> {
        self.named.as_deref().or(self.program.as_deref())
    }

    /// The program that helper processes are started from, where it is not this one.
    pub fn helper_program(&self) -> Option<&Path> {
        self.named.as_deref()
    }

    /// The folder that the program was started in.
    pub fn cwd(&self) -> Option<&Path> {
        self.cwd.as_deref().ok()
    }

    /// The folder that a command works in.
    pub fn folder(&self, dir: Option<&Path>) -> Result<PathBuf, AppError> {
        let path = match (dir, &self.cwd) {
            (Some(dir), Ok(cwd)) => cwd.join(dir),
            (Some(dir), Err(_)) => dir.to_owned(),
            (None, Ok(cwd)) => cwd.clone(),
            (None, Err(why)) => {
                return Err(AppError::environment(format!("the current folder cannot be used: {why}")));
            }
        };
        path.canonicalize().map_err(|e| {
            let shown = dir.unwrap_or(&path);
            AppError::usage(format!("`{}` cannot be used as a folder: {e}", shown.display()))
                .hint("name an existing folder with `-C DIR`")
        })
    }

    /// `ralph`'s own folder outside any repo.
    pub fn state_home(&self) -> Result<StateHome, AppError> {
        let var = |name: &str| self.vars.get(name);
        StateHome::from_env(var("XDG_STATE_HOME").as_deref(), var("HOME").as_deref()).ok_or_else(|| {
            AppError::environment("neither XDG_STATE_HOME nor HOME is set")
                .hint("set HOME: runs are registered below it")
        })
    }

    /// The user's own configuration file.
    pub fn user_config(&self) -> Option<PathBuf> {
        let xdg = self.vars.get("XDG_CONFIG_HOME").filter(|p| p.starts_with('/')).map(PathBuf::from);
        let home = self.vars.filled("HOME").map(|h| Path::new(&h).join(".config"));
        Some(xdg.or(home)?.join("ralph/config.json"))
    }

    /// Who acts, for the journal.
    pub fn actor(&self) -> String {
        let name = ["USER", "LOGNAME"].iter().find_map(|n| self.vars.filled(n));
        let name = name
            .or_else(|| nix::unistd::User::from_uid(nix::unistd::getuid()).ok().flatten().map(|u| u.name));
        format!("{} via {}", name.unwrap_or_else(|| "somebody".into()), self.face)
    }

    /// The same, completed from a folder's `.env`: known keys only, and never over what is set.
    #[must_use]
    pub fn with_dotenv(&self, folder: &Path) -> Self {
        let mut found = Vec::new();
        for (key, value) in parse_dotenv(&std::fs::read_to_string(folder.join(".env")).unwrap_or_default()) {
            // Where words are sent is the user's choice: a `.env` that comes with the repo has no say in it.
            let foreign = || key == SLACK_VARIABLE && is_tracked(&self.vars, folder);
            let known = found.iter().any(|(name, _)| *name == key);
            if is_of_dotenv(&key) && self.vars.get_os(&key).is_none() && !known && !foreign() {
                found.push((key, value));
            }
        }
        match found.is_empty() {
            true => self.clone(),
            false => Self { vars: self.vars.with(found), ..self.clone() },
        }
    }

    /// A redactor for every secret that a run can see: its variables, and all of the folder's `.env`.
    pub fn redactor(&self, folder: &Path) -> Redactor {
        let dotenv = parse_dotenv(&std::fs::read_to_string(folder.join(".env")).unwrap_or_default());
        Redactor::from_vars(self.vars.texts().chain(dotenv))
    }
}

fn is_tracked(vars: &Vars, folder: &Path) -> bool {
    ralph_git::Repo::discover(vars, folder)
        .is_ok_and(|repo| repo.git().call(["ls-files", "--error-unmatch", "--", ".env"]).run().is_ok())
}

/// By hand, not by `dotenvy`: that puts variables of the process in the place of every `$NAME`, which changes keys that hold a
/// `$` and reads what a run was not handed.
fn parse_dotenv(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    for line in text.lines() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        if line.starts_with('#') {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = value.trim();
        let quoted = |q: char| value.len() >= 2 && value.starts_with(q) && value.ends_with(q);
        let value = if quoted('"') {
            value[1..value.len() - 1].replace("\\n", "\n")
        } else if quoted('\'') {
            value[1..value.len() - 1].to_owned()
        } else {
            value.split(" #").next().unwrap_or(value).trim().to_owned()
        };
        pairs.push((key.trim().to_owned(), value));
    }
    pairs
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
        let over = env.with_dotenv(folder.path());
        assert_eq!(over.vars().get("ZAI_API_KEY").as_deref(), Some("a"));
        assert_eq!(over.vars().get("E2B_API_KEY").as_deref(), Some("mine"));
        assert_eq!(over.path(), "/bin");
        assert_eq!(env.vars().get("ZAI_API_KEY"), None);
        assert!(over.redactor(folder.path()).text("say c").as_ref() == "say c", "too short to be a secret");
    }

    #[test]
    fn dotenv_lines_are_read_as_shells_read_them() {
        let pairs = parse_dotenv("# c\nA=1 # note\nexport B=\"x\\ny\"\nC='q#q'\nnonsense\nD=\n");
        let want = [("A", "1"), ("B", "x\ny"), ("C", "q#q"), ("D", "")];
        assert_eq!(pairs, want.map(|(k, v)| (k.to_owned(), v.to_owned())));
        let kept = parse_dotenv("A=pa$HOME\nB=\"${HOME}x\"\n");
        assert_eq!(kept, [("A".to_owned(), "pa$HOME".to_owned()), ("B".to_owned(), "${HOME}x".to_owned())]);
    }
}
