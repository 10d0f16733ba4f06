//! Changes of `tasks.json` during a run: the engine's, of a single value, and an agent's allowed changes.

use super::prd_tasks::{Story, TasksJson, parse_text};
use crate::dialect::json;
use ralph_loop_protocol::display::text::one_line;
use std::collections::BTreeMap;

/// Sets `passes` of the stories in `wanted`, in one pass over the file. Skips ids without a story or with two, and
/// stories without `passes`. No other byte changes.
pub fn set_all_passes(text: &str, wanted: &BTreeMap<&str, bool>) -> Result<String, String> {
    let root = json::parse(text).map_err(|problem| problem.message)?;
    let stories = root.get("userStories").map(json::Node::items).unwrap_or_default();
    let mut named: BTreeMap<String, Vec<&json::Node>> = BTreeMap::new();
    for node in stories {
        let raw = node.get("id").and_then(|value| text.get(value.range.clone()));
        if let Some(id) = raw.and_then(|raw| serde_json::from_str::<String>(raw).ok()) {
            named.entry(id).or_default().push(node);
        }
    }
    let places = named.iter().filter_map(|(id, nodes)| match nodes[..] {
        [node] => Some((node.get("passes")?.range.clone(), *wanted.get(id.as_str())?)),
        _ => None,
    });
    let mut places: Vec<_> = places.collect();
    places.sort_by_key(|(range, _)| range.start);
    let (mut out, mut from) = (String::with_capacity(text.len() + places.len()), 0);
    for (range, passes) in places {
        out.push_str(text.get(from..range.start).unwrap_or_default());
        out.push_str(if passes { "true" } else { "false" });
        from = range.end;
    }
    out.push_str(text.get(from..).unwrap_or_default());
    Ok(out)
}

/// An agent's forbidden changes of `tasks.json`, as text; empty if everything is allowed.
///
/// Agents may add, split and reorder stories (also `priority` and `dependsOn`) and set `passes` and `notes`. Every
/// acceptance criterion must still exist, in its story or, after a split, in another one; a story may be removed only
/// if its criteria move. Title and description are the contract of a story without criteria, and must then stay.
pub fn changed_illegally(old_text: &str, new_text: &str) -> Vec<String> {
    // An invalid start never became a run; there is nothing to compare with.
    let Ok(old) = parse_text(old_text) else { return Vec::new() };
    let new = match parse_text(new_text) {
        Ok(new) => new,
        Err(problem) => return vec![format!("it can no longer be read: {problem}")],
    };
    let mut out = Vec::new();
    for (key, before, after) in [
        ("project", &old.project, &new.project),
        ("branchName", &old.branch_name, &new.branch_name),
        ("description", &old.description, &new.description),
    ] {
        if before != after {
            out.push(format!("`{key}` was changed"));
        }
    }
    if old.verify_commands != new.verify_commands {
        out.push("`verifyCommands` was changed".into());
    }
    stories(&old, &new, &mut out);
    out
}

