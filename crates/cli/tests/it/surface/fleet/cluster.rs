//! Two machines, a Postgres, an artifact store and a code host.

use crate::RALPH;
use crate::surface::fleet::net::Net;
use crate::surface::fleet::wire::Wire;
use ralph_loop_app::{Overrides, RunRequest, TaskInput, Workplace};
use ralph_loop_domain::ports::Forge as _;
use ralph_loop_fleet::files::Files;
use ralph_loop_fleet::runs::{self, FleetRun, NewRun};
use ralph_loop_fleet::{Fleet, seal};
use ralph_loop_forge::LocalForge;
use ralph_loop_protocol::id::RunId;
use ralph_loop_task::dialect::Publish;
use ralph_loop_testkit::env::until;
use ralph_loop_testkit::postgres::Postgres;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::{Value, json};
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

/// Lease seconds in these tests.
pub const LEASE: &str = "5";

/// The same, for callers of the library.
pub fn lease() -> std::time::Duration {
    std::time::Duration::from_secs(5)
}

/// Session `n` writes part `n`; the third promises.
pub const PARTS: &str = r#"
i=$RALPH_ITERATION
echo "part $i" > part$i.txt
echo "wrote part $i"
if [ $i -ge 3 ]; then echo '<promise>COMPLETE</promise>'; fi
"#;
pub const CHECK: &str = "test -f part1.txt && test -f part2.txt && test -f part3.txt";

pub struct World {
    pub postgres: Postgres,
    pub fleet: Fleet,
    pub forge: LocalForge,
    pub store: PathBuf,
    /// Machine 0's connection to the database, if it can be cut.
    pub wire: Option<Wire>,
    /// The network of machine 0, if it has a separate one.
    pub net: Option<Net>,
    /// The users' machine with the code host, then those of the workers.
    pub home: TestEnv,
    pub machines: Vec<TestEnv>,
    /// Additional variables of the workers on each machine.
    pub vars: [Vec<(String, String)>; 2],
}

impl World {
    /// `None` if Postgres isn't installed.
    pub fn new(agent: &str) -> Option<Self> {
        Self::with_builds(agent, [RALPH.into(), RALPH.into()])
    }

    /// The same, with another build on each machine.
    pub fn with_builds(agent: &str, builds: [std::ffi::OsString; 2]) -> Option<Self> {
        let postgres = Postgres::start()?;
        let home = TestEnv::new(RALPH);
        let repo = TestRepo::new(&home, "seed", &[("readme.txt", "hello\n")]);
        let forge = LocalForge::open(&home.path("forge"), &ralph_loop_testkit::vars()).unwrap();
        forge.seed(&repo.dir, "main").unwrap();
        // Two concurrent sessions of one run are a fault; the lock of a dead session is free.
        let shared = home.path("shared");
        std::fs::create_dir_all(&shared).unwrap();
        let shared = shared.display();
        let alone = format!(
            "exec 9>\"{shared}/$RALPH_RUN.lock\"; flock -n 9 || echo \"$RALPH_RUN\" >> \"{shared}/double\"; echo x >> \"{shared}/$RALPH_RUN.sessions\""
        );
        let machines: Vec<TestEnv> = builds.into_iter().map(TestEnv::new).collect();
        for machine in &machines {
            let stub = TestRepo::new(machine, "stub", &[]).script("stub.sh", &format!("{alone}\n{agent}"));
            let config = json!({
                "agents": [{ "name": "stub", "command_argv": [stub] }], "local_forge": home.path("forge"),
                "poll_seconds": 0.05, "baseline": false, "max_iterations": 6, "isolation": "none",
            });
            machine.user_config(&config);
            machine.server_config(&config);
        }
        let fleet = until("a connection to the database", || Fleet::open(&postgres.url).ok());
        Some(Self {
            store: home.path("store"),
            wire: None,
            net: None,
            vars: Default::default(),
            postgres,
            fleet,
            forge,
            home,
            machines,
        })
    }

