//! The report of a run of the suite.

use std::fmt;

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    Passed,
    Skipped(String),
    Failed(String),
}

#[derive(Debug)]
pub struct Report {
    kind: String,
    rows: Vec<(&'static str, Verdict)>,
}

impl Report {
    pub(super) fn new(kind: &str) -> Self {
        Self { kind: kind.to_owned(), rows: Vec::new() }
    }

    pub(super) fn add(&mut self, name: &'static str, verdict: Verdict) {
        self.rows.push((name, verdict));
    }

    /// Every check with its verdict, in order.
    pub fn rows(&self) -> &[(&'static str, Verdict)] {
        &self.rows
    }

    pub fn passed(&self) -> usize {
        self.rows.iter().filter(|(_, verdict)| *verdict == Verdict::Passed).count()
    }

    pub fn failed(&self) -> Vec<&'static str> {
        let failed = self.rows.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Failed(_)));
        failed.map(|(name, _)| *name).collect()
    }

    pub fn skipped(&self) -> Vec<&'static str> {
        let skipped = self.rows.iter().filter(|(_, verdict)| matches!(verdict, Verdict::Skipped(_)));
        skipped.map(|(name, _)| *name).collect()
    }

    /// Prints the report on stdout and fails the test if a check failed.
    #[allow(clippy::panic, clippy::disallowed_methods, reason = "a test prints, and fails by panicking")]
    pub fn assert_passed(&self) {
        use std::io::Write as _;
        let text = self.to_string();
        let _ = std::io::stdout().write_all(text.as_bytes());
        assert!(self.failed().is_empty(), "{text}");
        assert!(self.passed() > 0, "nothing was checked:\n{text}");
    }
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (failed, skipped) = (self.failed().len(), self.skipped().len());
        writeln!(f, "{}: {} passed, {failed} failed, {skipped} skipped", self.kind, self.passed())?;
        for (name, verdict) in &self.rows {
            match verdict {
                Verdict::Passed => writeln!(f, "  passed   {name}")?,
                Verdict::Skipped(reason) => writeln!(f, "  skipped  {name} ({reason})")?,
                Verdict::Failed(what) => writeln!(f, "  FAILED   {name}: {what}")?,
            }
        }
        Ok(())
    }
}
