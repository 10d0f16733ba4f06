//! Everything that a run has done, from its journal: the state remembers a window, the story is all of it.

use crate::environment::Environment;
use crate::error::AppError;
use crate::facts::RunReading;
use crate::find;
use ralph_loop_domain::state::{IterationSummary, RunState};
use ralph_loop_domain::stuck::Signals;
use ralph_loop_protocol::event::{EventBody, FileChange};
use ralph_loop_protocol::id::Seq;
use std::collections::BTreeMap;

/// The finished iterations of a run, and details of the one that is shown.
#[derive(Debug, Default)]
pub struct RunTimeline {
    /// Every finished iteration, oldest first.
    pub iterations: Vec<IterationSummary>,
    /// Files that the wanted iteration changed.
    pub files: Vec<FileChange>,
    /// How many files in all.
    pub files_total: usize,
    /// Stuck signals of the wanted iteration.
    pub signals: Option<Signals>,
    /// The number that the task is to improve, by iteration.
    pub metric: BTreeMap<u32, MetricValue>,
}

/// What the number that a task is to improve was.
#[derive(Debug, Clone, PartialEq)]
pub struct MetricValue {
    /// The number.
    pub value: f64,
    /// What it is called.
    pub label: String,
}

impl RunTimeline {
    /// Replays the journal: the state remembers a window, the story is all of it.
    pub fn read(env: &Environment, facts: &RunReading, wanted: Option<u32>) -> Result<Self, AppError> {
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
