//! A command's output: beginning and end in memory, all of it in a file of the iteration.

use crate::bounded::Tail;
use ralph_loop_domain::ports::Stream;
use ralph_loop_domain::redact::{RedactStream, Redactor};
use std::fs::{File, OpenOptions};
use std::io::Write as _;
use std::path::Path;

const HEAD_MAX: usize = 4 * 1024;
const TAIL_MAX: usize = 12 * 1024;
const FILE_MAX: u64 = 64 * 1024 * 1024;

pub(crate) struct Capture<'a> {
    head: Vec<u8>,
    tail: Tail,
    seen: u64,
    file: Option<File>,
    name: String,
    written: u64,
    redactor: &'a Redactor,
    /// One per stream: they are split into words separately.
    clean: [RedactStream; 2],
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Excerpt {
    /// The whole text, or beginning and end with a line in between about the omission.
    pub(crate) text: String,
    /// Name of the file with the complete output, in the iteration's folder.
    pub(crate) file: Option<String>,
}

impl<'a> Capture<'a> {
    /// Keeps the complete output as `name` in `folder`; if that fails, only the excerpt.
    pub(crate) fn new(folder: &Path, name: &str, redactor: &'a Redactor) -> Self {
        let path = folder.join(name);
        // A name that a command has put there (such as a link) isn't followed but replaced.
        std::fs::remove_file(&path).ok();
        let file = (!folder.as_os_str().is_empty())
            .then(|| OpenOptions::new().write(true).create_new(true).open(&path).ok())
            .flatten();
        Self {
            head: Vec::new(),
            tail: Tail::new(TAIL_MAX),
            seen: 0,
            file,
            name: name.to_owned(),
            written: 0,
            redactor,
            clean: Default::default(),
        }
    }

    pub(crate) fn push(&mut self, stream: Stream, bytes: &[u8]) {
        self.seen = self.seen.saturating_add(bytes.len() as u64);
        let room = HEAD_MAX - self.head.len();
        let (first, rest) = bytes.split_at(room.min(bytes.len()));
        self.head.extend_from_slice(first);
        self.tail.push(rest);
        let ready = self.clean[usize::from(stream == Stream::Stderr)].push(self.redactor, bytes);
        self.keep(&ready);
    }

    pub(crate) fn finish(mut self) -> Excerpt {
        for at in 0..self.clean.len() {
            let ready = self.clean[at].finish(self.redactor);
            self.keep(&ready);
        }
        let file = self.file.is_some().then(|| self.name.clone());
        Excerpt { text: self.text(), file }
    }

    fn text(&self) -> String {
        if !self.tail.truncated() {
            let mut whole = self.head.clone();
            whole.extend_from_slice(&self.tail.bytes());
            return String::from_utf8_lossy(&whole).into_owned();
        }
        // Leaves out a character that the cut breaks.
        let mut head = self.head.as_slice();
        if let Err(error) = std::str::from_utf8(head)
            && error.error_len().is_none()
        {
            head = &head[..error.valid_up_to()];
        }
        let left_out = self.seen.saturating_sub((HEAD_MAX + TAIL_MAX) as u64);
        let place = if self.file.is_some() { format!("; all of it: {}", self.name) } else { String::new() };
        format!("{}\n[{left_out} bytes left out{place}]\n{}", String::from_utf8_lossy(head), self.tail.text())
    }

    fn keep(&mut self, bytes: &[u8]) {
        let Some(file) = &mut self.file else { return };
        let room = usize::try_from(FILE_MAX.saturating_sub(self.written)).unwrap_or(usize::MAX);
        if room == 0 {
            return;
        }
        let part = &bytes[..bytes.len().min(room)];
        self.written += part.len() as u64;
        let mut done = file.write_all(part);
        if done.is_ok() && part.len() < bytes.len() {
            done = file.write_all(b"\n[the rest is left out: more than 64 MiB]\n");
        }
        // A full disk must not end a session; the excerpt stays.
        if done.is_err() {
            self.file = None;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_short_output_is_shown_whole_and_kept() {
        let folder = tempfile::tempdir().unwrap();
        let redactor = Redactor::default();
        let mut capture = Capture::new(folder.path(), "action-1.log", &redactor);
        capture.push(Stream::Stdout, b"one\n");
        capture.push(Stream::Stderr, b"two\n");
        let excerpt = capture.finish();
        assert_eq!(excerpt, Excerpt { text: "one\ntwo\n".into(), file: Some("action-1.log".into()) });
        assert_eq!(std::fs::read_to_string(folder.path().join("action-1.log")).unwrap(), "one\ntwo\n");
    }

    #[test]
    fn a_long_output_keeps_both_ends_and_says_where_the_rest_is() {
        let folder = tempfile::tempdir().unwrap();
        let redactor = Redactor::default();
        let mut capture = Capture::new(folder.path(), "a.log", &redactor);
        for n in 0..20_000 {
            capture.push(Stream::Stdout, format!("line {n} ü\n").as_bytes());
        }
        let shown = capture.finish().text;
        assert!(shown.starts_with("line 0 ü\n") && shown.ends_with("line 19999 ü\n"), "{shown}");
        assert!(
            shown.contains("bytes left out; all of it: a.log]") && !shown.contains('\u{fffd}'),
            "{shown}"
        );
        assert!(shown.len() < 17 * 1024, "{}", shown.len());
        assert!(std::fs::read_to_string(folder.path().join("a.log")).unwrap().contains("line 10000 ü\n"));
    }

    #[test]
    fn secrets_do_not_reach_the_file_and_a_planted_link_is_not_followed() {
        let folder = tempfile::tempdir().unwrap();
        let victim = folder.path().join("victim");
        std::fs::write(&victim, "mine").unwrap();
        std::os::unix::fs::symlink(&victim, folder.path().join("a.log")).unwrap();
        let redactor = Redactor::new([("TOKEN", "hush-hush-12345")]);
        let mut capture = Capture::new(folder.path(), "a.log", &redactor);
        capture.push(Stream::Stdout, b"token hush-hu");
        capture.push(Stream::Stdout, b"sh-12345 end\n");
        capture.finish();
        let kept = std::fs::read_to_string(folder.path().join("a.log")).unwrap();
        assert!(!kept.contains("hush-hush") && kept.contains("end"), "{kept}");
        assert_eq!(std::fs::read_to_string(victim).unwrap(), "mine");
    }

    #[test]
    fn without_a_folder_only_the_excerpt_is_kept() {
        let redactor = Redactor::default();
        let mut capture = Capture::new(Path::new("/nonexistent/folder"), "a.log", &redactor);
        capture.push(Stream::Stdout, b"x");
        assert_eq!(capture.finish(), Excerpt { text: "x".into(), file: None });
    }
}
