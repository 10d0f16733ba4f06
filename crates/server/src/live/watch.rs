//! A single file watch for all records, because `inotify` instances are limited: one entry per folder.
//! Without it, runs are polled.

use ralph_loop_journal::folder::layout::StateHome;
use ralph_loop_protocol::id::RunId;
use std::path::Path;

/// Watched folders.
#[cfg(target_os = "linux")]
const MOST: usize = 16 * 1024;

/// What the watch reported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[cfg_attr(not(target_os = "linux"), allow(dead_code, reason = "nothing is seen there"))]
pub(super) enum Seen {
    /// A journal grew.
    Journal(RunId),
    /// A run produced output.
    Output(RunId),
    /// A run was registered.
    Registered(RunId),
    /// The event queue overflowed.
    Everything,
}

#[cfg(target_os = "linux")]
pub(super) use linux::Watcher;
#[cfg(not(target_os = "linux"))]
pub(super) use none::Watcher;

#[cfg(target_os = "linux")]
mod linux {
    use super::{MOST, Path, RunId, Seen, StateHome};
    use nix::sys::inotify::{AddWatchFlags, InitFlags, Inotify, InotifyEvent, WatchDescriptor};
    use std::collections::HashMap;
    use std::sync::Mutex;

    /// The file watch.
    #[derive(Debug)]
    pub(in crate::live) struct Watcher {
        inotify: Option<Inotify>,
        watched: Mutex<Watched>,
    }

    #[derive(Debug, Default)]
    struct Watched {
        registry: Option<WatchDescriptor>,
        runs: HashMap<WatchDescriptor, RunId>,
        places: HashMap<RunId, WatchDescriptor>,
    }

    impl Watcher {
        pub(in crate::live) fn new() -> Self {
            Self { inotify: Inotify::init(InitFlags::IN_CLOEXEC).ok(), watched: Mutex::default() }
        }

        /// Watches for new runs.
        pub(in crate::live) fn watch_registry(&self, home: &StateHome) {
            let Some(inotify) = &self.inotify else { return };
            let _ = std::fs::create_dir_all(home.registrations());
            let flags = AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO;
            self.lock().registry = inotify.add_watch(&home.registrations(), flags).ok();
        }

        /// Watches a run's record; returns whether there was room.
        pub(in crate::live) fn watch(&self, run: &RunId, record: &Path) -> bool {
            let Some(inotify) = &self.inotify else { return false };
            let mut watched = self.lock();
            if watched.places.contains_key(run) {
                return true;
            }
            if watched.places.len() >= MOST {
                return false;
            }
            let flags = AddWatchFlags::IN_MODIFY | AddWatchFlags::IN_CREATE | AddWatchFlags::IN_MOVED_TO;
            let Ok(place) = inotify.add_watch(record, flags) else { return false };
            watched.runs.insert(place, run.clone());
            watched.places.insert(run.clone(), place);
            true
        }

        pub(in crate::live) fn forget(&self, run: &RunId) {
            let mut watched = self.lock();
            let Some(place) = watched.places.remove(run) else { return };
            watched.runs.remove(&place);
            if let Some(inotify) = &self.inotify {
                // A deleted folder's watch is gone.
                let _ = inotify.rm_watch(place);
            }
        }

        pub(in crate::live) fn len(&self) -> usize {
            self.lock().places.len()
        }

        /// Waits for events; `None` without a watch.
        pub(in crate::live) fn read(&self) -> Option<Vec<Seen>> {
            let inotify = self.inotify.as_ref()?;
            loop {
                match inotify.read_events() {
                    Ok(events) => {
                        let watched = self.lock();
                        return Some(events.iter().filter_map(|event| watched.seen(event)).collect());
                    }
                    Err(nix::errno::Errno::EINTR) => {}
                    Err(_) => return None,
                }
            }
        }

        fn lock(&self) -> std::sync::MutexGuard<'_, Watched> {
            self.watched.lock().unwrap_or_else(|e| e.into_inner())
        }
    }

    impl Watched {
        fn seen(&self, event: &InotifyEvent) -> Option<Seen> {
            if event.mask.contains(AddWatchFlags::IN_Q_OVERFLOW) {
                return Some(Seen::Everything);
            }
            let name = event.name.as_ref()?.to_str()?;
            if self.registry == Some(event.wd) {
                return RunId::parse(name.strip_suffix(".json")?).ok().map(Seen::Registered);
            }
            let run = self.runs.get(&event.wd)?.clone();
            match name {
                "events.jsonl" => Some(Seen::Journal(run)),
                "live.jsonl" => Some(Seen::Output(run)),
                _ => None,
            }
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod none {
    use super::{Path, RunId, Seen, StateHome};

    /// No watch: everything is polled.
    #[derive(Debug)]
    pub(in crate::live) struct Watcher;

    impl Watcher {
        pub(in crate::live) fn new() -> Self {
            Self
        }
        pub(in crate::live) fn watch_registry(&self, _: &StateHome) {}
        pub(in crate::live) fn watch(&self, _: &RunId, _: &Path) -> bool {
            false
        }
        pub(in crate::live) fn forget(&self, _: &RunId) {}
        pub(in crate::live) fn len(&self) -> usize {
            0
        }
        pub(in crate::live) fn read(&self) -> Option<Vec<Seen>> {
            None
        }
    }
}
