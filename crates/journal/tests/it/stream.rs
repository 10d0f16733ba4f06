//! Watching a run from another process: every event once, live output in order, whatever happens to the files.
#![allow(clippy::disallowed_methods, reason = "one test is two processes")]

use jiff::Timestamp;
use proptest::prelude::*;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_journal::folder::layout::RunDir;
use ralph_loop_journal::inbox;
use ralph_loop_journal::journal::index;
use ralph_loop_journal::journal::{Journal, RunPaths};
use ralph_loop_journal::live::stream::{Cursor, RunStream, StreamItem, StreamStart};
use ralph_loop_journal::live::wake::{Waker, poke};
use ralph_loop_journal::live::{LIVE_MAX, LiveLog, LivePayload, LivePosition, LiveStream};
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::event::EventBody;
use ralph_loop_protocol::id::Seq;
use std::io::Write as _;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

const TIMEOUT: Duration = Duration::from_secs(60);

fn run_in(folder: &Path) -> RunDir {
    let run = RunDir::at(folder);
    run.create().unwrap();
    run
}

fn journal(run: &RunDir) -> Journal {
    let places = RunPaths { dir: run.clone(), seal: None, elsewhere: None };
    Journal::create(places, Arc::new(Redactor::default())).unwrap()
}

fn append(journal: &mut Journal, count: usize) {
    for _ in 0..count {
        journal.append(EventBody::Notice { message: "m".into() }, Timestamp::UNIX_EPOCH).unwrap();
    }
}

fn moment(seq: u64) -> LivePosition {
    LivePosition { at: Timestamp::UNIX_EPOCH, elapsed: Duration::ZERO, seq: Seq(seq), iteration: 1 }
}

/// All items in short: events as numbers, text as it is.
fn all(stream: &mut RunStream) -> Vec<String> {
    let mut told = Vec::new();
    loop {
        let items = stream.poll().unwrap();
        if items.is_empty() {
            return told;
        }
        told.extend(items.iter().map(short));
    }
}

fn short(item: &StreamItem) -> String {
    match item {
        StreamItem::Event(line) => line.event.seq.to_string(),
        StreamItem::Live(record) => match &record.body {
            LivePayload::Text { text } => text.clone(),
            other => serde_json::to_value(other).unwrap()["kind"].to_string(),
        },
        StreamItem::Missed(n) => format!("missed {n}"),
    }
}

#[test]
fn live_output_is_ordered_between_its_events() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path());
    let mut stream = RunStream::open(&run, StreamStart::Beginning).unwrap();
    assert_eq!(all(&mut stream), [""; 0], "there is no journal yet");
    let mut journal = journal(&run);
    let mut live = LiveLog::new(&run);
    append(&mut journal, 1);
    live.text(moment(1), &LiveStream::Agent, b"hel");
    live.text(moment(1), &LiveStream::Agent, b"lo");
    live.note(moment(1), &LivePayload::ToolCall { name: "edit".into(), what: "a.rs".into() });
    live.flush();
    append(&mut journal, 2);
    live.text(moment(3), &LiveStream::Check("tests".into()), b"ok");
    live.flush();
    append(&mut journal, 1);
    let whole = ["1", "hello", "\"tool_call\"", "2", "3", "\"check_output\"", "4"];
    assert_eq!(all(&mut stream), whole);
    assert_eq!(all(&mut RunStream::open(&run, StreamStart::Beginning).unwrap()), whole);
    assert_eq!(
        all(&mut RunStream::open(&run, StreamStart::From(Seq(3))).unwrap()),
        ["3", "\"check_output\"", "4"]
    );
    let half = StreamStart::After(Cursor { seq: Seq(1), live: 1 });
    assert_eq!(all(&mut RunStream::open(&run, half).unwrap()), whole[2..]);
    assert_eq!(
        all(&mut RunStream::open(&run, StreamStart::Beginning).unwrap().events_only()),
        ["1", "2", "3", "4"]
    );
    let mut tail = RunStream::open(&run, StreamStart::Tail).unwrap();
    assert_eq!(all(&mut tail), [""; 0]);
    live.text(moment(4), &LiveStream::Agent, b"new");
    live.flush();
    append(&mut journal, 1);
    assert_eq!(all(&mut tail), ["new", "5"]);
    assert_eq!(all(&mut stream), ["new", "5"]);
    assert_eq!(stream.cursor(), Cursor { seq: Seq(5), live: 4 });
}

