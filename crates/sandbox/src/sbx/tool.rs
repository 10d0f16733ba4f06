//! The command-line tool that manages the microVMs: `sbx`, or the retired `docker sandbox`.

use super::SbxOptions;
use crate::shell::ScriptOutput;
use crate::shell::output::KeptOutput;
use crate::{LocalOptions, LocalSandbox};
use ralph_loop_domain::ports::{ExecEnd, ExecRequest, Sandbox as _, SandboxError, Stdin};
use ralph_loop_domain::vars::Vars;
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// How long a call may take; the first start pulls an image.
const LIMIT: Duration = Duration::from_secs(600);

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tool {
    /// The standalone `sbx`.
    Sbx(PathBuf),
    /// `docker sandbox`, a plugin of Docker Desktop 4.58 to 4.79.
    DockerSandbox(PathBuf),
}

impl Tool {
    /// Searches the `PATH`: `sbx` first, then a `docker` whose plugin answers.
    pub fn find(vars: &Vars) -> Option<Self> {
        let path = vars.own_path();
        let find = |name: &str| {
            std::env::split_paths(path).map(|folder| folder.join(name)).find(|file| file.is_file())
        };
        if let Some(sbx) = find("sbx") {
            return Some(Self::Sbx(sbx));
        }
        let docker = find("docker")?;
        let home = vars.get_os("HOME").map(PathBuf::from);
        let plugins = home.into_iter().map(|home| home.join(".docker/cli-plugins")).chain(
            [
                "/usr/local/lib/docker/cli-plugins",
                "/usr/lib/docker/cli-plugins",
                "/usr/libexec/docker/cli-plugins",
            ]
            .map(PathBuf::from),
        );
        let there = plugins.into_iter().any(|folder| folder.join("docker-sandbox").is_file());
        there.then_some(Self::DockerSandbox(docker))
    }

    /// The arguments that every call starts with.
    pub(super) fn words(&self) -> Vec<String> {
        match self {
            Self::Sbx(path) => vec![path.display().to_string()],
            Self::DockerSandbox(path) => vec![path.display().to_string(), "sandbox".to_owned()],
        }
    }
}

/// Runs the tool on this machine, under a guard.
#[derive(Debug)]
pub(super) struct Host {
    pub(super) tool: Tool,
    pub(super) local: LocalSandbox,
}

impl Host {
    pub(super) fn start(options: &SbxOptions, folder: &Path, run: &str) -> Result<Self, SandboxError> {
        let local =
            LocalOptions { guard_exe: options.guard.clone(), ..LocalOptions::new(run, &options.vars) };
        Ok(Self { tool: options.tool.clone(), local: LocalSandbox::start(folder, local)? })
    }

    pub(super) fn call(&self, args: &[&str], stdin: &[u8]) -> Result<ScriptOutput, SandboxError> {
        let mut argv = self.tool.words();
        argv.extend(args.iter().map(|arg| (*arg).to_owned()));
        let mut request = ExecRequest::new(argv);
        request.timeout = Some(LIMIT);
        if !stdin.is_empty() {
            request.stdin = Stdin::Bytes(stdin.to_vec());
        }
        let mut kept = KeptOutput::default();
        let outcome = self.local.exec(&request, &mut kept)?;
        match outcome.end {
            _ if kept.too_long => Err(broken(&self.tool, args, "it printed more than 256 MiB")),
            ExecEnd::Exited(code) => Ok(ScriptOutput { code, stdout: kept.stdout, stderr: kept.stderr }),
            other => Err(broken(&self.tool, args, &format!("it ended with {other:?}"))),
        }
    }

    /// A call that must succeed; returns its output.
    pub(super) fn must(&self, args: &[&str]) -> Result<String, SandboxError> {
        let answer = self.call(args, b"")?;
        if answer.code == 0 {
            return Ok(String::from_utf8_lossy(&answer.stdout).into_owned());
        }
        Err(broken(&self.tool, args, &answer.complaint()))
    }

    /// All microVMs, including others'.
    pub(super) fn list(&self) -> Result<Vec<Machine>, SandboxError> {
        Ok(machines(&self.must(&["ls", "--json"])?))
    }
}

fn broken(tool: &Tool, args: &[&str], why: &str) -> SandboxError {
    let name = match tool {
        Tool::Sbx(_) => "sbx",
        Tool::DockerSandbox(_) => "docker sandbox",
    };
    let what = args.iter().take(2).copied().collect::<Vec<_>>().join(" ");
    let hint =
        if why.contains("login") || why.contains("authenticat") { " (`sbx login` signs in)" } else { "" };
    SandboxError::Broken(format!("`{name} {what}` failed: {why}{hint}"))
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Machine {
    pub(super) name: String,
    pub(super) status: String,
    pub(super) workspace: Option<PathBuf>,
    pub(super) created_at: Option<String>,
    pub(super) ports: Vec<(u64, String)>,
}

/// The list has had several formats, and may be preceded by a starting daemon's lines; unknown parts are skipped.
fn machines(text: &str) -> Vec<Machine> {
    let json = text.lines().position(|line| line.trim_start().starts_with(['{', '[']));
    let json: String = text.lines().skip(json.unwrap_or(usize::MAX)).collect::<Vec<_>>().join("\n");
    let value: Value = serde_json::from_str(&json).unwrap_or_default();
    let rows = value.as_array().or_else(|| value["sandboxes"].as_array()).or_else(|| value["vms"].as_array());
    rows.into_iter().flatten().filter_map(machine).collect()
}

fn machine(row: &Value) -> Option<Machine> {
    let first = |names: &[&str]| names.iter().find_map(|name| row[*name].as_str().map(str::to_owned));
    let folder = |value: &Value| value.as_str().or_else(|| value["path"].as_str()).map(PathBuf::from);
    let port = |port: &Value| {
        let inside = port["sandbox_port"].as_u64()?;
        let ip =
            port["host_ip"].as_str().filter(|ip| !ip.is_empty() && *ip != "0.0.0.0").unwrap_or("127.0.0.1");
        Some((inside, format!("{ip}:{}", port["host_port"].as_u64()?)))
    };
    Some(Machine {
        name: first(&["name", "Name"])?,
        status: first(&["status", "state", "Status"]).unwrap_or_else(|| "unknown".to_owned()),
        workspace: folder(&row["workspaces"][0]).or_else(|| folder(&row["workspace"])),
        created_at: first(&["created_at"]),
        ports: row["ports"].as_array().into_iter().flatten().filter_map(port).collect(),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_of_the_list_is_parsed() {
        let new = "starting the daemon\n{\"sandboxes\":[{\"name\":\"a\",\"status\":\"running\",\"workspaces\":[\"/w\"],\
            \"ports\":[{\"host_ip\":\"127.0.0.1\",\"host_port\":3774,\"sandbox_port\":8080}]},{\"id\":\"nameless\"}]}";
        let found = machines(new);
        assert_eq!(found.len(), 1);
        assert_eq!((found[0].name.as_str(), found[0].status.as_str()), ("a", "running"));
        assert_eq!(found[0].workspace.as_deref(), Some(Path::new("/w")));
        assert_eq!(found[0].ports, [(8080, "127.0.0.1:3774".to_owned())]);
        assert_eq!(machines("[{\"name\":\"b\",\"status\":\"stopped\"}]").len(), 1);
        assert_eq!(machines("no sandboxes"), []);
    }
}
