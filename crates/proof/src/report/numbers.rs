//! Numbers in any check's output that show progress: `5/10 cases ok`, `p99 98 ms`, `accuracy 0.61`, `7 left`.
//! Adjacent words say which direction is better; numbers without such a word, times, counters and ports are
//! ignored.

use ralph_loop_protocol::stuck::MeasuredNumber;

/// The last ones are kept.
const NUMBERS_MAX: usize = 16;
/// Bytes searched at the end of an output.
const OUTPUT_MAX: usize = 16 * 1024;
/// A line longer than this isn't a summary.
const LINE_MAX: usize = 300;
/// Bytes of a label.
const LABEL_MAX: usize = 40;
/// Larger numbers are ids, hashes or times.
const VALUE_MAX: f64 = 1e12;

const WORDS: &str = include_str!("numbers.txt");
const TIME_UNITS: &[&str] =
    &["s", "sec", "secs", "second", "seconds", "min", "mins", "minutes", "h", "hours"];

/// One piece of a clause.
#[derive(Debug, Clone, PartialEq)]
enum Piece {
    Word(String),
    Number {
        value: f64,
        /// `5` of `5/10`.
        share: bool,
        /// After `:` or `=`, so its name comes first.
        named_before: bool,
    },
}

/// The last numbers of an output. Of lines that differ only in the number, the last counts.
pub fn measured(output: &str) -> Vec<MeasuredNumber> {
    let mut found: Vec<MeasuredNumber> = Vec::new();
    for line in ralph_loop_protocol::display::text::tail(output, OUTPUT_MAX).lines() {
        if line.len() > LINE_MAX || !line.bytes().any(|b| b.is_ascii_digit()) {
            continue;
        }
        let line = ralph_loop_protocol::display::sanitize::block(line);
        for clause in clauses(&line) {
            for number in of_clause(&clause) {
                found.retain(|known| known.key != number.key);
                found.push(number);
            }
        }
    }
    let from = found.len().saturating_sub(NUMBERS_MAX);
    found.split_off(from)
}

pub fn of_measurement(name: &str, measured: Measurement, rises: bool) -> Option<MeasuredNumber> {
    let label = ralph_loop_protocol::display::text::head(name, LABEL_MAX).to_owned();
    let (value, noise) = (thousandths(measured.value)?, thousandths(measured.noise)?);
    Some(MeasuredNumber { key: hash(&format!("metric {name}")), value, rises, label, noise })
}

/// What several runs of one measurement say.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Measurement {
    /// The median.
    pub value: f64,
    /// The largest deviation from it; with five or more runs, without the farthest.
    pub noise: f64,
}

impl Measurement {
    pub fn of(values: &[f64]) -> Option<Self> {
        let mut sorted = values.to_vec();
        sorted.sort_by(f64::total_cmp);
        let middle = sorted.len() / 2;
        let upper = *sorted.get(middle)?;
        let value = if sorted.len() % 2 == 1 { upper } else { (sorted[middle - 1] + upper) / 2.0 };
        let mut apart: Vec<f64> = sorted.iter().map(|one| (one - value).abs()).collect();
        apart.sort_by(f64::total_cmp);
        if apart.len() >= 5 {
            apart.pop();
        }
        Some(Self { value, noise: apart.last().copied().unwrap_or(0.0) })
    }
}

fn thousandths(value: f64) -> Option<i64> {
    (value.is_finite() && value.abs() <= VALUE_MAX).then(|| (value * 1000.0).round() as i64)
}

/// Splits a line into clauses: `9 failed, 1 passed` has two.
fn clauses(line: &str) -> Vec<Vec<Piece>> {
    let mut all = vec![Vec::new()];
    for word in line.split_whitespace() {
        let ends = word.ends_with([',', ';', '|']);
        if let Some(clause) = all.last_mut() {
            pieces(word, clause);
        }
        if ends || word == "|" {
            all.push(Vec::new());
        }
    }
    all.iter_mut().for_each(|clause| join_shares(clause));
    all
}

/// `5 of 10` is a share.
fn join_shares(clause: &mut [Piece]) {
    for at in 2..clause.len() {
        let (before, whole) = clause.split_at_mut(at);
        let is_of = before.last().is_some_and(|piece| *piece == Piece::Word("of".to_owned()));
        if let (Some(Piece::Number { share, .. }), Some(Piece::Number { .. }), true) =
            (before.get_mut(at - 2), whole.first(), is_of)
        {
            *share = true;
        }
    }
}

