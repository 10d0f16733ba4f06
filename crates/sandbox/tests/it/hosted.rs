//! A hosted sandbox over a local folder: both sides stay in sync, and a lost sandbox is recreated. The provider's
//! sandboxes are folders, so every command is real.

use crate::common::{Output, run, sh};
use crate::local_provider::LocalProvider;
use ralph_loop_domain::ports::{
    Dismissal, ExecEnd, Sandbox, SandboxError, SandboxEvent, SandboxKeeper, SandboxProvider, SandboxSpec,
    WriteMode,
};
use ralph_loop_protocol::event::SandboxFate;
use ralph_loop_protocol::id::RunId;
use ralph_loop_sandbox::hosted::{
    HostedKeeper, HostedOptions, HostedSandbox, Logins, ProviderFactory, is_of_run,
};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::Arc;

struct Folders(PathBuf);

impl ProviderFactory for Folders {
    fn provider(&self, _: &Path) -> Result<Box<dyn SandboxProvider>, SandboxError> {
        Ok(Box::new(LocalProvider(self.0.clone())))
    }
    fn mounts(&self) -> bool {
        false
    }
}

struct Fixture {
    dir: tempfile::TempDir,
    sandbox: HostedSandbox,
    keeper: HostedKeeper,
}

impl Fixture {
    fn new(files: &[(&str, &str)]) -> Self {
        let dir = tempfile::tempdir().unwrap();
        let (here, there) = (dir.path().join("here"), dir.path().join("there"));
        fs::create_dir_all(&here).unwrap();
        for (path, text) in files {
            let path = here.join(path);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        }
        let options = HostedOptions {
            spec: SandboxSpec::of_run(RunId::new(format!("hosted-{}", std::process::id()))),
            maker: Box::new(Folders(there)),
            pull_every: std::time::Duration::from_millis(100),
            keep: false,
            hourly: None,
            variables: Arc::new(|_| vec![("GIVEN".into(), "yes".into())]),
            logins: Logins { home: dir.path().join("home"), files: Arc::new(|_| Vec::new()) },
            identity: None,
            record: Some(dir.path().join("record/r")),
            ignored: Arc::new(|paths| {
                paths
                    .iter()
                    .filter(|path| path.starts_with("built/") || path.ends_with(".o"))
                    .cloned()
                    .collect()
            }),
        };
        let (sandbox, keeper) = HostedSandbox::start(&here, options).unwrap();
        Self { dir, sandbox, keeper }
    }

    fn here(&self, path: &str) -> PathBuf {
        self.dir.path().join("here").join(path)
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.here(path)).ok()
    }

    fn sh(&self, script: &str) -> Output {
        run(&self.sandbox, &sh(script))
    }

    fn says(&self, script: &str) -> String {
        let done = self.sh(script);
        assert_eq!(done.outcome.end, ExecEnd::Exited(0), "{script}: {}", done.stderr);
        done.stdout
    }

    fn fates(&self) -> Vec<SandboxFate> {
        let gone = |news| if let SandboxEvent::Gone(gone) = news { Some(gone.fate) } else { None };
        self.keeper.news().into_iter().filter_map(gone).collect()
    }
}

