//! Files and the task: within the workspace, and never over a concurrent edit.

use super::machine::{Served, detached, machine, waiting_script};
use ralph_loop_testkit::TestRepo;
use serde_json::{Value, json};

const TASK: &str = "# Do the work\n\nWrite `part.txt`.\n";

#[test]
fn concurrent_edits_do_not_overwrite_each_other() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    let run = detached(&repo, &[]);
    let server = Served::start(&env, &repo.dir, &[]);
    let path = format!("/runs/{run}/task");
    let first = server.get(&path).is(200);
    assert_eq!(first.json()["text"], TASK);
    let mark = first.header("etag").unwrap().to_owned();
    let put = |mark: Option<&str>, text: &str| {
        let headers: Vec<(&str, &str)> = mark.map(|mark| ("If-Match", mark)).into_iter().collect();
        server.send(&server.token, "PUT", &path, &headers, Some(&json!({ "text": text })))
    };
    put(None, "# Other\n\nx").is(428);
    let mine = format!("{TASK}\nMine.\n");
    let saved = put(Some(&mark), &mine).is(200);
    assert_ne!(saved.header("etag"), Some(mark.as_str()));
    let lost = put(Some(&mark), &format!("{TASK}\nTheirs.\n")).is(412).json();
    assert!(lost["current"].as_str().unwrap().contains("Mine."), "{lost}");
    let now = server.get(&path).is(200);
    assert_eq!(now.json()["text"], mine);
    put(now.header("etag"), "   ").is(422);
    // The same through the file's path; other files are read-only.
    let by_path = format!("/runs/{run}/files/PROMPT.md");
    let headers = [("If-Match", now.header("etag").unwrap())];
    let text = json!({ "text": format!("{mine}\nMore.\n") });
    server.send(&server.token, "PUT", &by_path, &headers, Some(&text)).is(200);
    let refused = server
        .send(&server.token, "PUT", &format!("/runs/{run}/files/readme.txt"), &headers, Some(&text))
        .is(403);
    assert!(refused.json()["hint"].as_str().unwrap().contains(".ralph/notes.md"), "{}", refused.text());
    repo.ralph(&["cancel", &run]).exits(0);
}

#[test]
fn notes_and_guardrails_are_append_only() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    let run = detached(&repo, &[]);
    let server = Served::start(&env, &repo.dir, &[]);
    let path = format!("/runs/{run}/files/.ralph/guardrails.md");
    let file = server.get(&path).is(200);
    let (text, mark) =
        (file.json()["text"].as_str().unwrap().to_owned(), file.header("etag").unwrap().to_owned());
    let put = |text: &str| {
        server.send(&server.token, "PUT", &path, &[("If-Match", &mark)], Some(&json!({ "text": text })))
    };
    put("nothing of it").is(422);
    put(&format!("{text}\n\nNever touch the build.\n")).is(200);
    let rules = server.get(&format!("/runs/{run}/guardrails")).is(200);
    assert!(rules.text().contains("Never touch the build."), "{}", rules.text());
    let grow = |path: &str, more: &str| {
        let before = server.get(path).is(200);
        let text = format!("{}\n\n{more}\n", before.json()["text"].as_str().unwrap().trim_end());
        let mark = [("If-Match", before.header("etag").unwrap())];
        server.send(&server.token, "PUT", path, &mark, Some(&json!({ "text": text }))).is(200);
        server.get(path).is(200).json()["text"].as_str().unwrap().to_owned()
    };
    let rule = "### guardrail: no sudo\n- trigger: always\n- instruction: never use it\n- added_after: iteration 1\n- evidence: it asks for a password";
    let rules = grow(&path, rule);
    assert!(rules.contains(&format!("\n\n{rule}\n")), "a rule in the file's form stays as it is: {rules}");
    let notes = grow(&format!("/runs/{run}/files/.ralph/notes.md"), "The port is 8123.");
    assert!(notes.contains("The port is 8123."), "{notes}");
    repo.ralph(&["cancel", &run]).exits(0);
}

#[test]
fn files_of_iterations_and_logs_are_read_where_the_engine_keeps_them() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub("printf work > part.txt; echo '<promise>COMPLETE</promise>'", "grep -q work part.txt");
    let run = detached(&repo, &["--worktree"]);
    let server = Served::start(&env, &repo.dir, &[]);
    server.row_when(&run, "the end of the run", |row| row["status"] == "done");
    let base = format!("/runs/{run}/files");
    let text = |path: &str| {
        server.get(&format!("{base}/{path}")).is(200).json()["text"].as_str().unwrap().to_owned()
    };
    assert!(text(".ralph/iterations/1/prompt.md").contains("# How you work"));
    assert!(text(&format!(".ralph/runs/{run}/iterations/1/git_diff.patch")).contains("part.txt"));
    assert!(text(".ralph/activity.log").contains("iteration 1:"));
    assert_eq!(text(".ralph/errors.log"), "", "nothing failed");
    let listed = server.get(&format!("{base}?path=.ralph/iterations/1")).is(200).text();
    assert!(listed.contains("metrics.json"), "{listed}");
    for hidden in ["git", "lock", "inbox.jsonl", "../../seals", "iterations/../inbox.jsonl"] {
        let reply = server.get(&format!("{base}/.ralph/runs/{run}/{hidden}"));
        assert!(reply.status >= 400, "{hidden}: {}", reply.text());
    }
}

