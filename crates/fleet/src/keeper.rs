//! What a machine must not take along when it vanishes goes to the artifact store before the journal tells of it: the commits
//! of each iteration, and the files of the record.

use crate::error::FleetError;
use crate::lease::Fault;
use crate::pack;
use crate::result;
use crate::seal::PostgresSeal;
use crate::store::{ArtifactStore, Pending};
use ralph_loop_app::Environment;
use ralph_loop_core::{Observer, SessionProgress};
use ralph_loop_domain::ports::Stream;
use ralph_loop_domain::redact::Redactor;
use ralph_loop_domain::state::RunState;
use ralph_loop_domain::vars::Vars;
use ralph_loop_git::{Repo, publish::bundle};
use ralph_loop_protocol::event::{Event, EventBody};
use ralph_loop_protocol::id::RunId;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Files of a record that mean something only on their machine, or that are kept elsewhere.
const OWN: &[&str] = &[
    "events.jsonl",
    "events.idx",
    "spec.json",
    "state.json",
    "state.json.tmp",
    "lock",
    "wake",
    "inbox.jsonl",
    "git",
    "copy-git",
    "hooks",
    "grown",
    "place.json",
    "live.jsonl",
    "live.1.jsonl",
    "removed-sandboxes",
    "resources.json",
    "ralph.log",
    "ralph.1.log",
    "driver.log",
];
/// Files of `.ralph/` that go along.
const SHARED: &[&str] = &["guardrails.md", "progress.md", "notes.md", "errors.log", "diagnostics.md"];
/// One file that is larger stays behind: no later step reads it.
pub const FILE_MAX: u64 = 32 * 1024 * 1024;
/// Files of one record.
const FILES_MAX: usize = 20_000;
/// Tries, while the store does not answer.
const TRIES: u32 = 3;

/// Length and time of a file.
type Stamp = (u64, std::time::SystemTime);
/// The same of several files, by their names in the store.
type Stamps = Vec<(String, Stamp)>;

/// Whether the run may have commits that are not kept.
#[derive(Debug, Clone, Copy)]
enum Commits {
    MayBeNew,
    /// They were kept just before, at the checkpoint of the iteration; the rest need not be waited for.
    AreKept,
}

/// Watches a run and keeps what belongs to it.
pub struct Keeper {
    store: ArtifactStore,
    seal: Arc<PostgresSeal>,
    vars: Vars,
    redactor: Redactor,
    run: RunId,
    record: PathBuf,
    /// The folder with the run's commits.
    home: PathBuf,
    prefix: String,
    /// What lies in the store already, by length and time.
    kept: BTreeMap<String, Stamp>,
    repo: Option<Repo>,
    /// The last commit that lies in the store already.
    bundled: Option<String>,
    /// Packs of files that this hold has put there.
    packs: u32,
    /// What is on its way, and the files in it.
    under_way: Option<(Pending, Stamps)>,
}

impl Keeper {
    /// Keeps the run whose record is `record` and whose commits are in `home`. Each hold writes below its own prefix, so a
    /// replaced holder that still writes overwrites nothing.
    pub fn new(
        store: ArtifactStore,
        seal: Arc<PostgresSeal>,
        epoch: i64,
        run: &RunId,
        (record, home, env): (&Path, &Path, &Environment),
    ) -> Self {
        Self {
            store,
            seal,
            vars: env.vars().clone(),
            redactor: env.redactor(home),
            run: run.clone(),
            record: record.to_owned(),
            home: home.to_owned(),
            prefix: prefix(run.as_str(), epoch),
            kept: BTreeMap::new(),
            repo: None,
            bundled: None,
            packs: 0,
            under_way: None,
        }
    }

    fn keep(&mut self, commits: Commits) {
        let mut last = String::new();
        for _ in 0..TRIES {
            match self.keep_once(commits) {
                Ok(()) => return,
                Err(error) => last = error.to_string(),
            }
        }
        // The journal must not record work that can't be restored. The run ends here and resumes from what was kept before.
        tracing::error!(error = last, "the work could not be kept");
        self.seal.close(Fault::Outage, format!("the work could not be kept: {last}"));
    }

