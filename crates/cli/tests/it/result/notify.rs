//! Notifications: every occasion and every channel, once each, and never at the run's expense.
#![allow(clippy::disallowed_methods, reason = "tests start processes")]

mod receivers;

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use receivers::{Post, Received, SmtpSettings, Web, base64_lite, certificate};
use serde_json::{Value, json};
use std::io::Write as _;
use std::net::TcpListener;
use std::process::{Command, Stdio};

const WORK: &str = "echo x > part.txt; echo '<promise>COMPLETE</promise>'";
const EVERY: [&str; 6] = ["start", "needs_human", "gutter", "limit_wait", "success", "failure"];
const KEY: &str = "a key of this test";

fn user_config(env: &TestEnv, notify: &Value) {
    let path = env.path("config").join("ralph/config.json");
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(path, json!({ "notify": notify }).to_string()).unwrap();
}

fn signed(web: &Web) -> Value {
    json!([{"kind": "webhook", "url": web.url(), "secret_env": "HOOK_SECRET", "on": EVERY}])
}

fn run(
    env: &TestEnv,
    repo: &TestRepo<'_>,
    args: &[&str],
    vars: &[(&str, &str)],
) -> ralph_loop_testkit::env::Finished {
    let mut command = env.ralph_command(&repo.dir, args);
    command.env("HOOK_SECRET", KEY).envs(vars.iter().copied());
    TestEnv::finish(&mut command)
}

const RUN: &[&str] = &["run", "--isolation", "none", "--json"];

/// The signature as computed by another program.
fn expected_signature(body: &str) -> String {
    let mut child = Command::new("openssl")
        .args(["dgst", "-sha256", "-hmac", KEY])
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(body.as_bytes()).unwrap();
    let said = String::from_utf8(child.wait_with_output().unwrap().stdout).unwrap();
    format!("sha256={}", said.trim().rsplit(' ').next().unwrap())
}

fn assert_signed(received: &Received) {
    assert_eq!(received.headers["x-ralph-signature-256"], expected_signature(&received.body));
    let body: Value = serde_json::from_str(&received.body).unwrap();
    assert_eq!(body["sent_at"].to_string(), received.headers["x-ralph-timestamp"]);
    assert_eq!(body["id"], received.headers["x-ralph-delivery"].as_str());
    assert_eq!(body["occasion"], received.headers["x-ralph-event"].as_str());
}

#[test]
fn proven_run_notifies_start_and_end() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(WORK, "test -f part.txt");
    // The receiver fails temporarily: the message is sent again.
    let web = Web::start(&[503]);
    user_config(&env, &signed(&web));
    run(&env, &repo, RUN, &[]).exits(0);
    assert_eq!(web.occasions(), ["start", "start", "success"]);
    web.received().iter().for_each(assert_signed);
    let last: Value = serde_json::from_str(&web.received()[2].body).unwrap();
    assert_eq!((&last["title"], &last["iterations"]), (&json!("Do the work"), &json!(1)));
    assert!(last["text"].as_str().unwrap().starts_with("Proven, independent"), "{last}");
    let told = repo.events_named("notified");
    let told: Vec<_> =
        told.iter().map(|e| (e["occasion"].as_str().unwrap(), e["ok"].as_bool().unwrap())).collect();
    assert_eq!(told, [("start", true), ("success", true)]);
}

#[test]
fn limits_gutters_needs_and_failures_are_notified() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let web = Web::start(&[]);
    user_config(&env, &signed(&web));
    let mark = env.path("limited").display().to_string();
    let limited = "echo 'HTTP 429 Too Many Requests' >&2; echo 'Retry-After: 1' >&2; exit 1";
    let script = format!(
        "if [ ! -e {mark} ]; then : > {mark}; {limited}\nelse echo $RALPH_ITERATION > scratch.txt; echo 'all good so far'; fi"
    );
    repo.configure(&[repo.agent("stub", &script)], "test -f part.txt", &json!({"max_iterations": 20}));
    run(&env, &repo, RUN, &[]).exits(3);
    let seen = web.occasions();
    assert_eq!(seen[..3], ["start", "limit_wait", "gutter"], "{seen:?}");
    assert_eq!(seen.last().unwrap(), "needs_human", "{seen:?}");
    let need: Value = serde_json::from_str(&web.received().last().unwrap().body).unwrap();
    assert_eq!(need["hint"], format!("ralph resume {}", repo.latest()));

    repo.configure(&[repo.agent("stub", "echo $RALPH_ITERATION > part.txt")], "false", &json!({}));
    run(&env, &repo, &[RUN, &["--new", "--max-iterations", "1"]].concat(), &[]).exits(1);
    assert_eq!(web.occasions().last().unwrap(), "failure");
}

