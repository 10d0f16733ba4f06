//! The journal under kills, truncation, edits and full disks.

use jiff::Timestamp;
use ralph_loop_domain::ports::Stream;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::RunState;
use ralph_loop_journal::folder::artifacts;
use ralph_loop_journal::folder::artifacts::{LOG_HEAD, LOG_TAIL, OutputLog};
use ralph_loop_journal::folder::layout::RalphDir;
use ralph_loop_journal::folder::snapshot;
use ralph_loop_journal::journal::{Integrity, Journal, RunPaths};
use ralph_loop_journal::live::follow::Follower;
use ralph_loop_journal::lock::{self, LockError, LockHolder, RunLock};
use ralph_loop_journal::{JournalError, inbox};
use ralph_loop_protocol::control::Control;
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::id::{RunId, Seq};
use ralph_loop_protocol::lease::{DriverLease, Epoch};
use ralph_loop_task::config::ConfigFile;
use ralph_loop_task::spec::{RunSpec, Task, WorkspaceKind};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

struct Folder {
    _temp: tempfile::TempDir,
    dir: RalphDir,
    places: RunPaths,
}

fn folder() -> Folder {
    let temp = tempfile::tempdir().unwrap();
    let dir = RalphDir::of(&temp.path().join("repo"));
    let run = dir.run(&RunId::from("r1"));
    run.create().unwrap();
    std::fs::write(run.spec(), serde_json::to_vec_pretty(&spec(temp.path())).unwrap()).unwrap();
    let places =
        RunPaths { dir: run, seal: Some(temp.path().join("outside/seals/r1.jsonl")), elsewhere: None };
    Folder { _temp: temp, dir, places }
}

fn spec(path: &Path) -> RunSpec {
    RunSpec {
        version: 1,
        spec_version: 1,
        run_id: RunId::from("r1"),
        created_at: Timestamp::UNIX_EPOCH,
        task: Task::from_prompt("t", "PROMPT.md").unwrap(),
        settings: ConfigFile::default().resolve(),
        place: WorkspaceKind::InPlace,
        workspace: path.join("repo"),
        origin: path.join("repo"),
        branch: None,
        config_digest: None,
        handed_to: None,
        forked_from: None,
        unproven_runs: Vec::new(),
    }
}

fn redactor() -> Arc<Redactor> {
    Arc::new(Redactor::new([("TOKEN", "hunter2hunter2")]))
}

fn notice(n: usize) -> EventBody {
    EventBody::Notice { message: format!("event {n}") }
}

fn write(places: &RunPaths, count: usize) -> Journal {
    let mut journal = Journal::create(places.clone(), redactor()).unwrap();
    for n in 1..=count {
        journal.append(notice(n), Timestamp::UNIX_EPOCH).unwrap();
    }
    journal
}

fn reopen(places: &RunPaths) -> (Journal, Vec<Event>, ralph_loop_journal::journal::OpenedJournal) {
    let mut events = Vec::new();
    let (journal, opened) =
        Journal::open(places.clone(), redactor(), &mut |e| events.push(e.clone())).unwrap();
    (journal, events, opened)
}

#[test]
fn journal_cut_at_any_byte_opens_with_every_whole_event() {
    let f = folder();
    let places = RunPaths { seal: None, ..f.places.clone() };
    drop(write(&places, 5));
    let whole = std::fs::read(places.dir.events()).unwrap();
    for cut in 0..=whole.len() {
        std::fs::write(places.dir.events(), &whole[..cut]).unwrap();
        let complete = whole[..cut].iter().filter(|b| **b == b'\n').count();
        let (mut journal, events, opened) = reopen(&places);
        assert_eq!(events.len(), complete, "cut at {cut}");
        assert_eq!(opened.torn_bytes as usize, cut - events_len(&whole, complete));
        let next = journal.append(notice(99), Timestamp::UNIX_EPOCH).unwrap();
        assert_eq!(next.seq, Seq(complete as u64 + 1));
        drop(journal);
        assert_eq!(reopen(&places).1.len(), complete + 1);
    }
}

