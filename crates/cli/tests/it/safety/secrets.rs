//! Secrets never reach `.ralph/`, the state folder, stdout, stderr, events or commit messages, in whatever form an agent
//! prints them.

use crate::RALPH;
use ralph_loop_testkit::{Finished, TestEnv, TestRepo};
use serde_json::json;
use std::path::Path;

/// Values of variables, of `.env`, and of shapes that are always secret.
const PAT: &str = "canary-pat-7Qx9/ZrT+w2Lm=Kd";
const KEY: &str = "canaryKey4711abcXYZ098";
const DOTENV: &str = "dotenv-canary-55aaBB77cc";
const SHAPED: &str = "ghp_16C7e42F292c6912E7710c838347Ae178B4a";

struct Stage<'a> {
    env: &'a TestEnv,
    repo: TestRepo<'a>,
}

impl<'a> Stage<'a> {
    fn new(env: &'a TestEnv) -> Self {
        let repo = TestRepo::with_task(env);
        repo.write(".gitignore", ".env\n");
        repo.git(&["add", "-A"]);
        repo.git(&["commit", "-qm", "ignore"]);
        repo.write(
            ".env",
            &format!("# keys\nexport ANTHROPIC_API_KEY=\"{DOTENV}\"\nOTHER_SECRET={DOTENV}-2\n"),
        );
        Self { env, repo }
    }

    /// Runs an agent that has all secrets as variables.
    fn run(&self, script: &str, check: &str, args: &[&str]) -> Finished {
        let mut agent = self.repo.agent("stub", script);
        agent["env"] = json!({"SHAPED": SHAPED.replacen("ghp_", "", 1)});
        self.repo.configure(&[agent], check, &json!({"max_iterations": 2}));
        self.ralph(&[&["run", "--isolation", "none", "--json", "--verbose"], args].concat())
    }

    fn ralph(&self, args: &[&str]) -> Finished {
        let mut command = self.env.ralph_command(&self.repo.dir, args);
        TestEnv::finish(command.env("GITHUB_PAT", PAT).env("MY_API_KEY", KEY))
    }

    /// Searches everything that `ralph` writes.
    #[track_caller]
    fn clean(&self, done: &Finished) {
        let mut needles: Vec<String> = Vec::new();
        for value in [PAT, KEY, DOTENV, SHAPED] {
            needles.extend([value.to_owned(), percent(value)]);
            // FAULT (open, `domain/src/redact.rs`): a token that is known by its shape alone is not found in base64.
            for lead in (0..3).filter(|_| value != SHAPED) {
                needles.push(base64_inside(self.env, value, lead));
            }
        }
        let look = |place: &str, text: &str| {
            for needle in &needles {
                assert!(
                    !text.contains(needle.as_str()),
                    "`{needle}` is in {place}:\n{}",
                    around(text, needle)
                );
            }
        };
        look("stdout", &done.stdout);
        look("stderr", &done.stderr);
        for folder in [self.repo.dir.join(".ralph"), self.env.path("state"), self.repo.dir.join(".git/ralph")]
        {
            walk(&folder, &mut |path, text| look(&path.display().to_string(), text));
        }
        look("commit messages", &self.repo.git(&["log", "--all", "--format=%an %ae %cn %ce %B"]));
    }
}

fn around(text: &str, needle: &str) -> String {
    text.lines()
        .filter(|l| l.contains(needle))
        .take(3)
        .map(|l| l.chars().take(400).collect::<String>() + "\n")
        .collect()
}

fn walk(folder: &Path, look: &mut impl FnMut(&Path, &str)) {
    for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        match entry.file_type().unwrap() {
            kind if kind.is_dir() => walk(&path, look),
            // The user's configuration, and the agent's file names in git's data, stay unredacted.
            kind if kind.is_file()
                && !["config.json", "record.json"].iter().any(|n| path.ends_with(n))
                && !path.file_name().is_some_and(|name| name.to_string_lossy().starts_with("index")) =>
            {
                look(&path, &String::from_utf8_lossy(&std::fs::read(&path).unwrap()));
            }
            _ => {}
        }
    }
}

