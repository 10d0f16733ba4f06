//! A workspace mounted at the path of the user's repo: commands see the copy there, never the repo.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

use crate::common::{Output, PROBE, run, sh};
use ralph_loop_domain::ports::{ExecRequest, Sandbox as _};
use ralph_loop_sandbox::isolation::detect;
use ralph_loop_sandbox::{GitIdentity, IsolationSpec, LocalOptions, LocalSandbox};
use ralph_loop_task::config::Isolation;
use std::os::unix::fs::{PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

/// A user's repo with one commit, and a copy that borrows its objects.
struct Fixture {
    dir: tempfile::TempDir,
    sandbox: LocalSandbox,
}

fn git(folder: &Path, args: &[&str]) -> String {
    let mut command = std::process::Command::new("git");
    command.args(args).current_dir(folder).env("GIT_CONFIG_GLOBAL", "/dev/null");
    for who in ["GIT_AUTHOR_NAME", "GIT_AUTHOR_EMAIL", "GIT_COMMITTER_NAME", "GIT_COMMITTER_EMAIL"] {
        command.env(who, "Fixture");
    }
    let done = command.output().unwrap();
    assert!(done.status.success(), "git {args:?}: {}", String::from_utf8_lossy(&done.stderr));
    String::from_utf8_lossy(&done.stdout).trim_end().to_owned()
}

fn write(path: &Path, text: &str) {
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(0o755)).unwrap();
}

/// The user's repo is at `place` below a temporary folder, with `home` as their home.
fn fixture(
    place: &str,
    isolation: Isolation,
    change: impl FnOnce(&mut IsolationSpec, &Path),
) -> Option<Fixture> {
    let dir = tempfile::tempdir().unwrap();
    let top = dir.path().canonicalize().unwrap();
    let repo = top.join(place);
    std::fs::create_dir_all(&repo).unwrap();
    std::fs::create_dir_all(top.join("home")).unwrap();
    git(&repo, &["init", "-q", "-b", "main"]);
    write(&repo.join("file.txt"), "start\n");
    git(&repo, &["add", "-A"]);
    git(&repo, &["commit", "-q", "-m", "first"]);
    git(&top, &["clone", "-q", "-s", repo.to_str().unwrap(), "state/copy"]);
    write(&repo.join("secret.txt"), "only of the user\n");
    let mut spec = IsolationSpec::new(top.join("state/run"));
    spec.workspace_at = Some(repo.clone());
    spec.objects = vec![repo.join(".git/objects")];
    spec.hidden = vec![top.join("state")];
    change(&mut spec, &top);
    let isolation = match detect(&ralph_loop_testkit::vars()).choose(isolation, spec) {
        Ok(isolation) => isolation,
        Err(why) => {
            println!("skipped: {why}");
            return None;
        }
    };
    let vars = ralph_loop_testkit::vars().with([("HOME", top.join("home"))]);
    let id = dir.path().file_name().unwrap().to_str().unwrap().trim_start_matches('.').to_owned();
    let options =
        LocalOptions { guard_exe: Some(PathBuf::from(PROBE)), isolation, ..LocalOptions::new(id, &vars) };
    let sandbox = LocalSandbox::start(&top.join("state/copy"), options).unwrap();
    Some(Fixture { dir, sandbox })
}

impl Fixture {
    fn path(&self, name: &str) -> PathBuf {
        self.dir.path().canonicalize().unwrap().join(name)
    }
    fn sh(&self, script: &str) -> Output {
        run(&self.sandbox, &sh(script))
    }
}

/// Checks what a command sees of a repo at `place`, and that nothing of it is the user's.
fn stands_at(place: &str) {
    let Some(it) = fixture(place, Isolation::Bwrap, |_, _| {}) else { return };
    let repo = it.path(place);
    assert_eq!(it.sandbox.root(), repo);
    assert_eq!(it.sandbox.host_root(), Some(it.path("state/copy").as_path()));
    let at = repo.display();
    let seen = it.sh(&format!(
        "pwd; pwd -P; echo \"$PWD\"; cat '{at}/file.txt'; ls '{at}'; echo new > '{at}/new.txt'; git log --format=%s; git status --short"
    ));
    assert_eq!(
        seen.stdout,
        format!("{at}\n{at}\n{at}\nstart\nfile.txt\nfirst\n?? new.txt\n"),
        "{}",
        seen.stderr
    );
    assert_eq!(seen.stderr, "");
    assert_eq!(std::fs::read_to_string(it.path("state/copy/new.txt")).unwrap(), "new\n");
    assert!(!repo.join("new.txt").exists(), "the user's own tree was written");
    // Below the workspace as well.
    std::fs::create_dir(it.path("state/copy/sub")).unwrap();
    let below = ExecRequest { cwd: "sub".into(), ..sh("pwd; echo \"$PWD\"") };
    assert_eq!(run(&it.sandbox, &below).stdout, format!("{at}/sub\n{at}/sub\n"));
    // And in a clean checkout of the copy.
    git(&it.path("state"), &["clone", "-q", "copy", "clean"]);
    let clean = it.sandbox.with_root(&it.path("state/clean")).unwrap();
    let seen = run(&*clean, &sh("pwd; ls; git log --format=%s"));
    assert_eq!(seen.stdout, format!("{at}\nfile.txt\nfirst\n"), "{}", seen.stderr);
}