fn events_len(whole: &[u8], complete: usize) -> usize {
    whole.split_inclusive(|b| *b == b'\n').take(complete).map(<[u8]>::len).sum()
}

#[test]
fn lost_events_are_restored_from_the_sealed_copy() {
    let f = folder();
    drop(write(&f.places, 5));
    let whole = std::fs::read(f.places.dir.events()).unwrap();
    for cut in [0, 1, whole.len() / 2, whole.len() - 1] {
        std::fs::write(f.places.dir.events(), &whole[..cut]).unwrap();
        let (_, events, opened) = reopen(&f.places);
        assert_eq!((events.len(), opened.healed_bytes as usize), (5, whole.len() - cut));
        assert_eq!(std::fs::read(f.places.dir.events()).unwrap(), whole);
    }
}

#[test]
fn edited_journal_is_refused_with_the_position() {
    let f = folder();
    drop(write(&f.places, 3));
    let mut text = std::fs::read(f.places.dir.events()).unwrap();
    let at = text.len() - 10;
    text[at] = b'X';
    std::fs::write(f.places.dir.events(), &text).unwrap();
    let error = Journal::open(f.places.clone(), redactor(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, JournalError::Tampered { at: found, .. } if found == at as u64), "{error}");
    // Events that another process appended are edits as well.
    drop(std::fs::remove_dir_all(f.places.dir.path()));
    let f = folder();
    drop(write(&f.places, 3));
    let mut text = std::fs::read(f.places.dir.events()).unwrap();
    text.extend_from_slice(
        b"{\"seq\":4,\"at\":\"1970-01-01T00:00:00Z\",\"kind\":\"notice\",\"message\":\"forged\"}\n",
    );
    std::fs::write(f.places.dir.events(), &text).unwrap();
    assert!(matches!(Journal::open(f.places, redactor(), &mut |_| {}), Err(JournalError::Tampered { .. })));
}

#[test]
fn damage_in_the_middle_is_reported_with_its_line() {
    let f = folder();
    let places = RunPaths { seal: None, ..f.places.clone() };
    drop(write(&places, 3));
    let text = std::fs::read_to_string(places.dir.events()).unwrap().replacen("event 2", "event \u{0}", 1);
    std::fs::write(places.dir.events(), text).unwrap();
    let error = Journal::open(places, redactor(), &mut |_| {}).unwrap_err();
    assert!(matches!(error, JournalError::Corrupt { line: 2, .. }), "{error}");
}

#[test]
fn newer_events_are_refused_with_line_and_reason() {
    let f = folder();
    let places = RunPaths { seal: None, ..f.places.clone() };
    drop(write(&places, 2));
    let path = places.dir.events();
    let newer = "{\"seq\":3,\"at\":\"2026-11-15T12:00:00Z\",\"kind\":\"teleported\",\"to\":\"mars\"}\n";
    let mut text = std::fs::read_to_string(&path).unwrap();
    text.push_str(newer);
    std::fs::write(&path, &text).unwrap();
    let refused = |error: JournalError| {
        assert!(matches!(&error, JournalError::Newer { line: 3, .. }), "{error}");
        assert!(error.to_string().contains("line 3 holds an event of the kind `teleported`"), "{error}");
        assert!(error.hint().is_some_and(|hint| hint.contains("newer `ralph`")));
    };
    let spec = spec(&path);
    refused(snapshot::replay(&places.dir, spec.clone()).unwrap_err());
    refused(Journal::open(places, redactor(), &mut |_| {}).map(drop).unwrap_err());
    // A reader that only shows events shows the intact ones.
    let mut follower = Follower::new(&path, Seq(0));
    assert_eq!(follower.poll().unwrap().len(), 3);

    let mut value = serde_json::to_value(&spec).unwrap();
    value["version"] = 2.into();
    value["place"] = "somewhere new".into();
    let error = snapshot::parse_spec(&path, value.to_string().as_bytes()).unwrap_err();
    assert!(error.to_string().contains("version 2 of the format (up to 1 is known)"), "{error}");
}

