//! Everything a run did, from its journal; the state keeps only a window.

use crate::environment::Environment;
use crate::error::AppError;
use crate::read::facts::RunSnapshot;
use crate::read::find;
use ralph_loop_domain::state::{IterationSummary, RunState};
use ralph_loop_domain::stuck::Signals;
use ralph_loop_protocol::event::{EventBody, FileChange};
use ralph_loop_protocol::id::Seq;
use std::collections::BTreeMap;

/// Finished iterations, with details of one.
#[derive(Debug, Default)]
pub struct RunTimeline {
    /// Oldest first.
    pub iterations: Vec<IterationSummary>,
    /// Files that the wanted iteration changed.
    pub files: Vec<FileChange>,
    /// Total number of files.
    pub files_total: usize,
    /// Stuck signals of the wanted iteration.
    pub signals: Option<Signals>,
    /// The task's goal metric, by iteration.
    pub metric: BTreeMap<u32, MetricValue>,
}

#[derive(Debug, Clone, PartialEq)]
pub struct MetricValue {
    pub value: f64,
    pub label: String,
}

impl RunTimeline {
    /// Replays the journal.
    pub fn read(env: &Environment, facts: &RunSnapshot, wanted: Option<u32>) -> Result<Self, AppError> {
        let mut state = RunState::new(facts.state.spec.clone());
        let mut story = RunTimeline::default();
        for event in find::handle(env, &facts.entry).follow(Seq(0)).poll()? {
            state.apply(&event);
            match event.body {
                EventBody::IterationEnded { iteration, signals, evidence, .. } => {
                    story.iterations.extend(state.iterations.history.back().cloned());
                    let metric = evidence.metric.map(|number| MetricValue {
                        value: number.value as f64 / 1000.0,
                        label: number.label,
                    });
                    story.metric.extend(metric.map(|metric| (iteration, metric)));
                    if wanted == Some(iteration) {
                        story.signals = Some(signals);
                    }
                }
                EventBody::Checkpointed { iteration, files, files_total, .. }
                    if wanted == Some(iteration) =>
                {
                    story.files = files;
                    story.files_total = files_total;
                }
                _ => {}
            }
        }
        Ok(story)
    }
}
