//! Parses `.env` files. Not `dotenvy`: it expands `$NAME` from the process environment, which corrupts keys
//! that contain `$` and reads variables the run wasn't given.

/// The variables of a `.env` with shell quoting; quoted values may span lines.
pub(crate) fn parse_dotenv(text: &str) -> Vec<(String, String)> {
    let mut pairs = Vec::new();
    let mut lines = text.lines();
    // Avoids searching a file full of unclosed quotes to its end for each one.
    let mut endless = Vec::new();
    while let Some(line) = lines.next() {
        let line = line.trim();
        let line = line.strip_prefix("export ").unwrap_or(line);
        if line.starts_with('#') {
            continue;
        }
        let Some((key, value)) = line.split_once('=') else { continue };
        let value = value.trim();
        let value = match value.chars().next().filter(|c| matches!(c, '"' | '\'')) {
            Some(quote) => match quoted(&value[1..], quote, &mut lines, &mut endless) {
                Some(inner) if quote == '"' => inner.replace("\\n", "\n"),
                Some(inner) => inner,
                None => unquoted(value),
            },
            None => unquoted(value),
        };
        pairs.push((key.trim().to_owned(), value));
    }
    pairs
}

/// Fuzzing entry point: parses any text and returns the number of variables.
#[doc(hidden)]
pub fn read_anything(text: &str) -> usize {
    parse_dotenv(text).len()
}

fn unquoted(value: &str) -> String {
    value.split(" #").next().unwrap_or(value).trim().to_owned()
}

/// Text up to the closing quote, possibly on a later line; `None` if there isn't one.
fn quoted(
    first: &str,
    quote: char,
    lines: &mut std::str::Lines<'_>,
    endless: &mut Vec<char>,
) -> Option<String> {
    if let Some(inner) = ended(first, quote) {
        return Some(inner.to_owned());
    }
    if endless.contains(&quote) {
        return None;
    }
    let mut inner = first.to_owned();
    let mut ahead = lines.clone();
    while let Some(line) = ahead.next() {
        inner.push('\n');
        if let Some(last) = ended(line, quote) {
            inner.push_str(last);
            *lines = ahead;
            return Some(inner);
        }
        inner.push_str(line);
    }
    endless.push(quote);
    None
}

/// Text before a closing quote at the end of a line; a comment may follow.
fn ended(line: &str, quote: char) -> Option<&str> {
    let line = line.trim_end();
    if let Some(inner) = line.strip_suffix(quote) {
        return Some(inner);
    }
    let (inner, rest) = line.rsplit_once(quote)?;
    rest.trim_start().starts_with('#').then_some(inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lines_are_read_as_shells_read_them() {
        let pairs = parse_dotenv("# c\nA=1 # note\nexport B=\"x\\ny\"\nC='q#q'\nnonsense\nD=\nE='v' # why\n");
        let want = [("A", "1"), ("B", "x\ny"), ("C", "q#q"), ("D", ""), ("E", "v")];
        assert_eq!(pairs, want.map(|(k, v)| (k.to_owned(), v.to_owned())));
        let kept = parse_dotenv("A=pa$HOME\nB=\"${HOME}x\"\n");
        assert_eq!(kept, [("A".to_owned(), "pa$HOME".to_owned()), ("B".to_owned(), "${HOME}x".to_owned())]);
    }

    #[test]
    fn a_key_in_quotes_goes_over_several_lines() {
        let pairs =
            parse_dotenv("KEY_PEM=\"-----BEGIN X-----\nMIIabc\n-----END X-----\"\nNEXT='a\nb' # c\nLAST=1\n");
        let want =
            [("KEY_PEM", "-----BEGIN X-----\nMIIabc\n-----END X-----"), ("NEXT", "a\nb"), ("LAST", "1")];
        assert_eq!(pairs, want.map(|(k, v)| (k.to_owned(), v.to_owned())));
        // An unclosed quote doesn't swallow the next line.
        let pairs = parse_dotenv("A=\"open\nB=2\n");
        assert_eq!(pairs, [("A".to_owned(), "\"open".to_owned()), ("B".to_owned(), "2".to_owned())]);
    }
}
