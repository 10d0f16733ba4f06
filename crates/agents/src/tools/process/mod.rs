//! Processes that outlive a tool call and a session: dev servers, watchers. One per name, in a connection of the
//! sandbox, so that nothing outlives the run.

pub(crate) mod address;
mod background;
mod idle;
mod ready;
mod requests;

pub(crate) use background::{Background, ProcessEnd};
pub(crate) use ready::{Ready, Signal};

use crate::tools::halt::Halt;
use background::ProcessShared;
use idle::IdleAction;
use ralph_loop_domain::ports::{ExecRequest, ProcessInfo, Sandbox};
use ralph_loop_protocol::display::text;
use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const MOST: usize = 12;
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct ProcessStart {
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) cwd: PathBuf,
    pub(crate) env: Vec<(String, String)>,
    /// What it prints when it is ready, if known.
    pub(crate) signal: Option<Signal>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Listed {
    pub(crate) name: String,
    pub(crate) command: String,
    pub(crate) age: Duration,
    pub(crate) url: Option<String>,
    /// How it ended, as text.
    pub(crate) ended: Option<String>,
}

impl Listed {
    /// One line for display and models.
    pub(crate) fn line(&self) -> String {
        let state = match &self.ended {
            Some(how) => how.clone(),
            None => format!("running for {}", text::duration(self.age)),
        };
        let url = self.url.as_ref().map(|url| format!(", at {url}")).unwrap_or_default();
        format!("`{}` {state}{url}: {}", self.name, text::one_line(&self.command, 200))
    }
}

#[derive(Debug)]
struct Process {
    command: String,
    started: Instant,
    /// When a session last asked for it.
    asked: Instant,
    background: Background,
}

impl From<Listed> for ProcessInfo {
    fn from(one: Listed) -> Self {
        let Listed { name, command, age, url, ended } = one;
        Self { name, command, uptime_seconds: age.as_secs(), url, ended }
    }
}

#[derive(Debug, Default)]
pub(crate) struct Processes {
    all: Mutex<BTreeMap<String, Process>>,
    /// Messages for the next session about ended ones.
    gone: Mutex<Vec<String>>,
}

impl Processes {
    fn all(&self) -> MutexGuard<'_, BTreeMap<String, Process>> {
        self.all.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts a process; an existing one of the same name ends first. Returns its output, and whether another was
    /// replaced.
    pub(crate) fn start(
        &self,
        start: ProcessStart,
        sandbox: &dyn Sandbox,
    ) -> Result<(Arc<ProcessShared>, bool), String> {
        let old = self.all().remove(&start.name);
        let replaced = old.as_ref().is_some_and(|old| old.background.view().state().ended.is_none());
        drop(old);
        if self.all().len() >= MOST {
            let names: Vec<String> = self.all().keys().cloned().collect();
            return Err(format!("{MOST} processes exist already ({}); stop one first", names.join(", ")));
        }
        let connection = sandbox.new_connection().map_err(|error| error.to_string())?;
        let mut request = ExecRequest::new(super::shell(&start.command));
        request.cwd = start.cwd;
        request.env = start.env;
        request.grace = GRACE;
        let background = Background::start(connection, request, start.signal)?;
        let view = background.view();
        let now = Instant::now();
        let process = Process { command: start.command, started: now, asked: now, background };
        self.all().insert(start.name, process);
        Ok((view, replaced))
    }

    /// Waits until the process is ready.
    pub(crate) fn wait(&self, view: &ProcessShared, signal: bool, limit: Duration, halt: &Halt) -> Ready {
        ready::wait(view, signal, limit, halt)
    }

    /// A process's latest output, end and URL.
    pub(crate) fn output(&self, name: &str) -> Result<(Listed, String), String> {
        let mut all = self.all();
        let known: Vec<String> = all.keys().cloned().collect();
        let process = all.get_mut(name).ok_or_else(|| no_process(name, &known))?;
        process.asked = Instant::now();
        let output = process.background.view().state().output();
        Ok((
            listed(name, process, Instant::now()),
            ralph_loop_protocol::display::sanitize::block(&output).into_owned(),
        ))
    }

    /// Ends a process; returns how it had ended if it was over already.
    pub(crate) fn stop(&self, name: &str) -> Result<Option<String>, String> {
        let mut all = self.all();
        let Some(mut process) = all.remove(name) else {
            let known: Vec<String> = all.keys().cloned().collect();
            return Err(no_process(name, &known));
        };
        drop(all);
        let before = process.background.view().state().ended.as_ref().map(ProcessEnd::words);
        process.background.stop();
        Ok(before)
    }

    pub(crate) fn list(&self) -> Vec<Listed> {
        let now = Instant::now();
        self.all().iter().map(|(name, process)| listed(name, process, now)).collect()
    }

    /// What a new session should know about earlier ones' processes.
    pub(crate) fn word_to_next(&self) -> String {
        let mut lines: Vec<String> = self.list().iter().map(|one| format!("- {}", one.line())).collect();
        let gone = std::mem::take(&mut *self.gone.lock().unwrap_or_else(PoisonError::into_inner));
        lines.extend(gone.into_iter().map(|line| format!("- {line}")));
        match lines.is_empty() {
            true => String::new(),
            false => format!("## Processes of earlier sessions\n\n{}\n", lines.join("\n")),
        }
    }

    /// Ends what is idle or broken at `now`.
    pub(crate) fn tidy(&self, now: Instant) {
        let mut leaving = Vec::new();
        let mut gone = Vec::new();
        let mut all = self.all();
        let names: Vec<String> = all.keys().cloned().collect();
        for name in names {
            let Some(process) = all.get(&name) else { continue };
            let view = process.background.view();
            let state = view.state();
            let talked_to = state.url.as_deref().and_then(address::port).is_some_and(requests::any);
            let active = if talked_to { now } else { state.active.max(process.asked) };
            let fate = idle::fate(state.ended.as_ref().map(ProcessEnd::fine), active, now);
            match (fate, &state.ended) {
                (IdleAction::Keep, _) => continue,
                (IdleAction::Report, Some(ended)) => {
                    gone.push(format!("`{name}` {} and is gone", ended.words()))
                }
                (IdleAction::Stop, _) => gone.push(format!("`{name}` was idle and is stopped")),
                _ => {}
            }
            drop(state);
            leaving.extend(all.remove(&name));
        }
        drop(all);
        end(leaving);
        self.gone.lock().unwrap_or_else(PoisonError::into_inner).extend(gone.into_iter().take(MOST));
    }

    pub(crate) fn end_all(&self) {
        let all = std::mem::take(&mut *self.all());
        end(all.into_values().collect());
    }
}

impl Drop for Processes {
    fn drop(&mut self) {
        self.end_all();
    }
}

/// Ends several in parallel, so that their grace periods overlap.
fn end(leaving: Vec<Process>) {
    for process in &leaving {
        process.background.request_stop();
    }
    drop(leaving);
}

fn listed(name: &str, process: &Process, now: Instant) -> Listed {
    let view = process.background.view();
    let state = view.state();
    Listed {
        name: name.to_owned(),
        command: process.command.clone(),
        age: now.saturating_duration_since(process.started),
        url: state.url.clone(),
        ended: state.ended.as_ref().map(ProcessEnd::words),
    }
}

fn no_process(name: &str, known: &[String]) -> String {
    match known.is_empty() {
        true => format!("there is no process `{name}`; none was started"),
        false => format!("there is no process `{name}`; there are: {}", known.join(", ")),
    }
}

#[cfg(test)]
mod tests;
