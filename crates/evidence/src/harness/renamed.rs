//! Tests that only say the new name of something that the task asks to rename.

use std::collections::BTreeMap;

/// Whether `new` differs from `old` only in the names that `task` asks to change, and in lines that import something, where it
/// asks to rename or move at all.
pub fn is_renamed(task: &str, old: &str, new: &str) -> bool {
    let task = task.to_ascii_lowercase();
    let words: Vec<&str> = task.split(|c: char| !(c.is_alphanumeric() || c == '_')).collect();
    let asks = words.iter().any(|word| word.starts_with("renam") || matches!(*word, "move" | "moving"));
    if !asks || old == new || old.lines().count() != new.lines().count() {
        return false;
    }
    let mut names: BTreeMap<&str, &str> = BTreeMap::new();
    old.lines().zip(new.lines()).filter(|(was, now)| was != now).all(|(was, now)| {
        let (before, after) = (tokens(was), tokens(now));
        let same = before.len() == after.len()
            && before.iter().zip(&after).filter(|(a, b)| a != b).all(|(a, b)| {
                let told = |name: &str| words.contains(&name.to_ascii_lowercase().as_str());
                is_name(a) && is_name(b) && told(a) && told(b) && *names.entry(*a).or_insert(b) == *b
            });
        same || (is_import(was) && is_import(now))
    })
}

fn is_import(line: &str) -> bool {
    let line = line.trim_start();
    let by_word = ["import ", "from ", "use ", "#include ", "require ", "require_relative ", "using "];
    by_word.iter().any(|word| line.starts_with(word))
        || (line.contains("require(") && ["const ", "let ", "var "].iter().any(|word| line.starts_with(word)))
}

fn is_name(token: &str) -> bool {
    token.starts_with(|c: char| c.is_alphabetic() || c == '_')
}

/// Names and numbers, and each other character for itself.
fn tokens(line: &str) -> Vec<&str> {
    let (mut found, mut rest) = (Vec::new(), line);
    while let Some(first) = rest.chars().next() {
        let word = rest.find(|c: char| !(c.is_alphanumeric() || c == '_')).unwrap_or(rest.len());
        let (token, more) = rest.split_at(if word == 0 { first.len_utf8() } else { word });
        found.push(token);
        rest = more;
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_new_name_is_told_from_another_test() {
        let old = "import part\n\ndef test_p():\n    assert part.x == 2\n";
        let renamed = old.replace("part", "core");
        let task = "Rename the module part to core everywhere";
        assert!(is_renamed(task, old, &renamed));
        assert!(is_renamed("Move part into lib", old, &old.replace("import part", "from lib import part")));
        assert!(!is_renamed("Make core work", old, &renamed));
        assert!(!is_renamed(task, old, &renamed.replace("== 2", "== 1")));
        assert!(!is_renamed(task, old, &old.replace("part.x", "mock.x")));
        assert!(!is_renamed(task, old, &renamed.replace("    assert core.x == 2\n", "    pass\n")));
    }
}