    /// The same, with a connection from machine 0 to the database that can be cut.
    pub fn with_wire(agent: &str) -> Option<Self> {
        let mut world = Self::new(agent)?;
        world.wire = Some(Wire::to(&world.postgres.socket()));
        Some(world)
    }

    /// The same, with a separate network for machine 0 whose packets can be lost.
    pub fn with_net(agent: &str) -> Option<Self> {
        let mut world = Self::new(agent)?;
        let net = Net::new()?;
        world.wire = Some(Wire::from(&net.host, &world.postgres.socket()));
        world.net = Some(net);
        Some(world)
    }

    /// Cuts the connection between machine 0 and the database in both directions.
    pub fn cut(&self) {
        match (&self.net, &self.wire) {
            (Some(net), _) => net.cut(),
            (_, wire) => wire.as_ref().unwrap().cut(),
        }
    }

    /// Restores the connection; data in transit arrives late.
    pub fn mend(&self) {
        match (&self.net, &self.wire) {
            (Some(net), Some(wire)) => net.mend(wire.port),
            (_, wire) => wire.as_ref().unwrap().mend(),
        }
    }

    /// Adds a run for an issue; returns both.
    pub fn add_of_issue(&self, name: &str) -> (RunId, u64) {
        self.add_changed(name, |_| {})
    }

    /// The same with a changed request.
    pub fn add_changed(&self, name: &str, change: impl FnOnce(&mut RunRequest)) -> (RunId, u64) {
        let issue = self.forge.add_issue("Three parts", "Write `part1.txt` to `part3.txt`.", &[]).unwrap();
        let run = RunId::parse(&format!("20261117-120000-{name}")).unwrap();
        let from = self.forge.root().join("repo.git").display().to_string();
        let mut request = RunRequest {
            task: TaskInput::Issue(issue.to_string()),
            place: Workplace::Clone { from, depth: None, sparse: Vec::new() },
            publish: Some(Publish::Pr),
            isolation: Some(ralph_loop_task::config::Isolation::None),
            overrides: Overrides { verify: vec![CHECK.to_owned()], ..Overrides::default() },
            ..RunRequest::default()
        };
        change(&mut request);
        let new = NewRun {
            run: run.clone(),
            request,
            title: "three parts".into(),
            person: "ana".into(),
            labels: Vec::new(),
            secrets: Vec::new(),
            profiles: [None, None],
            source: String::new(),
            at_once: None,
            occasion: None,
        };
        assert!(self.fleet.wait(runs::add(self.fleet.pool(), &new)).unwrap());
        (run, issue)
    }

    /// The same without an issue.
    pub fn add(&self, name: &str) -> RunId {
        self.add_of_issue(name).0
    }

    /// `ralph worker` on a machine, with additional arguments and a fault.
    pub fn worker(&self, machine: usize, args: &[&str], fault: Option<&str>) -> Command {
        let env = &self.machines[machine];
        let mut command = env.ralph_command(&env.path("home"), &[&["--json", "worker"], args].concat());
        let url = match &self.wire {
            Some(wire) if machine == 0 => wire.url(),
            _ => self.postgres.url.clone(),
        };
        command.env("RALPH_DB_URL", url).env("RALPH_ARTIFACTS", &self.store);
        command.env("RALPH_LEASE_SECONDS", LEASE).env("RALPH_WORKER", format!("w{machine}"));
        command.envs(self.vars[machine].iter().map(|(name, value)| (name, value)));
        if let Some(fault) = fault {
            command.env("RALPH_FAULT", fault);
        }
        match &self.net {
            Some(net) if machine == 0 => net.inside(&command),
            _ => command,
        }
    }

    pub fn spawn(&self, machine: usize, args: &[&str], fault: Option<&str>) -> Child {
        let log = self.machines[machine].path("worker.log");
        let log = std::fs::OpenOptions::new().create(true).append(true).open(log).unwrap();
        let mut command = self.worker(machine, args, fault);
        command.stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }

    pub fn log(&self, machine: usize) -> String {
        std::fs::read_to_string(self.machines[machine].path("worker.log")).unwrap_or_default()
    }

