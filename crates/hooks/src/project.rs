//! The project that a session works in, and the user's rules for it.

use crate::HookContext;
use crate::guard::{AllowRules, PathRules};
use crate::input::HookInput;
use std::path::{Path, PathBuf};

const RULES_MAX: u64 = 256 * 1024;

#[derive(Debug, Clone)]
pub(crate) struct Project {
    pub top: PathBuf,
    pub cwd: PathBuf,
}

impl Project {
    /// The project as the CLI names it, else the repo around the folder, else the folder.
    pub(crate) fn find(input: &HookInput, context: &HookContext) -> Self {
        let absolute = |text: &String| text.starts_with('/').then(|| PathBuf::from(text));
        let cwd = input.cwd.as_ref().and_then(absolute).unwrap_or_else(|| context.cwd.clone());
        let named =
            ["CLAUDE_PROJECT_DIR", "GEMINI_PROJECT_DIR"].iter().find_map(|name| context.vars.filled(name));
        let repo = || cwd.ancestors().find(|at| at.join(".git").exists()).map(Path::to_path_buf);
        // A name that isn't around the working folder belongs to another session.
        let named = named.as_ref().and_then(absolute).filter(|top| cwd.starts_with(top));
        let top = named.or_else(repo).unwrap_or_else(|| cwd.clone());
        Self { top, cwd }
    }

    /// The folders that the guard judges paths by.
    pub(crate) fn path_rules(&self, context: &HookContext) -> PathRules {
        let text = |path: &Path| path.to_string_lossy().into_owned();
        let folder = |name: &str| {
            context.vars.filled(name).filter(|path| path.starts_with('/')).map(|path| format!("{path}/ralph"))
        };
        let mut own: Vec<String> = context.program.iter().map(|program| text(program)).collect();
        own.extend(folder("XDG_STATE_HOME"));
        own.extend(folder("XDG_CONFIG_HOME"));
        own.extend(context.vars.filled("CLAUDE_PLUGIN_ROOT"));
        PathRules {
            home: context.vars.home().map(text).unwrap_or_else(|| "/nonexistent".to_owned()),
            project: text(&self.top),
            cwd: text(&self.cwd),
            own,
        }
    }

    /// The user's rules, and what is wrong with them. A file inside the project never counts.
    pub(crate) fn allow_rules(&self, context: &HookContext) -> (AllowRules, Option<String>) {
        let Some(path) =
            rules_file(context).filter(|path| !path.starts_with(&self.top) && !path.starts_with(&self.cwd))
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
            Err(why) => (AllowRules::default(), Some(format!("{} isn't used: {why}", path.display()))),
        }
    }
}

fn rules_file(context: &HookContext) -> Option<PathBuf> {
    let named =
        context.vars.filled("XDG_CONFIG_HOME").filter(|path| path.starts_with('/')).map(PathBuf::from);
    let config = named.or_else(|| Some(context.vars.home()?.join(".config")))?;
    Some(config.join("ralph/guard.json"))
}