fn percent(value: &str) -> String {
    value.replace('/', "%2F").replace('+', "%2B").replace('=', "%3D")
}

/// The base64 characters that depend only on `value` if it follows `lead` other bytes.
fn base64_inside(env: &TestEnv, value: &str, lead: usize) -> String {
    let line = format!("printf '%s' '{}{value}' | base64 -w0", "x".repeat(lead));
    let text = TestEnv::finish(env.command("sh", &env.path("home")).args(["-c", &line])).exits(0).stdout;
    let skip = [0, 2, 3][lead];
    text[skip..(lead + value.len()) * 8 / 6].to_owned()
}

const DONE: &str = "echo work > part.txt\necho '<promise>COMPLETE</promise>'";

#[test]
fn printed_secrets_are_redacted_plain_and_encoded() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let script = format!(
        "for v in \"$GITHUB_PAT\" \"$MY_API_KEY\" \"$ANTHROPIC_API_KEY\" \"ghp_$SHAPED\"; do
            test -n \"$v\" || exit 9
            echo \"plain $v end\"; echo \"plain $v end\" >&2
            echo \"{{\\\"key\\\": \\\"$v\\\"}}\"
            printf 'b64 '; printf '%s' \"$v\" | base64 -w0; echo
            printf 'b64 '; printf 'user:%s\\n' \"$v\" | base64 -w0; echo
            printf 'b64 '; printf 'ab%sz' \"$v\" | base64 -w0; echo
            printf '%s' \"$v\" | sed 's,/,%2F,g; s,+,%2B,g; s,=,%3D,g'; echo
         done
         {DONE}"
    );
    let done = stage
        .run(&script, "echo \"verifier sees $GITHUB_PAT and $MY_API_KEY\"; grep -q work part.txt", &[])
        .exits(0);
    let log = stage.repo.run_file("iterations/1/output.log");
    assert!(
        log.contains("plain [redacted:GITHUB_PAT] end") && log.contains("[redacted:MY_API_KEY]"),
        "{log}"
    );
    assert!(
        stage.repo.run_file("iterations/1/check-tests.log").contains("verifier sees [redacted:GITHUB_PAT]")
    );
    stage.clean(&done);
}

#[test]
fn secret_split_over_writes_is_redacted() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let split = |name: &str, at: usize| {
        format!(
            "printf '%s' \"$(printf %s \"${name}\" | cut -c1-{at})\"; sleep 0.3; printf '%s' \"$(printf %s \"${name}\" | cut -c{}-)\"; echo",
            at + 1
        )
    };
    let script = format!(
        "{}\n{}\n{}\n{DONE}",
        split("GITHUB_PAT", 9),
        split("MY_API_KEY", 1),
        split("ANTHROPIC_API_KEY", 20)
    );
    let done = stage.run(&script, "grep -q work part.txt", &[]).exits(0);
    assert!(
        stage.repo.run_file("iterations/1/output.log").matches("[redacted:").count() >= 3,
        "{}",
        stage.repo.run_file("iterations/1/output.log")
    );
    stage.clean(&done);
}

/// FAULT (open, `journal/src/folder/artifacts.rs`): `OutputLog` holds back one unfinished word for both streams together, so a
/// secret on one stream is torn by a word of the other one and its parts are written.
#[test]
fn secret_split_on_one_stream_is_redacted_despite_the_other() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let script = format!(
        "printf '%s' \"$(printf %s \"$MY_API_KEY\" | cut -c1-12)\"; sleep 0.2; echo between >&2; sleep 0.2; printf '%s' \"$(printf %s \"$MY_API_KEY\" | cut -c13-)\"; echo\n{DONE}"
    );
    stage.run(&script, "grep -q work part.txt", &[]).exits(0);
    let log = stage.repo.run_file("iterations/1/output.log");
    assert!(!log.contains(&KEY[..12]) && !log.contains(&KEY[12..]), "{log}");
}

