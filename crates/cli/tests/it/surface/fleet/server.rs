//! A fleet server: assigns runs, admits and revokes workers, hands secrets to runs, and shows remote runs.

use crate::surface::fleet::cluster::{PARTS, World};
use crate::surface::serve::machine::Served;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ralph_loop_fleet::{Fleet, runs};
use ralph_loop_testkit::TestEnv;
use ralph_loop_testkit::env::until;
use serde_json::json;
use std::process::{Child, Stdio};

impl World {
    /// A server of this fleet, with additional variables.
    pub fn serve(&self, vars: &[(&str, &str)]) -> Served {
        let store = self.store.display().to_string();
        let own = [
            ("RALPH_DB_URL", self.postgres.url.as_str()),
            ("RALPH_ARTIFACTS", &store),
            ("RALPH_LEASE_SECONDS", crate::surface::fleet::cluster::LEASE),
        ];
        let vars: Vec<(&str, &str)> = own.into_iter().chain(vars.iter().copied()).collect();
        Served::start_with(&self.home, &self.home.path("home"), &[], &vars)
    }

    /// A worker on a machine that has only its enrollment login.
    fn enrolled(&self, machine: usize, args: &[&str]) -> Child {
        let log = std::fs::File::create(self.machines[machine].path("worker.log")).unwrap();
        let mut command = self.worker(machine, args, None);
        command.env_remove("RALPH_DB_URL").env_remove("RALPH_WORKER");
        command.stdout(Stdio::null()).stderr(log).spawn().unwrap()
    }
}

fn end(mut child: Child) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), Signal::SIGTERM).unwrap();
    child.wait().unwrap();
}

#[test]
fn worker_sees_only_its_runs_and_their_secrets() {
    let seen = "env | grep _API_KEY | sort > \"$HOME/seen\"";
    let Some(world) = World::new(&format!("{seen}\n{PARTS}")) else { return };
    let served = world.serve(&[]);
    for (name, value) in [("ANTHROPIC_API_KEY", "sk-ant-of-the-run"), ("OPENAI_API_KEY", "sk-of-another-run")]
    {
        served
            .send(&served.token, "PUT", &format!("/secrets/{name}"), &[], Some(&json!({ "value": value })))
            .is(204);
    }
    let token = served.post("/fleet/tokens", &json!({})).is(201).json()["token"].as_str().unwrap().to_owned();
    let url = format!("http://127.0.0.1:{}", served.port);
    let enrol = |machine: usize, name: &str, token: &str| {
        let args = ["--enrol", &url, "--token", token, "--name", name];
        let mut command = world.worker(machine, &args, None);
        TestEnv::finish(command.env_remove("RALPH_DB_URL").env_remove("RALPH_WORKER"))
    };
    assert!(enrol(0, "e0", "rw_guess").exits(4).stderr.contains("not known"), "a token is needed");
    enrol(0, "e0", &token).exits(0);
    assert!(enrol(1, "e1", &token).exits(4).stderr.contains("was used"), "it is good once");

    // One run goes to the worker; the other needs a label that it lacks.
    let (run, issue) = world.add_of_issue("mine");
    let other = world.add("thrs");
    let pool = world.fleet.pool();
    world.fleet.wait(runs::require(pool, other.as_str(), &["gpu".to_owned()])).unwrap();
    world.fleet.wait(runs::give_secrets(pool, run.as_str(), &["ANTHROPIC_API_KEY".to_owned()])).unwrap();
    let mut worker = world.enrolled(0, &[]);
    until("the end of the run", || (world.find(&run).status == "over").then_some(()));
    world.assert_done_once(&run, issue);
    let given = std::fs::read_to_string(world.machines[0].path("home/seen")).unwrap();
    assert_eq!(given, "ANTHROPIC_API_KEY=sk-ant-of-the-run\n");
    let noted = served.get("/audit").is(200).text();
    assert!(noted.contains("give secrets") && noted.contains("e0") && !noted.contains("sk-ant"), "{noted}");

    let login = std::fs::read_to_string(world.machines[0].path("state/ralph/worker.json")).unwrap();
    let login: serde_json::Value = serde_json::from_str(&login).unwrap();
    let theirs = Fleet::open(login["url"].as_str().unwrap()).unwrap();
    let seen = theirs.wait(runs::list(theirs.pool(), 10)).unwrap();
    let seen: Vec<&str> = seen.iter().map(|run| run.run.as_str()).collect();
    assert_eq!(seen, [run.as_str()], "a worker sees what it was given");
    assert!(
        theirs
            .wait(ralph_loop_fleet::lease::take(
                theirs.pool(),
                other.as_str(),
                "e0/x",
                crate::surface::fleet::cluster::lease()
            ))
            .is_err()
    );

    served.post("/fleet/workers/e0/revoke", &json!({})).is(204);
    assert!(Fleet::open(login["url"].as_str().unwrap()).is_err(), "its login is gone");
    let listed = served.get("/fleet/workers").is(200).json();
    assert_eq!(listed["workers"][0]["revoked"], true, "{listed}");
    // It doesn't wait for a login that never arrives.
    assert_eq!(worker.wait().unwrap().code(), Some(4));
    assert!(world.log(0).contains("revoked"), "{}", world.log(0));
}