#[test]
fn run_killed_before_a_notification_sends_it_once_on_resume() {
    // The end of a run is notified afterwards; at the second boundary it was sent, but the journal doesn't know that.
    for (fault, times) in [("notify.before#2", 1), ("notify.recorded#2", 1), ("notify.sent#2", 2)] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        repo.stub(WORK, "test -f part.txt");
        let web = Web::start(&[]);
        user_config(&env, &signed(&web));
        assert_eq!(run(&env, &repo, RUN, &[("RALPH_FAULT", fault)]).code, None, "{fault}");
        assert!(repo.kinds().contains(&"finished".to_owned()));
        let again = run(&env, &repo, &["resume"], &[]);
        let known = fault.starts_with("notify.recorded");
        assert_eq!(again.code, Some(if known { 2 } else { 0 }), "{}", again.stderr);
        let ends: Vec<Received> =
            web.received().into_iter().filter(|r| r.headers["x-ralph-event"] == "success").collect();
        assert_eq!(ends.len(), times, "{fault}");
        // A receiver can detect duplicates.
        assert!(
            ends.iter().all(|end| end.headers["x-ralph-delivery"] == ends[0].headers["x-ralph-delivery"])
        );
        run(&env, &repo, &["resume"], &[]).exits(2);
        assert_eq!(web.occasions().iter().filter(|o| *o == "success").count(), times, "{fault}");
        assert_eq!(web.occasions().iter().filter(|o| *o == "start").count(), 1, "{fault}");
    }
}

#[test]
fn resumed_run_does_not_repeat_notifications() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(WORK, "test -f part.txt");
    let web = Web::start(&[]);
    user_config(&env, &signed(&web));
    assert_eq!(run(&env, &repo, RUN, &[("RALPH_FAULT", "notify.before")]).code, None);
    assert_eq!(web.occasions(), Vec::<String>::new());
    run(&env, &repo, &["resume", "--json"], &[]).exits(0);
    assert_eq!(web.occasions(), ["start", "success"]);
}

#[test]
fn dead_receivers_do_not_break_a_run() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(WORK, "test -f part.txt");
    // This one accepts the connection and never answers.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent_port = silent.local_addr().unwrap().port();
    let web = Web::start(&[]);
    user_config(
        &env,
        &json!([
            {"kind": "webhook", "name": "dead", "url": "http://127.0.0.1:9/hook"},
            {"kind": "webhook", "name": "mute", "url": format!("http://127.0.0.1:{silent_port}/hook")},
            {"kind": "email", "host": "127.0.0.1", "port": silent_port, "tls": "none", "from": "a@b.org", "to": ["c@d.org"]},
            {"kind": "slack"},
            {"kind": "command", "command_argv": ["/does/not/exist"]},
            {"kind": "webhook", "name": "alive", "url": web.url()},
        ]),
    );
    let done = run(&env, &repo, RUN, &[]).exits(0);
    assert_eq!(done.json()["success"], true);
    assert_eq!(web.occasions(), ["success"]);
    let told = repo.events_named("notified");
    let of = |by: &str| told.iter().find(|e| e["by"] == by).unwrap_or_else(|| unreachable!("{by}: {told:?}"));
    assert_eq!(of("alive")["ok"], true);
    assert!(of("slack")["why"].as_str().unwrap().contains("SLACK_WEBHOOK_URL"));
    for by in ["dead", "mute", "email", "slack", "command"] {
        assert_eq!(of(by)["ok"], false, "{by}");
    }
    assert!(!repo.read(".ralph/errors.log").contains("hook"), "the agent could do nothing about it");
    let log = repo.read(".ralph/activity.log");
    assert!(log.contains("dead could not notify anyone of success"), "{log}");
}

fn settings() -> SmtpSettings {
    SmtpSettings { method: "PLAIN", user: "me", password: "open sesame", tls: None, implicit: false }
}