#[test]
fn late_reader_starts_at_a_valid_mark() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path());
    let mut first = journal(&run);
    append(&mut first, 700);
    drop(first);
    let marks = std::fs::read_to_string(run.index()).unwrap();
    let seqs: Vec<&str> = marks.lines().map(|l| l.split(' ').next().unwrap()).collect();
    assert_eq!(seqs, ["257", "513"]);
    // A reader that seeks doesn't see that the beginning is damaged.
    let whole = std::fs::read(run.events()).unwrap();
    let mut damaged = whole.clone();
    damaged[..20].fill(b'x');
    std::fs::write(run.events(), &damaged).unwrap();
    let expected: Vec<String> = (600..=700).map(|n: u64| n.to_string()).collect();
    assert_eq!(all(&mut RunStream::open(&run, StreamStart::From(Seq(600))).unwrap()), expected);
    std::fs::write(run.events(), &whole).unwrap();
    for lie in ["513 7\n", "513 999999999\n", "600 0\n", "no marks\n", ""] {
        std::fs::write(run.index(), lie).unwrap();
        assert_eq!(
            all(&mut RunStream::open(&run, StreamStart::From(Seq(600))).unwrap()),
            expected,
            "{lie:?}"
        );
    }
    // The next writer rebuilds the marks.
    let places = RunPaths { dir: run.clone(), seal: None, elsewhere: None };
    let (mut again, _) = Journal::open(places, Arc::new(Redactor::default()), &mut |_| {}).unwrap();
    assert_eq!(std::fs::read_to_string(run.index()).unwrap(), marks);
    append(&mut again, index::EVERY as usize);
    assert_eq!(std::fs::read_to_string(run.index()).unwrap().lines().count(), 3);
}

#[test]
fn live_log_is_bounded_and_slow_readers_get_the_missed_count() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path());
    let mut live = LiveLog::new(&run);
    let mut journal = journal(&run);
    append(&mut journal, 1);
    let piece = "x".repeat(4096);
    let mut fast = RunStream::open(&run, StreamStart::Beginning).unwrap();
    let mut read = 0;
    let mut slow = RunStream::open(&run, StreamStart::Beginning).unwrap();
    live.text(moment(1), &LiveStream::Agent, b"first");
    live.flush();
    assert_eq!(all(&mut slow), ["1", "first"]);
    for _ in 0..2 * LIVE_MAX / 4096 + 300 {
        live.text(moment(1), &LiveStream::Agent, piece.as_bytes());
        live.flush();
        read += all(&mut fast).iter().filter(|told| **told == piece).count() as u64;
    }
    assert_eq!(read, 2 * LIVE_MAX / 4096 + 300, "who keeps up misses nothing, over every change of the file");
    let size = |path: &Path| std::fs::metadata(path).unwrap().len();
    assert!(size(&run.live()) + size(&run.live_before()) < 3 * LIVE_MAX);
    let told = all(&mut slow);
    assert!(told[0].starts_with("missed "), "{}", &told[0]);
    let missed: u64 = told[0]["missed ".len()..].parse().unwrap();
    assert_eq!(missed + told.len() as u64 - 1, read);
    // A flood between two writes is cut, and reported.
    live.text(moment(1), &LiveStream::Agent, "y".repeat(1 << 20).as_bytes());
    live.flush();
    assert!(all(&mut slow).contains(&"\"left_out\"".to_owned()));
}

#[test]
fn numbers_continue_across_processes_and_torn_lines() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path());
    append(&mut journal(&run), 1);
    let mut stream = RunStream::open(&run, StreamStart::Beginning).unwrap();
    let mut live = LiveLog::new(&run);
    live.text(moment(1), &LiveStream::Agent, "a".repeat(4095).as_bytes());
    live.text(moment(1), &LiveStream::Agent, "é".as_bytes());
    drop(live);
    let text: String = all(&mut stream)[1..].concat();
    assert!(text.ends_with("aé"), "{}", &text[4090..]);
    let mut file = std::fs::OpenOptions::new().append(true).open(run.live()).unwrap();
    file.write_all(b"{\"n\":3,\"at\":\"20").unwrap();
    let mut live = LiveLog::new(&run);
    live.text(moment(1), &LiveStream::Agent, b"second");
    drop(live);
    assert_eq!(all(&mut stream), ["second"]);
    assert_eq!(stream.cursor().live, 3);
    // Everything is removed, and another process starts over.
    std::fs::remove_file(run.live()).unwrap();
    let mut live = LiveLog::new(&run);
    live.text(moment(1), &LiveStream::Agent, b"third");
    drop(live);
    assert_eq!(all(&mut stream), ["third"]);
    // Neither writer nor reader follows a link.
    let other = folder.path().join("other");
    std::fs::write(&other, "").unwrap();
    std::fs::remove_file(run.live()).unwrap();
    std::os::unix::fs::symlink(&other, run.live()).unwrap();
    LiveLog::new(&run).text(moment(1), &LiveStream::Agent, b"fourth");
    assert_eq!(std::fs::read(&other).unwrap(), b"");
    assert_eq!(all(&mut stream), [""; 0]);
}

