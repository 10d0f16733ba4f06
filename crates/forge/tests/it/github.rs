//! GitHub, against a fake with real git.

use crate::suite;
use crate::suite::github::{OnFake, app, options};
use crate::suite::{Host, Work, new_pr};
use ralph_loop_domain::ports::{CiState, Forge, ForgeError, GitRemote, Lease, PrChange, PushEnd};
use ralph_loop_forge::{GitHub, GitHubAuth};
use ralph_loop_testkit::fake_github::{CheckRun, FakeGitHub, Fault, Reach};
use std::time::Duration;

#[test]
fn it_does_what_every_code_host_does() {
    suite::all(OnFake::new);
}

#[test]
fn an_app_does_what_every_code_host_does() {
    suite::all(OnFake::as_app);
}

/// A repo with `main` and a branch `one` of one commit.
fn with_branch(host: &OnFake) -> (Work, GitRemote, String) {
    let (work, remote) = (Work::new(), host.forge.remote().unwrap());
    assert_eq!(work.push(&remote, "main", Lease::Absent), PushEnd::Pushed);
    let commit = work.branch(&remote, "one", "one.txt");
    (work, remote, commit)
}

fn server_error() -> Fault {
    Fault::Status(502, None)
}

#[test]
fn a_pull_request_is_opened_once_whatever_gets_lost() {
    for fault in [Fault::HangupAfter, Fault::StatusAfter(502), Fault::Hangup, server_error()] {
        let host = OnFake::new();
        with_branch(&host);
        host.fake.fail("POST /repos/octo/app/pulls", fault.clone());
        let pr = host.forge.open_pr(&new_pr("one", true)).unwrap();
        assert_eq!((pr.number, host.fake.pulls_made()), (1, 1), "{fault:?}");
        assert_eq!(host.forge.open_pr(&new_pr("one", true)).unwrap(), pr);
        assert_eq!(host.fake.pulls_made(), 1);
    }
}

/// On a public repo anyone can approve, request changes and comment; only the word of users with write access counts.
#[test]
fn strangers_reviews_do_not_count() {
    for token in [true, false] {
        let host = if token { OnFake::new() } else { OnFake::as_app() };
        with_branch(&host);
        let pr = host.forge.open_pr(&new_pr("one", false)).unwrap().number;
        host.fake.stranger("mallory");
        host.fake.review(pr, "mallory", "APPROVED", "fine", &[]);
        assert!(host.forge.reviews(pr).unwrap().is_empty());
        host.fake.review(pr, "mallory", "CHANGES_REQUESTED", "run this", &[("one.txt", 1, "and this")]);
        assert!(
            host.forge.reviews(pr).unwrap().is_empty() && host.forge.review_comments(pr).unwrap().is_empty()
        );
        // A user with write access and hidden membership.
        host.fake.stranger("ann");
        host.fake.add_token("of-ann", "ann", Reach::Write);
        host.fake.review(pr, "ann", "APPROVED", "", &[]);
        let told: Vec<String> = host.forge.reviews(pr).unwrap().into_iter().map(|r| r.author).collect();
        assert_eq!(told, ["ann"]);
    }
}

#[test]
fn a_duplicate_that_no_list_shows_yet_is_found() {
    let host = OnFake::new();
    with_branch(&host);
    let pr = host.forge.open_pr(&new_pr("one", true)).unwrap();
    host.fake.stale_lists(1);
    assert_eq!(host.forge.open_pr(&new_pr("one", true)).unwrap(), pr, "the host's own refusal leads to it");
    assert_eq!(host.fake.count("POST /repos/octo/app/pulls"), 2);
    // The answer is lost, and the lists are late.
    host.fake.close(pr.number);
    host.fake.fail("POST /repos/octo/app/pulls", Fault::HangupAfter);
    host.fake.stale_lists(3);
    let new = host.forge.open_pr(&new_pr("one", true)).unwrap();
    assert_eq!((new.number, host.fake.pulls_made()), (pr.number + 1, 2));
}

