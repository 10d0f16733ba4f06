//! The evidence as Markdown, for a pull request. Agents choose names, commands and file contents in it, so nothing
//! may become markup: no link, mention, heading or table row.

use super::{Proof, ProofCheck};
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::display::text::count;
use std::fmt::Write as _;
use std::time::Duration;

const CHECKS_MAX: usize = 60;
/// Most listed harness changes, differences and suppressions.
const HARNESS_MAX: usize = 20;
const FAILED_MAX: usize = 20;
/// A zero-width space.
const GAP: &str = "&#8203;";
const COMMAND_MAX: usize = 120;

/// The table of evidence, the run's usage, and what needs attention. Bounded, and safe for a pull request whatever an
/// agent wrote.
pub fn evidence_markdown(proof: &Proof) -> String {
    let mut out = String::from("### Evidence\n\n");
    let _ = writeln!(
        out,
        "**{}** at {} ({}, {}), from base {}.\n",
        plain(&proof.headline(), 120),
        code(proof.commit.short(), 40),
        plain(&proof.place, 40),
        proof.watched.words(),
        code(proof.base.short(), 40)
    );
    difference(&mut out, proof);
    checks(&mut out, proof);
    failed(&mut out, proof);
    effort(&mut out, proof);
    protected(&mut out, proof);
    out
}

/// What failed without the work, and the run's harness changes.
fn difference(out: &mut String, proof: &Proof) {
    if proof.passed {
        if let Some(reason) = &proof.reason {
            let _ = writeln!(out, "{}.\n", plain(reason, 200));
        }
        let lines = proof.difference.iter().map(super::Difference::line);
        list(out, "Failed without the work, passes with it:", lines);
    }
    list(out, "Changes of the harness:", proof.harness.iter().map(super::HarnessChange::line));
    let suppressions =
        proof.suppressions.iter().map(|one| format!("{}:{}: {}", one.path, one.line, one.text));
    list(out, "Suppression comments added:", suppressions);
}

fn list(out: &mut String, heading: &str, lines: impl ExactSizeIterator<Item = String>) {
    let all = lines.len();
    if all == 0 {
        return;
    }
    let _ = writeln!(out, "{heading}\n");
    for line in lines.take(HARNESS_MAX) {
        let _ = writeln!(out, "- {}", plain(&line, 200));
    }
    if all > HARNESS_MAX {
        let _ = writeln!(out, "- … and {} more in `proof.json`", all - HARNESS_MAX);
    }
    out.push('\n');
}

fn checks(out: &mut String, proof: &Proof) {
    if proof.checks.is_empty() {
        out.push_str("No check was run.\n\n");
        return;
    }
    out.push_str(
        "| Criterion | Command | Result | Exit code | Duration | Tests executed | Log digest | Commit |\n",
    );
    out.push_str("|---|---|---|---|---|---|---|---|\n");
    for check in proof.checks.iter().take(CHECKS_MAX) {
        row(out, check, proof);
    }
    if proof.checks.len() > CHECKS_MAX {
        let _ = writeln!(out, "\n… and {} more in `proof.json`.", proof.checks.len() - CHECKS_MAX);
    }
    out.push('\n');
}

fn row(out: &mut String, check: &ProofCheck, proof: &Proof) {
    let result = &check.result;
    let said = match (&result.why, result.passed) {
        (_, true) => "passed".to_owned(),
        (Some(why), false) => format!("failed: {}", plain(why, 80)),
        (None, false) => "failed".to_owned(),
    };
    let exit = result.exit_code.map_or_else(|| "–".to_owned(), |c| c.to_string());
    let tests = match result.tests {
        None => "–".to_owned(),
        Some(t) if t.failed == 0 => t.executed().to_string(),
        Some(t) => format!("{} ({} failed)", t.executed(), t.failed),
    };
    let commit = check.commit.as_ref().unwrap_or(&proof.commit);
    let _ = writeln!(
        out,
        "| {} | {} | {said} | {exit} | {} | {tests} | {} | {} |",
        plain(&result.name, 60),
        code(&check.command, COMMAND_MAX),
        text::duration(Duration::from_millis(result.duration_ms)),
        code(result.log_digest.short(), 40),
        code(commit.short(), 40)
    );
}

fn failed(out: &mut String, proof: &Proof) {
    if proof.failed.is_empty() {
        return;
    }
    out.push_str("What did not hold:\n\n");
    for line in proof.failed.iter().take(FAILED_MAX) {
        let _ = writeln!(out, "- {}", plain(line, 300));
    }
    if proof.failed.len() > FAILED_MAX {
        let _ = writeln!(out, "- … and {} more", proof.failed.len() - FAILED_MAX);
    }
    out.push('\n');
}

fn effort(out: &mut String, proof: &Proof) {
    let agents: Vec<String> = proof
        .agents
        .iter()
        .map(|(name, totals)| {
            format!("{} ({})", plain(name.as_str(), 40), count(totals.sessions as usize, "session"))
        })
        .collect();
    let agents = if agents.is_empty() { "–".to_owned() } else { agents.join(", ") };
    let score = proof.loop_score;
    let gutters = match score.gutters {
        0 => "never stuck".to_owned(),
        n => format!("stuck {} on the way", count(n as usize, "time")),
    };
    out.push_str("| Iterations | Agents | Tokens | Cost | loop_score |\n|---|---|---|---|---|\n");
    let _ = writeln!(
        out,
        "| {} | {agents} | {} | {} | highest {:.2}, last {:.2}; {gutters} |\n",
        proof.iterations,
        proof.tokens,
        plain(&proof.cost.with_basis(), 60),
        score.max,
        score.last
    );
}

fn protected(out: &mut String, proof: &Proof) {
    let protected = count(proof.protected.patterns.len(), "protected pattern");
    let _ = match proof.protected.changed.len() {
        0 => writeln!(out, "Protected paths: unchanged ({protected})."),
        n => writeln!(out, "Protected paths: {n} changed ({protected})."),
    };
}

/// Escapes text. Entities instead of backslashes, because they also work inside tables.
pub fn plain(text: &str, max: usize) -> String {
    let mut out = String::with_capacity(text.len());
    for c in text::one_line(text, max).chars() {
        match c {
            'a'..='z'
            | 'A'..='Z'
            | '0'..='9'
            | ' '
            | '.'
            | ','
            | ';'
            | ':'
            | '/'
            | '-'
            | '('
            | ')'
            | '%'
            | '+'
            | '?'
            | '='
            | '\'' => out.push(c),
            // Hosts find mentions and issue numbers in the rendered text: only a gap prevents that.
            '@' | '#' => {
                let _ = write!(out, "&#{};{GAP}", c as u32);
            }
            c if c.is_ascii() => {
                let _ = write!(out, "&#{};", c as u32);
            }
            c => out.push(c),
        }
    }
    // Most hosts turn a plain URL into a link.
    out.replace("://", &format!(":{GAP}//")).replace("www.", &format!("www.{GAP}"))
}

/// Text in `<code>`: backticks can't be escaped inside backticks, and a `|` ends a cell even there.
fn code(text: &str, max: usize) -> String {
    // A gap would be copied with the command, and hosts don't look for links and mentions inside code.
    format!("<code>{}</code>", plain(text, max).replace(GAP, "").trim())
}

#[cfg(test)]
#[path = "markdown_tests.rs"]
mod tests;
