//! Performs effects, each on its own thread; results come back as messages.

use super::watch::Watcher;
use super::{Inbound, checks, command, look, on_server, runs, setup, spec, start};
use crate::msg::{Effect, Msg};
use crate::remote::Server;
use ralph_loop_app::{App, AppError, Environment};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;

/// Context of an effect thread.
#[derive(Clone)]
pub struct World {
    pub app: App,
    pub folder: PathBuf,
    /// The server whose runs are shown; `None` for this machine.
    server: Option<Server>,
    to: Sender<Inbound>,
    /// Number of the current questions; each stop invalidates earlier ones.
    asking: Arc<AtomicU64>,
}

impl World {
    pub fn tell(&self, msg: Msg) {
        // Fails if the screen is closed.
        let _ = self.to.send(Inbound::Msg(msg));
    }

    pub fn page(&self, text: String) {
        let _ = self.to.send(Inbound::Page(text));
    }

    pub fn env(&self) -> &Environment {
        self.app.environment()
    }

    pub fn top(&self) -> PathBuf {
        ralph_loop_app::read::find::top(&self.folder)
    }

    /// The number of stops so far.
    pub fn asked(&self) -> u64 {
        self.asking.load(Ordering::Relaxed)
    }
}

pub struct Performer {
    world: World,
    watcher: Watcher,
}

impl Performer {
    pub fn new(app: App, folder: &Path, server: Option<Server>, to: Sender<Inbound>) -> Self {
        let watcher = Watcher::new(app.clone(), folder, server.clone(), to.clone());
        let world = World { app, folder: folder.to_owned(), server, to, asking: Arc::default() };
        Self { world, watcher }
    }

    pub fn environment(&self) -> &Environment {
        self.world.env()
    }

    pub fn all(&self, effects: Vec<Effect>) {
        for effect in effects {
            match effect {
                Effect::Quit => {}
                Effect::Watch(run) => self.watcher.watch(run),
                Effect::Unwatch => self.watcher.stop(),
                Effect::StopAsking => {
                    self.world.asking.fetch_add(1, Ordering::Relaxed);
                }
                // Reviewers read in parallel.
                Effect::Review { agents, draft } => {
                    for agent in agents {
                        let (world, draft) = (self.world.clone(), draft.clone());
                        std::thread::spawn(move || spec::review(&world, &agent, &draft));
                    }
                }
                other => {
                    let world = self.world.clone();
                    std::thread::spawn(move || {
                        let done = match &world.server {
                            Some(server) => on_server::perform(&world, server, other),
                            None => perform(&world, other),
                        };
                        if let Err(error) = done {
                            world.tell(Msg::Failed(error.into()));
                        }
                    });
                }
            }
        }
    }
}

fn perform(world: &World, effect: Effect) -> Result<(), AppError> {
    match effect {
        Effect::LookAround => world.tell(Msg::Repo(Box::new(look::repo(world)))),
        Effect::ListRuns => world.tell(Msg::Runs(look::runs(world)?)),
        Effect::FirstCommit => return look::first_commit(world),
        Effect::Send { run, control, then_resume } => return runs::send(world, &run, control, then_resume),
        Effect::Resume(run) => return runs::resume(world, &run),
        Effect::End { run, now } => return runs::end(world, &run, now),
        Effect::LoadTab { run, tab } => world.tell(Msg::Tab(tab, runs::tab(world, &run, tab)?)),
        Effect::LoadDetails { run, from, iteration } => {
            world.tell(Msg::Details(Box::new(runs::details(world, &run, from, iteration)?)));
        }
        Effect::ShowDiff(run) => world.page(runs::diff(world, &run)?),
        Effect::SaveText { name, text } => return runs::save(world, &name, &text),
        Effect::Start(wish) => return start::start(world, *wish),
        Effect::AllowAndStart(wish) => return start::allow(world, *wish),
        Effect::Command { words, done } => return command::run(world, &words, &done),
        Effect::Ask { agent, thread, messages, draft } => {
            spec::ask(world, &agent, &thread, &messages, &draft);
        }
        Effect::Remember { thread, message } => return spec::remember(world, &thread, &message),
        Effect::ListThreads => world.tell(Msg::Threads(spec::threads(world))),
        Effect::LoadThread(id) => world.tell(Msg::Thread(id.clone(), spec::thread(world, &id)?)),
        Effect::ListFiles => world.tell(Msg::Files(look::files(world))),
        Effect::Lint(draft) => {
            let (found, checks) = checks::lint(world, &draft)?;
            world.tell(Msg::Linted { found, checks });
        }
        Effect::TryChecks(draft) => {
            world.tell(Msg::Baseline(checks::baseline(world, &draft).map_err(Into::into)));
        }
        Effect::WriteTask { draft, dialect, spec } => {
            return spec::write(world, &draft, &dialect, spec.as_deref());
        }
        Effect::Probe { agent, seconds } => setup::probe(world, &agent, seconds),
        Effect::SaveConfig(choices) => return setup::save(world, &choices),
        Effect::Quit | Effect::Watch(_) | Effect::Unwatch | Effect::StopAsking | Effect::Review { .. } => {}
    }
    Ok(())
}
