//! The client and the fake, held to GitHub's published specification: `prism` stands between them and refuses both requests
//! and answers that the specification does not have.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, reason = "a test fails by panicking")]
#![allow(clippy::disallowed_methods, reason = "starts prism and waits for it")]

mod suite;

use ralph_domain::ports::{
    CiState, Forge as _, ForgeError, Lease, NewStatus, PrChange, PushEnd, ReviewState,
};
use ralph_forge::{GitHub, GitHubAuth};
use ralph_testkit::fake_github::{CheckRun, FakeGitHub};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};
use suite::github::{OnFake, app, options};
use suite::{Host as _, Work, new_pr};

/// A running proxy.
struct Prism {
    child: Child,
    url: String,
}

impl Prism {
    fn start(program: &Path, spec: &Path, upstream: &str) -> Self {
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let child = Command::new(program)
            .args(["proxy", "--errors", "-h", "127.0.0.1", "-p", &port.to_string()])
            .arg(spec)
            .arg(upstream)
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let prism = Self { child, url: format!("http://127.0.0.1:{port}") };
        let end = Instant::now() + Duration::from_secs(120);
        while TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(Instant::now() < end, "prism does not come up");
            std::thread::sleep(Duration::from_millis(100));
        }
        prism
    }
}

impl Drop for Prism {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The program and the specification; `None` with a word where one is missing.
fn tools() -> Option<(PathBuf, PathBuf)> {
    if std::env::var("RALPH_PRISM").is_ok_and(|v| v == "0") {
        ralph_testkit::skip("GitHub's specification: RALPH_PRISM=0");
        return None;
    }
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..").canonicalize().unwrap();
    let spec = root.join("../shared/facts/specs/github-scm-subset.openapi.json");
    if !spec.is_file() {
        ralph_testkit::skip("GitHub's specification: ../shared/facts/specs is not there");
        return None;
    }
    let output = Command::new(root.join("scripts/prism")).stderr(Stdio::inherit()).output().unwrap();
    if !output.status.success() {
        ralph_testkit::skip("GitHub's specification: prism cannot be installed here");
        return None;
    }
    let modules = PathBuf::from(String::from_utf8(output.stdout).unwrap().trim());
    Some((modules.join(".bin/prism"), spec))
}

/// Calls that the specification has, over a proxy that knows no other. (GraphQL, single issues and logs are not in it.)
fn use_it(host: &OnFake) -> Result<(), ForgeError> {
    let forge = &host.forge;
    assert!(forge.access()?.push);
    assert_eq!(forge.default_branch()?, "main");
    let (work, remote) = (Work::new(), forge.remote()?);
    assert_eq!(work.push(&remote, "main", Lease::Absent), PushEnd::Pushed);
    let commit = work.branch(&remote, "ralph/t/one", "one.txt");
    assert_eq!(forge.find_pr("ralph/t/one")?, None);
    let number = forge.open_pr(&new_pr("ralph/t/one", true))?.number;
    let change = PrChange { title: Some("t".into()), body: Some("b".into()), draft: Some(false) };
    assert!(!forge.update_pr(number, &change)?.draft);
    forge.add_labels(number, &["ralph".into()])?;
    forge.comment(number, "m", "one")?;
    forge.comment(number, "m", "two")?;
    host.review(number, "ann", ReviewState::ChangesRequested, "no", &[("one.txt", 1, "why")]);
    assert_eq!(forge.reviews(number)?.len(), 1);
    assert_eq!(forge.review_comments(number)?.len(), 2);
    assert_eq!(forge.pr_files(number)?, ["one.txt"]);
    assert_eq!(forge.checks(&commit)?, []);
    host.set_check(&commit, "test", CiState::Pending, "", None);
    host.fake.check(CheckRun {
        commit: commit.clone(),
        name: "test".into(),
        conclusion: Some("failure".into()),
        title: "2 fail".into(),
        app: Some("linter".into()),
        suite: 2,
        workflow: 2,
        annotations: vec![("one.txt".into(), 1, "bad".into())],
        ..CheckRun::default()
    });
    host.fake.check(CheckRun {
        commit: commit.clone(),
        name: "test".into(),
        suite: 3,
        workflow: 1,
        ..CheckRun::default()
    });
    let status = NewStatus {
        state: CiState::Passed,
        context: "ralph/proof".into(),
        description: "proven".into(),
        url: Some("https://example.com/run".into()),
    };
    forge.set_status(&commit, &status)?;
    let checks = forge.checks(&commit)?;
    assert_eq!(checks.len(), 3, "{checks:?}");
    let failed = checks.iter().find(|check| check.state == CiState::Failed).unwrap();
    assert!(forge.check_log(failed, 1000)?.contains("one.txt:1: bad"));
    host.merge(number);
    assert_eq!(forge.find_pr("ralph/t/one")?.unwrap().number, number);
    assert_eq!(forge.open_prs()?, []);
    let error = forge.pr(99).unwrap_err();
    assert!(matches!(error, ForgeError::NotFound { .. }), "{error:?}");
    Ok(())
}

#[test]
fn it_keeps_to_the_specification() {
    let Some((program, spec)) = tools() else { return };
    for as_app in [false, true] {
        let fake = FakeGitHub::start().unwrap();
        let prism = Prism::start(&program, &spec, &fake.url());
        let mut options = options(&fake);
        options.api_url = prism.url.clone();
        if as_app {
            options.auth = GitHubAuth::App(app(&fake));
        }
        let host = OnFake { forge: GitHub::new(options).unwrap(), fake };
        use_it(&host).unwrap_or_else(|error| panic!("{error}\n{:#?}", host.fake.seen()));
    }
}
