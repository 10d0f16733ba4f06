//! Wildcards of a shell: `*`, `?`, `[…]`. A `*` does not stop at a slash here: too much is found rather than too little.

/// Whether a text matches a pattern. Linear in both, times the number of stars that had to be tried again.
pub fn matches(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut p, mut t) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while t < text.len() {
        match step(&pattern, p, text[t]) {
            Some(next) => (p, t) = (next, t + 1),
            None if pattern.get(p) == Some(&'*') => {
                star = Some((p, t));
                p += 1;
            }
            None => match star {
                Some((at, from)) => {
                    star = Some((at, from + 1));
                    (p, t) = (at + 1, from + 1);
                }
                None => return false,
            },
        }
    }
    pattern[p..].iter().all(|c| *c == '*')
}

/// The place after the one element at `p`, where that stands for `c`.
fn step(pattern: &[char], p: usize, c: char) -> Option<usize> {
    match pattern.get(p)? {
        '*' => None,
        '?' => Some(p + 1),
        '[' => {
            let end = (p + 2..pattern.len()).find(|at| pattern[*at] == ']');
            let Some(end) = end else { return (c == '[').then_some(p + 1) };
            let inside = &pattern[p + 1..end];
            let (inside, negated) = match inside.split_first() {
                Some(('!' | '^', rest)) => (rest, true),
                _ => (inside, false),
            };
            (in_set(inside, c) != negated).then_some(end + 1)
        }
        '\\' if pattern.get(p + 1) == Some(&c) => Some(p + 2),
        same => (*same == c).then_some(p + 1),
    }
}

fn in_set(set: &[char], c: char) -> bool {
    let mut at = 0;
    while at < set.len() {
        if at + 2 < set.len() && set[at + 1] == '-' {
            if (set[at]..=set[at + 2]).contains(&c) {
                return true;
            }
            at += 3;
        } else {
            if set[at] == c {
                return true;
            }
            at += 1;
        }
    }
    false
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_match_as_a_shell_matches_them() {
        for (pattern, text, yes) in [
            ("r?", "rm", true),
            ("/bin/r[a-m]", "/bin/rm", true),
            ("/bin/r[!m]", "/bin/rm", false),
            ("*c*t", "cat", true),
            ("/e*", "/etc", true),
            ("/???/r?", "/bin/rm", true),
            ("a", "ab", false),
            ("[", "[", true),
            ("*", "", true),
        ] {
            assert_eq!(matches(pattern, text), yes, "{pattern} {text}");
        }
    }
}