#[test]
fn letter_wakes_the_driver_and_stale_sockets_are_harmless() {
    let folder = tempfile::tempdir().unwrap();
    let deep = folder.path().join("x".repeat(120));
    for place in [folder.path(), &deep] {
        let run = run_in(place);
        poke(&run);
        let waker = Waker::listen(&run).unwrap();
        inbox::send(&run, "ana", Control::Pause).unwrap();
        waker.wait(TIMEOUT);
        waker.wait(Duration::from_millis(1));
        // A killed driver leaves its socket; the next one replaces it.
        std::mem::forget(waker);
        let next = Waker::listen(&run).unwrap();
        poke(&run);
        next.wait(TIMEOUT);
        drop(next);
        assert!(!run.wake().exists());
        inbox::send(&run, "ana", Control::Resume).unwrap();
    }
}

/// The second process of the test below.
#[test]
fn writes_as_another_process() {
    let Some(folder) = std::env::var_os("RALPH_TEST_WRITER") else { return };
    let run = RunDir::at(Path::new(&folder));
    let mut journal = journal(&run);
    let mut live = LiveLog::new(&run);
    for n in 1..=600 {
        append(&mut journal, 1);
        live.text(moment(n), &LiveStream::Agent, format!("after {n}").as_bytes());
        live.flush();
    }
}

#[test]
fn another_process_is_followed_while_it_writes() {
    let folder = tempfile::tempdir().unwrap();
    let run = run_in(folder.path());
    let mut stream = RunStream::open(&run, StreamStart::Tail).unwrap();
    let mut writer = std::process::Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "stream::writes_as_another_process"])
        .env("RALPH_TEST_WRITER", folder.path())
        .stdout(std::process::Stdio::null())
        .spawn()
        .unwrap();
    let mut told: Vec<String> = Vec::new();
    while told.len() < 1200 {
        let items = stream.wait(TIMEOUT).unwrap();
        assert!(!items.is_empty(), "{} told", told.len());
        told.extend(items.iter().map(short));
    }
    assert!(writer.wait().unwrap().success());
    let expected: Vec<String> = (1..=600).flat_map(|n| [n.to_string(), format!("after {n}")]).collect();
    assert_eq!(told, expected);
}

/// What may happen to a run's files.
#[derive(Debug, Clone)]
enum Happening {
    Append(u8),
    Show(u8),
    /// A line is half written and then whole.
    TornAndGone(u8),
    /// The process dies in the middle of a line, the next one cuts it off.
    TornAndCut(u8),
    /// The file is another one with the same events.
    Replaced,
    /// Overwritten in place.
    WrittenOver,
    /// Missing for a moment.
    Away,
    Poll,
    Reopen,
    ReopenFrom,
}

fn happening() -> impl Strategy<Value = Happening> {
    prop_oneof![
        4 => (1u8..200).prop_map(Happening::Append),
        3 => (1u8..20).prop_map(Happening::Show),
        1 => (1u8..60).prop_map(Happening::TornAndGone),
        1 => (1u8..60).prop_map(Happening::TornAndCut),
        1 => Just(Happening::Replaced),
        1 => Just(Happening::WrittenOver),
        1 => Just(Happening::Away),
        4 => Just(Happening::Poll),
        2 => Just(Happening::Reopen),
        1 => Just(Happening::ReopenFrom),
    ]
}

struct Story {
    run: RunDir,
    text: Vec<u8>,
    seq: u64,
    shown: u64,
    live: LiveLog,
    stream: RunStream,
    events: Vec<u64>,
    texts: Vec<u64>,
}

