//! `ralph plugin`: installs the Claude Code plugin from the copy in this binary with the user's own `claude`,
//! offline.
#![allow(
    clippy::disallowed_methods,
    reason = "the user's own `claude` installs its plugins; nothing of an agent runs here"
)]

use crate::error::CommandError;
use crate::output::{Out, Sign};
use clap::{Args, Subcommand};
use ralph_loop_app::{App, Environment};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::{head, one_line};
use serde_json::{Value, json};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// The plugin's files, by path in the marketplace folder.
const FILES: &[(&str, &str)] = &[
    (".claude-plugin/marketplace.json", include_str!("../../../.claude-plugin/marketplace.json")),
    ("plugin/.claude-plugin/plugin.json", include_str!("../../../plugin/.claude-plugin/plugin.json")),
    ("plugin/README.md", include_str!("../../../plugin/README.md")),
    ("plugin/commands/diagnose.md", include_str!("../../../plugin/commands/diagnose.md")),
    ("plugin/commands/plan.md", include_str!("../../../plugin/commands/plan.md")),
    ("plugin/commands/run.md", include_str!("../../../plugin/commands/run.md")),
    ("plugin/commands/status.md", include_str!("../../../plugin/commands/status.md")),
    ("plugin/hooks/hooks.json", include_str!("../../../plugin/hooks/hooks.json")),
    ("plugin/hooks/ralph-hook", include_str!("../../../plugin/hooks/ralph-hook")),
    ("plugin/skills/ralph-diagnose/SKILL.md", include_str!("../../../plugin/skills/ralph-diagnose/SKILL.md")),
    ("plugin/skills/ralph-plan/SKILL.md", include_str!("../../../plugin/skills/ralph-plan/SKILL.md")),
    ("plugin/skills/ralph-run/SKILL.md", include_str!("../../../plugin/skills/ralph-run/SKILL.md")),
    ("plugin/skills/ralph-status/SKILL.md", include_str!("../../../plugin/skills/ralph-status/SKILL.md")),
    ("plugin/templates/prd.md", include_str!("../../../plugin/templates/prd.md")),
    ("plugin/templates/progress.txt", include_str!("../../../plugin/templates/progress.txt")),
    ("plugin/templates/prompt.md", include_str!("../../../plugin/templates/prompt.md")),
    ("plugin/templates/tasks.json", include_str!("../../../plugin/templates/tasks.json")),
];
/// Plugin and marketplace name.
const PLUGIN: &str = "ralph@ralph";

#[derive(Debug, Args)]
#[command(
    after_help = "Examples:\n  ralph plugin install       install it for all your projects\n  ralph plugin status        show what is installed\n  ralph plugin uninstall"
)]
pub struct PluginArgs {
    #[command(subcommand)]
    what: What,
}

#[derive(Debug, Clone, Copy, Subcommand)]
enum What {
    /// Install or update the plugin
    #[command(after_help = "Examples:\n  ralph plugin install")]
    Install,
    /// Remove the plugin and its marketplace
    #[command(after_help = "Examples:\n  ralph plugin uninstall")]
    Uninstall,
    /// Show what is installed
    #[command(after_help = "Examples:\n  ralph plugin status")]
    Status,
}

pub fn run(args: PluginArgs, app: &App, out: &Out) -> Result<u8, CommandError> {
    let claude = Claude::find(app.environment());
    match args.what {
        What::Install => install(&claude?, app.environment(), out),
        What::Uninstall => uninstall(&claude?, app.environment(), out),
        What::Status => status(claude.ok().as_ref(), app.environment(), out),
    }
}

