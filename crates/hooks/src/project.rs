//! The project that a session works in, and what the user allows there.

use crate::Surroundings;
use crate::guard::{AllowRules, Places};
use crate::input::HookInput;
use std::path::{Path, PathBuf};

/// Bytes of the user's rules.
const RULES_MAX: u64 = 256 * 1024;

/// Where a session works.
#[derive(Debug, Clone)]
pub(crate) struct Project {
    /// The top of the project.
    pub top: PathBuf,
    /// Where commands start.
    pub cwd: PathBuf,
}

impl Project {
    /// The project as the CLI names it, else the repo around the folder, else the folder.
    pub(crate) fn find(input: &HookInput, around: &Surroundings) -> Self {
        let absolute = |text: &String| text.starts_with('/').then(|| PathBuf::from(text));
        let cwd = input.cwd.as_ref().and_then(absolute).unwrap_or_else(|| around.cwd.clone());
        let named =
            ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"].iter().find_map(|name| around.vars.filled(name));
        let repo = || cwd.ancestors().find(|at| at.join(".git").exists()).map(Path::to_path_buf);
        // A name that has nothing to do with the folder is somebody else's.
        let named = named.as_ref().and_then(absolute).filter(|top| cwd.starts_with(top));
        let top = named.or_else(repo).unwrap_or_else(|| cwd.clone());
        Self { top, cwd }
    }

    /// Whose place is where.
    pub(crate) fn places(&self, around: &Surroundings) -> Places {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let folder = |name: &str| {
            around.vars.filled(name).filter(|path| path.starts_with('/')).map(|path| format!("{path}/ralph"))
        };
        let mut own: Vec<String> = around.program.iter().map(|program| text(program)).collect();
        own.extend(folder("XDG_STATE_HOME"));
        own.extend(folder("XDG_CONFIG_HOME"));
        own.extend(around.vars.filled("CLAUDE_PLUGIN_ROOT"));
        Places {
            home: around.vars.home().map(text).unwrap_or_else(|| "/nonexistent".to_owned()),
            project: text(&self.top),
            cwd: text(&self.cwd),
            own,
        }
    }

    /// The user's own rules, and what is wrong with them. A file inside the project is the repo's word, whoever points at it.
    pub(crate) fn allow_rules(&self, around: &Surroundings) -> (AllowRules, Option<String>) {
        let Some(path) =
            rules_file(around).filter(|path| !path.starts_with(&self.top) && !path.starts_with(&self.cwd))
        else {
            return (AllowRules::default(), None);
        };
        let Ok(real) = path.canonicalize() else { return (AllowRules::default(), None) };
        if real.starts_with(&self.top) {
            return (AllowRules::default(), None);
        }
        let read = ralph_loop_safe_fs::read_plain(&real, RULES_MAX).map_err(|e| e.to_string());
        let rules = read.and_then(|bytes| AllowRules::parse(&String::from_utf8_lossy(&bytes)));
        match rules {
            Ok(rules) => (rules, None),
            Err(why) => (AllowRules::default(), Some(format!("{} is not used: {why}", path.display()))),
        }
    }
}

/// Where the user's rules are.
fn rules_file(around: &Surroundings) -> Option<PathBuf> {
    let named = around.vars.filled("XDG_CONFIG_HOME").filter(|path| path.starts_with('/')).map(PathBuf::from);
    let config = named.or_else(|| Some(around.vars.home()?.join(".config")))?;
    Some(config.join("ralph/guard.json"))
}