#[test]
fn final_messages_and_errors_are_redacted() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let done = stage
        .run(
            &format!(
                "echo work > part.txt; echo; echo \"I used $GITHUB_PAT and ghp_$SHAPED for it.\"; {DONE}"
            ),
            "true",
            &["--branch", "fix"],
        )
        .exits(0);
    assert!(
        stage.repo.read(".ralph/changelog/global.md").contains("said: I used [redacted:GITHUB_PAT]"),
        "{}",
        stage.repo.read(".ralph/changelog/global.md")
    );
    stage.clean(&done);
    let failing = "echo \"fatal: $GITHUB_PAT was refused at https://me:$MY_API_KEY@example.com\" >&2; exit 3";
    let done = stage.run(failing, "echo \"assert $ANTHROPIC_API_KEY\"; false", &[]).exits(1);
    let prompt = stage.repo.run_file("iterations/2/prompt.md");
    assert!(prompt.contains("fatal: [redacted:GITHUB_PAT] was refused"), "{prompt}");
    stage.clean(&done);
    let limited = "echo \"rate limit for $GITHUB_PAT, try again in 0 seconds\" >&2; exit 1";
    let agent = stage.repo.agent("stub", limited);
    stage.repo.configure(&[agent], "false", &json!({"max_limit_wait_minutes": 0.01}));
    let done = stage.ralph(&["run", "--isolation", "none", "--json", "--new"]).exits(1);
    assert!(stage.repo.read(".ralph/cooldowns.json").contains("rate limit for [redacted:GITHUB_PAT]"));
    stage.clean(&done);
}

#[test]
fn secret_in_a_file_stays_in_the_commit_and_is_redacted_in_the_patch() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let done = stage
        .run(&format!("echo \"token = $GITHUB_PAT\" > leak.txt; {DONE}"), "grep -q work part.txt", &[])
        .exits(0);
    let work = format!("refs/ralph/{}/work", stage.repo.latest());
    assert_eq!(
        stage.repo.git(&["show", &format!("{work}:leak.txt")]),
        format!("token = {PAT}"),
        "the truth is the commit"
    );
    let patch = stage.repo.run_file("iterations/1/git_diff.patch");
    assert!(patch.contains("+token = [redacted:GITHUB_PAT]"), "{patch}");
    stage.clean(&done);
}

#[test]
fn file_names_and_controls_are_redacted() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let done = stage.run(&format!("echo x > \"leak-$MY_API_KEY.txt\"; echo \"see $MY_API_KEY\" > .ralph/progress.md; sed -i \"s/^see .*/see me/\" .ralph/progress.md; {DONE}"), "false", &[]).exits(1);
    stage.clean(&done);
    // The keys here are fake; no server may be called with them.
    let more = json!({"max_iterations": 20, "doctor": {"profile": "none"}, "critic": {"disabled": true}});
    stage.repo.configure(&[stage.repo.agent("stub", "echo x > scratch.txt; echo ok")], "false", &more);
    stage.ralph(&["run", "--isolation", "none", "--new"]).exits(3);
    for args in [["note", PAT], ["guardrail", KEY], ["nudge", SHAPED]] {
        stage.clean(&stage.ralph(&args).exits(0));
    }
    let done = stage.ralph(&["resume", "--json"]);
    stage.clean(&done);
}

#[test]
fn secrets_in_task_urls_and_arguments_are_redacted() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    stage.repo.write("PROMPT.md", &format!("# Use {KEY}\n\nThe key is {PAT}, the token {SHAPED}.\n"));
    let done = stage.run(DONE, "grep -q work part.txt", &[]).exits(0);
    assert!(stage.repo.run_file("iterations/1/prompt.md").contains("[redacted:GITHUB_PAT]"));
    stage.clean(&done);
    let url = format!("https://someone:{KEY}@localhost:1/x.git");
    let done = stage.run(DONE, "true", &["--clone", &url]).exits(4);
    stage.clean(&done);
}

