//! Thrash: a file that goes back and forth between two contents (A, B, A, B).

use super::Trace;
use std::collections::BTreeMap;

pub(super) fn flips(traces: &[Trace]) -> Option<String> {
    let newest = traces.last()?;
    let mut contents: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for trace in traces {
        for (path, blob) in &trace.files {
            contents.entry(path).or_default().push(blob);
        }
    }
    let flipping: Vec<&str> = newest
        .files
        .iter()
        .map(|(path, _)| path.as_str())
        .filter(|path| {
            contents
                .get(path)
                .is_some_and(|seen| matches!(seen.as_slice(), [.., a, b, c, d] if a == c && b == d && a != b))
        })
        .collect();
    let first = flipping.first()?;
    Some(match flipping.len() {
        1 => format!("`{first}` flips between two contents"),
        n => format!("`{first}` and {} more flip between two contents", n - 1),
    })
}

#[cfg(test)]
mod tests {
    use super::super::tests::trace;
    use super::*;

    fn with(n: u32, blob: &str) -> Trace {
        Trace { files: vec![("f".into(), blob.into())], ..trace(n, blob, None, 5) }
    }

    #[test]
    fn abab_is_thrash_and_abac_is_not() {
        assert!(flips(&[with(1, "a"), with(2, "b"), with(3, "a"), with(4, "b")]).is_some());
        assert!(flips(&[with(1, "a"), with(2, "b"), with(3, "a"), with(4, "c")]).is_none());
        assert!(flips(&[with(1, "a"), with(2, "a"), with(3, "a"), with(4, "a")]).is_none());
    }
}
