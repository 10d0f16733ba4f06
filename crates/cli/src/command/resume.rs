//! `ralph resume`: unpause a living run, continue a dead one.

mod elsewhere;

use crate::command::run::{finish, from_repo};
use crate::error::CommandError;
use crate::notify::{self, Wish};
use crate::output::Out;
use crate::{find, host, signals, wiring};
use ralph_core::Driver;
use ralph_core::clock::SystemClock;
use ralph_domain::config::Isolation;
use ralph_domain::control::{BudgetChange, Control};
use ralph_domain::money::Usd;
use ralph_domain::outcome::EndReason;
use ralph_domain::ports::Notifier;
use ralph_domain::spec::RunSpec;
use ralph_domain::state::{Finished, RunState};
use ralph_domain::text::{count, duration};
use ralph_git::Repo;
use ralph_journal::journal::Places;
use ralph_journal::layout::{RalphDir, StateHome};
use ralph_journal::lock::RunLock;
use ralph_journal::registry::Registration;
use ralph_journal::{JournalError, snapshot};
use std::path::Path;
use std::sync::Arc;

/// A run that is paused goes on; one whose process has ended is continued from its journal, with its iteration count,
/// cost, cooldowns and budgets.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph resume            the latest run of this folder
  ralph resume k3f9       by the end of its id
  ralph resume --from origin RUN   a run of another machine, from the state it pushed")]
pub struct ResumeArgs {
    /// The run; the latest of this folder if left out.
    pub run: Option<String>,
    /// Bring the run here first, from the state that it pushed to this remote (a name, an address or a folder).
    #[arg(long, value_name = "REMOTE", requires = "run")]
    pub from: Option<String>,
    /// With `--from`: how strongly the agent is fenced here; what the run says of that does not count.
    #[arg(long, value_name = "HOW", value_parser = crate::command::run::isolation, requires = "from")]
    pub isolation: Option<Isolation>,
    /// Also tell people this way, as long as this process lives: `slack`, `desktop`, `command:LINE`; or `none`.
    #[arg(long, value_name = "WAY", value_parser = notify::wish)]
    pub notify: Vec<notify::Wish>,
    #[command(flatten)]
    pub budgets: BudgetArgs,
}

/// Other limits for the whole run; a run that a budget ended goes on with a larger one.
#[derive(Debug, Clone, Default, clap::Args)]
pub struct BudgetArgs {
    /// Most iterations of the whole run.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub max_iterations: Option<u32>,
    /// Most working time of the whole run, in seconds.
    #[arg(long, value_name = "N")]
    pub max_seconds: Option<u64>,
    /// Most money of the whole run, in USD.
    #[arg(long, value_name = "USD")]
    pub max_cost: Option<f64>,
    /// Most tokens of the whole run.
    #[arg(long, value_name = "N")]
    pub max_tokens: Option<u64>,
}

impl BudgetArgs {
    fn change(&self) -> BudgetChange {
        BudgetChange {
            max_iterations: self.max_iterations,
            max_seconds: self.max_seconds,
            max_cost: self.max_cost.map(Usd::from_dollars),
            max_tokens: self.max_tokens,
        }
    }
}

/// Runs the command.
pub fn run(args: ResumeArgs, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    if let (Some(from), Some(run)) = (&args.from, &args.run) {
        elsewhere::bring(from, run, args.isolation, folder, out)?;
    }
    go_on(args.run.as_deref(), &args.notify, &args.budgets, folder, out)
}

/// A run that nobody drives, locked for this process.
pub struct Opened {
    /// Where this machine keeps what is not in the repo.
    pub home: StateHome,
    /// The run.
    pub spec: RunSpec,
    /// Its repo.
    pub repo: Repo,
    /// Its files.
    pub places: Places,
    /// Its lock.
    pub lock: RunLock,
}

/// Takes the lock of a run and reads what it is.
pub fn open(entry: &Registration) -> Result<Opened, CommandError> {
    host::load_dotenv(&entry.origin);
    let home = host::state_home()?;
    if !entry.workspace.is_dir() {
        return Err(CommandError::environment(format!("the folder of run {} is gone: `{}`", entry.run_id, entry.workspace.display()))
            .hint("bring it back (a worktree or clone can be made again from `refs/ralph/…/work`), or start a new run"));
    }
    let repo = Repo::discover(&entry.workspace).map_err(from_repo)?;
    let places = Places {
        dir: entry.run_dir(),
        seal: Some(home.seal(&entry.run_id)),
        spare: Some(repo.run_folder(&entry.run_id)),
    };
    let spec = match snapshot::read_spec(&places.dir) {
        Ok(spec) => spec,
        Err(error) => match &places.spare {
            Some(spare) => {
                snapshot::read_spec(&ralph_journal::layout::RunDir::at(spare)).map_err(|_| error)?
            }
            None => return Err(error.into()),
        },
    };
    let lock = wiring::lock(&spec)?;
    // Whatever an earlier process left behind and no guard could end is ended before anything new starts.
    ralph_sandbox::sweep(spec.run_id.as_str());
    Ok(Opened { home, spec, repo, places, lock })
}

