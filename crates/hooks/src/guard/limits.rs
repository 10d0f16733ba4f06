//! Limits checked before parsing: the parser needs twice the time for each level of nesting, and its stack is as deep
//! as the text.

/// Bytes of a command. Literal here-documents don't count.
pub const BYTES_MAX: usize = 48 * 1024;
/// Levels of parentheses, braces and backquotes.
pub const DEPTH_MAX: usize = 12;
/// Scripts within scripts (`sh -c`, `eval`, functions).
pub const CALLS_MAX: usize = 16;
pub const STEPS_MAX: usize = 3000;
/// Brackets, quotes and operators, at which the parser backtracks.
pub const MARKS_MAX: usize = 6000;

/// Why a text isn't parsed; `None` if it may be.
pub fn beyond(text: &str) -> Option<&'static str> {
    if text.len() > BYTES_MAX {
        return Some("It is longer than a command that can be checked.");
    }
    let (mut depth, mut deepest, mut marks) = (0_usize, 0_usize, 0_usize);
    // Nested backquotes are written with a backslash.
    let mut quoted = false;
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'\\' => drop(bytes.next()),
            b'`' if quoted => (quoted, depth) = (false, depth.saturating_sub(1)),
            b'(' | b'{' | b'`' => {
                quoted |= byte == b'`';
                depth += 1;
                marks += 1;
                deepest = deepest.max(depth);
            }
            b')' | b'}' => depth = depth.saturating_sub(1),
            b'|' | b'&' | b';' | b'"' | b'\'' | b'$' | b'<' | b'>' => marks += 1,
            _ => {}
        }
    }
    match (deepest > DEPTH_MAX, marks > MARKS_MAX) {
        (true, _) => Some("It is nested too deeply to be checked."),
        (_, true) => Some("It has too many parts to be checked."),
        _ => None,
    }
}
