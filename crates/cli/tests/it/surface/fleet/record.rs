//! Data that outlives a machine: artifacts in a bucket, sealed journals after the index is deleted, and the one notification that
//! may arrive twice.

use crate::surface::fleet::cluster::{PARTS, World};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use ralph_loop_testkit::TestEnv;
use std::collections::BTreeMap;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

const SECRET: &str = "of-the-bucket-and-no-other";

/// A bucket of a Moto server.
struct Bucket {
    server: Child,
    address: String,
}

impl Bucket {
    /// `None` if the server can't be installed.
    fn start() -> Option<Self> {
        let script = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scripts/s3");
        let found = Command::new(script).output().ok()?;
        if !found.status.success() {
            ralph_loop_testkit::skip(&format!(
                "no bucket here: {}",
                String::from_utf8_lossy(&found.stderr).trim()
            ));
            return None;
        }
        let program = String::from_utf8_lossy(&found.stdout).trim().to_owned();
        let mut server = Command::new(program)
            .args(["-H", "127.0.0.1", "-p", "0"])
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut said = BufReader::new(server.stderr.take().unwrap()).lines();
        let address =
            said.by_ref().flatten().find_map(|line| Some(line.split_once("http://")?.1.trim().to_owned()));
        // It blocks forever if its output isn't read.
        std::thread::spawn(move || said.count());
        let bucket = Self { server, address: address.unwrap() };
        bucket.ask("PUT", "/fleet");
        Some(bucket)
    }

    fn ask(&self, method: &str, path: &str) -> String {
        let mut stream = TcpStream::connect(&self.address).unwrap();
        write!(
            stream,
            "{method} {path} HTTP/1.1\r\nhost: {}\r\ncontent-length: 0\r\nconnection: close\r\n\r\n",
            self.address
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        answer
    }
}

impl Drop for Bucket {
    fn drop(&mut self) {
        let _ = self.server.kill();
        let _ = self.server.wait();
    }
}

#[test]
fn bucket_keeps_artifacts_of_a_lost_machine() {
    let Some(mut world) = World::new(&format!("env > \"$HOME/env\"\n{PARTS}")) else { return };
    let Some(bucket) = Bucket::start() else { return };
    for vars in &mut world.vars {
        let of_bucket = [
            ("RALPH_ARTIFACTS", "s3://fleet/of-a-team".to_owned()),
            ("AWS_ENDPOINT_URL", format!("http://{}", bucket.address)),
            ("AWS_ACCESS_KEY_ID", "of-the-bucket".to_owned()),
            ("AWS_SECRET_ACCESS_KEY", SECRET.to_owned()),
            ("AWS_REGION", "us-east-1".to_owned()),
        ];
        vars.extend(of_bucket.map(|(name, value)| (name.to_owned(), value)));
    }
    let world = world.with_lease(10);
    let run = world.lose_a_machine("buck");
    assert!(bucket.ask("GET", "/fleet?list-type=2").contains(&format!("of-a-team/runs/{run}")));
    assert!(!world.store.exists(), "nothing in a folder");
    // It uses the worker's own key.
    let seen = std::fs::read_to_string(world.machines[1].path("home/env")).unwrap();
    assert!(seen.contains("RALPH_RUN=") && !seen.contains(SECRET), "{seen}");
    assert!(
        !world.log(0).contains(SECRET)
            && !serde_json::to_string(&world.events(&run)).unwrap().contains(SECRET)
    );
}

#[test]
fn rebuilt_index_leaves_sealed_journals_unchanged() {
    let Some(world) = World::new(PARTS) else { return };
    let (run, issue) = world.add_of_issue("rebd");
    // Sealed but not finished.
    let mut first = world.spawn(0, &["--once", run.as_str()], Some("judge.after#1"));
    first.wait().unwrap();
    let rebuild = || {
        let mut command = world.home.ralph_command(&world.home.path("home"), &["index", "rebuild", "--json"]);
        TestEnv::finish(command.env("RALPH_DB_URL", &world.postgres.url)).exits(0)
    };
    let served = world.serve(&[]);
    served.stop();
    let (before, row) = (world.events(&run), world.find(&run));
    rebuild();
    assert_eq!(world.events(&run), before);
    let after = world.find(&run);
    assert_eq!((after.epoch, after.head, after.status), (row.epoch, row.head, row.status));
    world.drive(1, &run);
    world.assert_done_once(&run, issue);
    let before = world.events(&run);
    rebuild();
    assert_eq!(world.events(&run), before);
}

/// Sent but not journaled: the next holder sends it again with the same key.
#[test]
fn notification_is_sent_at_most_twice_with_one_key() {
    for fate in ["notify.sent", "freeze:notify.sent"] {
        let Some(world) = World::new(PARTS) else { return };
        let told = world.home.path("told");
        for machine in &world.machines {
            let write = format!("grep -o '\"id\":\"[^\"]*' >> '{}'", told.display());
            let path = machine.path("config").join("ralph/config.json");
            let mut config: serde_json::Value =
                serde_json::from_slice(&std::fs::read(&path).unwrap()).unwrap();
            config["notify"] = serde_json::json!([{ "kind": "command", "command_argv": ["sh", "-c", write], "on": ["start", "success"] }]);
            std::fs::write(&path, config.to_string()).unwrap();
        }
        let (run, issue) = world.add_of_issue("noti");
        let mut first = world.spawn(0, &["--once", run.as_str()], Some(fate));
        let frozen = fate.starts_with("freeze");
        ralph_loop_testkit::env::until("the fault", || match frozen {
            true => ralph_loop_journal::lock::is_stopped(first.id()).then_some(()),
            false => first.try_wait().unwrap().map(|_| ()),
        });
        world.drive(1, &run);
        if frozen {
            kill(Pid::from_raw(i32::try_from(first.id()).unwrap()), Signal::SIGCONT).unwrap();
            assert!(!first.wait().unwrap().success());
        }
        world.assert_done_once(&run, issue);
        let mut times: BTreeMap<String, usize> = BTreeMap::new();
        for id in std::fs::read_to_string(&told).unwrap().lines() {
            *times.entry(id.to_owned()).or_default() += 1;
        }
        assert_eq!(times.len(), 2, "{fate}: one for the start and one for the end: {times:?}");
        assert_eq!(times.values().filter(|count| **count > 1).count(), 1, "{fate}: {times:?}");
        assert!(times.values().all(|count| *count <= 2), "{fate}: {times:?}");
    }
}
