//! The fence of a run: which kind, and what of this machine the chosen agents need behind it.

use crate::error::CommandError;
use crate::output::Out;
use ralph_agents::presets;
use ralph_domain::config::{AgentKind, Isolation};
use ralph_domain::describe::Tone;
use ralph_domain::spec::RunSpec;
use ralph_journal::layout::StateHome;
use ralph_sandbox::egress::{EgressPolicy, Endpoint, Refusal, defaults};
use ralph_sandbox::fence::{self, FenceReport, GitAccess};
use ralph_sandbox::{Fence, FenceSpec};
use std::path::PathBuf;
use std::sync::Arc;

/// What `auto` means on this machine; an error where what was asked for cannot be had. Never a weaker one.
pub fn settle(asked: Isolation) -> Result<Isolation, CommandError> {
    if asked == Isolation::None {
        return Ok(Isolation::None);
    }
    match choose(&fence::detect(), asked, FenceSpec::new("/"))? {
        Fence::Bwrap(_) => Ok(Isolation::Bwrap),
        Fence::Landlock(_) => Ok(Isolation::Landlock),
        Fence::None => Ok(Isolation::None),
    }
}

fn choose(report: &FenceReport, asked: Isolation, spec: FenceSpec) -> Result<Fence, CommandError> {
    report.choose(asked, spec).map_err(|why| {
        CommandError::environment("this machine cannot fence an agent off as asked").cause(why).hint(
            "`ralph doctor` says what mends it; `--isolation none` runs the agent with all your rights, for agents and repos you trust",
        )
    })
}

/// The fence of a run, as its spec says.
pub fn of_run(home: &StateHome, spec: &RunSpec, out: &Out) -> Result<Fence, CommandError> {
    if spec.settings.isolation == Isolation::None {
        return Ok(Fence::None);
    }
    let mut fence = FenceSpec::new(home.path().join("fences").join(spec.run_id.as_str()));
    fence.hidden = vec![home.path().to_owned()];
    if spec.settings.allow_agent_commits {
        fence.git = GitAccess::Commit;
    }
    fence.read_only = own_programs(spec);
    let mut endpoints = Vec::new();
    for agent in spec.settings.agents.iter().filter(|agent| agent.kind == AgentKind::Cli) {
        endpoints.extend(agent.env.values().filter_map(|value| endpoint(value)));
        let Some(name) = presets::preset_of(&agent.command_argv) else { continue };
        fence.auth.extend(fence::auth_files(name));
        let keys = fence::key_variables(name);
        endpoints.extend(keys.iter().filter_map(|key| endpoint(&std::env::var(key).ok()?)));
        fence.keys.insert(name.to_owned(), keys.iter().map(|key| (*key).to_owned()).collect());
    }
    let mut policy = EgressPolicy::new(defaults::rules(&spec.workspace), endpoints);
    let out = *out;
    policy.on_refusal = Some(Arc::new(move |refusal: &Refusal| {
        let Refusal { host, port, reason } = refusal;
        out.say(format!("{} the network refused {host}:{port}: {reason}", out.err(Tone::Attention, "note:")));
    }));
    fence.egress = Some(policy);
    choose(&fence::detect(), spec.settings.isolation, fence)
}

/// Programs of agents and verifiers that are named by their place, wherever that is.
fn own_programs(spec: &RunSpec) -> Vec<PathBuf> {
    let agents = spec.settings.agents.iter().filter_map(|agent| agent.command_argv.first());
    let verifiers = spec.settings.verifiers.iter().filter_map(|verifier| verifier.command_argv.first());
    let absolute = agents.chain(verifiers).map(PathBuf::from).filter(|path| path.is_absolute());
    absolute.flat_map(|path| [path.canonicalize().ok(), Some(path)]).flatten().collect()
}

/// The server in a URL such as `http://localhost:4000/v1`.
fn endpoint(url: &str) -> Option<Endpoint> {
    let (scheme, rest) = url.split_once("://")?;
    let usual = match scheme {
        "http" => 80,
        "https" => 443,
        _ => return None,
    };
    let authority = rest.split(['/', '?', '#']).next()?.rsplit('@').next()?;
    let (host, port) = match authority.rsplit_once(':') {
        Some((host, port)) if !port.ends_with(']') => (host, port.parse().ok()?),
        _ => (authority, usual),
    };
    (!host.is_empty()).then(|| Endpoint { host: host.to_owned(), port })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_read_from_urls() {
        let read = |url| endpoint(url).map(|e| (e.host, e.port));
        assert_eq!(read("http://localhost:4000/v1"), Some(("localhost".into(), 4000)));
        assert_eq!(read("https://user:x@gateway.example.org"), Some(("gateway.example.org".into(), 443)));
        assert_eq!(read("http://[::1]:8080"), Some(("[::1]".into(), 8080)));
        assert_eq!(read("a plain value"), None);
        assert_eq!(read("file:///etc/passwd"), None);
    }
}