#[test]
fn a_comment_is_written_once_whatever_gets_lost() {
    for fault in [Fault::HangupAfter, Fault::StatusAfter(500), Fault::Hangup, server_error()] {
        let host = OnFake::new();
        let number = host.add_issue("t", "b", &[]);
        host.fake.fail("POST /repos/octo/app/issues/1/comments", fault.clone());
        let first = host.forge.comment(number, "m", "one").unwrap();
        assert_eq!(host.fake.comments(number).len(), 1, "{fault:?}");
        host.fake.fail("PATCH /repos/octo/app/issues/comments", fault);
        assert_eq!(host.forge.comment(number, "m", "two").unwrap().id, first.id);
        let calls = host.fake.count("PATCH");
        assert_eq!(host.forge.comment(number, "m", "two").unwrap().id, first.id);
        assert_eq!(host.fake.count("PATCH"), calls, "nothing changes, nothing is sent");
        assert!(host.fake.comments(number)[0].2.starts_with("two\n"), "{:?}", host.fake.comments(number));
    }
}

#[test]
fn persistent_server_errors_are_temporary() {
    let host = OnFake::new();
    for _ in 0..4 {
        host.fake.fail("GET /repos/octo/app", server_error());
    }
    let error = host.forge.default_branch().unwrap_err();
    assert!(matches!(error, ForgeError::Unavailable { .. }) && error.is_temporary(), "{error:?}");
    assert_eq!(host.fake.count("GET /repos/octo/app"), 4, "a bounded number of tries");
    for _ in 0..2 {
        host.fake.fail("GET /repos/octo/app", server_error());
    }
    host.fake.fail("GET /repos/octo/app", Fault::Hangup);
    assert_eq!(host.forge.default_branch().unwrap(), "main");
}

#[test]
fn a_slow_answer_is_a_time_out() {
    let host = OnFake::with(|options| options.timeout = Duration::from_millis(200));
    for _ in 0..4 {
        host.fake.fail("GET /repos/octo/app", Fault::Slow(Duration::from_secs(2)));
    }
    let error = host.forge.default_branch().unwrap_err();
    assert!(
        matches!(error, ForgeError::Unavailable { .. }) && error.to_string().contains("no answer"),
        "{error}"
    );
}

#[test]
fn a_renamed_repo_is_followed_but_not_to_another_host() {
    let host = OnFake::new();
    let moved = |to: String| Fault::Answer(301, vec![("location".into(), to)], "Moved Permanently".into());
    host.fake.fail("GET /repos/octo/app", moved("/repos/octo/app?renamed".into()));
    assert_eq!(host.forge.default_branch().unwrap(), "main");
    assert_eq!(host.fake.count("?renamed"), 1);
    let other = FakeGitHub::start().unwrap();
    host.fake.fail("GET /repos/octo/app", moved(format!("{}/repos/octo/app", other.url())));
    let error = host.forge.default_branch().unwrap_err().to_string();
    assert!(error.contains("301 Moved Permanently"), "{error}");
    assert_eq!(other.seen(), [], "the token went elsewhere");
}

fn limited(headers: &[(&str, &str)], words: &str) -> Fault {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Fault::Answer(403, headers, words.into())
}

#[test]
fn short_limits_are_waited_for_and_long_ones_reported() {
    let host = OnFake::new();
    with_branch(&host);
    host.fake.fail("GET /repos/octo/app", Fault::Status(429, Some(0)));
    host.fake.fail(
        "GET /repos/octo/app",
        limited(&[("retry-after", "0")], "You have exceeded a secondary rate limit."),
    );
    assert_eq!(host.forge.default_branch().unwrap(), "main");
    // A limited call wasn't done: it is retried even if doing it twice would do harm.
    host.fake.fail("POST /repos/octo/app/pulls", limited(&[("retry-after", "0")], "secondary rate limit"));
    host.forge.open_pr(&new_pr("one", false)).unwrap();
    assert_eq!(host.fake.pulls_made(), 1);
    host.fake.fail("GET /repos/octo/app", Fault::Status(429, Some(3600)));
    match host.forge.default_branch().unwrap_err() {
        ForgeError::RateLimited { wait, .. } => assert_eq!(wait, Duration::from_secs(3600)),
        other => panic!("{other:?}"),
    }
    let reset = [
        ("x-ratelimit-remaining", "0"),
        ("x-ratelimit-reset", "1796083200"),
        ("date", "Mon, 30 Nov 2026 23:00:00 GMT"),
    ];
    let calls = host.fake.count("GET /repos/octo/app");
    host.fake.fail("GET /repos/octo/app", limited(&reset, "API rate limit exceeded for user"));
    let error = host.forge.default_branch().unwrap_err();
    assert!(matches!(error, ForgeError::RateLimited { .. }) && error.is_temporary(), "{error:?}");
    assert_eq!(host.fake.count("GET /repos/octo/app"), calls + 1);
}