#[test]
fn server_shows_remote_runs_and_forwards_controls() {
    let Some(world) = World::new("sleep 600") else { return };
    let served = world.serve(&[]);
    let ready =
        crate::surface::serve::client::request(served.port, "GET", "/readyz", &[], None).is(200).json();
    assert!(ready["warning"].as_str().unwrap().contains("synchronous standby"), "{ready}");
    let run = world.add("shwn");
    let worker = world.spawn(0, &["--name", "w0", "--labels", "eu"], None);
    served.row_when(run.as_str(), "work", |row| row["status"] == "working");
    // A worker reports its state every few seconds.
    let shown = until("a worker with its run", || {
        let listed = served.get("/fleet/workers").is(200).json();
        let shown = listed["workers"].as_array().unwrap().iter().find(|w| w["id"] == "w0")?.clone();
        (shown["runs"].as_i64() == Some(1)).then_some(shown)
    });
    assert_eq!(shown["health"].as_str(), Some("ok"), "{shown}");
    assert!(shown["version"].as_str().is_some_and(|version| !version.is_empty()));
    assert!(shown["labels"].as_array().unwrap().contains(&json!("eu")));
    let runs = served.get("/fleet/runs").is(200).json();
    assert_eq!(runs["runs"][0]["worker"], "w0", "{runs}");
    served.control(run.as_str(), json!({ "kind": "cancel" }));
    served.row_when(run.as_str(), "the end", |row| row["status"] == "stopped");
    until("the end of the run in the fleet", || (world.find(&run).status == "over").then_some(()));
    end(worker);
}

#[test]
fn server_shows_what_a_run_did_after_its_worker_is_gone() {
    let waiting = "echo on its way; while [ ! -f \"$HOME/go\" ]; do sleep 0.05; done";
    let Some(world) = World::new(&format!("{waiting}\n{PARTS}")) else { return };
    let served = world.serve(&[]);
    let run = world.add("gone");
    let worker = world.spawn(0, &["--name", "w0"], None);
    let live = world.home.path("state/ralph/runs").join(run.as_str()).join("live.jsonl");
    until("live output", || std::fs::read_to_string(&live).ok()?.contains("on its way").then_some(()));
    let row = served.row_when(run.as_str(), "work", |row| row["status"] == "working");
    assert_eq!(row["person"], "ana", "{row}");
    assert!(row["repo"].as_str().unwrap().ends_with("repo.git"), "{row}");
    std::fs::write(world.machines[0].path("home/go"), "").unwrap();
    served.row_when(run.as_str(), "the end", |row| row["status"] == "done");
    end(worker);
    std::fs::remove_dir_all(world.machines[0].path("state")).unwrap();
    let diff = until("the whole change", || {
        let diff = served.get(&format!("/runs/{run}/diff")).is(200).json();
        (diff["files"].as_array()?.len() == 3).then_some(diff)
    });
    assert!(diff["patch"].as_str().unwrap().contains("+part 2"), "{diff}");
    let file = served.get(&format!("/runs/{run}/files/part3.txt")).is(200).json();
    assert_eq!(file["text"], "part 3\n", "{file}");
    let names = served.get(&format!("/runs/{run}/files")).is(200).text();
    assert!(names.contains("part1.txt"), "{names}");
    let output = served.get(&format!("/runs/{run}/output/2")).is(200).text();
    assert!(output.contains("wrote part 2"), "{output}");
    let second = served.get(&format!("/runs/{run}/diff?iteration=2")).is(200).text();
    assert!(second.contains("+part 2") && !second.contains("+part 1"), "{second}");
}