/// Goes on with a run.
pub fn go_on(
    name: Option<&str>,
    wishes: &[Wish],
    budgets: &BudgetArgs,
    folder: &Path,
    out: &Out,
) -> Result<u8, CommandError> {
    let entry = find::run(folder, name)?;
    let handle = find::handle(&entry);
    let budgets = budgets.change();
    if handle.is_driven() {
        if !budgets.is_empty() {
            handle.send(Control::Budget(budgets))?;
        }
        handle.send(Control::Resume)?;
        out.say(format!("run {} goes on (`ralph logs -f {}` follows it)", entry.run_id, entry.run_id));
        if out.json {
            out.value(&serde_json::json!({ "run_id": entry.run_id, "sent": "resume" }));
        }
        return Ok(0);
    }
    let opened = open(&entry)?;
    let Opened { home, spec, repo, places, mut lock } = opened;
    let notifiers = notify::notifiers(wishes)?;
    if let Ok(state) = snapshot::load(&entry.ralph_dir(), &places.dir) {
        if let Some(end) = &state.finished {
            if ralph_core::is_outstanding(&state, &notifiers) {
                return tell_of_the_end(spec, places, notifiers, out);
            }
            may_go_on(&state, end, &budgets)?;
        }
        if let Some(need) = state.needs_human.as_ref().filter(|n| n.reason.needs_approval()) {
            let approved = inbox_has_approval(&places, state.inbox);
            if !approved {
                return Err(CommandError::needs_person(format!(
                    "run {} waits for your approval: {}",
                    spec.run_id, need.message
                ))
                .hint(format!(
                    "look at it, then `ralph approve {}` and `ralph resume {}`",
                    spec.run_id, spec.run_id
                )));
            }
        }
    }
    if spec.hands_back() && !spec.workspace.is_dir() {
        return Err(CommandError::environment(format!(
            "the agent's folder of run {} is gone: `{}`",
            spec.run_id,
            spec.workspace.display()
        ))
        .hint("your own folder has all that was handed back: `ralph run --new` goes on from there"));
    }
    if !budgets.is_empty() {
        ralph_journal::inbox::send(&places.dir, &host::actor(), Control::Budget(budgets))?;
    }
    ralph_journal::inbox::send(&places.dir, &host::actor(), Control::Resume)?;
    wiring::register(&home, &spec, &repo)?;
    let mut parts = wiring::parts(&home, &spec, repo, &lock, signals::install(), out)?;
    parts.notifiers = notifiers;
    let driver = Driver::resume(parts)?;
    lock.tell(driver.lease())?;
    Ok(finish(driver, out))
}

/// Whether a run that is over can go on: only where a budget ended it, and the new one leaves room.
fn may_go_on(state: &RunState, end: &Finished, budgets: &BudgetChange) -> Result<(), CommandError> {
    let id = &state.spec.run_id;
    let over = CommandError::usage(format!("run {id} is over: {}", end.summary));
    if !end.reason.is_budget() {
        return Err(over.hint("`ralph run --new` starts another one"));
    }
    let flag = match end.reason {
        EndReason::MaxIterations => "--max-iterations N",
        EndReason::MaxCost => "--max-cost USD",
        EndReason::MaxTokens => "--max-tokens N",
        _ => "--max-seconds N",
    };
    if budgets.is_empty() {
        return Err(over.hint(format!(
            "`ralph resume {id} {flag}` goes on with a larger budget, `ralph run --new` starts another run"
        )));
    }
    let spent = state.spent();
    match state.spec.settings.budgets.changed(budgets, state.now).exhausted(spent) {
        None => Ok(()),
        Some(kind) => Err(CommandError::usage(format!(
            "run {id} has used up that budget for {} already: {}, {}, {} and {} tokens",
            kind.as_str(),
            count(spent.iterations as usize, "iteration"),
            duration(spent.time),
            spent.cost,
            spent.tokens
        ))
        .hint(format!("give more than that: `ralph resume {id} {flag}`"))),
    }
}

/// The last process ended a run and died before it could tell anybody.
fn tell_of_the_end(
    spec: RunSpec,
    places: Places,
    notifiers: Vec<Box<dyn Notifier>>,
    out: &Out,
) -> Result<u8, CommandError> {
    let run_id = spec.run_id.clone();
    let (dir, redactor) = (RalphDir::of(&spec.workspace), Arc::new(host::redactor(&spec.origin)));
    let clock = Arc::new(SystemClock::default());
    let told = ralph_core::catch_up(places, dir, spec, redactor, clock, notifiers)?;
    out.say(format!("run {run_id} is over; people are told of it now (`ralph show {run_id}` shows it)"));
    if out.json {
        out.value(&serde_json::json!({ "run_id": run_id, "told": told }));
    }
    Ok(0)
}

fn inbox_has_approval(places: &Places, from: u64) -> bool {
    let letters = ralph_journal::inbox::read(&places.dir, from).unwrap_or_default();
    letters.iter().any(|(letter, _)| letter.as_ref().is_ok_and(|l| l.control == Control::Approve))
}

/// A journal that was edited while nobody drove it: `approve` keeps the sealed copy.
pub fn accept_sealed(places: &Places) -> Result<Option<std::path::PathBuf>, JournalError> {
    let redactor = std::sync::Arc::new(ralph_domain::redact::Redactor::default());
    match ralph_journal::journal::Journal::open(places.clone(), redactor, &mut |_| {}) {
        Err(JournalError::Tampered { .. }) => ralph_journal::repair::restore_from_seal(places).map(Some),
        _ => Ok(None),
    }
}