    pub fn find(&self, run: &RunId) -> FleetRun {
        self.fleet.wait(runs::find(self.fleet.pool(), run.as_str())).unwrap().unwrap()
    }

    /// Lease seconds for tests in which no lease may expire on a busy machine.
    pub fn with_lease(mut self, seconds: u32) -> Self {
        for vars in &mut self.vars {
            vars.push(("RALPH_LEASE_SECONDS".to_owned(), seconds.to_string()));
        }
        self
    }

    /// The files that a server shows of runs on other machines.
    pub fn files(&self) -> Files {
        Files::new(&ralph_loop_testkit::vars())
    }

    /// Takes a run's lease on a machine and drives the run to its end. Retries if a busy machine loses the lease.
    pub fn drive(&self, machine: usize, run: &RunId) {
        let mut said = String::new();
        let begun = std::time::Instant::now();
        until("the end of the run", || {
            let done = TestEnv::finish(&mut self.worker(machine, &["--once", run.as_str()], None));
            assert!(!done.stderr.contains("panicked"), "{}", done.stderr);
            said = format!("{:?}\n{}\n{}", done.code, done.stdout, done.stderr);
            assert!(begun.elapsed().as_secs() < 180, "the run does not end: {said}");
            (self.find(run).status == "over").then_some(())
        });
    }

    /// The first machine and its disk are lost after two iterations, and the other one continues: no session is paid for twice.
    pub fn lose_a_machine(&self, name: &str) -> RunId {
        let (run, issue) = self.add_of_issue(name);
        let mut first = self.spawn(0, &["--once", run.as_str()], Some("judge.after#2"));
        first.wait().unwrap();
        std::fs::remove_dir_all(self.machines[0].path("state")).unwrap();
        self.drive(1, &run);
        self.assert_done_once(&run, issue);
        let events = self.events(&run);
        let sessions = events.iter().filter(|event| event["kind"] == "session_ended").count();
        assert_eq!(sessions, 3, "no session was paid for twice");
        assert!(events.iter().any(|event| event["kind"] == "moved"));
        run
    }

    /// The sealed journal of a run.
    pub fn events(&self, run: &RunId) -> Vec<Value> {
        let text = self.fleet.wait(seal::read_from(self.fleet.pool(), run.as_str(), 0)).unwrap();
        let text = String::from_utf8(text).unwrap();
        text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
    }

    /// Asserts that a finished run has one pull request with the proven commit and one reply to its issue, a journal without gaps,
    /// and epochs that never decrease.
    pub fn assert_done_once(&self, run: &RunId, issue: u64) {
        assert_eq!(self.find(run).status, "over");
        let double = std::fs::read_to_string(self.home.path("shared/double")).unwrap_or_default();
        assert_eq!(double, "", "two sessions of a run at a time");
        let events = self.events(run);
        let seqs: Vec<u64> = events.iter().map(|event| event["seq"].as_u64().unwrap()).collect();
        assert_eq!(seqs, (1..=seqs.len() as u64).collect::<Vec<_>>());
        let epochs: Vec<u64> = events.iter().filter_map(|event| event["epoch"].as_u64()).collect();
        assert!(epochs.is_sorted_by(|a, b| a < b), "{epochs:?}");
        let ends: Vec<&Value> = events.iter().filter(|event| event["kind"] == "finished").collect();
        assert_eq!(ends.len(), 1);
        assert_eq!(ends[0]["reason"], "completed", "{ends:?}");
        let branch = format!("ralph/issue-{issue}/three-parts");
        let prs: Vec<_> = self.forge.open_prs().unwrap().into_iter().filter(|pr| pr.head == branch).collect();
        assert_eq!(prs.len(), 1, "one pull request");
        let proven = events.iter().rev().find(|event| event["kind"] == "proof_finished").unwrap();
        assert_eq!(prs[0].head_commit, proven["commit"].as_str().unwrap());
        let answers = self.forge.comments(issue).unwrap();
        assert_eq!(answers.len(), 1, "one answer: {answers:?}");
    }
}