#[test]
fn a_run_is_replayed_up_to_any_of_its_events() {
    let folder = folder();
    drop(write(&folder.places, 5));
    let spec = spec(&folder.places.dir.events());
    for last in 0..=5 {
        let state = snapshot::replay_to(&folder.places.dir, spec.clone(), Seq(last)).unwrap();
        assert_eq!(state.seq, Seq(last));
    }
    let whole = snapshot::replay(&folder.places.dir, spec.clone()).unwrap();
    assert_eq!(snapshot::replay_to(&folder.places.dir, spec, Seq(9)).unwrap(), whole);
}

#[test]
fn a_git_clean_during_a_session_loses_nothing() {
    let f = folder();
    let mut journal = write(&f.places, 3);
    assert_eq!(journal.integrity().unwrap(), Integrity::Sound);
    std::fs::remove_dir_all(f.dir.path()).unwrap();
    assert!(matches!(journal.integrity().unwrap(), Integrity::Relinked(_)));
    journal.append(notice(4), Timestamp::UNIX_EPOCH).unwrap();
    drop(journal);
    assert_eq!(reopen(&f.places).1.len(), 4);
}

#[test]
fn git_clean_between_processes_loses_nothing() {
    let f = folder();
    drop(write(&f.places, 3));
    std::fs::remove_dir_all(f.dir.path()).unwrap();
    assert_eq!(reopen(&f.places).1.len(), 3);
}

#[test]
fn edit_during_a_session_is_noticed_and_undone() {
    for replace in [false, true] {
        let f = folder();
        let mut journal = write(&f.places, 3);
        let path = f.places.dir.events();
        let before = std::fs::read(&path).unwrap();
        let forged = String::from_utf8(before.clone()).unwrap().replace("event 2", "EVENT 2");
        if replace {
            std::fs::remove_file(&path).unwrap();
        }
        std::fs::write(&path, forged).unwrap();
        let Integrity::Edited(what) = journal.integrity().unwrap() else {
            panic!("not noticed (replace: {replace})")
        };
        assert!(what.contains("events.edited-3.jsonl"), "{what}");
        assert_eq!(std::fs::read(&path).unwrap(), before);
        journal.append(notice(4), Timestamp::UNIX_EPOCH).unwrap();
        drop(journal);
        assert_eq!(reopen(&f.places).1.len(), 4);
    }
}

