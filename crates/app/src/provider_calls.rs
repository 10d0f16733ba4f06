//! Questions to the providers of sandboxes that nobody waits for without end: each provider is asked on a thread of its own, all
//! at the same time, and whoever does not answer in time is named.

use crate::environment::Environment;
use ralph_loop_domain::ports::{SandboxInfo, SandboxProvider};
use serde::Serialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

/// The variable that says how long a provider may take.
const VARIABLE: &str = "RALPH_PROVIDER_SECONDS";
/// How long it may take where nobody says so, however many answers that takes.
const LIMIT: Duration = Duration::from_secs(60);
/// Longer than this nobody waits.
const LIMIT_MAX: u64 = 24 * 3600;

/// How long a provider may take to say what it has, or to remove it.
pub fn limit(env: &Environment) -> Duration {
    let said = env.vars().filled(VARIABLE).and_then(|text| text.trim().parse::<u64>().ok());
    said.filter(|seconds| (1..=LIMIT_MAX).contains(seconds)).map_or(LIMIT, Duration::from_secs)
}

/// A provider that could not be asked.
#[derive(Debug, Serialize)]
pub struct Unanswered {
    /// Its name.
    pub provider: &'static str,
    /// What went wrong, in words.
    pub problem: String,
}

/// What all providers have.
pub struct FoundSandboxes {
    /// Each with who has it.
    pub sandboxes: Vec<(SandboxInfo, Arc<dyn SandboxProvider>)>,
    /// Those that did not say.
    pub problems: Vec<Unanswered>,
}

/// What every provider has; one that does not answer, or not to its end, does not hide what the others have.
pub fn list_all(providers: &[Arc<dyn SandboxProvider>], limit: Duration) -> FoundSandboxes {
    let mut found = FoundSandboxes { sandboxes: Vec::new(), problems: Vec::new() };
    let until = Instant::now() + limit;
    let asked: Vec<_> = providers
        .iter()
        .map(|provider| {
            let (tell, answer) = channel();
            let asking = Arc::clone(provider);
            // One that is still being waited for when the program ends, ends with it.
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
            Err(_) => format!("no whole answer within {} seconds", limit.as_secs()),
        };
        found.problems.push(Unanswered { provider: provider.name(), problem });
    }
    found
}

/// Sandboxes that providers are about to remove.
pub struct Removal {
    limit: Duration,
    until: Instant,
    asked: Vec<Asked>,
}

struct Asked {
    provider: &'static str,
    ids: BTreeSet<String>,
    answers: Receiver<Answer>,
}

enum Answer {
    /// It is not there any more.
    Gone(String),
    /// It could not be removed, for this reason.
    Stays(String, String),
    /// What the provider has could not be asked.
    Unknown(String),
}

/// What became of a [`Removal`].
#[derive(Debug, Default)]
pub struct Removed {
    /// Sandboxes that are not there any more.
    pub gone: BTreeSet<String>,
    /// What is still there or may be, in words.
    pub problems: Vec<String>,
}

/// Lets each provider remove those of ours; [`Removal::wait`] says what became of it.
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
        Asked { provider: name, ids, answers }
    });
    Removal { limit, until, asked: asked.collect() }
}

impl Removal {
    /// Waits for the answers, at most until the time is over.
    pub fn wait(self) -> Removed {
        let mut removed = Removed::default();
        let problems = &mut removed.problems;
        for Asked { provider, mut ids, answers } in self.asked {
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