#[test]
fn mail_is_sent_through_a_server_with_login() {
    for method in ["PLAIN", "LOGIN"] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        repo.write("PROMPT.md", "# Größe prüfen\n\nWrite `part.txt`.\n");
        repo.stub(WORK, "test -f part.txt");
        let post = Post::start(SmtpSettings { method, ..settings() });
        let mail = json!({"kind": "email", "host": "127.0.0.1", "port": post.port, "tls": "none", "user": "me",
            "password_env": "MAIL_PASSWORD", "from": "ralph@example.org", "to": ["a@example.org", "b@example.org"]});
        user_config(&env, &json!([mail]));
        run(&env, &repo, RUN, &[("MAIL_PASSWORD", "open sesame")]).exits(0);
        let mails = post.mails();
        assert_eq!(mails.len(), 1, "{mails:?}");
        let said = &mails[0].said;
        assert!(said.contains(&"MAIL FROM:<ralph@example.org>".to_owned()), "{said:?}");
        assert!(said.contains(&"RCPT TO:<b@example.org>".to_owned()), "{said:?}");
        let (head, body) = mails[0].mail.split_once("\n\n").unwrap();
        // A long subject is folded into several encoded words.
        let subject = head
            .lines()
            .skip_while(|line| !line.starts_with("Subject: "))
            .take_while(|line| line.starts_with("Subject: ") || line.starts_with(' '));
        let words = subject.filter_map(|line| line.trim_end_matches("?=").split_once("=?utf-8?B?"));
        let subject: String = words.map(|(_, word)| base64_lite::decode(word)).collect();
        assert_eq!(subject, "ralph: proven, independent: Größe prüfen");
        assert!(base64_lite::decode(&body.replace('\n', "")).contains("Proven, independent"), "{body}");

        let wrong = run(&env, &repo, &["notify", "test", "--json"], &[("MAIL_PASSWORD", "guess")]).exits(4);
        let why = wrong.json()["notifiers"][0]["why"].as_str().unwrap().to_owned();
        assert!(why.contains("refused the login: 535") && !why.contains("guess"), "{why}");
    }
}

#[test]
fn mail_uses_tls_and_checks_the_certificate() {
    for (implicit, tls) in [(false, "starttls"), (true, "implicit")] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        let (cert, config) = certificate(&env.path("tmp"));
        let post = Post::start(SmtpSettings { tls: Some(config), implicit, ..settings() });
        let mail = |tls: &str| {
            json!([{"kind": "email", "host": "127.0.0.1", "port": post.port, "tls": tls, "user": "me",
                "password_env": "MAIL_PASSWORD", "from": "ralph@example.org", "to": ["a@example.org"]}])
        };
        user_config(&env, &mail(tls));
        let known = ("SSL_CERT_FILE", cert.to_str().unwrap());
        let login = ("MAIL_PASSWORD", "open sesame");
        let send = |vars: &[(&str, &str)]| run(&env, &repo, &["notify", "test", "--json"], vars);
        send(&[login, known]).exits(0);
        assert_eq!(post.mails().len(), 1);
        let stranger = send(&[login]).exits(4).json();
        let why = stranger["notifiers"][0]["why"].as_str().unwrap();
        assert!(why.contains("certificate"), "{why}");
        assert_eq!(post.mails().len(), 1);
    }
}

#[test]
fn a_command_and_the_desktop_get_the_message() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub(WORK, "test -f part.txt");
    let (heard, shown) = (env.path("heard").display().to_string(), env.path("shown").display().to_string());
    let hear = repo.script("hear.sh", &format!("{{ cat; echo; env | grep ^RALPH_NOTIFY_; }} > {heard}"));
    std::fs::create_dir_all(env.path("bin")).unwrap();
    std::fs::rename(
        repo.script("notify-send", &format!("printf '%s\\n' \"$@\" > {shown}")),
        env.path("bin/notify-send"),
    )
    .unwrap();
    user_config(&env, &json!([{"kind": "command", "command_argv": [hear]}]));
    let path = format!("{}:{}", env.path("bin").display(), std::env::var("PATH").unwrap());
    run(&env, &repo, &[RUN, &["--notify", "desktop"]].concat(), &[("PATH", &path)]).exits(0);
    let heard = std::fs::read_to_string(heard).unwrap();
    let (first, vars) = heard.split_once('\n').unwrap();
    let message: Value = serde_json::from_str(first).unwrap();
    assert_eq!((&message["occasion"], &message["run_id"]), (&json!("success"), &json!(repo.latest())));
    assert!(vars.contains("RALPH_NOTIFY_OCCASION=success"), "{vars}");
    assert!(vars.contains("RALPH_NOTIFY_HEADING=ralph: proven, independent: Do the work"), "{vars}");
    let shown = std::fs::read_to_string(shown).unwrap();
    let shown: Vec<&str> = shown.lines().collect();
    assert_eq!(
        shown[..4],
        ["--app-name=ralph", "--urgency=normal", "--", "ralph: proven, independent: Do the work"]
    );
}