fn install(claude: &Claude, env: &Environment, out: &Out) -> Result<u8, CommandError> {
    let folder = market(env)?;
    write(&folder)?;
    let before = claude.installed()?;
    // A known marketplace is updated; after a move it is added again.
    if claude.call(&["plugin", "marketplace", "add", &folder.display().to_string()]).is_err() {
        let _ = claude.call(&["plugin", "marketplace", "remove", "ralph"]);
        claude.call(&["plugin", "marketplace", "add", &folder.display().to_string()])?;
    }
    if before.is_some() {
        let _ = claude.call(&["plugin", "uninstall", PLUGIN]);
    }
    claude.call(&["plugin", "install", PLUGIN])?;
    let installed = claude.installed()?.ok_or_else(|| {
        CommandError::environment("`claude` reported success, but doesn't list the plugin")
            .hint("look at `claude plugin list`")
    })?;
    if out.json {
        out.value(&json!({"installed": true, "plugin": installed, "folder": folder}));
        return Ok(0);
    }
    let version = installed["version"].as_str().unwrap_or(env!("CARGO_PKG_VERSION")).to_owned();
    out.say(format!(
        "{} the plugin {version} is installed for Claude Code",
        out.err(Tone::Good, out.sign(Sign::Good))
    ));
    if program_on_path(env).is_none() {
        out.say(format!(
            "{} its hooks do not find `ralph` on the PATH: add its folder to it",
            out.err(Tone::Attention, out.sign(Sign::Note))
        ));
    }
    out.say("sessions that are open take it at their next start; `/ralph:plan` begins a plan");
    Ok(0)
}

fn uninstall(claude: &Claude, env: &Environment, out: &Out) -> Result<u8, CommandError> {
    let was = claude.installed()?.is_some();
    if was {
        claude.call(&["plugin", "uninstall", PLUGIN])?;
    }
    // Unknown means already removed.
    let _ = claude.call(&["plugin", "marketplace", "remove", "ralph"]);
    let _ = std::fs::remove_dir_all(market(env)?);
    if out.json {
        out.value(&json!({"installed": false, "removed": was}));
    } else {
        out.say(if was { "the plugin is removed" } else { "the plugin was not installed" });
    }
    Ok(0)
}

fn status(claude: Option<&Claude>, env: &Environment, out: &Out) -> Result<u8, CommandError> {
    let installed = claude.map(Claude::installed).transpose()?.flatten();
    let program = program_on_path(env);
    let rules =
        env.user_config().map(|config| config.with_file_name("guard.json")).filter(|file| file.is_file());
    if out.json {
        out.value(&json!({
            "claude": claude.map(|claude| &claude.program),
            "installed": installed.is_some(),
            "plugin": installed,
            "this_version": env!("CARGO_PKG_VERSION"),
            "hooks_find": program,
            "guard_rules": rules,
        }));
        return Ok(0);
    }
    let line = |good: bool, text: String| {
        let (sign, tone) = if good { (Sign::Good, Tone::Good) } else { (Sign::Bad, Tone::Attention) };
        out.line(format!("{} {text}", out.out(tone, out.sign(sign))));
    };
    match claude {
        Some(claude) => line(true, format!("claude: {}", claude.program.display())),
        None => line(false, "claude is not on the PATH".to_owned()),
    }
    match &installed {
        Some(plugin) => {
            let version = plugin["version"].as_str().unwrap_or("of an unknown version");
            let same = version == env!("CARGO_PKG_VERSION");
            let rest = if same {
                String::new()
            } else {
                format!(", this program is {}: `ralph plugin install` renews it", env!("CARGO_PKG_VERSION"))
            };
            line(same, format!("plugin: {}{rest}", one_line(version, 40)));
        }
        None => line(false, "plugin: not installed; `ralph plugin install` does it".to_owned()),
    }
    match &program {
        Some(path) => line(true, format!("its hooks start {}", path.display())),
        None => line(false, "its hooks do not find `ralph` on the PATH".to_owned()),
    }
    if let Some(rules) = rules {
        line(true, format!("allowed beyond the guard's rules: {}", rules.display()));
    }
    Ok(0)
}

/// The folder that `claude` reads the plugin from.
fn market(env: &Environment) -> Result<PathBuf, CommandError> {
    Ok(env.state_home()?.path().join("claude-plugin"))
}

/// Rewrites the plugin's folder.
fn write(folder: &Path) -> Result<(), CommandError> {
    let failed = |e: std::io::Error| {
        CommandError::environment(format!("can't write the plugin to `{}`", folder.display()))
            .cause(e.to_string())
    };
    match std::fs::remove_dir_all(folder) {
        Err(e) if e.kind() != std::io::ErrorKind::NotFound => return Err(failed(e)),
        _ => {}
    }
    for (name, text) in FILES {
        let path = folder.join(name);
        if let Some(parent) = path.parent() {
            std::fs::create_dir_all(parent).map_err(failed)?;
        }
        std::fs::write(&path, text).map_err(failed)?;
        if text.starts_with("#!") {
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).map_err(failed)?;
        }
    }
    Ok(())
}

