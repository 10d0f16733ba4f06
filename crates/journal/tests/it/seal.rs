//! A journal whose sealed copy isn't in a file.

use jiff::Timestamp;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_journal::JournalError;
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_journal::journal::seal::{FileSeal, Seal, Settle};
use ralph_loop_journal::journal::{Integrity, Journal, OpenedJournal, RunPaths};
use ralph_loop_protocol::event::EventBody;
use std::io::{self, Cursor, Read};
use std::path::PathBuf;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

/// What a database would hold.
#[derive(Debug, Clone, Default)]
struct Elsewhere {
    text: Arc<Mutex<Option<Vec<u8>>>>,
    settled: Arc<AtomicU32>,
    full: Arc<Mutex<bool>>,
    required: bool,
    away: Arc<Mutex<bool>>,
}

impl Seal for Elsewhere {
    fn place(&self) -> PathBuf {
        PathBuf::from("elsewhere")
    }
    fn is_required(&self) -> bool {
        self.required
    }
    fn head(&self) -> io::Result<Option<u64>> {
        if *self.away.lock().unwrap() {
            return Err(io::Error::other("away"));
        }
        Ok(self.text.lock().unwrap().as_ref().map(|text| text.len() as u64))
    }
    fn read(&self) -> io::Result<Box<dyn Read + '_>> {
        Ok(Box::new(Cursor::new(self.text.lock().unwrap().clone().unwrap_or_default())))
    }
    fn append(&mut self, bytes: &[u8], at: u64) -> io::Result<()> {
        if *self.full.lock().unwrap() {
            return Err(io::Error::other("full"));
        }
        let mut text = self.text.lock().unwrap();
        let text = text.get_or_insert_default();
        assert_eq!(text.len() as u64, at, "nothing is sealed twice or left out");
        text.extend_from_slice(bytes);
        Ok(())
    }
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.text.lock().unwrap().get_or_insert_default().truncate(usize::try_from(length).unwrap());
        Ok(())
    }
    fn settle(&mut self) -> io::Result<Settle> {
        let settled = Arc::clone(&self.settled);
        Ok(Box::new(move || {
            settled.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }))
    }
}

struct Folder {
    _temp: tempfile::TempDir,
    places: RunPaths,
    seal: Elsewhere,
}

fn folder() -> Folder {
    let temp = tempfile::tempdir().unwrap();
    let dir = RalphDir::of(&temp.path().join("repo")).run(&"r1".into());
    let places = RunPaths { dir, seal: None, elsewhere: None };
    Folder { _temp: temp, places, seal: Elsewhere::default() }
}

impl Folder {
    fn create(&self) -> Journal {
        Journal::create_sealed(self.places.clone(), Some(Box::new(self.seal.clone())), redactor()).unwrap()
    }
    fn open(&self) -> Result<(OpenedJournal, usize), JournalError> {
        let mut events = 0;
        let seal: Box<dyn Seal> = Box::new(self.seal.clone());
        let (_, opened) =
            Journal::open_sealed(self.places.clone(), Some(seal), redactor(), &mut |_| events += 1)?;
        Ok((opened, events))
    }
    fn text(&self) -> Vec<u8> {
        std::fs::read(self.places.dir.events()).unwrap()
    }
    fn sealed(&self) -> Vec<u8> {
        self.seal.text.lock().unwrap().clone().unwrap_or_default()
    }
}

fn redactor() -> Arc<Redactor> {
    Arc::new(Redactor::default())
}

fn note(journal: &mut Journal, message: &str) -> Result<(), JournalError> {
    let body = EventBody::Notice { message: message.into() };
    journal.append(body, Timestamp::UNIX_EPOCH).map(drop)
}

