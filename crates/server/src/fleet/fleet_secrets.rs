//! Selects the secrets a fleet run gets: those its agents, sandbox and code host need. The worker sees no
//! others.

use crate::scheduler::AuthSource;
use crate::server::Server;
use ralph_loop_app::RunRequest;
use ralph_loop_fleet::grant::{self, Wanted};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_task::config::ProviderName;
use std::sync::Arc;
use std::time::Duration;

/// Polling interval for runs that need secrets.
const LOOK: Duration = Duration::from_millis(300);

/// The configured secrets that a run needs.
pub(crate) fn needed(request: &RunRequest, auth: Option<AuthSource>, set: &[String]) -> Vec<String> {
    set.iter().filter(|name| is_needed(name, request, auth)).cloned().collect()
}

fn is_needed(name: &str, request: &RunRequest, auth: Option<AuthSource>) -> bool {
    let provider = request.provider.unwrap_or_default();
    let of_app = name.starts_with("GITHUB_APP_");
    if of_app || matches!(name, "GITHUB_TOKEN" | "GITHUB_PAT") {
        return match auth {
            None => true,
            Some(AuthSource::Pat) => !of_app,
            Some(AuthSource::App) => of_app,
            Some(AuthSource::None) => false,
        };
    }
    match name {
        name if name.starts_with("DAYTONA_") => provider == ProviderName::Daytona,
        name if name.starts_with("E2B_") => provider == ProviderName::E2b,
        name if name.starts_with("VERCEL_") => provider == ProviderName::Vercel,
        name => is_model_key(name, &request.overrides.agents),
    }
}

/// Known agents have known keys; others may use any model.
fn is_model_key(name: &str, agents: &[String]) -> bool {
    let key_of = |agent: &String| match agent.as_str() {
        "claude" => Some(&["ANTHROPIC_API_KEY"][..]),
        "codex" => Some(&["OPENAI_API_KEY"][..]),
        "gemini" => Some(&["GEMINI_API_KEY", "GOOGLE_API_KEY"][..]),
        _ => None,
    };
    agents.is_empty() || agents.iter().any(|agent| key_of(agent).is_none_or(|keys| keys.contains(&name)))
}

/// Sends secrets to runs that start on a worker, until the server ends.
pub(crate) fn begin(server: &Arc<Server>) {
    let Some(side) = server.fleet.clone() else { return };
    let server = server.clone();
    tokio::spawn(async move {
        loop {
            match side.fleet.within(grant::wanted(side.fleet.pool())).await {
                Ok(all) => {
                    for wanted in all {
                        if let Err(error) = give(&server, &wanted).await {
                            tracing::warn!(error, run = wanted.run, "a run was not given its secrets");
                        }
                    }
                }
                Err(error) => tracing::warn!(%error, "runs that wait for secrets are not known"),
            }
            tokio::time::sleep(LOOK).await;
        }
    });
}

async fn give(server: &Arc<Server>, wanted: &Wanted) -> Result<(), String> {
    let Some(side) = &server.fleet else { return Ok(()) };
    let all = server.secrets.values().map_err(|error| error.message)?;
    let values: Vec<(String, String)> =
        all.into_iter().filter(|(name, _)| wanted.secrets.contains(name)).collect();
    let names: Vec<&str> = values.iter().map(|(name, _)| name.as_str()).collect();
    let worker = one_line(wanted.worker.as_deref().unwrap_or("a worker"), 60);
    let detail = format!("{} to {worker}", names.join(", "));
    // Recorded in the audit log first.
    server
        .note_as("fleet", "this server", "give secrets", Some(&wanted.run), Some(detail))
        .map_err(|problem| format!("{problem:?}"))?;
    grant::give(side.fleet.pool(), wanted, &values).await.map_err(|error| error.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_app::Overrides;

    #[test]
    fn a_run_is_given_what_its_agents_its_sandbox_and_its_code_host_need() {
        let set: Vec<String> = [
            "ANTHROPIC_API_KEY",
            "OPENAI_API_KEY",
            "E2B_API_KEY",
            "GITHUB_TOKEN",
            "GITHUB_APP_PRIVATE_KEY_PEM",
        ]
        .map(str::to_owned)
        .into();
        let overrides = Overrides { agents: vec!["claude".into()], ..Overrides::default() };
        let request = RunRequest { overrides, ..RunRequest::default() };
        assert_eq!(needed(&request, Some(AuthSource::Pat), &set), ["ANTHROPIC_API_KEY", "GITHUB_TOKEN"]);
        let request = RunRequest { provider: Some(ProviderName::E2b), ..RunRequest::default() };
        assert_eq!(
            needed(&request, Some(AuthSource::None), &set),
            ["ANTHROPIC_API_KEY", "OPENAI_API_KEY", "E2B_API_KEY"]
        );
    }
}
