//! Checks of a commit: check runs and statuses.

use super::GitHub;
use super::client::ApiRequest;
use super::wire::{WireAnnotation, WireCheck, WireRun, WireStatus};
use crate::error::Result;
use ralph_loop_domain::ports::{CiCheck, CiState, NewStatus};
use ralph_loop_http::Method;
use ralph_loop_protocol::display::text::percent_encoded;
use ralph_loop_protocol::display::text::{one_line, tail};
use serde_json::json;
use std::collections::BTreeMap;

/// GitHub's limit for status descriptions.
const DESCRIPTION_MAX: usize = 140;

impl GitHub {
    pub(super) fn all_checks(&self, commit: &str) -> Result<Vec<CiCheck>> {
        let what = format!("read the checks of {commit} in {}", self.name);
        let url =
            self.url(&format!("/commits/{}/check-runs?filter=latest&per_page=100", percent_encoded(commit)));
        let runs: Vec<WireCheck> =
            self.http.pages(&ApiRequest::get(what.clone(), url), Some("check_runs"), self.tokens())?;
        // The combined `state` is "pending" even without a status, so read the list.
        let url = self.url(&format!("/commits/{}/status?per_page=100", percent_encoded(commit)));
        let statuses: Vec<WireStatus> =
            self.http.pages(&ApiRequest::get(what, url), Some("statuses"), self.tokens())?;
        let mut found: Vec<CiCheck> =
            self.latest_runs(commit, runs).into_iter().map(WireCheck::seen).collect();
        let mut seen = std::collections::BTreeSet::new();
        // Newest first, by the host's order.
        found.extend(statuses.into_iter().filter(|s| seen.insert(s.context.clone())).map(WireStatus::seen));
        Ok(found)
    }

    /// The latest of each name. If two workflows have a job of the same name, both count, or a red one could hide
    /// behind a green one; a second run of the same workflow replaces the first.
    fn latest_runs(&self, commit: &str, mut runs: Vec<WireCheck>) -> Vec<WireCheck> {
        runs.sort_by_key(|run| run.id);
        let suite = |run: &WireCheck| run.check_suite.as_ref().map_or(0, |suite| suite.id);
        let mut suites: BTreeMap<&str, u64> = BTreeMap::new();
        let doubled = runs
            .iter()
            .filter(|run| run.is_of_actions())
            .any(|run| *suites.entry(run.name.as_str()).or_insert_with(|| suite(run)) != suite(run));
        let workflows = if doubled { self.workflows(commit) } else { BTreeMap::new() };
        let mut latest: BTreeMap<(String, String), WireCheck> = BTreeMap::new();
        for run in runs {
            let app = run.app.as_ref().and_then(|app| app.slug.clone()).unwrap_or_default();
            let source = match run.is_of_actions() {
                true if doubled => {
                    // Without permission to read workflows, every suite counts separately.
                    workflows.get(&suite(&run)).cloned().unwrap_or_else(|| format!("suite {}", suite(&run)))
                }
                _ => app,
            };
            latest.insert((run.name.clone(), source), run);
        }
        latest.into_values().collect()
    }

    /// The workflow and event of a check suite.
    fn workflows(&self, commit: &str) -> BTreeMap<u64, String> {
        let url = self.url(&format!("/actions/runs?head_sha={}&per_page=100", percent_encoded(commit)));
        let ask = ApiRequest::get(format!("read the workflows of {commit} in {}", self.name), url);
        let runs: Vec<WireRun> =
            self.http.pages(&ask, Some("workflow_runs"), self.tokens()).unwrap_or_default();
        let named = |run: WireRun| Some((run.check_suite_id?, format!("{} {}", run.workflow_id, run.event)));
        runs.into_iter().filter_map(named).collect()
    }