#[test]
fn file_paths_stay_in_the_workspace_and_hide_secrets() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(&waiting_script(&repo), "grep -q work part.txt");
    repo.write(".env", "OPENAI_API_KEY=sk-secret-of-the-user\n");
    std::fs::write(env.path("outside.txt"), "private").unwrap();
    std::os::unix::fs::symlink(env.path("outside.txt"), repo.dir.join("link.txt")).unwrap();
    std::os::unix::fs::symlink(env.path("home"), repo.dir.join("folder")).unwrap();
    // A link inside the workspace leads to a file that has its own name.
    for (to, name) in [(".env", "show.txt"), (".git/config", "settings.txt"), (".git", "g")] {
        std::os::unix::fs::symlink(to, repo.dir.join(name)).unwrap();
    }
    let run = detached(&repo, &[]);
    let server = Served::start(&env, &repo.dir, &[]);
    let base = format!("/runs/{run}/files");
    assert_eq!(server.get(&format!("{base}/readme.txt")).is(200).json()["text"], "hello\n");
    let listed = server.get(&base).is(200).json();
    let names: Vec<&str> =
        listed["entries"].as_array().unwrap().iter().filter_map(|e| e["name"].as_str()).collect();
    assert!(
        names.contains(&"readme.txt") && !names.contains(&".env") && !names.contains(&".git"),
        "{names:?}"
    );
    let parts = [
        "..",
        "%2e%2e",
        "..%2f",
        ".",
        "//",
        "etc",
        "passwd",
        "link.txt",
        "folder",
        ".git",
        "config",
        ".env",
        "%00",
        "a%2f..%2f..",
        "outside.txt",
        "~",
    ];
    // Every path of up to three of these parts: none shows a file outside the workspace.
    for a in parts {
        for b in parts {
            for path in [format!("{a}/{b}"), format!("{a}/{b}/passwd"), format!("{a}{b}")] {
                for url in [
                    format!("{base}/{path}"),
                    format!("/runs/{run}/artifacts/{path}"),
                    format!("{base}?path={path}"),
                ] {
                    let reply = server.get(&url);
                    assert!(reply.status < 500, "{url}: {}", reply.text());
                    let text = reply.text();
                    assert!(
                        !text.contains("private") && !text.contains("root:") && !text.contains("sk-secret"),
                        "{url}: {text}"
                    );
                }
            }
        }
    }
    for wrong in ["link.txt", ".env", ".git/config", "folder/x", "show.txt", "settings.txt", "g/config"] {
        assert!(server.get(&format!("{base}/{wrong}")).status >= 400, "{wrong}");
    }
    assert!(server.get(&format!("{base}?path=g")).status >= 400);
    repo.ralph(&["cancel", &run]).exits(0);
}

#[test]
fn a_viewer_reads_what_git_tracks_and_the_run_changed_and_nothing_else() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(
        "mkdir new; echo work > new/part.txt; echo '<promise>COMPLETE</promise>'",
        "grep -q work new/part.txt",
    );
    repo.write(".gitignore", "prod.env\nkeys/\n.ralph/\n");
    repo.git(&["add", ".gitignore"]);
    repo.git(&["commit", "-qm", "ignored"]);
    let private = ["prod.env", "keys/AuthKey.p8", "backup.sql", "private/notes.txt"];
    for name in private {
        repo.write(name, "a canary of the owner\n");
    }
    let run = repo.run(&[]).exits(0).json()["run_id"].as_str().unwrap().to_owned();
    let server = Served::start(&env, &repo.dir, &[]);
    let viewer = server.person("vera", "viewer");
    let get = |path: &str| server.send(&viewer, "GET", &format!("/runs/{run}/files{path}"), &[], None);
    for name in private {
        let reply = get(&format!("/{name}"));
        assert!(reply.status >= 400 && !reply.text().contains("canary"), "{name}: {}", reply.text());
    }
    for folder in ["", "?path=keys", "?path=private", "?path=new"] {
        let listed = get(folder).is(200).text();
        for name in ["prod.env", "AuthKey.p8", "backup.sql", "keys", "private", "notes.txt"] {
            assert!(!listed.contains(&format!("\"name\":\"{name}\"")), "{folder}: {listed}");
        }
    }
    // Nor as the text of a task.
    let operator = server.person("otto", "operator");
    for name in ["prod.env", "backup.sql", "private/notes.txt"] {
        let task = serde_json::json!({ "repo": repo.dir, "task_file": name });
        for (who, path) in [(&viewer, "/lint"), (&operator, "/preview"), (&operator, "/runs")] {
            let reply = server.send(who, "POST", path, &[], Some(&task));
            assert!(reply.status >= 400 && !reply.text().contains("canary"), "{name}: {}", reply.text());
        }
    }
    assert!(get("").text().contains("\"new\""), "the twin: a folder of the run");
    assert_eq!(get("/new/part.txt").is(200).json()["text"], "work\n");
    assert_eq!(get("/readme.txt").is(200).json()["text"], "hello\n");
}

