//! Stories that every provider must pass.

use crate::long::providers::fixture::Fixture;
use ralph_loop_domain::ports::Forge as _;
use ralph_loop_forge::LocalForge;
use ralph_loop_testkit::TestEnv;
use serde_json::json;
use std::path::Path;

/// Adds, changes and removes files with special names, and leaves ignored files behind.
const WORK: &str = "echo done > part.txt; mkdir -p 'süb dir' built; echo x > 'süb dir/-a b.txt'; chmod +x part.txt; \
    ln -s part.txt link; rm -f readme.txt; echo big > built/x; cat PROMPT.md > copy.txt; echo noted >> .ralph/notes.md; \
    echo '<promise>COMPLETE</promise>'";
const CHECK: &str = "grep -q done part.txt && test -x part.txt && test -L link && test ! -e readme.txt && test -e 'süb dir/-a b.txt'";

/// Runs a task to a proven result that leaves nothing of the sandbox.
pub fn assert_proven(fixture: &Fixture) {
    let repo = fixture.repo(Fixture::shell_agent(WORK), CHECK);
    let done = fixture.ralph(&repo, &["run", "--json"]).exits(0);
    let run = done.json();
    assert_eq!(
        run["files_changed"],
        json!(["copy.txt", "link", "part.txt", "readme.txt", "süb dir/-a b.txt"]),
        "{run}"
    );
    assert_eq!(run["iterations"], 1);
    let branch = run["ref"].as_str().unwrap();
    assert_eq!(repo.git(&["show", &format!("{branch}:part.txt")]), "done");
    assert!(repo.git(&["ls-tree", branch, "part.txt"]).starts_with("100755"), "the mode came along");
    assert!(repo.git(&["ls-tree", branch, "link"]).starts_with("120000"), "the link came along");
    let notes = std::fs::read_to_string(fixture.workspace().join(".ralph/notes.md")).unwrap();
    assert!(notes.ends_with("noted\n"), "{notes}");
    let ready = fixture.events_named("sandbox_ready");
    assert_eq!(ready.len(), 2, "one to work in, one for the proof: {ready:?}");
    assert_eq!(ready[0]["provider"], fixture.provider);
    let fates: Vec<_> = fixture.events_named("sandbox_gone").iter().map(|e| e["fate"].clone()).collect();
    assert_eq!(fates, ["destroyed", "destroyed"]);
    assert_eq!(fixture.sandboxes(&repo), Vec::<serde_json::Value>::new());
    assert_eq!(run["sandboxes"], serde_json::Value::Null, "{run}");
    // Checks can't be watched there, and the result says so. Without a baseline nothing shows a difference.
    assert_eq!(run["level"], "unverified", "{run}");
    let id = run["run_id"].as_str().unwrap();
    let folder = std::path::PathBuf::from(run["run_dir"].as_str().unwrap());
    let proof = std::fs::read_to_string(folder.join("proof.json")).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&proof).unwrap()["watched"], "not_watched");
    for args in [&["status", id][..], &["show", "--proof", id]] {
        let shown = fixture.ralph(&repo, args).stdout;
        let shown = shown.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(shown.contains("not watched"), "{args:?}: {shown}");
    }
}

/// The pull request says that the checks were not watched. The code host is a local folder.
pub fn pull_request_says_unwatched(fixture: &Fixture) {
    let folder = fixture.env.path("forge");
    fixture.env.user_config(&json!({ "local_forge": folder }));
    let repo = fixture.repo(Fixture::shell_agent(WORK), CHECK);
    let run = fixture.ralph(&repo, &["run", "--publish", "pr", "--json"]).exits(0).json();
    let forge = LocalForge::open(&folder, &ralph_loop_testkit::vars()).unwrap();
    let body = forge.pr(1).unwrap().body;
    assert!(body.contains("not watched"), "{run}\n{body}");
}

/// An agent whose first session creates `marker` and waits, and whose second one works.
fn waiting_agent(marker: &str) -> serde_json::Value {
    Fixture::shell_agent(&format!("if [ ! -e {marker} ]; then : > {marker}; exec sleep 300; fi; {WORK}"))
}

