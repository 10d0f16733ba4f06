//! An agent's output: `output.log` of an iteration, complete or growing, decoded or raw.

use crate::error::CommandError;
use crate::output::Out;
use crate::progress::follow::FollowTimer;
use ralph_loop_agents::cli::ReadableOutput;
use ralph_loop_app::App;
use ralph_loop_app::read::facts::RunSnapshot;
use ralph_loop_app::read::transcript;
use ralph_loop_app::trust::repo_file;
use ralph_loop_journal::JournalError;
use ralph_loop_journal::live::stream::{RunStream, StreamItem, StreamStart};
use ralph_loop_protocol::display::sanitize::BlockStream;
use ralph_loop_protocol::display::text::count;
use ralph_loop_protocol::event::EventBody;
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// The requested output.
#[derive(Debug, Clone, Copy)]
pub struct OutputSelection {
    /// The iteration; the latest if omitted.
    pub iteration: Option<u32>,
    /// Only the last lines.
    pub last: Option<usize>,
    /// Follow new output.
    pub follow: bool,
    /// Raw bytes with escape sequences.
    pub raw: bool,
}

/// Prints pieces of output.
struct Pieces<'a> {
    out: &'a Out,
    /// Decoder for the agent's format; `None` for raw bytes.
    reader: Option<ReadableOutput>,
    stream: BlockStream,
}

impl<'a> Pieces<'a> {
    fn new(facts: &RunSnapshot, number: u32, raw: bool, out: &'a Out) -> Self {
        Self { out, reader: (!raw).then(|| reader(facts, number)), stream: BlockStream::default() }
    }
    /// The printable part of a piece.
    fn read(&mut self, piece: &[u8]) -> Vec<u8> {
        match &mut self.reader {
            None => piece.to_vec(),
            Some(reader) => self.stream.push(reader.push(piece).as_bytes()).into_bytes(),
        }
    }
    fn print(&mut self, piece: &[u8]) {
        let text = self.read(piece);
        self.out.raw(&text);
    }
    /// Flushes at the end of the output.
    fn rest(&mut self) -> Vec<u8> {
        let Some(reader) = self.reader.take() else { return Vec::new() };
        let last = self.stream.push(reader.finish().as_bytes());
        (last + &self.stream.finish()).into_bytes()
    }
    fn end(&mut self) {
        let rest = self.rest();
        self.out.raw(&rest);
    }
}

/// The decoder for the agent of this iteration.
fn reader(facts: &RunSnapshot, number: u32) -> ReadableOutput {
    ReadableOutput::new(transcript::format(facts, number), facts.state.spec.home())
}

pub fn print(app: &App, facts: &RunSnapshot, wanted: OutputSelection, out: &Out) -> Result<u8, CommandError> {
    let number = wanted.iteration.unwrap_or_else(|| facts.iteration().max(1));
    let path = log_of(facts, number);
    if !wanted.follow {
        if repo_file::open_record(&path).is_err() {
            return Err(no_output(facts, number));
        }
        let mut bytes = Vec::new();
        if out.json {
            copy(&path, start(&path, wanted.last)?, &mut |piece| bytes.extend_from_slice(piece))?;
            let text = String::from_utf8_lossy(&bytes);
            out.value(&serde_json::json!({ "run_id": facts.entry.run_id, "iteration": number, "path": path, "output": text }));
            return Ok(0);
        }
        let mut pieces = Pieces::new(facts, number, wanted.raw, out);
        copy(&path, 0, &mut |piece| bytes.extend(pieces.read(piece)))?;
        bytes.extend(pieces.rest());
        out.raw(last_lines(&bytes, wanted.last));
        return Ok(0);
    }
    if out.json {
        return Err(CommandError::usage("`--raw --follow` can't be combined with `--json`")
            .hint("leave out `--json`, or follow the events with `--events`"));
    }
    follow(app, facts, number, wanted, out)
}

fn log_of(facts: &RunSnapshot, number: u32) -> PathBuf {
    facts.entry.run_dir().iteration(number).join("output.log")
}

fn no_output(facts: &RunSnapshot, number: u32) -> CommandError {
    let hint = match facts.iteration() {
        0 => "no session has started yet".to_owned(),
        last => format!(
            "it has {}; `ralph show {}` lists them",
            count(last as usize, "iteration"),
            facts.entry.run_id
        ),
    };
    CommandError::usage(format!("run {} has no output of iteration {number}", facts.entry.run_id)).hint(hint)
}