#[test]
fn both_sides_stay_the_same() {
    let b = Fixture::new(&[
        ("a.txt", "one"),
        ("sub/b.txt", "two"),
        (".git/config", "mine"),
        (".ralph/runs/r/x.md", "r"),
    ]);
    assert_eq!(b.says("cat a.txt sub/b.txt; echo $GIVEN; ls -A .ralph 2>/dev/null || true"), "onetwoyes\n");
    assert!(b.says("pwd").trim() != b.here("").to_str().unwrap().trim_end_matches('/'), "it is a copy");
    assert!(!b.says("cat .git/config").contains("mine"), "git's folder stays here");
    b.says("echo new > c.txt; echo more >> a.txt; rm sub/b.txt; mkdir -p built; echo x > built/y; echo o > z.o; chmod +x c.txt");
    assert_eq!(b.read("c.txt").as_deref(), Some("new\n"));
    assert_eq!(b.read("a.txt").as_deref(), Some("onemore\n"));
    assert!(!b.here("sub").exists(), "a folder without files goes, as git would have it");
    assert!(!b.here("built").exists() && !b.here("z.o").exists(), "what git ignores stays inside");
    assert_eq!(b.read(".git/config").as_deref(), Some("mine"));
    // Still readable through the sandbox.
    assert_eq!(b.sandbox.read(Path::new("built/y")).unwrap().unwrap(), b"x\n");
    fs::remove_file(b.here("c.txt")).unwrap();
    b.sandbox.write(Path::new("deep/d.txt"), b"four", WriteMode::Replace).unwrap();
    assert_eq!(b.says("test ! -e c.txt; cat deep/d.txt built/y"), "fourx\n");
    // The same size at the same moment is a change as well.
    b.says("printf 1111 > deep/d.txt");
    assert_eq!(b.read("deep/d.txt").as_deref(), Some("1111"));
    b.says("printf 2222 > deep/d.txt; touch -d 2020-01-01 deep/d.txt");
    assert_eq!(b.read("deep/d.txt").as_deref(), Some("2222"));
}

#[test]
fn nothing_leaves_the_workspace() {
    let b = Fixture::new(&[("a.txt", "one")]);
    let outside = b.dir.path().join("outside");
    fs::create_dir(&outside).unwrap();
    b.says(&format!(
        "ln -s {} out; mkdir -p x/.git/hooks; echo evil > x/.git/hooks/post-checkout",
        outside.display()
    ));
    assert!(b.here("out").symlink_metadata().unwrap().is_symlink(), "a link comes as a link");
    assert!(!b.here("x").exists(), "no folder of git's comes out, wherever it stands");
    // The link becomes a folder inside, with a file that must not follow the old link here.
    b.says("rm out; mkdir out; echo caught > out/file");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 0);
    assert_eq!(b.read("out/file").as_deref(), Some("caught\n"));
    b.says("echo x > .ralph-planted.tmp; mkdir -p .ralph; echo '{}' > .ralph/config.json; echo n > .ralph/notes.md");
    assert!(!b.here(".ralph/config.json").exists() && b.here(".ralph/notes.md").exists());
}

#[test]
fn local_file_wins_when_both_sides_change() {
    let b = Fixture::new(&[("a.txt", "one")]);
    b.says("true");
    let here = b.here("a.txt");
    // A local edit while the command runs: the command waits for it.
    let script = format!("echo inside > a.txt; echo here > {}", here.display());
    b.says(&script);
    assert_eq!(b.read("a.txt").as_deref(), Some("here\n"));
    let told = b
        .keeper
        .news()
        .into_iter()
        .any(|news| matches!(news, SandboxEvent::Notice(words) if words.contains("a.txt")));
    assert!(told);
    assert_eq!(b.says("cat a.txt"), "here\n", "and goes in with the next command");
}

#[test]
fn changes_are_copied_back_while_a_command_runs() {
    let b = Fixture::new(&[("a.txt", "one")]);
    let wait = format!(
        "echo half > work.txt; i=0; until [ -e {} ] || [ $i -gt 200 ]; do i=$((i+1)); sleep 0.1; done; rm -f a.txt; echo $i",
        b.here("work.txt").display()
    );
    let tries: u32 = b.says(&wait).trim().parse().unwrap();
    assert!(tries <= 200, "it came only at the end");
    assert_eq!(b.read("work.txt").as_deref(), Some("half\n"));
    assert!(!b.here("a.txt").exists());
}

#[test]
fn workspace_paths_in_arguments_are_translated() {
    let b = Fixture::new(&[("docs/prompt.md", "the prompt")]);
    let mut request = sh("cat \"$1\"; case $1 in */here/*) exit 9;; esac");
    request.argv.extend(["sh".to_owned(), b.here("docs/prompt.md").display().to_string()]);
    let done = run(&b.sandbox, &request);
    assert_eq!((done.stdout.as_str(), done.outcome.end), ("the prompt", ExecEnd::Exited(0)));
}

