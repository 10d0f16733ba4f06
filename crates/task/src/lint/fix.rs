//! Applies the safe edits of findings.

use super::Diagnostic;
use crate::dialect::SafeEdit;

/// The text with the safe edits of `diagnostics`, which must be findings in this text. Leaves out edits that overlap
/// an earlier one, or don't fit the text: another round finds them again.
pub fn apply_fixes(text: &str, diagnostics: &[Diagnostic]) -> String {
    let mut edits: Vec<&SafeEdit> = diagnostics.iter().filter_map(|d| d.edit.as_ref()).collect();
    // Stable: insertions at one position keep the order of the findings.
    edits.sort_by_key(|edit| (edit.range.start, edit.range.end));
    let mut out = String::with_capacity(text.len());
    let mut at = 0;
    for edit in edits {
        let fits = edit.range.start >= at && edit.range.start <= edit.range.end;
        if let Some(kept) = text.get(at..edit.range.start).filter(|_| fits)
            && text.get(edit.range.clone()).is_some()
        {
            out.push_str(kept);
            out.push_str(&edit.replacement);
            at = edit.range.end;
        }
    }
    out.push_str(text.get(at..).unwrap_or_default());
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::criterion::Span;
    use std::ops::Range;

    fn edit(range: Range<usize>, replacement: &str) -> Diagnostic {
        let mut finding = Diagnostic::error("r", "f", Span::START, "m", "f");
        finding.set_edit(range, replacement);
        finding
    }

    #[test]
    fn edits_are_applied_in_order_and_never_break_the_text() {
        let edits = [edit(5..5, "1"), edit(0..1, "A"), edit(5..5, "2"), edit(0..2, "no"), edit(99..99, "no")];
        assert_eq!(apply_fixes("aéfgh", &edits), "Aéfg12h");
        assert_eq!(apply_fixes("aé", &[edit(2..3, "no")]), "aé", "inside a character");
    }
}
