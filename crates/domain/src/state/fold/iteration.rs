//! Folds an iteration: the session, its changes, the checks.

use crate::state::{ChangeFacts, Current, RunFacts, SessionFacts, Stage, TOUCHED};
use crate::stuck::Trace;
use jiff::Timestamp;
use ralph_loop_protocol::event::{CheckResult, EventBody, FileChange, PromiseAsked, SessionEnd};
use ralph_loop_protocol::money::Cost;

impl RunFacts {
    pub(super) fn iteration_started(&mut self, body: &EventBody, at: Timestamp) {
        let EventBody::IterationStarted { iteration, attempt, agent, model, prompt, skipped, role } = body
        else {
            return;
        };
        self.iterations.attempts = *attempt;
        self.people.recheck.clear();
        self.people.nudges_read = self.people.nudges.len();
        self.agents.last_agent = Some(agent.clone());
        self.agents.skip.clear();
        let used = [agent.as_str(), ""].into_iter().find(|key| self.agents.models.contains_key(*key));
        self.agents.model_used = used.filter(|key| self.agents.models_once.contains(*key)).map(str::to_owned);
        self.iterations.current = Some(Current {
            iteration: *iteration,
            attempt: *attempt,
            agent: agent.clone(),
            model: model.clone(),
            prompt: prompt.clone(),
            skipped: skipped.clone(),
            role: *role,
            started_at: at,
            stage: Stage::Working,
            session: None,
            change: None,
            checked: Vec::new(),
            protected: Vec::new(),
            outdated: false,
        });
    }

    pub(super) fn session_over(&mut self, body: &EventBody) {
        let EventBody::SessionEnded {
            end,
            promised,
            message,
            usage,
            duration_ms,
            exit_code,
            claims,
            ask,
            commit_message,
            commit_parts,
            findings,
            ..
        } = body
        else {
            return;
        };
        self.session_ended(SessionFacts {
            end: end.clone(),
            promised: *promised,
            message: message.clone(),
            usage: usage.clone(),
            duration_ms: *duration_ms,
            exit_code: *exit_code,
            commit_message: commit_message.clone(),
            commit_parts: commit_parts.clone(),
        });
        self.take_findings(findings.as_deref());
        self.work.claimed_in_words.extend(claims.iter().cloned());
        self.asked(ask.as_ref());
    }

    fn session_ended(&mut self, session: SessionFacts) {
        self.spending.totals.working_ms += session.duration_ms;
        self.spending.totals.sessions += 1;
        // An interrupted session may have an unknown cost, but that doesn't make the rest an estimate.
        let (cost, tokens) = match session.end {
            SessionEnd::Interrupted => {
                let known = session.usage.cost.unwrap_or_default();
                (Cost::reported(known), Some(session.usage.tokens.unwrap_or_default()))
            }
            _ => (session.usage.spent(), session.usage.tokens),
        };
        self.spending.totals.cost += cost;
        self.spending.totals.saved += session.usage.saved.unwrap_or_default();
        self.spending.totals.tokens += tokens;
        match &session.end {
            SessionEnd::Empty => {
                self.iterations.empty_answers += 1;
                self.iterations.empty_sessions += 1;
            }
            end if !end.is_void() => {
                self.iterations.empty_answers = 0;
                self.iterations.empty_sessions = 0;
            }
            _ => {}
        }
        if session.end == SessionEnd::Interrupted {
            self.iterations.interruptions += 1;
        }
        match &session.end {
            SessionEnd::Overloaded { .. } | SessionEnd::Unreachable { .. } => self.iterations.overloads += 1,
            SessionEnd::Interrupted => {}
            _ => self.iterations.overloads = 0,
        }
        self.agents.answered |= !session.end.is_void();
        if let Some(agent) = self.iterations.current.as_ref().map(|c| c.agent.clone()) {
            match &session.end {
                SessionEnd::Unreachable { reason } => {
                    self.agents.unreached.insert(agent.clone(), reason.clone());
                }
                _ => drop(self.agents.unreached.remove(&agent)),
            }
            match &session.end {
                SessionEnd::RateLimited { reset_at: None, .. } => {
                    *self.agents.limited.entry(agent).or_default() += 1;
                }
                SessionEnd::Interrupted => {}
                _ => drop(self.agents.limited.remove(&agent)),
            }
        }
        if let Some(current) = &mut self.iterations.current {
            let totals = self.agents.by_agent.entry(current.agent.clone()).or_default();
            totals.sessions += 1;
            totals.cost += cost;
            totals.tokens += tokens;
            current.stage = Stage::Worked;
            current.session = Some(session);
        }
    }

