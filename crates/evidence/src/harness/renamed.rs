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
                is_name(a) && is_name(b) && is_told(&words, a, b) && *names.entry(*a).or_insert(b) == *b
            });
        same || (is_import(was) && is_import(now))
    })
}

/// Whether the task speaks of both names, or of what differs between them: `test_part` and `test_core`, `TestPart` and `TestCore`.
fn is_told(words: &[&str], a: &str, b: &str) -> bool {
    let told = |name: &str| words.contains(&name);
    let (a, b) = (parts_of(a), parts_of(b));
    let whole = told(&a.join("_")) && told(&b.join("_"));
    whole || (a.len() == b.len() && a.iter().zip(&b).filter(|(a, b)| a != b).all(|(a, b)| told(a) && told(b)))
}

/// The words of a name, in small letters: `TestPart` and `test_part` are both `test`, `part`.
fn parts_of(name: &str) -> Vec<String> {
    let mut parts = vec![String::new()];
    let mut small = false;
    for c in name.chars() {
        if c == '_' || (c.is_uppercase() && small) {
            parts.push(String::new());
        }
        small = c.is_lowercase();
        if let Some(last) = parts.last_mut().filter(|_| c != '_') {
            last.extend(c.to_lowercase());
        }
    }
    parts.retain(|part| !part.is_empty());
    parts
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
        let class = "class TestPart:\n    def test_part(self):\n        pass\n";
        assert!(is_renamed(task, class, &class.replace("Part", "Core").replace("part", "core")));
        assert!(!is_renamed(task, class, &class.replace("test_part", "part_test")));
        assert!(!is_renamed(task, class, &class.replace("test_part", "none_part")));
        assert!(!is_renamed("Make core work", old, &renamed));
        assert!(!is_renamed(task, old, &renamed.replace("== 2", "== 1")));
        assert!(!is_renamed(task, old, &old.replace("part.x", "mock.x")));
        assert!(!is_renamed(task, old, &renamed.replace("    assert core.x == 2\n", "    pass\n")));
    }
}
