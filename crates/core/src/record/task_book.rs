//! The task file as a list of claims: agents mark what they think is done, the engine marks what is.
//!
//! It is compared with the original file. In `ralph_task.md` only the boxes may differ; in a plan agents may
//! add, split and reorder stories and set `passes` and `notes`. Any other difference is a changed protected
//! path.

use ralph_loop_protocol::display::text::one_line;
use ralph_loop_task::dialect::plan::{plan_edit, prd_tasks};
use ralph_loop_task::dialect::{Dialect, checkbox, frontmatter};
use ralph_loop_task::spec::Task;
use std::collections::{BTreeMap, BTreeSet};

/// Foreign ids kept.
const OTHERS_MAX: usize = 200;
/// Length limit of such an id.
const OTHER_MAX: usize = 200;

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Claims {
    /// Ids marked as done.
    pub done: BTreeSet<String>,
    /// Ids not marked.
    pub open: BTreeSet<String>,
}

pub(crate) fn has_book(task: &Task) -> bool {
    task.raw.is_some() && matches!(task.dialect, Dialect::RalphTaskMd | Dialect::Plan)
}

/// Claimed ids for events: all of the task's own, and a bounded number of others, which agents can invent.
pub(crate) fn bounded(task: &Task, ids: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let own: BTreeSet<&str> = task.criteria.iter().map(|c| c.id.as_str()).collect();
    let (mut kept, others): (BTreeSet<String>, BTreeSet<String>) =
        ids.into_iter().partition(|id| own.contains(id.as_str()));
    kept.extend(others.into_iter().take(OTHERS_MAX).map(|id| one_line(&id, OTHER_MAX)));
    kept
}

/// Whether `new` is the same task as `old`, ignoring marks.
pub fn is_same_task(old: &Task, new: &Task) -> bool {
    match &new.raw {
        Some(raw) if has_book(old) => old.dialect == new.dialect && review(old, raw).is_ok(),
        _ => old.text == new.text,
    }
}

/// The marks in `now`, or the forbidden changes.
pub(crate) fn review(task: &Task, now: &str) -> Result<Claims, Vec<String>> {
    let start = task.raw.as_deref().unwrap_or_default();
    match task.dialect {
        Dialect::RalphTaskMd if unticked(start) != unticked(now) => {
            return Err(vec!["more than its boxes was changed".into()]);
        }
        Dialect::Plan => {
            let illegal = plan_edit::changed_illegally(start, now);
            if !illegal.is_empty() {
                return Err(illegal);
            }
        }
        _ => {}
    }
    claims(task.dialect, now).map_err(|problem| vec![problem])
}

/// The marks in a task file.
fn claims(dialect: Dialect, text: &str) -> Result<Claims, String> {
    let marks: Vec<(String, bool)> = match dialect {
        Dialect::RalphTaskMd => boxes(text).boxes.into_iter().map(|b| (b.id, b.ticked)).collect(),
        Dialect::Plan => {
            prd_tasks::parse_text(text)?.user_stories.into_iter().map(|s| (s.id, s.passes)).collect()
        }
        Dialect::RalphJson | Dialect::PromptMd => Vec::new(),
    };
    let (done, open): (Vec<_>, Vec<_>) = marks.into_iter().partition(|(_, done)| *done);
    let ids = |marks: Vec<(String, bool)>| marks.into_iter().map(|(id, _)| id).collect();
    Ok(Claims { done: ids(done), open: ids(open) })
}

/// The file with exactly the criteria in `met` marked.
pub(crate) fn marked(dialect: Dialect, now: &str, met: &BTreeSet<String>) -> String {
    let Ok(claims) = claims(dialect, now) else { return now.to_owned() };
    let wrong = claims.done.difference(met).chain(claims.open.intersection(met));
    let wanted: BTreeMap<&str, bool> = wrong.map(|id| (id.as_str(), met.contains(id))).collect();
    // An id that can't be marked stays; the linter reported it.
    match dialect {
        _ if wanted.is_empty() => now.to_owned(),
        Dialect::RalphTaskMd => checkbox::set_all(now, &wanted),
        _ => plan_edit::set_all_passes(now, &wanted).unwrap_or_else(|_| now.to_owned()),
    }
}

