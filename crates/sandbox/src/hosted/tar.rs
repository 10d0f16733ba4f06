//! Archives on their way in and out: plain files and links, nothing else.
//!
//! Written as every `tar` reads it (`ustar`, long names in GNU's way); read as GNU's, busybox's and bsd's `tar` write it.

const BLOCK: usize = 512;

/// One file or link.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// Its path below the root, without `./`.
    pub(super) path: String,
    /// Permission bits.
    pub(super) mode: u32,
    /// What it is.
    pub(super) body: Body,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    File(Vec<u8>),
    Link(String),
}

/// Puts members into an archive.
#[derive(Default)]
pub(super) struct Writer(Vec<u8>);

impl Writer {
    pub(super) fn len(&self) -> usize {
        self.0.len()
    }

    pub(super) fn add(&mut self, member: &Member) {
        let (kind, content, link) = match &member.body {
            Body::File(bytes) => (b'0', bytes.as_slice(), ""),
            Body::Link(to) => (b'2', &b""[..], to.as_str()),
        };
        if link.len() > 100 {
            self.long(b'K', link);
        }
        if member.path.len() > 100 {
            self.long(b'L', &member.path);
        }
        self.entry(&member.path, kind, member.mode, link, content);
    }

    fn long(&mut self, kind: u8, text: &str) {
        let mut content = text.as_bytes().to_vec();
        content.push(0);
        self.entry("././@LongLink", kind, 0o644, "", &content);
    }

    fn entry(&mut self, path: &str, kind: u8, mode: u32, link: &str, content: &[u8]) {
        let mut head = [0u8; BLOCK];
        let mut put = |at: usize, bytes: &[u8], room: usize| {
            for (place, byte) in head.iter_mut().skip(at).take(room).zip(bytes) {
                *place = *byte;
            }
        };
        put(0, path.as_bytes(), 100);
        put(100, format!("{:07o}", mode & 0o777).as_bytes(), 8);
        put(108, b"0000000", 8);
        put(116, b"0000000", 8);
        put(124, format!("{:011o}", content.len()).as_bytes(), 12);
        put(136, b"00000000000", 12);
        // The sum is taken over a head whose own sum is blank.
        put(148, b"        ", 8);
        put(156, &[kind], 1);
        put(157, link.as_bytes(), 100);
        put(257, b"ustar  \0", 8);
        let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
        for (place, byte) in head.iter_mut().skip(148).zip(format!("{sum:06o}\0 ").bytes()) {
            *place = byte;
        }
        self.0.extend_from_slice(&head);
        self.0.extend_from_slice(content);
        self.0.resize(self.0.len().next_multiple_of(BLOCK), 0);
    }

    pub(super) fn finish(mut self) -> Vec<u8> {
        self.0.resize(self.0.len() + 2 * BLOCK, 0);
        self.0
    }
}

/// The members of an archive; an error says what is wrong with it. Folders, devices and pipes are left out.
pub(super) fn read(archive: &[u8]) -> Result<Vec<Member>, String> {
    let mut members: Vec<Member> = Vec::new();
    let (mut long_name, mut long_link, mut at) = (None, None, 0);
    while let Some(head) = archive.get(at..at + BLOCK) {
        if head.iter().all(|byte| *byte == 0) {
            return Ok(members);
        }
        let size = usize::try_from(number(&head[124..136])?).map_err(|e| e.to_string())?;
        let content = archive.get(at + BLOCK..).and_then(|rest| rest.get(..size));
        let content = content.ok_or("the archive ends in the middle of a file")?;
        at += BLOCK + size.next_multiple_of(BLOCK);
        let kind = head[156];
        match kind {
            b'L' => long_name = Some(text(content)),
            b'K' => long_link = Some(text(content)),
            b'x' => {
                for (key, value) in pax(content) {
                    match key.as_str() {
                        "path" => long_name = Some(value),
                        "linkpath" => long_link = Some(value),
                        _ => {}
                    }
                }
            }
            _ => {
                let path = long_name.take().unwrap_or_else(|| name(head));
                let link = long_link.take().unwrap_or_else(|| text(&head[157..257]));
                let path = path.trim_start_matches("./").to_owned();
                let mode = u32::try_from(number(&head[100..108])? & 0o777).unwrap_or(0o644);
                let body = match kind {
                    b'0' | 0 => Some(Body::File(content.to_vec())),
                    b'2' => Some(Body::Link(link)),
                    // Another name of a file that came before.
                    b'1' => {
                        let target = link.trim_start_matches("./");
                        members.iter().find(|member| member.path == target).map(|member| member.body.clone())
                    }
                    _ => None,
                };
                members.extend(body.map(|body| Member { path, mode, body }));
            }
        }
    }
    Err("the archive has no end".to_owned())
}

fn name(head: &[u8]) -> String {
    let (name, prefix) = (text(&head[..100]), text(&head[345..500]));
    let posix = &head[257..263] == b"ustar\0";
    if posix && !prefix.is_empty() { format!("{prefix}/{name}") } else { name }
}

/// Text up to its NUL. Names that are not UTF-8 come out changed, and so are told apart from every real one.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

fn number(field: &[u8]) -> Result<u64, String> {
    if field.first().is_some_and(|byte| byte & 0x80 != 0) {
        let value = field.iter().skip(1).fold(0u64, |sum, byte| sum << 8 | u64::from(*byte));
        return Ok(value);
    }
    let digits = text(field);
    let digits = digits.trim();
    if digits.is_empty() {
        return Ok(0);
    }
    u64::from_str_radix(digits, 8).map_err(|_| format!("`{digits}` is no number of an archive"))
}

/// Records of `LENGTH KEY=VALUE\n`.
fn pax(content: &[u8]) -> Vec<(String, String)> {
    let mut records = Vec::new();
    let mut rest = content;
    while let Some(space) = rest.iter().position(|byte| *byte == b' ') {
        let length = std::str::from_utf8(&rest[..space]).ok().and_then(|digits| digits.parse::<usize>().ok());
        let Some(record) = length.filter(|length| *length > space + 1).and_then(|length| rest.get(..length))
        else {
            break;
        };
        let line = String::from_utf8_lossy(&record[space + 1..record.len() - 1]).into_owned();
        records.extend(line.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned())));
        rest = &rest[record.len()..];
    }
    records
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Member> {
        let file = |path: &str, mode, bytes: &[u8]| Member {
            path: path.into(),
            mode,
            body: Body::File(bytes.into()),
        };
        vec![
            file("a.txt", 0o644, b"hello"),
            file("ü/run.sh", 0o755, &[0, 255, 10]),
            file(&format!("{}/x", "long".repeat(40)), 0o600, &[7; 1000]),
            Member { path: "link".into(), mode: 0o777, body: Body::Link("t".repeat(150)) },
        ]
    }

    #[test]
    fn what_goes_in_comes_out() {
        let mut writer = Writer::default();
        sample().iter().for_each(|member| writer.add(member));
        assert_eq!(read(&writer.finish()).unwrap(), sample());
    }

    #[test]
    fn half_an_archive_is_refused() {
        let mut writer = Writer::default();
        sample().iter().for_each(|member| writer.add(member));
        let whole = writer.finish();
        for cut in [100, 512, 600, whole.len() - 1024] {
            assert!(read(&whole[..cut]).is_err(), "{cut}");
        }
    }
}
