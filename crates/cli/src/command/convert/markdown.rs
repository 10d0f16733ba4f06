//! Cutting sections out of a markdown text.

/// Level and text of a heading.
fn heading(line: &str) -> Option<(usize, &str)> {
    let bare = line.trim_start_matches(' ');
    if line.len() - bare.len() > 3 {
        return None;
    }
    let level = bare.bytes().take_while(|b| *b == b'#').count();
    let rest = bare.get(level..)?;
    ((1..=6).contains(&level) && (rest.is_empty() || rest.starts_with([' ', '\t'])))
        .then(|| (level, rest.trim()))
}

/// The text without its first heading or line where that is the title.
pub fn without_title(text: &str, title: &str) -> String {
    let text = text.trim_start_matches(['\u{feff}', '\n', '\r', ' ']);
    let (first, rest) = text.split_once('\n').unwrap_or((text, ""));
    let bare = first.trim().trim_start_matches('#').trim();
    let named = match bare.get(..5) {
        Some(head) if head.eq_ignore_ascii_case("task:") => bare[5..].trim(),
        _ => bare,
    };
    let is_title = ralph_domain::text::one_line(named, 80) == title;
    if is_title { rest.trim().to_owned() } else { text.trim().to_owned() }
}

/// The text without the sections of these names (lower case), up to the next heading of the same or a higher level.
pub fn without_sections(text: &str, names: &[&str]) -> String {
    let lines = sorted(text, names).into_iter().filter(|(inside, _)| !inside).map(|(_, line)| line);
    lines.collect::<String>().trim().to_owned()
}

/// The items at the first level of the lists in the sections of these names.
pub fn items_of(text: &str, names: &[&str]) -> Vec<String> {
    let inside = sorted(text, names).into_iter().filter(|(inside, _)| *inside).map(|(_, line)| line);
    let items = inside.filter_map(|line| line.strip_prefix("- ").or_else(|| line.strip_prefix("* ")));
    let bare = |item: &str| item.trim().trim_start_matches("[ ]").trim_start_matches("[x]").trim().to_owned();
    items.map(bare).filter(|item| !item.is_empty()).collect()
}

/// Each line, and whether it stands in a section of these names.
fn sorted<'a>(text: &'a str, names: &[&str]) -> Vec<(bool, &'a str)> {
    let mut out = Vec::new();
    let mut fence: Option<&str> = None;
    let mut section: Option<usize> = None;
    for line in text.split_inclusive('\n') {
        let bare = line.trim_start();
        let mark = ["```", "~~~"].into_iter().find(|mark| bare.starts_with(mark));
        match (fence, mark) {
            (None, Some(mark)) => fence = Some(mark),
            (Some(open), Some(mark)) if open == mark => fence = None,
            _ => {}
        }
        if fence.is_none()
            && let Some((level, name)) = heading(line)
        {
            if section.is_some_and(|section| level <= section) {
                section = None;
            }
            if section.is_none() && is_one_of(name, names) {
                section = Some(level);
            }
        }
        out.push((section.is_some(), line));
    }
    out
}

fn is_one_of(name: &str, names: &[&str]) -> bool {
    let name = name.trim_start_matches(|c: char| !c.is_alphabetic()).to_lowercase();
    names
        .iter()
        .any(|known| name.strip_prefix(known).is_some_and(|rest| !rest.starts_with(char::is_alphanumeric)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sections_go_with_what_is_below_them_and_code_is_no_heading() {
        let text =
            "# T\n\nA\n\n## Constraints (hard)\n- x\n### Deeper\ny\n## Notes\n```\n## Constraints\n```\nz\n";
        assert_eq!(
            without_sections(text, &["constraints"]),
            "# T\n\nA\n\n## Notes\n```\n## Constraints\n```\nz"
        );
        assert_eq!(without_sections("## Constraintsx\na", &["constraints"]), "## Constraintsx\na");
    }

    #[test]
    fn the_items_of_a_section_are_those_of_its_first_level() {
        let text = "- a\n## Acceptance\nText\n- b\n  - c\n* [ ] d\n## Other\n- e\n";
        assert_eq!(items_of(text, &["acceptance"]), ["b", "d"]);
    }

    #[test]
    fn a_title_is_cut_once() {
        assert_eq!(without_title("# Task: Fix it\n\nText\n", "Fix it"), "Text");
        assert_eq!(without_title("Fix it\nFix it\n", "Fix it"), "Fix it");
        assert_eq!(without_title("Other\nText", "Fix it"), "Other\nText");
        assert_eq!(without_title("Fix it", "Fix it"), "");
    }
}
