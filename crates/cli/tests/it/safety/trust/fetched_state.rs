//! A manipulated state or remote: odd names, modes and refs, invalid journals, far too many files. Each is refused or the run
//! continues; none of it is executed, and nothing leads out of the run's own folders.

use super::fetched::{Pushed, pushed, tamper, tamper_as};
use ralph_loop_testkit::TestEnv;
use serde_json::json;

/// Resumes here without a sandbox, and asserts that no program of the remote ran.
fn resumed(pushed: &Pushed, name: &str, codes: &[i32]) -> ralph_loop_testkit::Finished {
    let done = pushed.resume(&["--isolation", "none"]);
    let code = done.code.unwrap_or(-1);
    assert!(codes.contains(&code), "{name}: {code} {}{}", done.stdout, done.stderr);
    for folder in ["elsewhere", "state", "forge"] {
        assert!(
            find(&pushed.place.env.path(folder), "made").is_empty(),
            "{name}: a program of the remote's ran"
        );
    }
    done
}

fn find(folder: &std::path::Path, name: &str) -> Vec<std::path::PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        if entry.file_name() == name {
            found.push(entry.path());
        } else if entry.file_type().is_ok_and(|kind| kind.is_dir()) {
            found.extend(find(&entry.path(), name));
        }
    }
    found
}

const FSMONITOR: &str = "[core]\n\tfsmonitor = touch made\n";

/// Adds an entry that `git add` would refuse to the top of the pushed state.
fn add_entry(pushed: &Pushed, entry: &str) {
    let state = format!("refs/ralph/{}/state", pushed.run);
    let bare = pushed.forge.join("repo.git").display().to_string();
    let script = format!(
        "export GIT_DIR={bare}; blob=$(printf '{}' | git hash-object -w --stdin); \
         tree=$({{ git ls-tree -z {state}; printf '100644 blob %s\\t%s\\0' $blob \"$ENTRY\"; }} | git mktree -z) && \
         git update-ref {state} $(git -c user.name=e -c user.email=e@e commit-tree -m x $tree)",
        FSMONITOR.replace('\n', "\\n").replace('\t', "\\t")
    );
    let folder = pushed.place.env.path("elsewhere");
    let mut command = pushed.place.env.command("sh", &folder);
    TestEnv::finish(command.env("ENTRY", entry).args(["-c", &script])).exits(0);
}

#[test]
fn fetched_state_file_names_stay_contained() {
    for (name, entry, codes) in [
        ("a state with `.GIT`", ".GIT", &[4][..]),
        ("a state with `.git` and a zero-width character", ".g\u{200c}it", &[4]),
        ("a state with the short name of `.git`", "git~1", &[4]),
        ("a state with an entry that leads up", "..", &[4]),
        ("a state with an entry that is its folder", ".", &[4]),
        ("a state with a line break in a name", "a\nb", &[0, 3]),
        ("a state with a name that looks like an option", "--output=made", &[0, 3]),
    ] {
        let pushed = pushed(&json!({}));
        add_entry(&pushed, entry);
        resumed(&pushed, name, codes);
        assert!(find(&pushed.workspace().join(".ralph"), ".GIT").is_empty(), "{name}");
    }
}

#[test]
fn malformed_fetched_states_are_refused() {
    let spec = |pushed: &Pushed| format!("runs/{}/spec.json", pushed.run);
    let journal = |pushed: &Pushed| format!("runs/{}/events.jsonl", pushed.run);
    // A link instead of the frozen definition is read as its text.
    let place = pushed(&json!({}));
    tamper_as(&place, "120000", &spec(&place), "/etc/passwd");
    let done = resumed(&place, "a state whose definition is a link", &[2, 3, 4]);
    assert!(!format!("{}{}", done.stdout, done.stderr).contains("root:"), "{}", done.stderr);
    // An invalid journal, and one with an endless line.
    for (name, text) in [
        ("a state with an invalid journal", "not a journal\nat all\n".to_owned()),
        ("a state whose journal has one endless line", "x".repeat(9 << 20)),
        ("a state whose journal nests endlessly", format!("{}\n", "[".repeat(1 << 20))),
    ] {
        let place = pushed(&json!({}));
        tamper(&place, &journal(&place), &text);
        resumed(&place, name, &[2, 3, 4]);
    }
    // A definition that names the record's folder.
    let place = pushed(&json!({}));
    let state = format!("refs/ralph/{}/state:{}", place.run, spec(&place));
    let text = place.git(&["cat-file", "blob", &state]);
    let mut value: serde_json::Value = serde_json::from_str(&text).unwrap();
    value["run_id"] = json!("../../evil");
    tamper(&place, &spec(&place), &value.to_string());
    resumed(&place, "a state whose definition names another run", &[2, 3, 4]);
    assert!(
        !place.place.env.path("state/ralph/evil").exists() && !place.place.env.path("state/evil").exists()
    );
}