#[test]
fn lists_are_read_to_their_end() {
    let host = OnFake::new();
    let (work, remote, commit) = with_branch(&host);
    for n in 0..5 {
        work.commit(&format!("f{n}.txt"), "x\n");
    }
    assert_eq!(work.push(&remote, "one", Lease::FastForward), PushEnd::Pushed);
    let number = host.forge.open_pr(&new_pr("one", false)).unwrap().number;
    host.forge.comment(number, "m", "first").unwrap();
    for n in 0..6 {
        host.say(number, "ann", &format!("{n}"));
        host.set_check(&commit, &format!("c{n}"), CiState::Passed, "", None);
    }
    host.set_check(&commit, "last", CiState::Failed, "", None);
    for n in 0..4 {
        host.review(number, &format!("p{n}"), ralph_loop_domain::ports::ReviewState::Approved, "", &[]);
    }
    host.fake.page_size(2);
    assert_eq!(host.forge.pr_files(number).unwrap().len(), 6);
    assert_eq!(host.forge.checks(&commit).unwrap().len(), 7);
    assert_eq!(host.forge.reviews(number).unwrap().len(), 4);
    host.forge.comment(number, "m2", "at the end").unwrap();
    host.forge.comment(number, "m2", "at the end, changed").unwrap();
    assert_eq!(host.fake.comments(number).len(), 8);
}

#[test]
fn without_drafts_a_plain_pull_request_is_opened() {
    let host = OnFake::new();
    with_branch(&host);
    host.fake.without_drafts();
    let pr = host.forge.open_pr(&new_pr("one", true)).unwrap();
    assert!(!pr.draft);
    let wish = PrChange { draft: Some(true), ..PrChange::default() };
    assert!(!host.forge.update_pr(pr.number, &wish).unwrap().draft, "it says what is");
}

#[test]
fn ready_for_review_survives_lost_answers() {
    let host = OnFake::new();
    with_branch(&host);
    let number = host.forge.open_pr(&new_pr("one", true)).unwrap().number;
    host.fake.fail("POST /graphql", Fault::HangupAfter);
    let ready = PrChange { draft: Some(false), ..PrChange::default() };
    assert!(!host.forge.update_pr(number, &ready).unwrap().draft);
    let calls = host.fake.count("POST /graphql");
    assert!(!host.forge.update_pr(number, &ready).unwrap().draft);
    assert_eq!(host.fake.count("POST /graphql"), calls, "it is ready already");
}

#[test]
fn graphql_limit_is_reported() {
    let host = OnFake::new();
    with_branch(&host);
    let number = host.forge.open_pr(&new_pr("one", true)).unwrap().number;
    host.fake.limit_graphql();
    let ready = PrChange { draft: Some(false), ..PrChange::default() };
    let error = host.forge.update_pr(number, &ready).unwrap_err();
    assert!(matches!(error, ForgeError::RateLimited { .. }), "{error:?}");
    assert!(!host.forge.update_pr(number, &ready).unwrap().draft);
}

#[test]
fn jobs_of_the_same_name_do_not_hide_each_other() {
    let host = OnFake::new();
    let (_, _, commit) = with_branch(&host);
    let run = |workflow: u64, suite: u64, end: &str| {
        let (commit, name, conclusion) = (commit.clone(), "test".into(), Some(end.into()));
        host.fake.check(CheckRun { commit, name, conclusion, suite, workflow, ..CheckRun::default() });
    };
    let states =
        || -> Vec<CiState> { host.forge.checks(&commit).unwrap().into_iter().map(|c| c.state).collect() };
    run(1, 1, "cancelled");
    assert_eq!(states(), [CiState::Failed]);
    run(1, 2, "success");
    assert_eq!(states(), [CiState::Passed], "the same workflow ran again");
    run(2, 3, "failure");
    run(1, 4, "success");
    assert_eq!(states(), [CiState::Passed, CiState::Failed], "another workflow's job is another job");
    host.fake.fail("GET /repos/octo/app/actions/runs", Fault::Status(403, None));
    assert!(states().contains(&CiState::Failed), "without leave to look, every suite counts");
}