fn boxes(text: &str) -> checkbox::Checkboxes {
    checkbox::read(text, frontmatter::split(text).map_or(0, |split| split.body.start))
}

/// The text with every box open, for comparing the rest.
fn unticked(text: &str) -> String {
    let mut out = text.replace("\r\n", "\n");
    for found in boxes(&out).boxes {
        out.replace_range(found.mark..=found.mark, " ");
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_task::criterion::{Check, Criterion, Span};

    const MD: &str = "---\ntask_id: t\n---\n\n# T\n\n## Success criteria\n\n- [ ] M1.1 one\n- [ ] M1.2 two\n";
    const PLAN: &str = r#"{"project":"p","branchName":"b","userStories":[
        {"id":"US-1","title":"a","acceptanceCriteria":["x"],"priority":1,"passes":false,"notes":""}]}"#;

    fn task(dialect: Dialect, raw: &str) -> Task {
        let criterion = |id: &str| Criterion {
            id: id.into(),
            text: String::new(),
            milestone: None,
            check: Check::Claimed,
            ticked: false,
            place: Span::START,
        };
        Task {
            id: None,
            ticket: None,
            title: "t".into(),
            text: raw.into(),
            source: "f".into(),
            dialect,
            raw: Some(raw.into()),
            criteria: ["M1.1", "M1.2", "US-1"].map(criterion).to_vec(),
            working_dir: None,
            context_files: Vec::new(),
            rules: Vec::new(),
        }
    }

    fn set(ids: &[&str]) -> BTreeSet<String> {
        ids.iter().map(|id| (*id).to_owned()).collect()
    }

    #[test]
    fn ticking_a_box_is_a_claim_and_rewording_is_not() {
        let task = task(Dialect::RalphTaskMd, MD);
        let claims = review(&task, &MD.replace("[ ] M1.2", "[x] M1.2")).unwrap();
        assert_eq!((claims.done, claims.open), (set(&["M1.2"]), set(&["M1.1"])));
        for edited in [MD.replace("one", "nothing"), MD.replace("- [ ] M1.2 two\n", "")] {
            assert_eq!(review(&task, &edited).unwrap_err(), ["more than its boxes was changed"]);
        }
    }

    #[test]
    fn a_plan_may_grow_but_not_shrink() {
        let task = task(Dialect::Plan, PLAN);
        assert_eq!(
            review(&task, &PLAN.replace("\"passes\":false", "\"passes\":true")).unwrap().done,
            set(&["US-1"])
        );
        let shrunk = review(&task, &PLAN.replace("[\"x\"]", "[]")).unwrap_err();
        assert_eq!(shrunk, ["`acceptanceCriteria` of `US-1`: one is gone: x"]);
    }

    #[test]
    fn the_engine_marks_what_is_met_and_nothing_else() {
        let claimed = MD.replace("[ ] M1.2", "[x] M1.2");
        assert_eq!(
            marked(Dialect::RalphTaskMd, &claimed, &set(&["M1.1"])),
            MD.replace("[ ] M1.1", "[x] M1.1")
        );
    }

    #[test]
    fn made_up_ids_of_any_number_do_not_crowd_out_the_tasks_own() {
        let task = task(Dialect::RalphTaskMd, MD);
        let own = task.criteria[0].id.clone();
        let made_up = (0..100_000).map(|n| format!("!{n}{}", "x".repeat(5000)));
        let kept = bounded(&task, made_up.chain([own.clone()]));
        assert!(kept.contains(&own) && kept.len() == OTHERS_MAX + 1);
        assert!(kept.iter().map(String::len).sum::<usize>() < 100_000);
        assert_eq!(bounded(&task, [own.clone(), "US-9".into()]).len(), 2, "a story that was added stays");
    }
}