    /// The question belongs to the session that it continues.
    pub(super) fn promise_asked(&mut self, news: &PromiseAsked) {
        let cost = news.usage.spent();
        self.spending.totals.working_ms += news.duration_ms;
        self.spending.totals.cost += cost;
        self.spending.totals.saved += news.usage.saved.unwrap_or_default();
        self.spending.totals.tokens += news.usage.tokens;
        let totals = self.agents.by_agent.entry(news.agent.clone()).or_default();
        totals.cost += cost;
        totals.tokens += news.usage.tokens;
        let current = self.iterations.current.as_mut().filter(|current| current.iteration == news.iteration);
        if let Some(session) = current.and_then(|current| current.session.as_mut()) {
            session.promised |= news.promised;
            session.duration_ms += news.duration_ms;
            session.usage.cost = session.usage.cost.zip(news.usage.cost).map(|(before, now)| before + now);
        }
    }

    pub(super) fn checkpointed(&mut self, body: &EventBody) {
        let EventBody::Checkpointed {
            tree,
            commit,
            files,
            files_total,
            added,
            removed,
            in_submodules,
            again,
            ..
        } = body
        else {
            return;
        };
        let room = TOUCHED.saturating_sub(self.work.in_submodules.len());
        self.work.in_submodules.extend(in_submodules.iter().take(room).cloned());
        self.work.cut = self.was_cut();
        let before = self.work.tree.replace(tree.clone());
        // The engine's own marks in the task file don't age the results.
        if *again && *files_total == files.len() && self.is_same_but_for_marks(files) {
            for result in self.work.checks.values_mut().filter(|r| Some(&r.tree) == before.as_ref()) {
                result.tree = tree.clone();
            }
        }
        if commit.is_some() {
            self.work.commit = commit.clone();
        }
        let room = TOUCHED.saturating_sub(self.work.touched.len());
        self.work.touched.extend(files.iter().map(|f| f.path.clone()).take(room));
        let Some(current) = &mut self.iterations.current else { return };
        current.stage = Stage::Checkpointed;
        // Recorded again with the engine's marks: the agent's change is in the first record.
        if let Some(change) = current.change.as_mut().filter(|c| c.files > 0) {
            change.tree = tree.clone();
            change.commit.clone_from(commit);
            return;
        }
        current.change = Some(ChangeFacts {
            tree: tree.clone(),
            commit: commit.clone(),
            files: *files_total,
            added: *added,
            removed: *removed,
            contents: Trace::files_of(files),
            sizes: Trace::sizes_of(files),
        });
    }

    /// Whether a change that is recorded again has the contents of the first record, except for the task file.
    fn is_same_but_for_marks(&self, files: &[FileChange]) -> bool {
        let Some(current) = &self.iterations.current else { return false };
        let is_work = |(path, _): &&(String, String)| *path != self.spec.task.source;
        let first = current.change.iter().flat_map(|change| &change.contents).filter(is_work);
        Trace::files_of(files).iter().filter(is_work).eq(first)
    }

    pub(super) fn check_finished(&mut self, result: &CheckResult) {
        self.spending.totals.working_ms += result.duration_ms;
        if let Some(current) = &mut self.iterations.current {
            current.checked.push(result.name.clone());
        }
        self.work.checks.insert(result.name.clone(), result.clone());
        if self.people.recheck.remove(&result.name) && self.people.recheck.is_empty() {
            self.result.candidate = self.is_done_after_all();
        }
    }
}