impl Story {
    fn line(&self) -> String {
        let seq = self.seq + 1;
        format!("{{\"seq\":{seq},\"at\":\"2026-11-15T12:00:00Z\",\"kind\":\"notice\",\"message\":\"m\"}}\n")
    }
    fn raw(&self, bytes: &[u8]) {
        let path = self.run.events();
        let mut file = std::fs::OpenOptions::new().create(true).append(true).open(path).unwrap();
        file.write_all(bytes).unwrap();
    }
    fn append(&mut self) {
        let line = self.line();
        self.seq += 1;
        if self.seq % index::EVERY == 1 && self.seq > 1 {
            let mut file =
                std::fs::OpenOptions::new().create(true).append(true).open(self.run.index()).unwrap();
            writeln!(file, "{} {}", self.seq, self.text.len()).unwrap();
        }
        self.raw(line.as_bytes());
        self.text.extend_from_slice(line.as_bytes());
    }
    fn poll(&mut self) {
        loop {
            let items = self.stream.poll().unwrap();
            if items.is_empty() {
                return;
            }
            for item in items {
                match item {
                    StreamItem::Event(line) => self.events.push(line.event.seq.0),
                    StreamItem::Live(record) => {
                        assert!(record.seq.0 <= self.events.last().copied().unwrap_or(0), "shown too early");
                        self.texts.push(record.n);
                    }
                    StreamItem::Missed(n) => panic!("missed {n}"),
                }
            }
        }
    }
    fn happens(&mut self, what: &Happening) {
        let path = self.run.events();
        match what {
            Happening::Append(n) => (0..*n).for_each(|_| self.append()),
            Happening::Show(n) => {
                for _ in 0..*n {
                    self.shown += 1;
                    self.live.note(moment(self.seq), &LivePayload::Activity { text: "a".into() });
                }
                self.live.flush();
            }
            Happening::TornAndGone(n) => {
                let line = self.line();
                let cut = usize::from(*n).min(line.len() - 1);
                self.raw(&line.as_bytes()[..cut]);
                self.poll();
                std::fs::write(&path, &self.text).unwrap();
                self.append();
            }
            Happening::TornAndCut(n) => {
                let line = self.line();
                self.raw(&line.as_bytes()[..usize::from(*n).min(line.len() - 1)]);
                self.poll();
                std::fs::OpenOptions::new()
                    .write(true)
                    .open(&path)
                    .unwrap()
                    .set_len(self.text.len() as u64)
                    .unwrap();
            }
            Happening::Replaced => {
                let fresh = path.with_extension("fresh");
                std::fs::write(&fresh, &self.text).unwrap();
                std::fs::rename(&fresh, &path).unwrap();
            }
            Happening::WrittenOver => {
                std::fs::write(&path, b"").unwrap();
                self.poll();
                std::fs::write(&path, &self.text).unwrap();
            }
            Happening::Away => {
                let _ = std::fs::remove_file(&path);
                self.poll();
                std::fs::write(&path, &self.text).unwrap();
            }
            Happening::Poll => self.poll(),
            Happening::Reopen => {
                let cursor = self.stream.cursor();
                self.stream = RunStream::open(&self.run, StreamStart::After(cursor)).unwrap();
            }
            Happening::ReopenFrom => {
                self.poll();
                let from = self.seq / 2 + 1;
                let mut part =
                    RunStream::open(&self.run, StreamStart::From(Seq(from))).unwrap().events_only();
                let expected: Vec<String> = (from..=self.seq).map(|n| n.to_string()).collect();
                assert_eq!(all(&mut part), expected);
            }
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]
    #[test]
    fn every_event_and_every_record_comes_once_whatever_happens(
        story in prop::collection::vec(happening(), 1..40)
    ) {
        let folder = tempfile::tempdir().unwrap();
        let run = run_in(folder.path());
        let stream = RunStream::open(&run, StreamStart::Beginning).unwrap();
        let live = LiveLog::new(&run);
        let mut teller = Story {
            run, text: Vec::new(), seq: 0, shown: 0, live, stream, events: Vec::new(), texts: Vec::new(),
        };
        story.iter().for_each(|what| teller.happens(what));
        teller.poll();
        prop_assert_eq!(teller.events, (1..=teller.seq).collect::<Vec<_>>());
        prop_assert_eq!(teller.texts, (1..=teller.shown).collect::<Vec<_>>());
    }
}