fn pieces(word: &str, clause: &mut Vec<Piece>) {
    let word = word.trim_matches(|c: char| "()[]{}<>\"'`*,;|!?".contains(c)).trim_end_matches('.');
    let digits_around = |c: char| {
        let bytes = word.as_bytes();
        word.match_indices(c).any(|(at, _)| {
            at > 0 && bytes[at - 1].is_ascii_digit() && bytes.get(at + 1).is_some_and(u8::is_ascii_digit)
        })
    };
    // A time of day, a file position, a date, a version.
    if digits_around(':') || digits_around('-') || word.matches('.').count() > 1 {
        return clause.push(Piece::Word("#".to_owned()));
    }
    let mut parts = word.split(['=', ':']).peekable();
    let mut first = true;
    while let Some(part) = parts.next() {
        let named_before = !first || clause.last().is_some_and(|p| *p == Piece::Word(":".to_owned()));
        first = false;
        match number(part) {
            Some((value, share, unit)) => {
                clause.push(Piece::Number { value, share, named_before });
                if !unit.is_empty() {
                    clause.push(Piece::Word(unit.to_lowercase()));
                }
            }
            None if part.is_empty() => clause.push(Piece::Word(":".to_owned())),
            None => {
                let plain = part.trim_matches(|c: char| !c.is_alphanumeric()).to_lowercase();
                clause.push(Piece::Word(plain));
                // `name:` with the number in the next word.
                if parts.peek() == Some(&"") {
                    parts.next();
                    clause.push(Piece::Word(":".to_owned()));
                }
            }
        }
    }
}

/// A number with its unit, and whether it is a share: `98ms`, `0.61`, `5/10`, `1,204`.
fn number(text: &str) -> Option<(f64, bool, &str)> {
    let (text, share) = match text.split_once('/') {
        Some((part, whole)) if !whole.is_empty() && whole.bytes().all(|b| b.is_ascii_digit()) => (part, true),
        Some(_) => return None,
        None => (text, false),
    };
    let end = text
        .find(|c: char| !(c.is_ascii_digit() || matches!(c, '.' | ',' | '+' | '-')))
        .unwrap_or(text.len());
    let (digits, unit) = text.split_at(end);
    let plain = unit.chars().count() <= 4 && unit.chars().all(|c| c.is_alphabetic() || c == '%');
    if !plain || !digits.bytes().any(|b| b.is_ascii_digit()) {
        return None;
    }
    let value: f64 = digits.replace(',', "").parse().ok()?;
    Some((value, share, unit))
}

fn of_clause(clause: &[Piece]) -> Vec<MeasuredNumber> {
    let words: Vec<&str> = clause
        .iter()
        .filter_map(|piece| match piece {
            Piece::Word(word) if !matches!(word.as_str(), "" | ":" | "#" | "%") => Some(word.as_str()),
            _ => None,
        })
        .collect();
    let skeleton: Vec<&str> = clause
        .iter()
        .map(|piece| match piece {
            Piece::Word(word) => word.as_str(),
            Piece::Number { .. } => "#",
        })
        .collect();
    let mut found = Vec::new();
    for (at, piece) in clause.iter().enumerate() {
        let Piece::Number { value, share, named_before } = piece else { continue };
        let Some(rises) = direction(clause, at, *share, *named_before) else { continue };
        let Some(value) = thousandths(*value) else { continue };
        let label = ralph_loop_protocol::display::text::head(&words.join(" "), LABEL_MAX).to_owned();
        let key = hash(&format!("{} {at}", skeleton.join(" ")));
        found.push(MeasuredNumber { key, value, rises, label, noise: 0 });
    }
    found
}

/// Whether more is better, by the nearest word that tells.
fn direction(clause: &[Piece], at: usize, share: bool, named_before: bool) -> Option<bool> {
    let word = |at: usize| match clause.get(at) {
        Some(Piece::Word(word)) if word != ":" => Some(word.as_str()),
        _ => None,
    };
    let before = (0..at).rev().find(|i| !matches!(&clause[*i], Piece::Word(word) if word == ":"));
    if before.and_then(word).is_some_and(|word| meaning(word) == Some("skip")) {
        return None;
    }
    // A share is named by any word in its clause, other numbers by the words up to the next number.
    let reach = |step: isize| {
        let mut found = Vec::new();
        let mut i = at as isize + step;
        while i >= 0 && (i as usize) < clause.len() {
            match &clause[i as usize] {
                Piece::Word(word) => found.push(word.as_str()),
                Piece::Number { .. } if share => {}
                Piece::Number { .. } => break,
            }
            i += step;
        }
        found
    };
    let (after, behind) = (reach(1), reach(-1));
    let first = after.first().copied().unwrap_or_default();
    if TIME_UNITS.contains(&first) {
        return None;
    }
    let (one, other) = if named_before { (behind, after) } else { (after, behind) };
    let near = |words: &[&str], count: usize| {
        words
            .iter()
            .filter(|w| !matches!(**w, ":" | "#" | "%" | "ms" | "us" | "ns"))
            .take(count)
            .find_map(|w| rises(w))
    };
    let count = if share { usize::MAX } else { 2 };
    near(&one, count).or_else(|| near(&other, count))
}