#[test]
fn record_file_is_copied_to_its_path_in_the_copy() {
    let b = Fixture::new(&[]);
    let prompt = b.dir.path().join("record/r/iterations/1/prompt.md");
    std::fs::create_dir_all(prompt.parent().unwrap()).unwrap();
    std::fs::write(&prompt, "the prompt").unwrap();
    let mut request =
        sh("cat \"$1\"; case $1 in */.ralph/runs/r/iterations/1/prompt.md) ;; *) exit 9;; esac");
    request.argv.extend(["sh".to_owned(), prompt.display().to_string()]);
    let done = run(&b.sandbox, &request);
    assert_eq!((done.stdout.as_str(), done.outcome.end), ("the prompt", ExecEnd::Exited(0)));
    assert!(!b.here(".ralph/runs").exists(), "nothing of it comes back");
}

#[test]
fn lost_sandbox_is_recreated() {
    let b = Fixture::new(&[("a.txt", "one")]);
    b.says("echo kept > b.txt");
    let there = b.dir.path().join("there");
    let lost = |b: &Fixture| {
        fs::remove_dir_all(&there).unwrap();
        b.sh("true").outcome.end
    };
    assert_eq!(lost(&b), ExecEnd::GuardLost, "the command is lost, not the run");
    assert_eq!(b.says("cat a.txt b.txt"), "onekept\n");
    assert_eq!(b.fates(), [SandboxFate::Lost]);
    // A connection of the old one finds the new one as well.
    let connection = b.sandbox.new_connection().unwrap();
    assert_eq!(lost(&b), ExecEnd::GuardLost);
    assert_eq!(run(&*connection, &sh("cat b.txt")).stdout, "kept\n");
    b.keeper.dismiss(Dismissal::Safe);
    assert_eq!(b.fates(), [SandboxFate::Lost, SandboxFate::Destroyed]);
}

#[test]
fn clean_checkout_gets_a_fresh_sandbox_until_dropped() {
    let b = Fixture::new(&[("a.txt", "one")]);
    b.says("echo x > left-behind");
    let clean = b.dir.path().join("clean");
    fs::create_dir(&clean).unwrap();
    fs::write(clean.join("a.txt"), "clean").unwrap();
    let other_root = b.sandbox.with_root(&clean).unwrap();
    let done = run(&*other_root, &sh("cat a.txt; ls -A; echo y > made"));
    assert_eq!(done.stdout, "cleana.txt\n", "{}", done.stderr);
    assert!(!clean.join("made").exists(), "nothing of it comes back");
    let names = || {
        fs::read_dir(b.dir.path().join("there"))
            .unwrap()
            .flatten()
            .map(|e| e.file_name().into_string().unwrap())
    };
    assert_eq!(names().filter(|name| name.ends_with("-proof")).count(), 1);
    drop(other_root);
    assert_eq!(names().filter(|name| name.ends_with("-proof")).count(), 0);
    assert_eq!(b.fates(), [SandboxFate::Destroyed]);
    b.keeper.dismiss(Dismissal::Unfinished);
    assert_eq!(b.fates(), [SandboxFate::Stopped]);
}

#[test]
fn further_sandboxes_belong_to_their_run() {
    assert!(is_of_run(&RunId::new("r1"), "r1") && is_of_run(&RunId::new("r1-proof"), "r1"));
    assert!(!is_of_run(&RunId::new("r10"), "r1") && !is_of_run(&RunId::new("r1-other"), "r1"));
}

#[test]
fn provider_preview_is_used_for_ports() {
    let b = Fixture::new(&[]);
    let shown = b.sandbox.host_address(8123).unwrap();
    assert_eq!(shown.as_deref(), Some("http://127.0.0.1:8123"));
    assert_eq!(b.sandbox.exchange(), None, "there is no folder that both sides see");
}
