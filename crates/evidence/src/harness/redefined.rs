//! Definitions that are not what they were: which, and whether they only grew.

use super::beside::is_helper;
use super::make::FOR_ANY_TARGET;
use super::{Definition, Reach};
use crate::weakened::is_test_path;
use std::collections::BTreeMap;

/// What became of a definition between the start and now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Redefined {
    /// Which.
    pub definition: Definition,
    /// The file that says it now, or said it.
    pub file: String,
    /// What it said at the start, in the file that said it.
    pub before: String,
    /// Whether everything of it is still there, with something added behind it; or nobody can tell what it comes to. Then the
    /// checks of the start decide.
    pub extended: bool,
    /// Sources that a list no longer names, where it is nothing but a list of them: one that is gone is not missed.
    pub unlisted: Vec<String>,
}

/// The definitions of the start that are not what they were.
pub fn redefined(start: &Reach, now: &Reach) -> Vec<Redefined> {
    let mut found = Vec::new();
    for (definition, before) in &start.definitions {
        let after = now.definitions.get(definition).cloned().unwrap_or_default();
        let texts = of_make(definition, before, &after);
        if after == *before || is_grown_list(&texts) {
            continue;
        }
        let differs = |from: &BTreeMap<String, String>, to: &BTreeMap<String, String>| {
            from.iter().find(|(file, text)| to.get(*file) != Some(text)).map(|(file, _)| file.clone())
        };
        let file = differs(&after, before).or_else(|| differs(before, &after)).unwrap_or_default();
        let old: Vec<&str> = before.values().map(String::as_str).collect();
        found.push(Redefined {
            definition: definition.clone(),
            extended: definition.key == FOR_ANY_TARGET || is_extended(&texts),
            unlisted: unlisted(&texts),
            file,
            before: old.join("\n"),
        });
    }
    found
}

/// A definition of a makefile in each of its files, at the start and now; empty where it is none, or stands in other files.
fn of_make<'a>(
    definition: &Definition,
    before: &'a BTreeMap<String, String>,
    after: &'a BTreeMap<String, String>,
) -> Vec<(&'a str, &'a str)> {
    if !definition.scope.starts_with("make in") || before.keys().ne(after.keys()) {
        return Vec::new();
    }
    before.values().zip(after.values()).map(|(old, new)| (old.as_str(), new.as_str())).collect()
}

/// Whether a rule of a makefile only grew: every line is there in its order, and none of the new ones decides for the others.
fn is_extended(texts: &[(&str, &str)]) -> bool {
    !texts.is_empty()
        && texts.iter().all(|(old, new)| {
            // Only recipes of rules grow safely: each line of them is run for itself, and must succeed.
            let rule = old.lines().next().is_some_and(|head| head.contains(':') && !head.contains('='));
            let mut lines = new.lines();
            rule && old.lines().enumerate().all(|(n, line)| match n {
                // The head may name more that is made before.
                0 => lines.next().is_some_and(|head| head.starts_with(line) || head == line),
                _ => lines.any(|new| new == line),
            })
        })
}

/// Ends of names of what a compiler is given.
const COMPILED: &[&str] = &[
    "c", "cc", "cpp", "cxx", "h", "hh", "hpp", "s", "o", "m", "mm", "f", "f90", "rs", "go", "java", "kt",
    "cs", "ml", "hs", "d", "zig", "v", "vhd", "asm",
];

/// The sources that a line `NAME = a.c b.c` lists; nothing where it is another kind of line.
fn listed(text: &str) -> Option<(String, Vec<String>)> {
    let (name, value) = text.split_once('=').filter(|_| text.lines().count() == 1)?;
    Some((name.trim().to_owned(), value.split_whitespace().map(str::to_owned).collect()))
}

fn is_compiled(word: &str) -> bool {
    let plain = word.chars().all(|c| c.is_alphanumeric() || "._-/+".contains(c)) && !word.starts_with('-');
    let end = word.rsplit_once('.').map_or("", |(_, end)| end);
    plain && COMPILED.contains(&end) && !is_test_path(word)
}

/// Whether a word names a library of the system: `-lm`.
fn is_library(word: &str) -> bool {
    word.strip_prefix("-l").is_some_and(|name| !name.is_empty() && name.chars().all(char::is_alphanumeric))
}

/// Whether a variable of a makefile is a list of sources, or of libraries, and only names more of them: that is the product.
fn is_grown_list(texts: &[(&str, &str)]) -> bool {
    let all = |words: &[String], is: &dyn Fn(&str) -> bool| words.iter().all(|word| is(word));
    !texts.is_empty()
        && texts.iter().all(|(old, new)| {
            let (Some((name, old)), Some((same, new))) = (listed(old), listed(new)) else { return false };
            name == same
                && !old.is_empty()
                && new.starts_with(&old)
                && (all(&new, &is_compiled) || all(&new[old.len()..], &is_library))
        })
}

/// The sources that lists named and no longer do, where they are nothing but lists of sources of the product.
fn unlisted(texts: &[(&str, &str)]) -> Vec<String> {
    let mut gone = Vec::new();
    for (old, new) in texts {
        let (Some((name, old)), Some((same, new))) = (listed(old), listed(new)) else { return Vec::new() };
        if name != same || !old.iter().chain(&new).all(|w| is_compiled(w) && !is_helper(w)) {
            return Vec::new();
        }
        gone.extend(old.into_iter().filter(|word| !new.contains(word)));
    }
    gone
}