#[test]
fn run_artifacts_can_be_read() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    repo.stub(
        "echo '<b>bold</b>'; echo work > part.txt; echo '<promise>COMPLETE</promise>'",
        "grep -q work part.txt",
    );
    let run = repo.run(&[]).exits(0).json()["run_id"].as_str().unwrap().to_owned();
    let server = Served::start(&env, &repo.dir, &[]);
    let get = |path: &str| server.get(&format!("/runs/{run}{path}")).is(200);
    let view = get("").json();
    assert_eq!(view["row"]["status"], "done");
    assert_eq!(view["view"]["run_id"], run.as_str());
    let iterations = get("/iterations").json();
    assert_eq!(iterations["iterations"][0]["iteration"], 1);
    let one = get("/iterations/1").json();
    assert!(one["prompt"].as_str().unwrap().contains("Write `part.txt`"), "{one}");
    assert!(one["patch"].as_str().unwrap().contains("+work"), "{one}");
    assert!(get("/output/1").json()["text"].as_str().unwrap().contains("<b>bold</b>"));
    assert!(get("/diff").json()["patch"].as_str().unwrap().contains("+work"));
    assert!(get("/diff?iteration=1").json()["patch"].as_str().unwrap().contains("+work"));
    let artifacts = get("/artifacts").json();
    let names: Vec<&str> =
        artifacts["artifacts"].as_array().unwrap().iter().filter_map(|a| a["name"].as_str()).collect();
    assert!(names.contains(&"iterations/1/output.log") && !names.contains(&"inbox.jsonl"), "{names:?}");
    let log = get("/artifacts/iterations/1/output.log");
    assert_eq!(log.header("content-type"), Some("text/plain; charset=utf-8"), "never a page");
    assert!(log.header("content-security-policy").unwrap().contains("sandbox"));
    server.get(&format!("/runs/{run}/artifacts/inbox.jsonl")).is(404);
    assert!(get("/diagnosis").json()["report"].is_null());
    assert_eq!(get("/sandbox").json()["provider"], "local");
    server.get(&format!("/runs/{run}/iterations/9")).is(404);
    server.control(&run, json!({ "kind": "pause" })).is(409);
    let row: Value = server.get("/runs?q=do%20the").is(200).json()["runs"][0].clone();
    assert_eq!(row["id"], run.as_str());
    server.send(&server.token, "DELETE", &format!("/runs/{run}"), &[], None).is(204);
    assert_eq!(server.get("/runs").is(200).json()["runs"], json!([]));
    server.get(&format!("/runs/{run}")).is(404);
}

#[test]
fn any_two_states_can_be_compared_with_their_metric() {
    let env = machine();
    let repo = TestRepo::with_task(&env);
    let agent = repo.agent(
        "one",
        "case $RALPH_ITERATION in 1) echo 90;; 2) echo 85;; *) echo 70;; esac > speed.txt; echo ok",
    );
    let check = "echo p99 $(cat speed.txt) ms";
    let metric = json!({ "pattern": "p99 ([0-9.]+)", "better": "lower", "target": 80 });
    let verifier = json!({ "name": "tests", "command_argv": ["sh", "-c", check], "metric": metric });
    repo.configure(&[agent], check, &json!({ "completion": "metric", "verifiers": [verifier] }));
    let run = repo.run(&[]).exits(0).json()["run_id"].as_str().unwrap().to_owned();
    let server = Served::start(&env, &repo.dir, &[]);
    server.row_when(&run, "the end", |row| row["status"] == "done");
    let iterations = server.get(&format!("/runs/{run}/iterations")).is(200).json();
    let numbers: Vec<&Value> =
        iterations["iterations"].as_array().unwrap().iter().map(|it| &it["metric"]).collect();
    assert_eq!(numbers, [&json!(90.0), &json!(85.0), &json!(70.0)], "{iterations}");
    let patch = |query: &str| {
        let diff = server.get(&format!("/runs/{run}/diff?{query}")).is(200).json();
        let patch = diff["patch"].as_str().unwrap().to_owned();
        let lines = patch.lines().filter(|line| line.len() < 5 && line.starts_with(['+', '-']));
        lines.map(str::to_owned).collect::<Vec<String>>()
    };
    assert_eq!(patch("against=0"), ["+70"]);
    assert_eq!(patch("against=1"), ["-90", "+70"]);
    assert_eq!(patch("against=1&iteration=2"), ["-90", "+85"]);
    assert_eq!(patch("against=0&iteration=1"), ["+90"]);
    assert_eq!(patch("against=3"), [""; 0]);
    server.get(&format!("/runs/{run}/diff?against=9")).is(404);
    server.get(&format!("/runs/{run}/diff?against=-1")).is(400);
    assert_eq!(
        server.get("/runs?status=failed").json()["counts"],
        json!({ "done": 1 }),
        "whatever the filter"
    );
}