    pub(super) fn log_of(&self, check: &CiCheck, max: usize) -> Result<String> {
        let Some(id) = check.id else { return Ok(tail(&check.summary, max).to_owned()) };
        let what = format!("read the check `{}` of {}", check.name, self.name);
        let run: WireCheck =
            self.http.json(&ApiRequest::get(what, self.url(&format!("/check-runs/{id}"))), self.tokens())?;
        if run.is_of_actions()
            && let Some(log) = self.job_log(id, max)
        {
            return Ok(tail(&without_times(&log), max).to_owned());
        }
        let output = run.output.unwrap_or_default();
        let mut text = [output.title, output.summary, output.text]
            .into_iter()
            .flatten()
            .collect::<Vec<_>>()
            .join("\n\n");
        if output.annotations_count > 0 {
            text.push_str(&self.annotations(id));
        }
        let text = if text.trim().is_empty() { check.summary.clone() } else { text };
        Ok(tail(&text, max).to_owned())
    }

    /// The log of a job; `None` if it isn't available (yet): then the check's own summary is used.
    fn job_log(&self, id: u64, max: usize) -> Option<String> {
        let ask = ApiRequest::get(
            format!("read the log of job {id} of {}", self.name),
            self.url(&format!("/actions/jobs/{id}/logs")),
        );
        let answer = self.http.send(&ask.also(&[302]), self.tokens()).ok()?;
        // Timestamps before each line are removed afterwards: fetch about twice as much.
        let log = match answer.header("location") {
            Some(to) if answer.status == 302 => self.http.tail(to, max.saturating_mul(2))?,
            _ => String::from_utf8_lossy(&answer.body).into_owned(),
        };
        (!log.trim().is_empty()).then_some(log)
    }

    fn annotations(&self, id: u64) -> String {
        let url = self.url(&format!("/check-runs/{id}/annotations?per_page=50"));
        let ask = ApiRequest::get(format!("read the annotations of check {id} of {}", self.name), url);
        let found: Vec<WireAnnotation> = self.http.json(&ask, self.tokens()).unwrap_or_default();
        let line = |a: &WireAnnotation| {
            let at = a.start_line.map(|line| format!(":{line}")).unwrap_or_default();
            format!("\n{}{at}: {}", a.path, one_line(a.message.as_deref().unwrap_or_default(), 500))
        };
        found.iter().map(line).collect()
    }

    pub(super) fn put_status(&self, commit: &str, status: &NewStatus) -> Result<()> {
        let state = match status.state {
            CiState::Pending => "pending",
            CiState::Passed | CiState::Skipped => "success",
            CiState::Failed => "failure",
        };
        let mut body = json!({
            "state": state,
            "context": status.context,
            "description": one_line(&status.description, DESCRIPTION_MAX),
        });
        // The host only accepts web URLs.
        if let Some(url) = status.url.as_ref().filter(|url| url.starts_with("http")) {
            body["target_url"] = url.as_str().into();
        }
        let what = format!("set the status `{}` of {commit} in {}", status.context, self.name);
        let url = self.url(&format!("/statuses/{}", percent_encoded(commit)));
        // Retrying is fine: the latest of a name counts.
        self.http.send(&ApiRequest::with(Method::POST, what, url, body), self.tokens())?;
        Ok(())
    }
}

/// Removes the timestamp that a runner writes before each line.
fn without_times(log: &str) -> String {
    let mut out = String::with_capacity(log.len());
    for line in log.trim_start_matches('\u{feff}').lines() {
        let rest = line.split_once(' ').filter(|(time, _)| {
            time.len() >= 20
                && time.ends_with('Z')
                && time.as_bytes().get(10) == Some(&b'T')
                && time.starts_with(|c: char| c.is_ascii_digit())
        });
        out.push_str(rest.map_or(line, |(_, rest)| rest));
        out.push('\n');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runner_timestamps_are_removed() {
        let log =
            "\u{feff}2026-11-15T12:00:00.1234567Z hello\n2026-11-15T12:00:01.1234567Z   two\nplain line\n";
        assert_eq!(without_times(log), "hello\n  two\nplain line\n");
    }
}