#[test]
fn log_has_no_timestamps_and_the_token_stays_on_the_host() {
    let host = OnFake::new();
    let (_, _, commit) = with_branch(&host);
    host.set_check(&commit, "test", CiState::Failed, "2 fail", Some("boom at line 3"));
    let check = host.forge.checks(&commit).unwrap().remove(0);
    assert_eq!(host.forge.check_log(&check, 1000).unwrap(), "boom at line 3\n");
    let asked = host.fake.seen();
    let asked = asked.iter().find(|seen| seen.line.contains("/log-store/")).unwrap();
    assert_eq!(asked.status, 200, "the store would refuse a token");
    // A job without a log: the check's own summary.
    host.fake.check(CheckRun {
        commit: commit.clone(),
        name: "lint".into(),
        conclusion: Some("failure".into()),
        title: "1 warning".into(),
        app: Some("linter".into()),
        annotations: vec![("a.txt".into(), 3, "trailing\nspace".into())],
        ..CheckRun::default()
    });
    let checks = host.forge.checks(&commit).unwrap();
    let lint = checks.iter().find(|check| check.name == "lint").unwrap();
    assert_eq!(host.forge.check_log(lint, 1000).unwrap(), "1 warning\na.txt:3: trailing space");
}

#[test]
fn a_review_that_is_still_written_does_not_count() {
    let host = OnFake::new();
    with_branch(&host);
    let number = host.forge.open_pr(&new_pr("one", false)).unwrap().number;
    host.fake.review(number, "ann", "PENDING", "not yet", &[]);
    assert_eq!(host.forge.reviews(number).unwrap(), []);
    assert_eq!(host.forge.review_comments(number).unwrap(), []);
}

#[test]
fn an_app_renews_its_token_before_it_ends() {
    let host = OnFake::as_app();
    for _ in 0..3 {
        host.forge.default_branch().unwrap();
    }
    assert_eq!(host.fake.tokens_issued(), 1, "a good token is used again");
    assert_eq!(host.fake.count("/installation"), 1 + 1, "the installation is looked for once");
    let access = host.forge.access().unwrap();
    assert_eq!((access.login.as_str(), access.push, access.private), ("ralph-test[bot]", true, true));

    let host = OnFake::as_app();
    host.fake.token_lifetime(240);
    host.forge.default_branch().unwrap();
    host.forge.default_branch().unwrap();
    assert_eq!(host.fake.tokens_issued(), 2, "four minutes are not enough");

    // Enough for a call, not for a push.
    let host = OnFake::as_app();
    host.fake.token_lifetime(600);
    host.forge.default_branch().unwrap();
    host.forge.default_branch().unwrap();
    assert_eq!(host.fake.tokens_issued(), 1);
    host.forge.remote().unwrap();
    assert_eq!(host.fake.tokens_issued(), 2);
}

#[test]
fn revoked_token_is_renewed() {
    let host = OnFake::as_app();
    let (_, token) = host.forge.remote().unwrap().login.unwrap();
    host.fake.revoke(&token);
    assert_eq!(host.forge.default_branch().unwrap(), "main");
    assert_eq!(host.fake.tokens_issued(), 2);
}

#[test]
fn an_app_with_a_wrong_key_or_no_installation_says_so() {
    let fake = FakeGitHub::start().unwrap();
    let with = |change: &dyn Fn(&mut ralph_loop_forge::AppKey)| {
        let (mut options, mut key) = (options(&fake), app(&fake));
        change(&mut key);
        options.auth = GitHubAuth::App(key);
        GitHub::new(options)
    };
    let error = with(&|key| key.pem = "nonsense".into()).unwrap_err();
    assert!(error.hint().unwrap().contains("GITHUB_APP_PRIVATE_KEY_PEM"), "{error}");
    let error = with(&|key| key.id = "1".into()).unwrap().access().unwrap_err();
    assert!(
        matches!(error, ForgeError::Auth { .. }) && error.hint().unwrap().contains("GITHUB_APP_ID"),
        "{error:?}"
    );
    let error = with(&|key| key.installation = Some(5)).unwrap().access().unwrap_err();
    assert!(error.hint().unwrap().contains("GITHUB_APP_INSTALLATION_ID"), "{error:?}");
    assert!(with(&|key| key.pem = fake.app_pem_pkcs8()).unwrap().access().unwrap().push);
    assert!(with(&|key| key.pem = fake.app_pem().replace('\n', "\\n")).unwrap().access().unwrap().push);
    fake.uninstall();
    let error = with(&|_| {}).unwrap().access().unwrap_err();
    assert!(error.to_string().contains("not installed on octo/app"), "{error}");
}

