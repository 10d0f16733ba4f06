//! Totals of a plan: stories, dates, runs, cost.

use crate::error::CommandError;
use jiff::Timestamp;
use ralph_loop_app::Environment;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::read::find;
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_protocol::money::Cost;
use ralph_loop_task::dialect::plan::prd_tasks::TasksJson;
use std::path::Path;

/// A plan in numbers.
#[derive(Debug)]
pub struct Summary {
    title: String,
    branch: String,
    stories: Vec<(bool, String)>,
    pub done: usize,
    pub total: usize,
    /// Start date, if its log has one.
    pub started: Option<Timestamp>,
    /// When it was archived.
    pub archived: Timestamp,
    /// Runs of this plan.
    pub runs: usize,
    pub iterations: u32,
    pub cost: Cost,
}

impl Summary {
    pub fn of(
        env: &Environment,
        tasks: &TasksJson,
        progress: &str,
        (top, dir): (&Path, &Path),
        now: Timestamp,
    ) -> Result<Self, CommandError> {
        let started = progress.lines().find_map(|line| line.strip_prefix("Started:")).and_then(date);
        let mut out = Self {
            title: tasks.project.clone(),
            branch: tasks.branch_name.clone(),
            stories: tasks
                .user_stories
                .iter()
                .map(|s| (s.passes, format!("{} {}", s.id, one_line(&s.title, 200))))
                .collect(),
            done: tasks.user_stories.iter().filter(|s| s.passes).count(),
            total: tasks.user_stories.len(),
            started,
            archived: now,
            runs: 0,
            iterations: 0,
            cost: Cost::default(),
        };
        for run in find::runs_of(&env.state_home()?, top) {
            // Earlier runs belong to an earlier plan's summary.
            if started.is_some_and(|at| run.created_at < at) {
                continue;
            }
            let Ok(facts) = RunSnapshot::load(env, run) else { continue };
            if !Path::new(&facts.state.spec.task.source).starts_with(dir) {
                continue;
            }
            out.runs += 1;
            out.iterations += facts.state.iterations.count;
            out.cost += facts.state.spending.totals.cost;
        }
        Ok(out)
    }

    pub fn markdown(&self) -> String {
        let title = if self.title.trim().is_empty() { "Plan" } else { self.title.trim() };
        let day = |at: Timestamp| at.strftime("%Y-%m-%d").to_string();
        let mut out = format!("# {title}\n\n- stories: {} of {} done\n", self.done, self.total);
        if !self.branch.is_empty() {
            out.push_str(&format!("- branch: `{}`\n", self.branch));
        }
        let started = self.started.map_or_else(|| "not known".to_owned(), day);
        out.push_str(&format!("- started: {started}\n- archived: {}\n", day(self.archived)));
        out.push_str(&format!("- runs: {}\n- iterations: {}\n", self.runs, self.iterations));
        let cost = if self.runs == 0 { "none".to_owned() } else { self.cost.to_string() };
        out.push_str(&format!("- cost: {cost}\n\n## Stories\n\n"));
        for (passes, story) in &self.stories {
            out.push_str(&format!("- [{}] {story}\n", if *passes { "x" } else { " " }));
        }
        out
    }
}

/// A date or an instant, as users and `ralph init` write them.
fn date(text: &str) -> Option<Timestamp> {
    let text = text.trim();
    text.parse::<Timestamp>().ok().or_else(|| format!("{}T00:00:00Z", text.get(..10)?).parse().ok())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_read_as_people_and_the_template_write_them() {
        let at = |text: &str| text.parse::<Timestamp>().unwrap();
        assert_eq!(date(" 2026-11-15T12:00:00Z"), Some(at("2026-11-15T12:00:00Z")));
        assert_eq!(date("2026-11-15, in the morning"), Some(at("2026-11-15T00:00:00Z")));
        assert_eq!(date("yesterday"), None);
    }
}
