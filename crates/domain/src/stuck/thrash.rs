//! Thrash: a file that alternates between two contents (A, B, A, B).

use super::Trace;
use crate::stuck::lines::paths;
use std::collections::BTreeMap;

pub(super) fn flips(traces: &[Trace]) -> Option<String> {
    let flipping = flipping(traces);
    let first = flipping.first()?;
    Some(match flipping.len() {
        1 => format!("`{first}` flips between two contents"),
        n => format!("`{first}` and {} more flip between two contents", n - 1),
    })
}

/// Alternating files of the newest trace, except generated ones.
pub(super) fn flipping(traces: &[Trace]) -> Vec<&str> {
    let Some(newest) = traces.last() else { return Vec::new() };
    let mut contents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for trace in traces {
        for (path, blob) in trace.files.iter().filter(|(path, _)| !paths::is_generated(path)) {
            contents.entry(path).or_default().push(blob);
        }
    }
    newest
        .files
        .iter()
        .map(|(path, _)| path.as_str())
        .filter(|path| {
            contents
                .get(path)
                .is_some_and(|seen| matches!(seen.as_slice(), [.., a, b, c, d] if a == c && b == d && a != b))
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::tests::trace;
    use super::*;

    fn with(n: u32, path: &str, blob: &str) -> Trace {
        Trace { files: vec![(path.into(), blob.into())], ..trace(n, blob, None, 5) }
    }

    #[test]
    fn abab_is_thrash_and_abac_is_not() {
        let run = |path: &str, blobs: &str| -> Vec<Trace> {
            blobs.chars().zip(1..).map(|(c, n)| with(n, path, &c.to_string())).collect()
        };
        assert!(flips(&run("f", "abab")).is_some());
        assert!(flips(&run("f", "abac")).is_none());
        assert!(flips(&run("f", "aaaa")).is_none());
        assert!(flips(&run("Cargo.lock", "abab")).is_none(), "a tool flips it");
    }
}