fn stories(old: &TasksJson, new: &TasksJson, out: &mut Vec<String>) {
    let mut left: BTreeMap<&str, usize> = BTreeMap::new();
    for criterion in new.user_stories.iter().flat_map(|s| &s.acceptance_criteria) {
        *left.entry(criterion.trim()).or_insert(0) += 1;
    }
    let now: BTreeMap<&str, &Story> = new.user_stories.iter().map(|s| (s.id.as_str(), s)).collect();
    if now.len() < new.user_stories.len() {
        out.push("`userStories`: an `id` is used by two stories".into());
    }
    for story in &old.user_stories {
        let id = &story.id;
        for criterion in &story.acceptance_criteria {
            match left.get_mut(criterion.trim()) {
                Some(count) if *count > 0 => *count -= 1,
                _ => {
                    let short = one_line(criterion, 80);
                    out.push(format!("`acceptanceCriteria` of `{id}`: one is gone: {short}"));
                }
            }
        }
        if !story.acceptance_criteria.is_empty() {
            continue;
        }
        match now.get(id.as_str()) {
            None => out.push(format!("`userStories`: the story `{id}` is gone")),
            Some(kept) if kept.title != story.title || kept.description != story.description => {
                let field = if kept.title == story.title { "description" } else { "title" };
                out.push(format!("`{field}` of `{id}` was reworded, and it has no acceptance criteria"));
            }
            Some(_) => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TASKS: &str = include_str!("../testdata/tasks.json");

    fn set_passes(text: &str, id: &str, passes: bool) -> String {
        set_all_passes(text, &BTreeMap::from([(id, passes)])).unwrap()
    }

    #[test]
    fn passes_is_set_without_touching_another_byte() {
        let set = set_passes(TASKS, "US-002", true);
        let at = TASKS.match_indices("\"passes\": false").next().unwrap().0 + "\"passes\": ".len();
        assert_eq!(set, format!("{}true{}", &TASKS[..at], &TASKS[at + 5..]));
        assert_eq!(set_passes(&set, "US-002", false), TASKS);
        assert_eq!(set_passes(TASKS, "US-9", true), TASKS);
        assert_eq!(set_all_passes("{", &BTreeMap::new()).unwrap_err(), "EOF while parsing an object");
        let crlf = TASKS.replace('\n', "\r\n");
        assert_eq!(set_passes(&crlf, "US-002", true), set.replace('\n', "\r\n"));
    }

    #[test]
    fn setting_all_equals_setting_one_by_one() {
        let wanted = BTreeMap::from([("US-002", true), ("US-001", false), ("US-9", true)]);
        let one_by_one = set_passes(&set_passes(TASKS, "US-002", true), "US-001", false);
        assert_eq!(set_all_passes(TASKS, &wanted).unwrap(), one_by_one);
        let twice = r#"{"userStories":[{"id":"a","passes":false},{"id":"a","passes":false},{"id":"b"}]}"#;
        assert_eq!(set_all_passes(twice, &BTreeMap::from([("a", true), ("b", true)])).unwrap(), twice);
        // More than any plan has: one by one this would be a pass over the file for each.
        let story = |n: u32| format!(r#"{{"id":"S{n}","passes":true}}"#);
        let many: Vec<String> = (0..20_000).map(story).collect();
        let text = format!(r#"{{"userStories":[{}]}}"#, many.join(","));
        let ids: Vec<String> = (0..20_000).map(|n| format!("S{n}")).collect();
        let wanted = ids.iter().map(|id| (id.as_str(), false)).collect();
        assert_eq!(set_all_passes(&text, &wanted).unwrap(), text.replace("true", "false"));
    }

    fn changed(edit: impl Fn(&mut serde_json::Value)) -> Vec<String> {
        let mut value: serde_json::Value = serde_json::from_str(TASKS).unwrap();
        edit(&mut value);
        changed_illegally(TASKS, &value.to_string())
    }

    #[test]
    fn agents_may_edit_their_stories() {
        assert!(changed_illegally(TASKS, TASKS).is_empty());
        let legal = changed(|v| {
            let stories = v["userStories"].as_array_mut().unwrap();
            stories.reverse();
            stories[0]["passes"] = true.into();
            stories[0]["notes"] = "done with x".into();
            stories[0]["priority"] = 9.into();
            let mut split = stories[1].clone();
            split["id"] = "US-002b".into();
            let moved = stories[1]["acceptanceCriteria"].as_array_mut().unwrap().remove(0);
            split["acceptanceCriteria"] = vec![moved].into();
            stories.push(split);
        });
        assert!(legal.is_empty(), "{legal:?}");
    }

    #[test]
    fn agents_may_not_make_the_task_easier() {
        let gone = changed(|v| {
            v["userStories"][1]["acceptanceCriteria"].as_array_mut().unwrap().remove(0);
        });
        assert_eq!(
            gone,
            ["`acceptanceCriteria` of `US-002`: one is gone: `shop list --json` prints valid JSON"]
        );
        assert_eq!(changed(|v| v["verifyCommands"] = vec!["true"].into()), ["`verifyCommands` was changed"]);
        assert_eq!(changed(|v| v["branchName"] = "main".into()), ["`branchName` was changed"]);
        let removed = changed(|v| {
            v["userStories"].as_array_mut().unwrap().remove(2);
        });
        assert_eq!(removed, ["`userStories`: the story `US-003` is gone"]);
        let reworded = changed(|v| v["userStories"][2]["description"] = "Nothing.".into());
        assert!(reworded[0].contains("reworded"), "{reworded:?}");
        assert!(changed_illegally(TASKS, "{}}")[0].contains("no longer be read"));
        assert!(changed(|v| v["extra"] = 1.into())[0].contains("extra"));
    }
}