#[test]
fn multi_line_keys_and_engine_secrets_are_redacted() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let lines = ["MIIEvQIBADANBgkqhkiG9w0BAQEF", "AASCBKcwggSjAgEAAoIBAQC7VJTU"];
    stage.repo.write(
        ".env",
        &format!("APP_PRIVATE_KEY=\"-----BEGIN X-----\n{}\n{}\n-----END X-----\"\n", lines[0], lines[1]),
    );
    let script =
        format!("cat .env; echo \"one line {}\"; echo \"db ${{RALPH_DB_URL-none}}\"; {DONE}", lines[1]);
    stage.repo.configure(
        &[stage.repo.agent("stub", &script)],
        "echo \"db ${RALPH_DB_URL-none}\"; true",
        &json!({"max_iterations": 1}),
    );
    for isolation in [&["--isolation", "none"][..], &[]] {
        // Each run needs work to do: a run without changes isn't done.
        let _ = std::fs::remove_file(stage.repo.dir.join("part.txt"));
        let mut command =
            env.ralph_command(&stage.repo.dir, &[&["run", "--new", "--json"], isolation].concat());
        let done =
            TestEnv::finish(command.env("RALPH_DB_URL", "postgres://ralph:Pa55word-of-ralph@db/ralph"));
        if done.code == Some(4) && isolation.is_empty() {
            ralph_loop_testkit::skip("this machine cannot sandbox agents");
            continue;
        }
        let done = done.exits(0);
        let log = stage.repo.run_file("iterations/1/output.log");
        assert!(log.contains("db none"), "{log}");
        assert!(stage.repo.run_file("iterations/1/check-tests.log").contains("db none"));
        if isolation.is_empty() {
            continue;
        }
        assert!(log.contains("one line [redacted:APP_PRIVATE_KEY]"), "{log}");
        walk(&env.path("state"), &mut |path, text| {
            assert!(lines.iter().all(|line| !text.contains(line)), "{}", path.display());
        });
        assert!(lines.iter().all(|line| !done.stdout.contains(line) && !done.stderr.contains(line)));
    }
}

#[test]
fn agent_notes_are_redacted_in_every_copy() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    let wrapped = format!("{}\n  {}", &PAT[..11], &PAT[11..]);
    let script = format!("printf '%s\\n' 'plain {PAT}' 'broken {wrapped}' >> .ralph/progress.md; echo noted");
    stage.run(&script, "false", &[]).exits(1);
    let prompt = stage.repo.run_file("iterations/2/prompt.md");
    assert!(
        prompt.contains("plain [redacted:GITHUB_PAT]") && prompt.contains("broken [redacted:GITHUB_PAT]"),
        "{prompt}"
    );
    // The next run stores this one's progress with its record.
    let first = stage.repo.latest();
    stage.run(DONE, "grep -q work part.txt", &["--new"]).exits(0);
    let kept = std::fs::read_to_string(stage.repo.record(&first).join("progress.md")).unwrap();
    assert!(kept.contains("plain [redacted:GITHUB_PAT]") && !kept.contains(&PAT[11..]), "{kept}");
}

#[test]
fn printed_records_stay_redacted() {
    let env = TestEnv::new(RALPH);
    let stage = Stage::new(&env);
    stage
        .run(&format!("echo \"now $GITHUB_PAT\"; {DONE}"), "echo $MY_API_KEY; grep -q work part.txt", &[])
        .exits(0);
    for args in [
        &["status", "--json"][..],
        &["show", "--json"],
        &["logs"],
        &["list", "--json"],
        &["show"],
        &["status"],
    ] {
        stage.clean(&stage.ralph(args));
    }
}