    fn keep_once(&mut self, commits: Commits) -> Result<(), FleetError> {
        self.arrive()?;
        let work = match commits {
            Commits::MayBeNew => self.new_work()?,
            Commits::AreKept => None,
        };
        let mut objects = Vec::new();
        if let (Some(repo), Some(_)) = (&self.repo, &work) {
            let bytes = bundle::run_commits(repo, &self.run).map_err(|e| not_packed(&e))?;
            objects.push((format!("{}/work.bundle", self.prefix), bytes));
            result::write(repo, &self.run, &self.record, &self.redactor)?;
        }
        let (mut files, mut stamps) = (Vec::new(), Vec::new());
        for (name, path, stamp) in self.new_files() {
            let Ok(bytes) = ralph_loop_safe_fs::read_plain(&path, FILE_MAX) else { continue };
            files.push((name.clone(), bytes));
            stamps.push((name, stamp));
            // Not more of it at a time than a machine has room for.
            if files.iter().map(|(_, bytes)| bytes.len() as u64).sum::<u64>() > FILE_MAX {
                let pack = self.pack(&std::mem::take(&mut files))?;
                self.store.put(&pack.0, pack.1)?;
                self.kept.extend(stamps.drain(..));
            }
        }
        if !files.is_empty() {
            objects.push(self.pack(&files)?);
        }
        self.under_way = Some((self.store.put_soon(objects)?, stamps));
        if let Commits::MayBeNew = commits {
            self.arrive()?;
        }
        if work.is_some() {
            self.bundled = work;
        }
        Ok(())
    }

    /// Files as one object, of a name that comes after those before it.
    fn pack(&mut self, files: &[(String, Vec<u8>)]) -> Result<(String, Vec<u8>), FleetError> {
        self.packs += 1;
        Ok((format!("{}/files-{:08}{}", self.prefix, self.packs, pack::SUFFIX), pack::pack(files)?))
    }

    /// Waits for what is on its way.
    fn arrive(&mut self) -> Result<(), FleetError> {
        let Some((pending, stamps)) = self.under_way.take() else { return Ok(()) };
        self.store.wait(pending)?;
        self.kept.extend(stamps);
        Ok(())
    }

    /// The files of the record, and those that it shares, which are not in the store as they are now.
    fn new_files(&self) -> Vec<(String, PathBuf, Stamp)> {
        let mut files = Vec::new();
        walk(&self.record, "", &mut files);
        let shared = self.home.join(".ralph");
        let below = |folder: &Path, name: &str| folder.join(name);
        let of_record = files.into_iter().map(|name| (format!("record/{name}"), below(&self.record, &name)));
        let of_ralph = SHARED.iter().map(|name| (format!("ralph/{name}"), below(&shared, name)));
        let stamped = of_record.chain(of_ralph).filter_map(|(name, path)| {
            let meta = std::fs::symlink_metadata(&path).ok()?;
            let stamp = (meta.len(), meta.modified().unwrap_or(std::time::UNIX_EPOCH));
            let wanted = meta.is_file() && meta.len() <= FILE_MAX && self.kept.get(&name) != Some(&stamp);
            wanted.then_some((name, path, stamp))
        });
        stamped.collect()
    }

    /// The last commit of the run's work, where it is not in the store.
    fn new_work(&mut self) -> Result<Option<String>, FleetError> {
        if self.repo.is_none() {
            self.repo = Repo::discover(&self.vars, &self.home).ok();
        }
        let Some(repo) = &self.repo else { return Ok(None) };
        let work = bundle::run_work(repo, &self.run).map_err(|e| not_packed(&e))?;
        Ok(work.filter(|work| self.bundled.as_ref() != Some(work)))
    }
}

fn not_packed(why: &dyn std::fmt::Display) -> FleetError {
    FleetError::Store(format!("the commits of the run cannot be packed: {why}"))
}

/// Where the objects of a hold lie.
pub fn prefix(run: &str, epoch: i64) -> String {
    format!("runs/{run}/{epoch:08}")
}

fn walk(folder: &Path, below: &str, found: &mut Vec<String>) {
    let Ok(entries) = std::fs::read_dir(folder) else { return };
    for entry in entries.flatten() {
        let Ok(name) = entry.file_name().into_string() else { continue };
        if (below.is_empty() && OWN.contains(&name.as_str())) || found.len() >= FILES_MAX {
            continue;
        }
        let path = if below.is_empty() { name } else { format!("{below}/{name}") };
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => walk(&entry.path(), &path, found),
            Ok(kind) if kind.is_file() => found.push(path),
            _ => {}
        }
    }
}

impl Observer for Keeper {
    fn event(&mut self, _: &RunState, event: &Event) {
        match event.body {
            EventBody::IterationEnded { .. } => {
                self.keep(Commits::AreKept);
                self.seal.progressed();
            }
            EventBody::ProofFinished { .. }
            | EventBody::Suspended { .. }
            | EventBody::NeedsHuman { .. }
            | EventBody::Finished { .. } => self.keep(Commits::MayBeNew),
            _ => {}
        }
    }

    fn live(&mut self, _: &RunState, _: &SessionProgress<'_>) {}

    fn output(&mut self, _: Stream, _: &[u8]) {}

    fn boundary(&mut self, name: &str) {
        if matches!(name, "prepare.kept" | "checkpoint.kept") {
            self.keep(Commits::MayBeNew);
        }
    }
}