/// Kills the engine during a session; the run resumes in the same sandbox.
pub fn kill_and_resume(fixture: &Fixture, marker: &Path) {
    let repo = fixture.repo(waiting_agent(&marker.display().to_string()), CHECK);
    let mut child = fixture.spawn(&repo, &["run", "--json"]);
    Fixture::await_file(&marker_path(fixture, marker));
    child.kill().unwrap();
    child.wait().unwrap();
    assert_eq!(fixture.sandboxes(&repo).len(), 1);
    let run = fixture.runs().pop().unwrap();
    let status = fixture.ralph(&repo, &["status", "--json", &run]);
    assert!(status.stdout.contains(&run), "{status:?}");
    let done = fixture.ralph(&repo, &["resume", "--json", &run]).exits(0).json();
    assert_eq!(done["iterations"], 1, "an interrupted session isn't an iteration: {done}");
    let ready = fixture.events_named("sandbox_ready");
    assert_eq!(ready[0]["id"], ready[1]["id"], "it was found again");
    assert_eq!(fixture.sandboxes(&repo), Vec::<serde_json::Value>::new());
}

/// Destroys the sandbox during a session; the run continues in another one.
pub fn destroy_during_session(fixture: &Fixture, marker: &Path) {
    let repo = fixture.repo(waiting_agent(&marker.display().to_string()), CHECK);
    let child = fixture.spawn(&repo, &["run", "--json"]);
    Fixture::await_file(&marker_path(fixture, marker));
    let run = fixture.runs().pop().unwrap();
    fixture.ralph(&repo, &["sandbox", "rm", "--force", &run]).exits(0);
    let done = TestEnv::wait(child).exits(0).json();
    assert_eq!(done["iterations"], 1, "{done}");
    let ends: Vec<_> = fixture.events_named("session_ended").iter().map(|e| e["end"].clone()).collect();
    assert_eq!(ends.len(), 2, "{ends:?}");
    let fates: Vec<_> = fixture.events_named("sandbox_gone").iter().map(|e| e["fate"].clone()).collect();
    assert_eq!(fates, ["lost", "destroyed", "destroyed"]);
    assert_eq!(fixture.sandboxes(&repo), Vec::<serde_json::Value>::new());
}

/// A cancelled run keeps its sandbox, stopped, until the user removes it.
pub fn cancel_keeps_sandbox(fixture: &Fixture, marker: &Path) {
    let repo = fixture.repo(waiting_agent(&marker.display().to_string()), CHECK);
    let child = fixture.spawn(&repo, &["run", "--json"]);
    Fixture::await_file(&marker_path(fixture, marker));
    let run = fixture.runs().pop().unwrap();
    fixture.ralph(&repo, &["cancel", &run]).exits(0);
    let done = TestEnv::wait(child);
    assert_eq!(done.json()["reason"], "cancelled", "{done:?}");
    let kept = fixture.sandboxes(&repo);
    assert_eq!(kept.len(), 1, "{kept:?}");
    assert_eq!(done.json()["sandboxes"], json!([kept[0]["id"]]));
    assert_eq!(fixture.events_named("sandbox_gone")[0]["fate"], "stopped");
    fixture.ralph(&repo, &["sandbox", "rm", &run]).exits(0);
    assert_eq!(fixture.sandboxes(&repo), Vec::<serde_json::Value>::new());
}

/// A user name with special characters.
const NAME: &str = "Ann \"A\" O'Neil \\ Ünal";

/// An agent that commits in a separate repo without a configured identity, and writes down the committer that git used.
fn committer() -> serde_json::Value {
    Fixture::shell_agent(
        "mkdir -p built && git init -q built/own && git -C built/own commit -q --allow-empty -m x && \
         git -C built/own log -1 --format='%an <%ae>, %cn <%ce>' > part.txt; echo '<promise>COMPLETE</promise>'",
    )
}

/// Git in every sandbox commits as the user: the sandbox's git settings have their name and email.
pub fn commits_as_the_user(fixture: &Fixture) {
    let repo = fixture.repo(committer(), "test -s part.txt");
    repo.git(&["config", "user.name", NAME]);
    // Every provider except this machine uses a separate worktree anyway.
    let done = fixture.ralph(&repo, &["run", "--json", "--worktree"]).exits(0).json();
    let part = repo.git(&["show", &format!("{}:part.txt", done["ref"].as_str().unwrap())]);
    assert_eq!(part, format!("{NAME} <tester@example.com>, {NAME} <tester@example.com>"));
}

/// The path of a marker; relative ones are in the agent's folder.
fn marker_path(fixture: &Fixture, marker: &Path) -> std::path::PathBuf {
    if marker.is_absolute() { marker.to_owned() } else { fixture.agents_folder().join(marker) }
}