#[test]
fn slack_is_notified_if_configured_and_secrets_are_redacted() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let secret = "sk-".to_owned() + "ant-api03-abcdefghijklmnopqrstuvwxyz";
    repo.write("PROMPT.md", &format!("# Use {secret} & <!channel>\n\nWrite `part.txt`.\n"));
    repo.stub(WORK, "test -f part.txt");
    let web = Web::start(&[]);
    run(&env, &repo, RUN, &[("SLACK_WEBHOOK_URL", &web.url())]).exits(0);
    let received = web.received();
    assert_eq!(received.len(), 1, "only the end, by default");
    let body: Value = serde_json::from_str(&received[0].body).unwrap();
    let text = body["text"].as_str().unwrap();
    assert!(
        text.starts_with("*ralph: proven, independent: Use ") && text.contains("&amp; &lt;!channel&gt;"),
        "{text}"
    );
    assert!(!received[0].body.contains(&secret), "{text}");
    std::fs::remove_file(repo.dir.join("part.txt")).unwrap();
    run(&env, &repo, &[RUN, &["--new", "--notify", "none"]].concat(), &[("SLACK_WEBHOOK_URL", &web.url())])
        .exits(0);
    assert_eq!(web.received().len(), 1);
}

#[test]
fn repo_cannot_choose_notification_receivers() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let web = Web::start(&[]);
    repo.configure(
        &[repo.agent("stub", WORK)],
        "test -f part.txt",
        &json!({"notify": [{"kind": "webhook", "url": web.url()}]}),
    );
    let refused = run(&env, &repo, RUN, &[]).exits(2);
    assert!(refused.stderr.contains("in your own config"), "{}", refused.stderr);
    assert!(refused.stderr.contains("~/.config/ralph/config.json"), "{}", refused.stderr);

    repo.stub(WORK, "test -f part.txt");
    repo.write(".env", &format!("SLACK_WEBHOOK_URL={}\n", web.url()));
    repo.git(&["add", "-f", ".env"]);
    repo.git(&["commit", "-qm", "a gift"]);
    let refused = run(&env, &repo, RUN, &[]).exits(3);
    assert!(refused.stderr.contains("notifications to be sent to"), "{}", refused.stderr);
    run(&env, &repo, &[RUN, &["--notify", "none"]].concat(), &[]).exits(0);
    assert_eq!(web.received().len(), 0, "a `.env` that comes with the repo has no say");
    repo.git(&["rm", "-q", "--cached", ".env"]);
    repo.git(&["commit", "-qm", "my own"]);
    std::fs::remove_file(repo.dir.join("part.txt")).unwrap();
    run(&env, &repo, &[RUN, &["--new"]].concat(), &[]).exits(3);
    repo.ralph(&["trust", "--yes"]).exits(0);
    run(&env, &repo, &[RUN, &["--new"]].concat(), &[]).exits(0);
    assert_eq!(web.received().len(), 1, "once it was allowed, it has");
}

#[test]
fn notify_test_reports_each_receiver() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let none = run(&env, &repo, &["notify", "test"], &[]).exits(4);
    assert!(none.stderr.contains("SLACK_WEBHOOK_URL"), "{}", none.stderr);
    let web = Web::start(&[]);
    user_config(
        &env,
        &json!([{"kind": "webhook", "url": web.url()}, {"kind": "webhook", "url_env": "NOT_SET"}]),
    );
    let table = run(&env, &repo, &["notify", "test"], &[]).exits(4);
    let lines: Vec<&str> = table.stdout.lines().collect();
    assert!(lines[0].starts_with("webhook ") && lines[0].ends_with("sent"), "{}", table.stdout);
    assert!(
        lines[1].starts_with("webhook-2") && lines[1].contains("failed: the variable `NOT_SET`"),
        "{}",
        table.stdout
    );
    let json = run(&env, &repo, &["notify", "test", "--json"], &[("NOT_SET", &web.url())]).exits(0).json();
    assert_eq!(json["notifiers"][1]["on"], json!(["needs_human", "success", "failure"]));
    assert_eq!(web.occasions().len(), 3);
}