#[test]
fn missing_permissions_are_reported_without_the_token() {
    let host = OnFake::new();
    let (_, _, commit) = with_branch(&host);
    let number = host.forge.open_pr(&new_pr("one", true)).unwrap().number;
    let with = |token: &str| {
        let mut options = options(&host.fake);
        options.auth = GitHubAuth::Token(token.into());
        GitHub::new(options).unwrap()
    };
    let (wrong, blind, reading, sso) = ("tok-wrong", "tok-blind", "tok-reading", "tok-sso");
    host.fake.add_token(blind, "blind", Reach::Nothing);
    host.fake.add_token(reading, "reader", Reach::Read);
    host.fake.add_token(sso, "sso", Reach::SingleSignOn);

    let error = with(wrong).access().unwrap_err();
    assert!(matches!(error, ForgeError::Auth { .. }) && error.to_string().contains("401"), "{error:?}");
    assert!(error.hint().unwrap().contains("GITHUB_TOKEN"), "{error:?}");
    let error = with(blind).access().unwrap_err();
    assert!(
        error.to_string().contains("the token lacks access to octo/app, or it does not exist"),
        "{error}"
    );
    assert!(
        matches!(error, ForgeError::NotFound { .. }) && error.hint().unwrap().contains("Contents"),
        "{error:?}"
    );
    let error = with(sso).access().unwrap_err();
    assert!(error.hint().unwrap().contains("single sign-on"), "{error:?}");
    let reader = with(reading);
    assert!(!reader.access().unwrap().push);
    for error in [
        reader.open_pr(&new_pr("two", false)).unwrap_err(),
        reader.update_pr(number, &PrChange { draft: Some(false), ..PrChange::default() }).unwrap_err(),
        reader.comment(number, "m", "b").unwrap_err(),
    ] {
        assert!(
            matches!(error, ForgeError::Auth { .. }) && error.hint().unwrap().contains("Pull requests"),
            "{error:?}"
        );
    }
    assert_eq!(reader.checks(&commit).unwrap(), []);
    for token in [wrong, blind, sso, reading] {
        let forge = with(token);
        let text =
            format!("{forge:?} {:?} {:?}", forge.open_pr(&new_pr("x", false)).unwrap_err(), forge.remote());
        assert!(!text.contains(token), "{text}");
    }
    host.fake.archive();
    assert!(!host.forge.access().unwrap().push);
    let error = host.forge.add_labels(number, &["x".into()]).unwrap_err();
    assert!(error.hint().unwrap().contains("archived"), "{error:?}");
}

#[test]
fn refused_fields_are_named() {
    let host = OnFake::new();
    with_branch(&host);
    let mut new = new_pr("one", false);
    new.base = "nowhere".into();
    let error = host.forge.open_pr(&new).unwrap_err();
    assert!(
        error.to_string().contains("base invalid") && error.hint().unwrap().contains("`nowhere`"),
        "{error:?}"
    );
}

#[test]
fn enterprise_server_uses_its_own_paths() {
    let fake = FakeGitHub::start().unwrap();
    let token = fake.token();
    let api = format!("{}/api/v3/", fake.url());
    let vars = [("GITHUB_API_URL", api), ("GITHUB_PAT", token.clone())].into_iter().collect();
    let forge = ralph_loop_forge::find(Some(&fake.git_url()), ralph_loop_forge::NamedBy::User, None, &vars)
        .unwrap()
        .unwrap();
    assert_eq!((forge.kind(), forge.repo()), ("github", "octo/app"));
    let (work, remote) = (Work::new(), forge.remote().unwrap());
    assert_eq!(remote.url, fake.git_url());
    assert_eq!(work.push(&remote, "main", Lease::Absent), PushEnd::Pushed);
    work.branch(&remote, "one", "one.txt");
    let number = forge.open_pr(&new_pr("one", true)).unwrap().number;
    assert!(!forge.update_pr(number, &PrChange { draft: Some(false), ..PrChange::default() }).unwrap().draft);
    assert_eq!(fake.count("POST /api/v3/repos/octo/app/pulls"), 1);
    assert_eq!(fake.count("POST /api/graphql"), 1);
    assert_eq!(fake.count(" /repos/"), 0);
}

