//! Queries and multipart bodies.

use std::collections::BTreeMap;

#[derive(Debug, Default)]
pub(crate) struct Query(BTreeMap<String, String>);

impl Query {
    pub(crate) fn split(target: &str) -> (Vec<String>, Self) {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let segments = path.split('/').filter(|s| !s.is_empty()).map(|s| decoded(s, false)).collect();
        let pairs = query.split('&').filter(|pair| !pair.is_empty()).map(|pair| {
            let (name, value) = pair.split_once('=').unwrap_or((pair, ""));
            (decoded(name, true), decoded(value, true))
        });
        (segments, Self(pairs.collect()))
    }

    pub(crate) fn pairs(&self) -> impl Iterator<Item = (&String, &String)> {
        self.0.iter()
    }

    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }
}

fn decoded(text: &str, plus: bool) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |b: u8| char::from(b).to_digit(16);
        match bytes[at] {
            b'%' if at + 2 < bytes.len() => match (hex(bytes[at + 1]), hex(bytes[at + 2])) {
                (Some(high), Some(low)) => {
                    out.push(u8::try_from(high * 16 + low).unwrap_or(b'?'));
                    at += 3;
                    continue;
                }
                _ => out.push(b'%'),
            },
            b'+' if plus => out.push(b' '),
            other => out.push(other),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

/// The parts of a multipart body: name, file name, content.
pub(crate) fn parts(kind: &str, body: &[u8]) -> Vec<(String, Option<String>, Vec<u8>)> {
    let Some((_, boundary)) = kind.split_once("boundary=") else { return Vec::new() };
    let boundary = boundary.split(';').next().unwrap_or_default().trim().trim_matches('"');
    let mark = format!("--{boundary}");
    let mut found = Vec::new();
    let mut rest = body;
    while let Some(at) = find(rest, mark.as_bytes()) {
        rest = &rest[at + mark.len()..];
        let Some(body) = rest.strip_prefix(b"\r\n") else { break };
        let Some(head_end) = find(body, b"\r\n\r\n") else { break };
        let head = String::from_utf8_lossy(&body[..head_end]).into_owned();
        let content = &body[head_end + 4..];
        let Some(end) = find(content, format!("\r\n{mark}").as_bytes()) else { break };
        let said = |key: &str| {
            let (_, value) = head.split_once(&format!("{key}=\""))?;
            Some(value.split('"').next()?.to_owned())
        };
        let name = head.split("; ").find_map(|part| part.strip_prefix("name=\""));
        let name = name.and_then(|n| n.split('"').next()).unwrap_or_default().to_owned();
        found.push((name, said("filename"), content[..end].to_vec()));
        rest = &content[end + 2..];
    }
    found
}

fn find(haystack: &[u8], needle: &[u8]) -> Option<usize> {
    // Searches for the first byte first, because bodies may have megabytes.
    let first = *needle.first()?;
    let mut at = 0;
    while let Some(next) = haystack[at..].iter().position(|b| *b == first) {
        at += next;
        if haystack[at..].starts_with(needle) {
            return Some(at);
        }
        at += 1;
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_keep_their_bytes() {
        let body = b"--B\r\nContent-Disposition: form-data; name=\"files[0].path\"\r\n\r\n/a\r\n--B\r\nContent-Disposition: form-data; name=\"files[0].file\"; filename=\"f\"\r\nContent-Type: x\r\n\r\n\r\n\0--\r\n\r\n--B--\r\n";
        let found = parts("multipart/form-data; boundary=B", body);
        assert_eq!(found[0], ("files[0].path".into(), None, b"/a".to_vec()));
        assert_eq!(found[1], ("files[0].file".into(), Some("f".into()), b"\r\n\0--\r\n".to_vec()));
    }

    #[test]
    fn a_query_is_decoded() {
        let (path, query) = Query::split("/a%20b/c?p=%2Fx%3D&q=a+b");
        assert_eq!(path, ["a b", "c"]);
        assert_eq!((query.get("p"), query.get("q")), (Some("/x="), Some("a b")));
    }
}