#[test]
fn fetched_state_with_too_many_files_is_refused() {
    let place = pushed(&json!({}));
    let state = format!("refs/ralph/{}/state", place.run);
    let id = place.git(&["rev-parse", &format!("{state}:runs/{}/spec.json", place.run)]);
    let list: String = (0..30_000).map(|n| format!("100644 {id}\tmany/{n}\n")).collect();
    let file = place.place.env.path("list");
    std::fs::write(&file, list).unwrap();
    let bare = place.forge.join("repo.git").display().to_string();
    let script = format!(
        "export GIT_DIR={bare} GIT_INDEX_FILE={bare}/many; git read-tree {state} && git update-index --index-info < {} && \
         git update-ref {state} $(git -c user.name=e -c user.email=e@e commit-tree -m x $(git write-tree))",
        file.display()
    );
    let folder = place.place.env.path("elsewhere");
    TestEnv::finish(place.place.env.command("sh", &folder).args(["-c", &script])).exits(0);
    let done = resumed(&place, "a state of many files", &[4]);
    assert!(done.stderr.contains("more files"), "{}", done.stderr);
}

#[test]
fn hostile_remote_refs_are_harmless() {
    let place = pushed(&json!({}));
    let main = place.git(&["rev-parse", "refs/heads/main"]);
    for name in [
        "refs/heads/--upload-pack=touch-made",
        "refs/heads/$(touch${IFS}made)",
        "refs/heads/;touch-made",
        "refs/heads/HEAD",
        "refs/heads/refs/heads/main",
        "refs/tags/main",
        "refs/tags/-x",
        &format!("refs/tags/ralph/{}", place.run),
        "refs/heads/.x\u{202e}gpj",
        &format!("refs/replace/{main}"),
    ] {
        // Git itself refuses some names.
        let bare = format!("--git-dir={}", place.forge.join("repo.git").display());
        let folder = place.place.env.path("elsewhere");
        TestEnv::finish(place.place.env.command("git", &folder).arg(bare).args(["update-ref", name, &main]));
    }
    let done = resumed(&place, "odd refs of a remote", &[0, 3]);
    assert!(!done.stderr.contains('\u{202e}'), "{}", done.stderr);
    let refs = TestEnv::finish(
        place.place.env.command("git", &place.workspace()).args(["for-each-ref", "refs/replace"]),
    );
    assert_eq!(refs.stdout, "", "nothing is replaced by what a remote says");
}

#[test]
fn remote_settings_hooks_and_alternates_are_ignored() {
    let place = pushed(&json!({}));
    let bare = place.forge.join("repo.git");
    std::fs::create_dir_all(bare.join("hooks")).unwrap();
    for hook in
        ["post-checkout", "post-update", "reference-transaction", "pre-receive", "update", "post-receive"]
    {
        // A remote hook may run on the remote's side of a push, but never in this run's folder.
        super::program(
            &bare.join("hooks").join(hook),
            "[ -z \"$GIT_WORK_TREE\" ] || touch \"$GIT_WORK_TREE/made\"",
        );
    }
    let config = std::fs::read_to_string(bare.join("config")).unwrap();
    let more = "[uploadpack]\n\tpackObjectsHook = touch made\n[core]\n\tfsmonitor = touch made\n\tsshCommand = touch made\n";
    std::fs::write(bare.join("config"), config + more).unwrap();
    std::fs::create_dir_all(bare.join("objects/info")).unwrap();
    std::fs::write(
        bare.join("objects/info/alternates"),
        place.place.env.path("victim").display().to_string() + "\n",
    )
    .unwrap();
    resumed(&place, "settings of a remote", &[0]);
}

/// Fetched twice, sequentially and concurrently, it is one run.
#[test]
fn run_fetched_twice_is_one_run() {
    let place = pushed(&json!({}));
    resumed(&place, "fetched once", &[0]);
    let again = resumed(&place, "fetched again", &[0, 1, 2, 3]);
    assert!(again.stderr.lines().count() < 40, "{}", again.stderr);
    let runs = place.place.env.path("state/ralph/runs");
    let records = std::fs::read_dir(runs).unwrap().flatten().filter(|entry| entry.path().is_dir()).count();
    assert_eq!(records, 1);

    let place = pushed(&json!({}));
    let from = place.forge.display().to_string();
    let args = ["--json", "resume", "--from", &from, &place.run, "--isolation", "none"];
    let both: Vec<_> = (0..2)
        .map(|_| {
            let mut command = place.place.command(&place.place.env.path("elsewhere"), &args);
            command.stdout(std::process::Stdio::piped()).stderr(std::process::Stdio::piped());
            command.spawn().unwrap()
        })
        .collect();
    let both: Vec<_> = both.into_iter().map(TestEnv::wait).collect();
    let proven = both.iter().filter(|done| done.code == Some(0)).count();
    assert!(proven >= 1, "{both:?}");
}