#[test]
fn pushes_meet_the_hosts_rules() {
    let host = OnFake::new();
    let (work, remote, commit) = with_branch(&host);
    host.fake.add_token("tok-reading", "reader", Reach::Read);
    let with = |token: &str| GitRemote {
        url: remote.url.clone(),
        login: Some(("x-access-token".into(), token.into())),
    };
    work.commit("one.txt", "two\n");
    for token in ["tok-wrong", "tok-reading"] {
        let end = work.push(&with(token), "one", Lease::FastForward);
        let PushEnd::Denied { reason } = &end else { panic!("{token}: {end:?}") };
        assert!(!reason.contains(token), "{reason}");
    }
    let anonymous = GitRemote { login: None, ..remote.clone() };
    let end = work.push(&anonymous, "one", Lease::FastForward);
    assert!(matches!(end, PushEnd::Denied { .. }), "{end:?}");
    assert_eq!(host.fake.branch("one"), Some(commit.clone()), "nothing came through");
    assert_eq!(work.push(&remote, "one", Lease::FastForward), PushEnd::Pushed);
    let second = work.head();
    // Foreign history: no fast-forward, and a stale lease.
    work.git(&["reset", "-q", "--hard", "main"]);
    work.commit("one.txt", "another\n");
    assert!(matches!(work.push(&remote, "one", Lease::FastForward), PushEnd::Rejected { .. }));
    assert!(matches!(work.push(&remote, "one", Lease::Absent), PushEnd::Rejected { .. }));
    let old = ralph_loop_protocol::id::CommitId::new(commit);
    assert!(matches!(work.push(&remote, "one", Lease::At(old)), PushEnd::Rejected { .. }));
    assert_eq!(host.fake.branch("one"), Some(second.clone()));
    let now = ralph_loop_protocol::id::CommitId::new(second);
    assert_eq!(work.push(&remote, "one", Lease::At(now)), PushEnd::Pushed);
    assert_eq!(host.fake.branch("one"), Some(work.head()));
    // A server error is temporary.
    host.fake.fail("/octo/app.git/", Fault::Status(503, None));
    work.commit("one.txt", "more\n");
    assert!(matches!(work.push(&remote, "one", Lease::FastForward), PushEnd::Unavailable { .. }));
    // The answer is lost, not the work: git retries, and is refused.
    host.fake.fail("POST /octo/app.git/git-receive-pack", Fault::HangupAfter);
    assert_eq!(work.push(&remote, "one", Lease::FastForward), PushEnd::Pushed);
    assert_eq!(host.fake.branch("one"), Some(work.head()));
    work.commit("one.txt", "still more\n");
    host.fake.fail("POST /octo/app.git/git-receive-pack", Fault::StatusAfter(502));
    let end = work.push(&remote, "one", Lease::FastForward);
    assert!(matches!(end, PushEnd::Unavailable { .. }), "{end:?}");
    assert_eq!(work.push(&remote, "one", Lease::FastForward), PushEnd::Pushed, "it was there");
}

#[test]
fn a_large_push_arrives() {
    let host = OnFake::new();
    let (work, remote, _) = with_branch(&host);
    // More than git sends in one piece, and incompressible.
    let mut seed = 7_u64;
    let bytes: Vec<u8> = (0..3_000_000)
        .map(|_| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            seed.to_be_bytes()[0]
        })
        .collect();
    std::fs::write(work.top.join("large.bin"), bytes).unwrap();
    let commit = work.commit("one.txt", "with a large file\n");
    assert_eq!(work.push(&remote, "one", Lease::FastForward), PushEnd::Pushed);
    assert_eq!(host.fake.branch("one"), Some(commit));
    assert!(host.fake.git(&["fsck"]).is_some());
}
