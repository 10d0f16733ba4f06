//! Checks the client and the fake against GitHub's published specification: `prism` is between them and refuses
//! requests and answers that violate the specification.

use crate::suite::github::{OnFake, app, options};
use crate::suite::{Host as _, Work, new_pr};
use ralph_loop_domain::ports::{
    CiState, Forge as _, ForgeError, Lease, NewStatus, PrChange, PushEnd, ReviewState,
};
use ralph_loop_forge::{GitHub, GitHubAuth};
use ralph_loop_testkit::fake_github::{CheckRun, FakeGitHub};
use ralph_loop_testkit::prism::{Prism, tools};

/// Calls in the specification, through a proxy that allows only those. (It lacks GraphQL, single issues and logs.)
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
    let Some((program, specs)) = tools("GitHub's specification") else { return };
    let spec = specs.join("github-scm-subset.openapi.json");
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