#[test]
fn in_a_home() {
    stands_at("home/code/repo");
}

#[test]
fn next_to_a_home_with_spaces_and_unicode() {
    stands_at("my code/größe 日本");
}

#[test]
fn commits_are_made_in_the_copy_by_the_user() {
    let who = GitIdentity { name: "Ann \"Ä\" O'Neil".into(), email: "ann@example.org".into() };
    for isolation in [Isolation::Bwrap, Isolation::Landlock] {
        let Some(it) = fixture("home/repo", isolation, |spec, _| spec.identity = Some(who.clone())) else {
            continue;
        };
        let done =
            it.sh("echo x > file.txt; git commit -qam mine; git log -1 --format='%an <%ae>|%cn <%ce>'; \
             git init -q \"$TMPDIR/other\"; cd \"$TMPDIR/other\"; git config user.name Other; \
             git commit -q --allow-empty -m x; git log -1 --format='%an <%ae>'");
        let ann = "Ann \"Ä\" O'Neil <ann@example.org>";
        assert_eq!(done.stdout, format!("{ann}|{ann}\nOther <ann@example.org>\n"), "{}", done.stderr);
        let made = git(&it.path("state/copy"), &["rev-parse", "HEAD"]);
        let there = std::process::Command::new("git")
            .args(["cat-file", "-e", &made])
            .current_dir(it.path("home/repo"))
            .status()
            .unwrap();
        assert!(!there.success(), "a commit of the agent is in the user's own store");
        let mut named = sh("git commit -q --allow-empty -m x; git log -1 --format=%an");
        named.env = ["GIT_AUTHOR_NAME", "GIT_COMMITTER_NAME"].map(|n| (n.into(), "Set".into())).to_vec();
        assert_eq!(run(&it.sandbox, &named).stdout, "Set\n", "a variable stands above it");
    }
}

#[test]
fn borrowed_objects_are_read_only_including_indirect_ones() {
    let Some(it) = fixture("home/repo", Isolation::Bwrap, |spec, top| {
        // The user's repo itself borrows from another one, by a relative path.
        let more = top.join("more");
        git(top, &["init", "-q", "--bare", "more"]);
        let repo = top.join("home/repo");
        let id = git(&repo, &["rev-parse", "HEAD:file.txt"]);
        let loose = format!("objects/{}/{}", &id[..2], &id[2..]);
        std::fs::create_dir_all(more.join(&loose).parent().unwrap()).unwrap();
        std::fs::rename(repo.join(".git").join(&loose), more.join(&loose)).unwrap();
        write(&repo.join(".git/objects/info/alternates"), "../../../../more/objects\n");
        spec.objects.push(more.join("objects"));
    }) else {
        return;
    };
    let done = it.sh("git cat-file -p HEAD:file.txt; git status --short; cat .git/objects/info/alternates; \
         for f in $(cat .git/objects/info/alternates); do touch $f/evil; done; \
         echo /etc > .git/objects/info/alternates; mv .git/objects/info/alternates x");
    assert_eq!(done.stdout, "start\n/run/ralph/objects/0\n/run/ralph/objects/1\n", "{}", done.stderr);
    assert!(!done.stderr.contains("error:"), "{}", done.stderr);
    assert!(!it.path("home/repo/.git/objects/evil").exists() && !it.path("more/objects/evil").exists());
    assert!(
        std::fs::read_to_string(it.path("state/copy/.git/objects/info/alternates"))
            .unwrap()
            .contains("home/repo")
    );
}

