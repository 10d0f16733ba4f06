//! Fuzzes every reader of untrusted input: none panics, uses more memory than its input justifies, or runs forever.
//!
//! On every change the kept inputs (`fuzz/corpus/READER/`) are read, and some thousand that are made from them; the same ones
//! each time. `RALPH_FUZZ_SECONDS=600 cargo nextest run -p ralph-loop-cli fuzz::` tries new ones for so long per reader
//! (`RALPH_FUZZ_SEED` chooses which); an input that is too much for a reader is kept in its folder, and told.
#![allow(clippy::disallowed_methods, reason = "a test reads its own variables and counts its own time")]

mod memory;
mod mutate;
mod readers;

use mutate::Mutator;
use std::collections::HashSet;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

/// Inputs that are generated on every change.
const SHORT: u64 = 500;
/// The longest input.
const INPUT_MAX: usize = 64 * 1024;
/// Memory limit of a reader: a base amount and a factor of the input size.
const MEMORY_MAX: usize = 48 * 1024 * 1024;
const MEMORY_PER_BYTE: usize = 512;
/// An input that takes a reader longer than this is a finding.
const PATIENCE: Duration = Duration::from_secs(120);
/// Maximum number of inputs kept because they reached something new.
const REMEMBERED: usize = 4000;

/// Reads an input and returns a number for what it has seen. Inputs with a new number are mutated further.
type Reader = fn(&[u8]) -> u64;

macro_rules! readers {
    ($($name:ident),+ $(,)?) => {
        $(
            #[test]
            fn $name() {
                fuzz(stringify!($name), readers::$name);
            }
        )+

        #[test]
        fn every_reader_has_a_corpus_and_every_corpus_a_reader() {
            let mut known = vec![$(stringify!($name)),+];
            known.sort_unstable();
            let folders = std::fs::read_dir(corpus("")).expect("the corpus").flatten();
            let mut kept: Vec<String> =
                folders.map(|folder| folder.file_name().to_string_lossy().into_owned()).collect();
            kept.sort();
            assert_eq!(kept, known);
            for name in known {
                assert!(!inputs(&corpus(name)).is_empty(), "{name}");
            }
        }
    };
}

readers!(
    journal,
    spec,
    inbox,
    receipt,
    proof,
    config,
    models,
    dotenv,
    task_prompt,
    task_markdown,
    task_json,
    task_plan,
    agent_streams,
    model_streams,
    model_actions,
    git_answers,
    archive,
    proxy,
    test_output,
    patches,
    terminal,
    secrets,
    server_requests,
);

fn corpus(reader: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/it/fuzz/corpus").join(reader)
}

fn inputs(folder: &Path) -> Vec<(PathBuf, Vec<u8>)> {
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let files = files.filter(|file| file.file_name() != "current");
    let mut found: Vec<_> =
        files.map(|file| (file.path(), std::fs::read(file.path()).expect("an input can be read"))).collect();
    found.sort();
    found
}

fn fuzz(name: &'static str, reader: Reader) {
    let kept = inputs(&corpus(name));
    for (path, input) in &kept {
        if let Err(why) = attempt(reader, input) {
            panic!("{}: {why}", path.display());
        }
    }
    let seconds: Option<u64> = std::env::var("RALPH_FUZZ_SECONDS").ok().and_then(|text| text.parse().ok());
    let seed = std::env::var("RALPH_FUZZ_SEED").ok().and_then(|text| text.parse().ok()).unwrap_or(1);
    let mut pool: Vec<Vec<u8>> = kept.into_iter().map(|(_, input)| input).collect();
    let mut seen = HashSet::new();
    let mut mutator = Mutator::new(seed);
    let (started, mut tried) = (Instant::now(), 0_u64);
    let watch = seconds.map(|_| Watch::start(name));
    loop {
        match seconds {
            Some(seconds) if started.elapsed() >= Duration::from_secs(seconds) => break,
            None if tried >= SHORT => break,
            _ => {}
        }
        tried += 1;
        let mut input = mutator.next(&pool);
        input.truncate(INPUT_MAX);
        if let Some(watch) = &watch {
            watch.begins(&input);
        }
        match attempt(reader, &input) {
            Ok(shape) => {
                if pool.len() < REMEMBERED && seen.insert(shape) {
                    pool.push(input);
                }
            }
            Err(why) => panic!("{}: {why}", keep(name, &input).display()),
        }
    }
    if seconds.is_some() {
        println!("{name}: {tried} inputs, {} kinds of them, seed {seed}", seen.len());
    }
}

/// Reads one input; the error describes the reader's fault.
fn attempt(reader: Reader, input: &[u8]) -> Result<u64, String> {
    memory::begin();
    let shape = catch_unwind(AssertUnwindSafe(|| reader(input)));
    let (taken, allowed) = (memory::peak(), MEMORY_MAX + MEMORY_PER_BYTE * input.len());
    let shape = shape.map_err(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|text| (*text).to_owned()));
        format!("the reader panics: {}", text.unwrap_or_default())
    })?;
    if taken > allowed {
        return Err(format!("the reader takes {taken} bytes for an input of {}", input.len()));
    }
    Ok(shape)
}

/// Adds an input to the corpus, so that every later change is tested with it.
fn keep(name: &str, input: &[u8]) -> PathBuf {
    let path = corpus(name).join(format!("found-{:016x}", readers::hash(input)));
    std::fs::write(&path, input).expect("an input can be kept");
    path
}

/// Keeps an input whose reader hangs or ends the process.
struct Watch {
    current: PathBuf,
    begun: std::sync::Arc<AtomicU64>,
}

impl Watch {
    fn start(name: &'static str) -> Self {
        let begun = std::sync::Arc::new(AtomicU64::new(0));
        let current = corpus(name).join("current");
        let (theirs, path) = (begun.clone(), current.clone());
        std::thread::spawn(move || {
            let mut before = 0;
            loop {
                std::thread::sleep(PATIENCE);
                let now = theirs.load(Ordering::Relaxed);
                if now == before && now > 0 {
                    let input = std::fs::read(&path).unwrap_or_default();
                    eprintln!("{}: the reader does not come to an end", keep(name, &input).display());
                    std::process::abort();
                }
                before = now;
            }
        });
        Self { current, begun }
    }

    fn begins(&self, input: &[u8]) {
        self.begun.fetch_add(1, Ordering::Relaxed);
        // A stack overflow ends the process; this file then has the input.
        std::fs::write(&self.current, input).expect("an input can be noted");
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.begun.store(0, Ordering::Relaxed);
        let _ = std::fs::remove_file(&self.current);
    }
}
