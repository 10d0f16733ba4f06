//! What an agent printed: `output.log` of an iteration, as it stands or as it grows.

use crate::error::CommandError;
use crate::follow::FollowTimer;
use crate::output::Out;
use ralph_app::facts::RunReading;
use ralph_app::{App, repo_file};
use ralph_domain::event::EventBody;
use ralph_domain::sanitize::BlockStream;
use ralph_domain::text::count;
use ralph_journal::JournalError;
use ralph_journal::stream::{RunStream, StreamItem, StreamStart};
use std::collections::VecDeque;
use std::io::{BufRead as _, BufReader, Read as _, Seek as _, SeekFrom};
use std::path::{Path, PathBuf};

/// Which output of a run is shown.
#[derive(Debug, Clone, Copy)]
pub struct OutputSelection {
    /// The iteration; the latest if left out.
    pub iteration: Option<u32>,
    /// Only the last lines of what is there.
    pub last: Option<usize>,
    /// Go on with what comes.
    pub follow: bool,
    /// Byte by byte, escape sequences and all.
    pub raw: bool,
}

/// Prints pieces of an output.
struct Pieces<'a> {
    out: &'a Out,
    raw: bool,
    stream: BlockStream,
}

impl Pieces<'_> {
    fn print(&mut self, piece: &[u8]) {
        match self.raw {
            true => self.out.raw(piece),
            false => self.out.raw(self.stream.push(piece).as_bytes()),
        }
    }
    /// What comes next belongs to something else.
    fn end(&mut self) {
        self.out.raw(self.stream.finish().as_bytes());
    }
}

/// Prints it.
pub fn print(app: &App, facts: &RunReading, wanted: OutputSelection, out: &Out) -> Result<u8, CommandError> {
    let number = wanted.iteration.unwrap_or_else(|| facts.iteration().max(1));
    let path = log_of(facts, number);
    if !wanted.follow {
        if repo_file::open_record(&path).is_err() {
            return Err(no_output(facts, number));
        }
        let mut bytes = Vec::new();
        copy(&path, start(&path, wanted.last)?, &mut |piece| bytes.extend_from_slice(piece))?;
        if out.json {
            let text = String::from_utf8_lossy(&bytes);
            out.value(&serde_json::json!({ "run_id": facts.entry.run_id, "iteration": number, "path": path, "output": text }));
        } else if wanted.raw {
            out.raw(&bytes);
        } else {
            out.text(&String::from_utf8_lossy(&bytes));
        }
        return Ok(0);
    }
    if out.json {
        return Err(CommandError::usage("raw output cannot be followed as JSON")
            .hint("leave out `--json`, or follow the events with `--events`"));
    }
    follow(app, facts, number, wanted, out)
}

fn log_of(facts: &RunReading, number: u32) -> PathBuf {
    facts.entry.run_dir().iteration(number).join("output.log")
}

fn no_output(facts: &RunReading, number: u32) -> CommandError {
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

/// Goes from iteration to iteration until the run is over; a wanted iteration is followed to its own end.
fn follow(
    app: &App,
    facts: &RunReading,
    number: u32,
    wanted: OutputSelection,
    out: &Out,
) -> Result<u8, CommandError> {
    let from = StreamStart::From(facts.state.seq.next());
    let mut stream = RunStream::open(&facts.entry.run_dir(), from)?.events_only();
    let mut watch = FollowTimer::new(app, &facts.entry);
    let mut number = number;
    let mut path = log_of(facts, number);
    let mut at = if repo_file::open_record(&path).is_ok() { start(&path, wanted.last)? } else { 0 };
    let running = facts.state.iterations.current.as_ref().is_some_and(|c| c.iteration == number);
    let mut over = facts.state.result.finished.is_some()
        || (wanted.iteration.is_some() && number <= facts.iteration() && !running);
    let mut pieces = Pieces { out, raw: wanted.raw, stream: BlockStream::default() };
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
                out.say(format!("iteration {next}"));
            }
            // The session's log is made just after its event: give it a moment, so that an old one is not told again.
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

/// Hands over a file from a byte on and returns where it ended.
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

/// The byte where the last `last` lines begin.
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