#[test]
fn secrets_never_reach_the_journal_or_its_copy() {
    let f = folder();
    let mut journal = write(&f.places, 0);
    let body = EventBody::Notice { message: "key=hunter2hunter2".into() };
    let event = journal.append(body, Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(event.body, EventBody::Notice { message: "key=[redacted:TOKEN]".into() });
    for path in [f.places.dir.events(), f.places.seal.clone().unwrap()] {
        assert!(!std::fs::read_to_string(path).unwrap().contains("hunter2"));
    }
}

#[test]
fn times_in_the_journal_never_go_backwards() {
    let f = folder();
    let mut journal = write(&f.places, 0);
    let late = Timestamp::from_second(100).unwrap();
    journal.append(notice(1), late).unwrap();
    assert_eq!(journal.append(notice(2), Timestamp::UNIX_EPOCH).unwrap().at, late);
}

#[test]
fn a_follower_sees_every_event_once_and_never_half_a_line() {
    let f = folder();
    let mut journal = write(&f.places, 2);
    let mut all = Follower::new(&f.places.dir.events(), Seq(0));
    let mut later = Follower::new(&f.places.dir.events(), Seq(2));
    assert_eq!(all.poll().unwrap().len(), 2);
    assert_eq!(later.poll().unwrap().len(), 0);
    journal.append(notice(3), Timestamp::UNIX_EPOCH).unwrap();
    for follower in [&mut all, &mut later] {
        let seqs: Vec<u64> = follower.poll().unwrap().iter().map(|e| e.seq.0).collect();
        assert_eq!(seqs, [3]);
        assert!(follower.poll().unwrap().is_empty());
    }
    // Half a line isn't an event yet.
    let text = std::fs::read(f.places.dir.events()).unwrap();
    let mut half = text.clone();
    half.extend_from_slice(b"{\"seq\":4,");
    std::fs::write(f.places.dir.events(), &half).unwrap();
    assert!(all.poll().unwrap().is_empty());
    std::fs::write(f.places.dir.events(), &text).unwrap();
    assert!(all.poll().unwrap().is_empty());
}

#[test]
fn a_snapshot_gives_the_same_state_as_a_replay_and_a_damaged_one_is_not_used() {
    let f = folder();
    let mut journal = write(&f.places, 2);
    let spec = snapshot::read_spec(&f.places.dir).unwrap();
    let mut state = snapshot::replay(&f.places.dir, spec.clone()).unwrap();
    snapshot::save(&f.dir, &f.places.dir, &state, journal.bytes()).unwrap();
    let body = EventBody::CooldownSet { agent: "a".into(), until: Timestamp::MAX, reason: "limit".into() };
    state.apply(&journal.append(body, Timestamp::UNIX_EPOCH).unwrap());
    let load = || snapshot::load(&f.places.dir).unwrap();
    assert_eq!(load(), state);
    let saved = std::fs::read(f.dir.state()).unwrap();
    for cut in [0, 1, saved.len() / 2, saved.len() - 1] {
        std::fs::write(f.dir.state(), &saved[..cut]).unwrap();
        assert_eq!(load(), state);
    }
    let _ = RunState::new(spec);
}

#[test]
fn letters_arrive_in_order_and_invalid_lines_are_reported() {
    let f = folder();
    inbox::send(&f.places.dir, "ana", Control::Pause).unwrap();
    let text = std::fs::read_to_string(f.places.dir.inbox()).unwrap();
    std::fs::write(f.places.dir.inbox(), format!("{text}nonsense\n{{\"half\":")).unwrap();
    let letters = inbox::read(&f.places.dir, 0).unwrap();
    assert_eq!(letters.len(), 2);
    assert_eq!(letters[0].0.as_ref().unwrap().control, Control::Pause);
    assert!(letters[1].0.as_ref().unwrap_err().contains("nonsense"));
    assert_eq!(letters[1].1, text.len() as u64 + 9);
    assert!(inbox::read(&f.places.dir, letters[1].1).unwrap().is_empty());
}

#[test]
fn lock_has_one_holder_and_is_taken_over_after_its_death() {
    let f = folder();
    let me = LockHolder::new(std::process::id(), "r1".into(), Timestamp::UNIX_EPOCH);
    let path = f.dir.lock();
    assert_eq!(lock::holder(&path), None);
    let held = RunLock::take(&path, &me, Duration::ZERO).unwrap();
    assert_eq!(lock::holder(&path), Some(me.clone()));
    let LockError::Held { holder, .. } = RunLock::take(&path, &me, Duration::ZERO).unwrap_err() else {
        panic!()
    };
    assert_eq!(holder.as_deref(), Some(&me));
    drop(held);
    // What a dead process wrote stays in the file without effect.
    assert_eq!(lock::holder(&path), None);
    assert!(RunLock::take(&path, &me, Duration::ZERO).is_ok());
}

#[test]
fn lock_names_its_driver_and_old_locks_are_read() {
    let f = folder();
    let me = LockHolder::new(std::process::id(), "r1".into(), Timestamp::UNIX_EPOCH);
    let path = f.dir.lock();
    let mut held = RunLock::take(&path, &me, Duration::ZERO).unwrap();
    let bare =
        r#"{"pid":PID,"run_id":"r1","since":"1970-01-01T00:00:00Z"}"#.replace("PID", &me.pid.to_string());
    assert_eq!(
        std::fs::read_to_string(&path).unwrap(),
        bare,
        "nothing is written before a driver has started"
    );
    let lease =
        DriverLease { machine: Some("m1".into()), epoch: Some(Epoch(3)), version: Some("0.1.0".into()) };
    held.record_driver(&lease).unwrap();
    assert_eq!(lock::holder(&path), Some(LockHolder { lease, ..me.clone() }));
    held.record_driver(&DriverLease::default()).unwrap();
    assert_eq!(std::fs::read_to_string(&path).unwrap(), bare, "nothing of the longer text is left");
    assert_eq!(serde_json::from_str::<LockHolder>(&bare).unwrap(), me);
}

#[test]
fn a_flood_stays_within_bounds_and_keeps_both_ends() {
    let f = folder();
    let path = f.places.dir.path().join("output.log");
    let mut log = OutputLog::create(&path, redactor()).unwrap();
    log.push(Stream::Stdout, b"first hunter2hunter2 \n");
    let line = [b"x".repeat(1023), b"\n".to_vec()].concat();
    for _ in 0..(LOG_HEAD / 1024 + 4096) {
        log.push(Stream::Stdout, &line);
    }
    log.push(Stream::Stdout, b"the last line\n");
    let (finished, _) = log.finish().unwrap();
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(text.len() as u64 <= LOG_HEAD + LOG_TAIL as u64 + 100);
    assert!(text.starts_with("first [redacted:TOKEN]") && text.ends_with("the last line\n"));
    assert!(finished.dropped > 0 && text.contains("bytes left out"));
    assert_eq!(finished.digest, ralph_loop_protocol::id::Digest::of(text.as_bytes()));
}

#[test]
fn a_full_disk_leaves_no_half_line_behind() {
    // /dev/full answers every write with "no space left"; existing events stay readable.
    let f = folder();
    let error = artifacts::write(Path::new("/dev/full"), b"x").unwrap_err();
    assert!(error.hint().is_some_and(|h| h.contains("disk space")), "{error}");
    drop(write(&f.places, 2));
    assert_eq!(reopen(&f.places).1.len(), 2);
}

#[test]
fn oversized_event_is_cut_or_refused() {
    let f = folder();
    let mut journal = write(&f.places, 1);
    let message = "x\u{1}".repeat(1 << 20);
    let event = journal.append(EventBody::Notice { message }, Timestamp::UNIX_EPOCH).unwrap();
    assert!(matches!(&event.body, EventBody::Notice { message } if message.ends_with("bytes left out)")));
    // Decisions depend on the ids of a task's criteria: what can't be written completely isn't written at all.
    let met: Vec<String> = (0..50_000).map(|n| format!("criterion-{n}")).collect();
    let error = journal.append(EventBody::Ticked { iteration: 1, met }, Timestamp::UNIX_EPOCH).unwrap_err();
    let words = error.to_string();
    assert!(words.contains("`ticked`") && words.contains("bytes") && error.hint().is_some(), "{words}");
    let next = journal.append(notice(3), Timestamp::UNIX_EPOCH).unwrap();
    assert_eq!(next.seq, Seq(3), "nothing of it was written");
    assert_eq!(reopen(&f.places).1.len(), 3);
}

#[test]
fn oversized_letter_is_refused_and_does_not_block_others() {
    let f = folder();
    let run = &f.places.dir;
    let task = "x".repeat(inbox::LETTER_MAX);
    assert!(inbox::send(run, "ana", Control::Edit { task }).unwrap_err().to_string().contains("may have"));
    std::fs::write(run.inbox(), "y".repeat(20 * inbox::LETTER_MAX) + "\n").unwrap();
    let letter = inbox::send(run, "ana", Control::Pause).unwrap();
    let mut at = 0;
    let mut found = Vec::new();
    loop {
        let lines = inbox::read(run, at).unwrap();
        let Some((_, after)) = lines.last() else { break };
        at = *after;
        found.extend(lines.into_iter().map(|(letter, _)| letter));
    }
    assert_eq!(found.pop(), Some(Ok(letter)));
    assert!(!found.is_empty() && found.iter().all(Result::is_err));
}