#[test]
fn a_program_in_the_repo_that_gets_keys_is_not_the_agents_to_change() {
    let Some(it) = fixture("home/repo", Isolation::Bwrap, |spec, top| {
        let (repo, copy) = (top.join("home/repo"), top.join("state/copy"));
        for tree in [&repo, &copy] {
            write(
                &tree.join("node_modules/x/main.sh"),
                "#!/bin/sh\necho genuine; cat \"$(dirname \"$(readlink -f \"$0\")\")/../y/data\"\n",
            );
            write(&tree.join("node_modules/y/data"), "beside\n");
            std::fs::create_dir_all(tree.join("node_modules/.bin")).unwrap();
            symlink("../x/main.sh", tree.join("node_modules/.bin/x")).unwrap();
        }
        spec.programs = vec![repo.join("node_modules/.bin/x"), repo.join("node_modules")];
    }) else {
        return;
    };
    // The honest case: the workspace's own packages can be changed.
    let changed = it.sh("echo 'echo forged' > node_modules/x/main.sh && echo more > node_modules/z");
    assert!(changed.outcome.end.success(), "{}", changed.stderr);
    let program = it.path("home/repo/node_modules/.bin/x").display().to_string();
    assert_eq!(run(&it.sandbox, &ExecRequest::new(vec![program])).stdout, "genuine\nbeside\n");
    assert!(
        it.sh("node_modules/.bin/x").stdout.contains("forged"),
        "what the agent starts itself is its own"
    );
}

#[test]
fn readable_paths_in_the_repo_are_mounted_over_the_copy() {
    let Some(it) = fixture("srv/repo", Isolation::Bwrap, |spec, top| {
        let record = top.join("srv/repo/.state/runs/r1");
        write(&record.join("prompt.md"), "the prompt\n");
        write(&top.join("srv/repo/.state/runs/r2/prompt.md"), "of another run\n");
        spec.hidden.push(top.join("srv/repo/.state"));
        spec.read_only.push(record);
        // A link left by an earlier command isn't followed.
        symlink(top.join("home"), top.join("state/copy/.state")).unwrap();
    }) else {
        return;
    };
    let state = it.path("srv/repo/.state/runs");
    let seen = it.sh(&format!(
        "cat {0}/r1/prompt.md; ls {0}; echo x > {0}/r1/prompt.md || echo kept",
        state.display()
    ));
    assert_eq!(seen.stdout, "the prompt\nr1\nkept\n", "{}", seen.stderr);
    assert_eq!(std::fs::read_dir(it.path("home")).unwrap().count(), 0, "a link was followed");
}

#[test]
fn users_links_to_the_repo_work_inside() {
    let Some(it) = fixture("data/repo", Isolation::Bwrap, |_, top| {
        symlink(top.join("data"), top.join("home/code")).unwrap();
        symlink(top.join("state"), top.join("home/elsewhere")).unwrap();
    }) else {
        return;
    };
    let seen = it.sh("cat ~/code/repo/file.txt; ls -d ~/elsewhere; echo new > ~/code/repo/new.txt");
    assert_eq!(seen.stdout, "start\n", "{}", seen.stderr);
    assert!(it.path("state/copy/new.txt").exists() && !it.path("data/repo/new.txt").exists());
}

#[test]
fn link_in_the_runs_home_does_not_redirect_the_workspace() {
    let Some(it) = fixture("home/code/repo", Isolation::Bwrap, |_, _| {}) else { return };
    let victim = it.path("victim");
    std::fs::create_dir(&victim).unwrap();
    it.sh(&format!(
        "mv ~/code ~/old; ln -s /oldroot{} ~/code; ln -s {} ~/other",
        victim.display(),
        victim.display()
    ));
    let seen = it.sh("pwd; cat file.txt");
    assert_eq!(seen.stdout, format!("{}\nstart\n", it.path("home/code/repo").display()), "{}", seen.stderr);
    assert_eq!(std::fs::read_dir(&victim).unwrap().count(), 0);
}

#[test]
fn a_repo_that_holds_the_home_is_worked_on_at_the_copys_own_path() {
    let Some(it) = fixture("home", Isolation::Bwrap, |_, _| {}) else { return };
    assert_eq!(it.sandbox.root(), it.path("state/copy"));
    let seen = it.sh("cat file.txt; git log --format=%s; cat ~/secret.txt");
    assert_eq!(seen.stdout, "start\nfirst\n", "{}", seen.stderr);
}

#[test]
fn a_program_that_only_the_copy_has_is_found_on_a_path_into_the_repo() {
    let Some(it) = fixture("home/repo", Isolation::Bwrap, |_, _| {}) else { return };
    write(&it.path("state/copy/bin/made-by-agent"), "#!/bin/sh\necho here\n");
    let mut request = ExecRequest::new(vec!["made-by-agent".into()]);
    request.env = vec![("PATH".into(), format!("{}:/usr/bin:/bin", it.path("home/repo/bin").display()))];
    assert_eq!(run(&it.sandbox, &request).stdout, "here\n");
}
