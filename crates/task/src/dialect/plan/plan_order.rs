//! The order of a plan's stories: whether their dependencies can be met.

use super::prd_tasks::Story;
use std::collections::BTreeMap;

/// What to do next in a plan.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Due<'a> {
    /// This story: the first by priority, then by position, whose dependencies all pass.
    Story(&'a Story),
    /// These open stories, each of which waits for another one.
    Blocked(Vec<&'a str>),
    Nothing,
}

/// What to do next. Ignores a dependency without a story.
pub fn due(stories: &[Story]) -> Due<'_> {
    let open: BTreeMap<&str, bool> = stories.iter().map(|s| (s.id.as_str(), !s.passes)).collect();
    let waits = |story: &&Story| story.depends_on.iter().any(|id| open.get(id.as_str()) == Some(&true));
    let left: Vec<&Story> = stories.iter().filter(|story| !story.passes).collect();
    let next = left.iter().filter(|story| !waits(story)).min_by_key(|s| s.priority.unwrap_or(i64::MAX));
    match (next, left.is_empty()) {
        (Some(story), _) => Due::Story(story),
        (None, true) => Due::Nothing,
        (None, false) => Due::Blocked(left.into_iter().map(|story| story.id.as_str()).collect()),
    }
}

/// Dependency cycles, each as its ids with the first repeated at the end. Reports each cycle that a walk from the
/// first story on meets once.
pub fn cycles(stories: &[Story]) -> Vec<Vec<String>> {
    let index: BTreeMap<&str, usize> =
        stories.iter().enumerate().rev().map(|(at, s)| (s.id.as_str(), at)).collect();
    let below: Vec<Vec<usize>> = stories
        .iter()
        .map(|s| s.depends_on.iter().filter_map(|id| index.get(id.as_str()).copied()).collect())
        .collect();
    let mut done = vec![false; stories.len()];
    let mut position: Vec<Option<usize>> = vec![None; stories.len()];
    let mut out = Vec::new();
    for start in 0..stories.len() {
        // An explicit stack: a plan may chain thousands of stories.
        let mut path: Vec<(usize, usize)> = Vec::new();
        if !done[start] {
            position[start] = Some(0);
            path.push((start, 0));
        }
        while let Some((node, next)) = path.last().copied() {
            let Some(&to) = below[node].get(next) else {
                done[node] = true;
                position[node] = None;
                path.pop();
                continue;
            };
            if let Some(last) = path.last_mut() {
                last.1 += 1;
            }
            if let Some(from) = position[to] {
                let mut way: Vec<String> =
                    path[from..].iter().map(|(at, _)| stories[*at].id.clone()).collect();
                way.push(stories[to].id.clone());
                out.push(way);
            } else if !done[to] {
                position[to] = Some(path.len());
                path.push((to, 0));
            }
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn story(id: &str, priority: i64, passes: bool, needs: &[&str]) -> Story {
        Story {
            id: id.into(),
            title: id.into(),
            priority: Some(priority),
            passes,
            depends_on: needs.iter().map(|s| (*s).to_owned()).collect(),
            ..Story::default()
        }
    }

    #[test]
    fn the_first_by_priority_that_waits_for_nothing_is_due() {
        let mut stories = vec![
            story("a", 3, false, &[]),
            story("b", 1, false, &["c"]),
            story("c", 2, false, &["gone"]),
            Story { priority: None, ..story("d", 0, false, &[]) },
        ];
        assert_eq!(due(&stories), Due::Story(&stories[2]));
        stories[2].passes = true;
        assert_eq!(due(&stories), Due::Story(&stories[1]));
        let circle = [story("x", 1, false, &["y"]), story("y", 1, false, &["x"])];
        assert_eq!(due(&circle), Due::Blocked(vec!["x", "y"]));
        assert_eq!(due(&[story("x", 1, true, &[])]), Due::Nothing);
    }

    #[test]
    fn cycles_are_reported_with_their_path() {
        let stories =
            vec![story("a", 1, false, &["b"]), story("b", 1, false, &["c"]), story("c", 1, false, &["a"])];
        assert_eq!(cycles(&stories), [["a", "b", "c", "a"]]);
        assert_eq!(cycles(&[story("x", 1, false, &["x"])]), [["x", "x"]]);
        let diamond = vec![
            story("a", 1, false, &["b", "c"]),
            story("b", 1, false, &["d"]),
            story("c", 1, false, &["d"]),
            story("d", 1, false, &["gone"]),
        ];
        assert!(cycles(&diamond).is_empty());
    }

    #[test]
    fn a_chain_of_thousands_does_not_overflow() {
        let stories: Vec<Story> = (0..20_000)
            .map(|i| story(&format!("s{i}"), 1, false, &[&format!("s{}", (i + 1) % 20_000)]))
            .collect();
        assert_eq!(cycles(&stories)[0].len(), 20_001);
    }
}
