//! The log of a run and the bug report made from it: they have all engine actions and no secrets.

use crate::RALPH;
use ralph_loop_testkit::{TestEnv, TestRepo};
use serde_json::json;
use std::io::{Read as _, Write as _};
use std::path::{Path, PathBuf};

fn secret() -> String {
    ["sk-", "live-0123456789abcdefghij"].concat()
}

#[test]
fn bug_report_packs_the_log_without_secrets() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.write(".env", &format!("ACME_API_KEY={}\n", secret()));
    repo.stub(
        &format!(
            "cat > /dev/null; echo x > part.txt; echo 'found {}'; echo '<promise>COMPLETE</promise>'",
            secret()
        ),
        "test -f part.txt",
    );
    let run = repo.run(&[]).exits(0).json();
    let id = run["run_id"].as_str().unwrap();
    let log = std::fs::read_to_string(repo.record(id).join("ralph.log")).unwrap();
    for word in ["Prepare", "Work", "journalled", "command ended", "git="] {
        assert!(log.contains(word), "{word}: {log}");
    }
    assert!(!log.contains(&secret()), "{log}");
    let told = repo.ralph(&["bug-report", "-o", "report.md", "--json"]).exits(0).json();
    assert!(told["file"].as_str().unwrap().ends_with("report.md"), "{told}");
    let report = repo.read("report.md");
    for part in [
        "## Version",
        "## Doctor",
        "## .ralph/config.json",
        &format!("## Run {id}"),
        "## Last events",
        "## ralph.log",
    ] {
        assert!(report.contains(part), "{part}: {report}");
    }
    assert!(!report.contains(&secret()), "{report}");
    // It never overwrites an existing file.
    repo.ralph(&["bug-report", "-o", "report.md"]).exits(4);
    let shown = repo.ralph(&["bug-report", id, "-o", "-"]).exits(0).stdout;
    assert!(shown.starts_with("# ralph bug report"), "{shown}");
}

#[test]
fn engine_log_is_shown_only_on_request() {
    for (flag, shown) in [("--verbose", false), ("-vv", true)] {
        let env = TestEnv::new(RALPH);
        let repo = TestRepo::with_task(&env);
        repo.stub(
            "cat > /dev/null; echo x > part.txt; echo '<promise>COMPLETE</promise>'",
            "test -f part.txt",
        );
        let done = repo.run(&[flag]).exits(0);
        let told = done.stderr.contains("DEBUG") && done.stderr.contains("journalled");
        assert_eq!(told, shown, "{flag}: {}", done.stderr);
    }
}

#[test]
fn folder_without_a_run_has_a_bug_report() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    let shown = repo.ralph(&["bug-report", "-o", "-"]).exits(0).stdout;
    assert!(shown.contains("## Version") && !shown.contains("## Run"), "{shown}");
    repo.ralph(&["bug-report", "no-such-run"]).exits(2);
}

#[test]
fn log_has_agents_and_requests_but_no_url_secrets() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("cat > /dev/null; echo x > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    let server = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = server.local_addr().unwrap().port();
    std::thread::spawn(move || {
        for mut stream in server.incoming().flatten() {
            let _ = stream.read(&mut [0; 4096]);
            let _ = stream.write_all(b"HTTP/1.1 200 OK\r\ncontent-length: 0\r\nconnection: close\r\n\r\n");
        }
    });
    // `ralph` can't know that this is a secret: it is in no variable.
    let hidden = ["q7Zp", "unknown-to-all"].concat();
    let url = format!("http://127.0.0.1:{port}/hooks/{hidden}?key={hidden}");
    let config = env.path("config").join("ralph/config.json");
    std::fs::create_dir_all(config.parent().unwrap()).unwrap();
    let notify = json!({ "notify": [{ "kind": "webhook", "name": "hook", "url": url }] });
    std::fs::write(&config, notify.to_string()).unwrap();
    let run = repo.run(&[]).exits(0).json();
    let log =
        std::fs::read_to_string(repo.record(run["run_id"].as_str().unwrap()).join("ralph.log")).unwrap();
    for word in
        ["agent started", "agent ended", "method=POST", "host=\"127.0.0.1\"", "status=200", "people told"]
    {
        assert!(log.contains(word), "{word}: {log}");
    }
    assert!(!log.contains(&hidden), "{log}");
}

/// All files below a folder; links are not followed.
fn files_below(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).unwrap().flatten() {
        match entry.file_type().unwrap().is_dir() {
            true => files_below(&entry.path(), found),
            false => found.push(entry.path()),
        }
    }
}

#[test]
fn every_file_of_a_run_is_documented() {
    let env = TestEnv::new(RALPH);
    let repo = TestRepo::with_task(&env);
    repo.stub("cat > /dev/null; echo x > part.txt; echo '<promise>COMPLETE</promise>'", "test -f part.txt");
    let run = repo.run(&[]).exits(0).json();
    let text =
        std::fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/RUN-FOLDER.md"))
            .unwrap();
    let mut files = Vec::new();
    for folder in [env.path("state/ralph"), repo.dir.join(".ralph")] {
        files_below(&folder, &mut files);
    }
    assert!(files.len() > 30, "{files:?}");
    let digest = regex_lite::Regex::new("[0-9a-f]{64}").unwrap();
    // The page documents these as a group.
    let whole = ["git", "copy-git", "grown", "hooks"];
    let unknown: Vec<String> = files
        .iter()
        .filter(|path| !path.components().any(|part| whole.iter().any(|name| part.as_os_str() == *name)))
        .map(|path| {
            path.file_name().unwrap().to_string_lossy().replace(run["run_id"].as_str().unwrap(), "<id>")
        })
        .map(|name| digest.replace_all(&name, "<digest>").replace("check-tests", "check-<verifier>"))
        .map(|name| name.replace("stub", "<agent>"))
        .filter(|name| !text.contains(&format!("{name}`")))
        .collect();
    assert!(unknown.is_empty(), "docs/RUN-FOLDER.md does not name {unknown:?}");
}