fn meaning(word: &str) -> Option<&'static str> {
    WORDS
        .lines()
        .filter_map(|line| line.split_once(' '))
        .find_map(|(meaning, known)| (known == word).then_some(meaning))
}

fn rises(word: &str) -> Option<bool> {
    match meaning(word)? {
        "higher" => Some(true),
        "lower" => Some(false),
        _ => None,
    }
}

fn hash(text: &str) -> u32 {
    text.bytes().fold(0x811c_9dc5u32, |h, b| (h ^ u32::from(b)).wrapping_mul(0x0100_0193))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seen(output: &str) -> Vec<(f64, bool)> {
        measured(output).iter().map(|n| (n.value as f64 / 1000.0, n.rises)).collect()
    }

    #[test]
    fn each_word_has_one_meaning() {
        let mut words = std::collections::BTreeSet::new();
        for line in WORDS.lines().filter(|line| !line.starts_with('#')) {
            let (meaning, word) = line.split_once(' ').unwrap();
            assert!(["higher", "lower", "skip"].contains(&meaning) && words.insert(word), "{line}");
        }
    }

    #[test]
    fn named_numbers_show_progress() {
        for (output, want) in [
            ("5/10 cases ok\n", vec![(5.0, true)]),
            ("5 of 10 cases passed\n", vec![(5.0, true)]),
            ("p99 98 ms\n", vec![(98.0, false)]),
            ("p99: 98ms\n", vec![(98.0, false)]),
            ("accuracy 0.61\n", vec![(0.61, true)]),
            ("accuracy=0.61 loss=1.25\n", vec![(0.61, true), (1.25, false)]),
            ("7 left\n", vec![(7.0, false)]),
            ("9 failed, 1 passed\n", vec![(9.0, false), (1.0, true)]),
            ("passed: 3 failed: 4\n", vec![(3.0, true), (4.0, false)]),
            ("coverage is 71.5 %\n", vec![(71.5, true)]),
        ] {
            assert_eq!(seen(output), want, "{output}");
        }
    }

    #[test]
    fn times_counters_paths_and_unnamed_numbers_are_skipped() {
        for output in [
            "done in 17 ms\n",
            "took 3 s\n",
            "run 7 of the suite\n",
            "12:00:01 failed at src/a.rs:12:5\n",
            "2026-11-15 failed\n",
            "listening on port 8080\n",
            "version 1.2.3 failed\n",
            "exit code 3\n",
            "42\n",
            "iteration 9\n",
        ] {
            assert_eq!(seen(output), [], "{output}");
        }
    }

    #[test]
    fn last_of_equal_lines_counts() {
        let numbers = measured("3/10 cases ok\n5/10 cases ok\n");
        assert_eq!(numbers.len(), 1);
        assert_eq!((numbers[0].value, numbers[0].key), (5000, measured("9/10 cases ok\n")[0].key));
        assert_ne!(numbers[0].key, measured("9/10 cases bad ok\n")[0].key);
        let median = |values: &[f64]| Measurement::of(values).map(|m| (m.value, m.noise));
        assert_eq!(median(&[]), None);
        assert_eq!(median(&[1204.5]), Some((1204.5, 0.0)));
        assert_eq!(median(&[10.0, 14.0, 11.0]), Some((11.0, 3.0)));
        assert_eq!(median(&[10.0, 12.0]), Some((11.0, 1.0)));
        assert_eq!(median(&[10.0, 10.0, 11.0, 11.0, 90.0]), Some((11.0, 1.0)), "one slow run isn't noise");
        let number = of_measurement("speed", Measurement { value: 1204.5, noise: 0.25 }, false).unwrap();
        assert_eq!((number.value, number.noise), (1_204_500, 250));
    }
}
