//! Bounded calls to sandbox providers: all in parallel on their own threads; a provider that doesn't answer
//! in time is named.

use crate::environment::Environment;
use ralph_loop_domain::ports::{SandboxInfo, SandboxProvider};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// Overrides how long a provider may take.
const VARIABLE: &str = "RALPH_PROVIDER_SECONDS";
/// Default time limit for all answers of a provider.
const LIMIT: Duration = Duration::from_secs(60);
const LIMIT_MAX: u64 = 24 * 3600;

pub fn limit(env: &Environment) -> Duration {
    let said = env.vars().filled(VARIABLE).and_then(|text| text.trim().parse::<u64>().ok());
    said.filter(|seconds| (1..=LIMIT_MAX).contains(seconds)).map_or(LIMIT, Duration::from_secs)
}

#[derive(Debug, Serialize)]
pub struct Unanswered {
    pub provider: &'static str,
    /// What failed.
    pub problem: String,
}

pub struct FoundSandboxes {
    /// Each with its provider.
    pub sandboxes: Vec<(SandboxInfo, Arc<dyn SandboxProvider>)>,
    /// Providers that didn't answer.
    pub problems: Vec<Unanswered>,
}

/// Lists every provider's sandboxes; one that fails or times out doesn't hide the others.
pub fn list_all(providers: &[Arc<dyn SandboxProvider>], limit: Duration) -> FoundSandboxes {
    let mut found = FoundSandboxes { sandboxes: Vec::new(), problems: Vec::new() };
    let until = Instant::now() + limit;
    let asked: Vec<_> = providers
        .iter()
        .map(|provider| {
            let (tell, answer) = channel();
            let asking = Arc::clone(provider);
            // A thread still waiting ends with the program.
            std::thread::spawn(move || tell.send(asking.list()));
            answer
        })
        .collect();
    for (provider, answer) in providers.iter().zip(asked) {
        let problem = match answer.recv_timeout(until.saturating_duration_since(Instant::now())) {
            Ok(Ok(infos)) => {
                found.sandboxes.extend(infos.into_iter().map(|info| (info, Arc::clone(provider))));
                continue;
            }
            Ok(Err(error)) => error.to_string(),
            Err(_) => format!("no complete answer within {} seconds", limit.as_secs()),
        };
        found.problems.push(Unanswered { provider: provider.name(), problem });
    }
    found
}

/// Sandbox removals in progress.
pub struct Removal {
    limit: Duration,
    until: Instant,
    asked: Vec<ProviderQuery>,
}

struct ProviderQuery {
    provider: &'static str,
    ids: BTreeSet<String>,
    answers: Receiver<Answer>,
}

enum Answer {
    /// It no longer exists.
    Gone(String),
    /// It couldn't be removed, with the reason.
    Stays(String, String),
    /// The provider couldn't be reached.
    Unknown(String),
}

#[derive(Debug, Default)]
pub struct Removed {
    /// No longer exist.
    pub gone: BTreeSet<String>,
    /// What may still exist, and why.
    pub problems: Vec<String>,
}

/// Starts the removal; [`Removal::wait`] returns the outcome.
pub fn remove(wanted: Vec<(Arc<dyn SandboxProvider>, BTreeSet<String>)>, limit: Duration) -> Removal {
    let until = Instant::now() + limit;
    let asked = wanted.into_iter().map(|(provider, ids)| {
        let (tell, answers) = channel();
        let (name, asking) = (provider.name(), ids.clone());
        std::thread::spawn(move || {
            let known = match provider.list() {
                Ok(known) => known,
                Err(error) => return drop(tell.send(Answer::Unknown(error.to_string()))),
            };
            for id in asking {
                let is_there = known.iter().any(|info| info.id == id);
                let answer = match is_there.then(|| provider.destroy(&id)) {
                    None | Some(Ok(())) => Answer::Gone(id),
                    Some(Err(error)) => Answer::Stays(id, error.to_string()),
                };
                let _ = tell.send(answer);
            }
        });
        ProviderQuery { provider: name, ids, answers }
    });
    Removal { limit, until, asked: asked.collect() }
}

impl Removal {
    /// Waits until the time limit.
    pub fn wait(self) -> Removed {
        let mut removed = Removed::default();
        let problems = &mut removed.problems;
        for ProviderQuery { provider, mut ids, answers } in self.asked {
            while !ids.is_empty() {
                match answers.recv_timeout(self.until.saturating_duration_since(Instant::now())) {
                    Ok(Answer::Gone(id)) => {
                        ids.remove(&id);
                        removed.gone.insert(id);
                    }
                    Ok(Answer::Stays(id, why)) => {
                        problems.push(format!("`{id}` of {provider} stays: {why}"));
                        ids.remove(&id);
                    }
                    Ok(Answer::Unknown(why)) => {
                        problems.push(format!(
                            "{provider} could not be asked: {why}; {} may still be there",
                            listed(&ids)
                        ));
                        ids.clear();
                    }
                    Err(_) => {
                        let seconds = self.limit.as_secs();
                        problems.push(format!(
                            "{provider} did not answer within {seconds} seconds; {} may still be there (`ralph sandbox list` shows it)",
                            listed(&ids)
                        ));
                        ids.clear();
                    }
                }
            }
        }
        removed
    }
}

fn listed(ids: &BTreeSet<String>) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<String> = ids.iter().take(SHOWN).map(|id| format!("`{id}`")).collect();
    match ids.len().saturating_sub(SHOWN) {
        0 => shown.join(", "),
        more => format!("{} and {more} more", shown.join(", ")),
    }
}
