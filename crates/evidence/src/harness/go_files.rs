//! What the files of Go say of which tests a pattern like `./...` finds.

use std::collections::BTreeMap;

/// The folders that a `go.mod` leaves out of patterns like `./...`, with the tests in them.
pub(super) fn left_out(text: Option<&str>) -> BTreeMap<String, String> {
    let (mut inside, mut found) = (false, Vec::new());
    for line in text.unwrap_or_default().lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        match line.strip_prefix("ignore").map(str::trim) {
            Some(rest) if rest.starts_with('(') => inside = true,
            Some(rest) if !rest.is_empty() => found.push(rest.to_owned()),
            _ if line == ")" => inside = false,
            _ if inside && !line.is_empty() => found.push(line.to_owned()),
            _ => {}
        }
    }
    found.sort();
    [("ignore".to_owned(), found.join("\n"))].into_iter().filter(|(_, found)| !found.is_empty()).collect()
}

/// The modules that a `go.work` builds and tests.
pub(super) fn used_modules(text: Option<&str>) -> BTreeMap<String, String> {
    let (mut inside, mut used) = (false, Vec::new());
    for line in text.unwrap_or_default().lines() {
        let line = line.split("//").next().unwrap_or_default().trim();
        match line.strip_prefix("use").map(str::trim) {
            Some(rest) if rest.starts_with('(') => inside = true,
            Some(rest) if !rest.is_empty() => used.push(rest.to_owned()),
            _ if line == ")" => inside = false,
            _ if inside && !line.is_empty() => used.push(line.to_owned()),
            _ if line.starts_with("replace") => used.push(line.to_owned()),
            _ => {}
        }
    }
    used.sort();
    [("use".to_owned(), used.join("\n"))].into_iter().filter(|(_, used)| !used.is_empty()).collect()
}