/// The `ralph` that the hooks would start.
fn program_on_path(env: &Environment) -> Option<PathBuf> {
    let home = env.vars().home().map(Path::to_path_buf).unwrap_or_default();
    let folders =
        env.vars().path_folders().into_iter().chain([home.join(".local/bin"), home.join(".cargo/bin")]);
    folders.map(|folder| folder.join("ralph")).find(|path| is_program(path))
}

fn is_program(path: &Path) -> bool {
    path.metadata().is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// The user's own `claude`.
struct Claude {
    program: PathBuf,
    vars: ralph_loop_domain::vars::Vars,
}

impl Claude {
    fn find(env: &Environment) -> Result<Self, CommandError> {
        let program = env
            .vars()
            .path_folders()
            .into_iter()
            .map(|folder| folder.join("claude"))
            .find(|path| is_program(path));
        match program {
            Some(program) => Ok(Self { program, vars: env.vars().clone() }),
            None => Err(CommandError::environment("`claude` is not on the PATH")
                .cause("the plugin belongs to Claude Code, which installs it")
                .hint("install it with `npm install -g @anthropic-ai/claude-code`, then run this again")),
        }
    }

    /// Runs it and returns its output.
    fn call(&self, args: &[&str]) -> Result<String, CommandError> {
        let said = format!("claude {}", args.join(" "));
        let mut command = Command::new(&self.program);
        command.args(args).env_clear().envs(self.vars.iter()).stdin(Stdio::null());
        let output = command
            .output()
            .map_err(|e| CommandError::environment(format!("`{said}` could not be started: {e}")))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        let words = format!("{text}{}", String::from_utf8_lossy(&output.stderr));
        Err(CommandError::environment(format!("`{said}` failed"))
            .cause(one_line(head(words.trim(), 2000), 400))
            .hint("run it by hand to see more"))
    }

    /// The plugin as `claude` lists it.
    fn installed(&self) -> Result<Option<Value>, CommandError> {
        let text = self.call(&["plugin", "list", "--json"])?;
        let list: Value = serde_json::from_str(text.trim()).map_err(|e| {
            CommandError::environment("can't parse the output of `claude plugin list --json`")
                .cause(e.to_string())
                .hint("update Claude Code to version 2.1 or newer: `claude update`")
        })?;
        let plugins = list.as_array().or_else(|| list["plugins"].as_array()).cloned().unwrap_or_default();
        let ours = |plugin: &Value| ["id", "name", "plugin"].iter().any(|key| plugin[*key] == PLUGIN);
        Ok(plugins.into_iter().find(ours))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn the_binary_carries_every_file_of_the_plugin() {
        fn walk(folder: &Path, found: &mut BTreeSet<PathBuf>) {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                match entry.path().is_dir() {
                    true => walk(&entry.path(), found),
                    false => drop(found.insert(entry.path())),
                }
            }
        }
        let top = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut found = BTreeSet::new();
        walk(&top.join("plugin"), &mut found);
        walk(&top.join(".claude-plugin"), &mut found);
        let carried: BTreeSet<PathBuf> = FILES.iter().map(|(name, _)| top.join(name)).collect();
        assert_eq!(found, carried);
        let folder = tempfile::tempdir().unwrap();
        write(folder.path()).unwrap();
        assert!(is_program(&folder.path().join("plugin/hooks/ralph-hook")));
    }

    #[test]
    fn its_versions_are_those_of_the_program() {
        for (name, text) in FILES
            .iter()
            .filter(|(name, _)| name.ends_with("plugin.json") || name.ends_with("marketplace.json"))
        {
            let file: Value = serde_json::from_str(text).unwrap();
            let version = file["version"].as_str().or_else(|| file["metadata"]["version"].as_str());
            assert_eq!(version, Some(env!("CARGO_PKG_VERSION")), "{name}");
        }
    }
}