/// Follows iterations until the run is over; a named iteration until its own end.
fn follow(
    app: &App,
    facts: &RunSnapshot,
    number: u32,
    wanted: OutputSelection,
    out: &Out,
) -> Result<u8, CommandError> {
    let from = StreamStart::From(facts.state.seq.next());
    let mut stream = RunStream::open(&facts.entry.run_dir(), from)?.events_only();
    let mut watch = FollowTimer::new(app, &facts.entry);
    let mut number = number;
    let mut path = log_of(facts, number);
    let mut pieces = Pieces::new(facts, number, wanted.raw, out);
    // Reads from the beginning for the decoder's state, but prints only the last lines.
    let mut at = 0;
    if repo_file::open_record(&path).is_ok() && wanted.last.is_some_and(|n| n > 0) {
        let mut there = Vec::new();
        at = copy(&path, 0, &mut |piece| there.extend(pieces.read(piece)))?;
        out.raw(last_lines(&there, wanted.last));
    }
    let running = facts.state.iterations.current.as_ref().is_some_and(|c| c.iteration == number);
    let mut over = facts.state.result.finished.is_some()
        || (wanted.iteration.is_some() && number <= facts.iteration() && !running);
    loop {
        at = copy_new(&path, at, &mut pieces)?;
        if over || watch.pause(out) {
            pieces.end();
            return Ok(0);
        }
        let mut started = None;
        let mut ended = false;
        for item in stream.poll()? {
            let StreamItem::Event(line) = item else { continue };
            match line.event.body {
                EventBody::IterationStarted { iteration, .. } => started = Some(iteration),
                EventBody::SessionEnded { iteration, .. } => ended |= wanted.iteration == Some(iteration),
                EventBody::Finished { .. } => ended = true,
                _ => {}
            }
        }
        over = ended;
        if let Some(next) = started.filter(|n| wanted.iteration.is_none_or(|w| w == *n)) {
            if next != number {
                copy_new(&path, at, &mut pieces)?;
                pieces.end();
                pieces = Pieces::new(
                    &RunSnapshot::load(app.environment(), facts.entry.clone())?,
                    next,
                    wanted.raw,
                    out,
                );
                out.say(format!("iteration {next}"));
            }
            // The session's log appears just after its event; wait briefly instead of repeating an old one.
            over |= watch.pause(out);
            (number, at) = (next, 0);
            path = log_of(facts, number);
        }
    }
}

fn copy_new(path: &Path, at: u64, pieces: &mut Pieces<'_>) -> Result<u64, CommandError> {
    let length = std::fs::metadata(path).map_or(0, |m| m.len());
    let from = if length < at { 0 } else { at };
    if length == from { Ok(from) } else { copy(path, from, &mut |piece| pieces.print(piece)) }
}

/// Passes a file's bytes on from an offset and returns the new offset.
fn copy(path: &Path, from: u64, each: &mut dyn FnMut(&[u8])) -> Result<u64, CommandError> {
    let fail = |e| JournalError::file("read", path, e);
    let mut file = repo_file::open_record(path).map_err(fail)?;
    file.seek(SeekFrom::Start(from)).map_err(fail)?;
    let mut at = from;
    let mut piece = vec![0; 64 * 1024];
    loop {
        let read = file.read(&mut piece).map_err(fail)?;
        if read == 0 {
            return Ok(at);
        }
        each(&piece[..read]);
        at += read as u64;
    }
}

/// The last lines, or all.
fn last_lines(text: &[u8], last: Option<usize>) -> &[u8] {
    let Some(last) = last.filter(|n| *n > 0) else { return text };
    let body = text.strip_suffix(b"\n").unwrap_or(text);
    let cuts = body.iter().enumerate().rev().filter(|(_, byte)| **byte == b'\n');
    cuts.map(|(at, _)| at + 1).nth(last - 1).map_or(text, |at| &text[at..])
}

/// The offset of the last `last` lines.
fn start(path: &Path, last: Option<usize>) -> Result<u64, CommandError> {
    let Some(last) = last.filter(|n| *n > 0) else { return Ok(0) };
    let fail = |e| JournalError::file("read", path, e);
    let mut reader = BufReader::new(repo_file::open_record(path).map_err(fail)?);
    let mut starts = VecDeque::with_capacity(last.min(4096) + 1);
    let mut at = 0;
    let mut line = Vec::new();
    loop {
        line.clear();
        let read = reader.read_until(b'\n', &mut line).map_err(fail)?;
        if read == 0 {
            return Ok(starts.front().copied().unwrap_or(0));
        }
        starts.push_back(at);
        if starts.len() > last {
            starts.pop_front();
        }
        at += read as u64;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_lines_of_a_text_are_found() {
        assert_eq!(last_lines(b"a\nbb\nccc\n", Some(2)), b"bb\nccc\n");
        assert_eq!(last_lines(b"a\nbb\nccc", Some(1)), b"ccc");
        assert_eq!(last_lines(b"a\n", Some(4)), b"a\n");
        assert_eq!(last_lines(b"a\nb\n", None), b"a\nb\n");
    }

    #[test]
    fn the_last_lines_are_found_whatever_ends_the_file() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("output.log");
        std::fs::write(&path, "a\nbb\nccc").unwrap();
        let rest = |last| {
            let mut bytes = Vec::new();
            copy(&path, start(&path, last).unwrap(), &mut |p| bytes.extend_from_slice(p)).unwrap();
            String::from_utf8(bytes).unwrap()
        };
        assert_eq!(rest(Some(2)), "bb\nccc");
        assert_eq!(rest(Some(9)), "a\nbb\nccc");
        assert_eq!(rest(Some(0)), "a\nbb\nccc");
        assert_eq!(rest(None), "a\nbb\nccc");
    }
}