#[test]
fn events_are_sealed_first_and_heal_a_lost_tail() {
    let f = folder();
    let mut journal = f.create();
    for message in ["one", "two", "three"] {
        note(&mut journal, message).unwrap();
    }
    drop(journal);
    let text = f.text();
    assert_eq!(f.sealed(), text);
    // It lost its end, in the middle of a line.
    std::fs::write(f.places.dir.events(), &text[..text.len() - 30]).unwrap();
    let (opened, events) = f.open().unwrap();
    assert_eq!((opened.healed_bytes, opened.torn_bytes, events), (30, 0, 3));
    assert_eq!(f.text(), text);
}

#[test]
fn edit_is_detected_with_the_seal() {
    let f = folder();
    let mut journal = f.create();
    note(&mut journal, "as it was").unwrap();
    let text = f.text();
    std::fs::write(f.places.dir.events(), String::from_utf8(text.clone()).unwrap().replace("was", "WAS"))
        .unwrap();
    assert!(matches!(journal.integrity().unwrap(), Integrity::Edited(_)));
    assert_eq!(f.text(), text, "and undone");
    drop(journal);
    std::fs::write(f.places.dir.events(), "x").unwrap();
    let Err(JournalError::Tampered { seal, at, .. }) = f.open() else { panic!("it was not seen") };
    assert_eq!((seal, at), (PathBuf::from("elsewhere"), 0));
}

#[test]
fn new_seal_is_filled_and_longer_seal_is_cut() {
    let f = folder();
    let mut journal = Journal::create(f.places.clone(), redactor()).unwrap();
    (0..2000).for_each(|n| note(&mut journal, &format!("line {n}")).unwrap());
    drop(journal);
    assert_eq!(f.open().unwrap().1, 2000);
    assert_eq!(f.sealed(), f.text());
    // A line that is torn in both is set aside in both.
    f.seal.text.lock().unwrap().as_mut().unwrap().extend_from_slice(b"{\"seq\":20");
    let (opened, events) = f.open().unwrap();
    assert_eq!((opened.healed_bytes, opened.torn_bytes, events), (9, 9, 2000));
    assert_eq!(f.sealed(), f.text());
}

#[test]
fn unsealed_events_are_not_journaled_and_barrier_waits_for_the_seal() {
    let f = folder();
    let mut journal = f.create();
    let durable = EventBody::NeedsHuman {
        reason: ralph_loop_protocol::outcome::HumanReason::AgentAsks,
        message: "look".into(),
    };
    assert!(durable.must_be_durable());
    journal.append(durable, Timestamp::UNIX_EPOCH).unwrap();
    journal.barrier().unwrap();
    assert_eq!(f.seal.settled.load(Ordering::SeqCst), 1);
    let before = f.text();
    *f.seal.full.lock().unwrap() = true;
    assert!(note(&mut journal, "more").unwrap_err().to_string().contains("elsewhere"));
    assert_eq!(f.text(), before);
}

#[test]
fn optional_seal_file_may_be_missing() {
    let f = folder();
    let places = RunPaths { seal: Some(PathBuf::from("/dev/null/no/seal.jsonl")), ..f.places.clone() };
    let mut journal = Journal::create(places.clone(), redactor()).unwrap();
    note(&mut journal, "one").unwrap();
    drop(journal);
    let (_, opened) = Journal::open(places, redactor(), &mut |_| {}).unwrap();
    assert_eq!(opened, OpenedJournal::default());
    let mut seal = FileSeal::at(std::path::Path::new("/dev/null/no/seal.jsonl"));
    assert_eq!(seal.append(b"x", 0).unwrap_err().kind(), std::io::ErrorKind::NotADirectory);
}

#[test]
fn required_seal_is_never_skipped() {
    let mut f = folder();
    f.seal.required = true;
    let mut journal = f.create();
    journal.append(EventBody::Notice { message: "one".into() }, Timestamp::UNIX_EPOCH).unwrap();
    drop(journal);
    assert!(f.open().is_ok());
    *f.seal.away.lock().unwrap() = true;
    assert!(f.open().is_err(), "a process that can't check who holds the run doesn't drive it");
    f.seal.required = false;
    assert!(f.open().is_ok(), "any other is done without");
}
