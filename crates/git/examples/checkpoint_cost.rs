//! Measures a checkpoint on a repo of 1,000 files, with `git status` for comparison.
//!
//! `cargo run --release -p ralph-loop-git --example checkpoint_cost`
#![allow(clippy::print_stdout, reason = "printing is what this example is for")]
#![allow(clippy::disallowed_methods, reason = "a separate program may use these directly")]

use ralph_loop_domain::ports::{CheckpointRequest, Workspace};
use ralph_loop_git::{CommitIdentity, Git, GitWorkspace, Repo, WorkspaceOptions};
use ralph_loop_protocol::id::{AgentName, RunId};
use std::error::Error;
use std::fs;
use std::time::{Duration, Instant};

const ROUNDS: u32 = 200;

fn vars() -> ralph_loop_domain::vars::Vars {
    std::env::vars_os().collect()
}

fn main() -> Result<(), Box<dyn Error>> {
    let folder = std::env::temp_dir().join(format!("ralph-checkpoint-cost-{}", std::process::id()));
    fs::create_dir_all(&folder)?;
    let result = measure(&folder);
    fs::remove_dir_all(&folder)?;
    result
}

fn measure(folder: &std::path::Path) -> Result<(), Box<dyn Error>> {
    let git = Git::in_folder(&vars(), folder);
    git.call(["init", "-q"]).run()?;
    for n in 0..1000 {
        let dir = folder.join(format!("src/part{:02}", n / 20));
        fs::create_dir_all(&dir)?;
        fs::write(dir.join(format!("file{n}.rs")), format!("// file {n}\n").repeat(100))?;
    }
    git.call(["add", "-A"]).run()?;
    let who = ["-c", "user.name=a", "-c", "user.email=a@b"];
    git.call(who.into_iter().chain(["commit", "-qm", "start"])).run()?;
    // Files as old as in a real repo: git compares fresh ones by content.
    let old =
        fs::FileTimes::new().set_modified(fs::metadata(folder)?.modified()? - Duration::from_secs(3600));
    for n in 0..1000 {
        let path = folder.join(format!("src/part{:02}/file{n}.rs", n / 20));
        fs::File::options().write(true).open(path)?.set_times(old)?;
    }
    git.call(["update-index", "-q", "--refresh"]).run()?;

    let repo = Repo::discover(&vars(), folder)?;
    let discover = mean(20, |_| Repo::discover(&vars(), folder).map(drop).map_err(Into::into))?;
    let options = WorkspaceOptions::new(CommitIdentity::new("Ralph", "ralph@localhost"));
    let mut workspace = GitWorkspace::new(repo, RunId::from("cost"), options)?;
    let began = Instant::now();
    workspace.begin(&[])?;
    let begin = began.elapsed();

    let agent = AgentName::from("agent");
    let mut iteration = 0;
    let mut checkpoint = |workspace: &mut GitWorkspace| -> Result<(), Box<dyn Error>> {
        iteration += 1;
        let at = jiff::Timestamp::from_second(1_800_000_000 + i64::from(iteration))?;
        let message = "ralph(agent): iter";
        workspace.checkpoint(&CheckpointRequest {
            iteration,
            agent: &agent,
            message,
            parts: &[],
            at,
            on_branch: false,
            redactor: None,
        })?;
        Ok(())
    };
    // Interleaved, so that load on the machine affects all three equally.
    let (mut status, mut unchanged, mut changed, mut refs) = (vec![], vec![], vec![], vec![]);
    for round in 0..ROUNDS {
        let timed = Instant::now();
        git.call(["status", "--porcelain"]).run()?;
        status.push(timed.elapsed());
        fs::write(folder.join("src/part07/file150.rs"), format!("// round {round}\n").repeat(100))?;
        let timed = Instant::now();
        checkpoint(&mut workspace)?;
        changed.push(timed.elapsed());
        let timed = Instant::now();
        checkpoint(&mut workspace)?;
        unchanged.push(timed.elapsed());
        let timed = Instant::now();
        workspace.moved_refs()?;
        refs.push(timed.elapsed());
    }
    let average = |times: &[Duration]| times.iter().sum::<Duration>().as_secs_f64() * 1e3 / f64::from(ROUNDS);
    let (status, unchanged, changed) = (average(&status), average(&unchanged), average(&changed));
    println!("git status           {status:7.3} ms");
    println!("unchanged checkpoint {unchanged:7.3} ms  {:5.2} x status (goal 0.4)", unchanged / status);
    println!("changed checkpoint   {changed:7.3} ms  {:5.2} x status (goal 2.2)", changed / status);
    println!("moved_refs           {:7.3} ms", average(&refs));
    println!("begin                {:7.3} ms", begin.as_secs_f64() * 1e3);
    println!("discover             {:7.3} ms", discover.as_secs_f64() * 1e3);
    Ok(())
}

fn mean(
    rounds: u32,
    mut work: impl FnMut(u32) -> Result<(), Box<dyn Error>>,
) -> Result<Duration, Box<dyn Error>> {
    let began = Instant::now();
    for round in 0..rounds {
        work(round)?;
    }
    Ok(began.elapsed() / rounds)
}
