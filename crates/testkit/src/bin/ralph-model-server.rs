//! The scripted model server for shell scripts and manual use: prints its URL on one line and serves until it is killed.
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a small program that talks to its caller")]

use ralph_loop_testkit::model_server::{ModelServer, SCENARIOS, Script};
use std::collections::BTreeMap;
use std::process::ExitCode;

const HELP: &str = "\
The scripted model server: Anthropic, OpenAI and Gemini wires on 127.0.0.1, without a model.

ralph-model-server [--port N] [--script FILE]... [--list]

  --port N       listen on this port (default: a free one)
  --script FILE  a JSON object of scenarios by name, each {\"turns\": [...], \"sessions\": [[...]], \"faults\": [...]}
  --list         name the built-in scenarios

The first line on stdout is the address. A base URL is ADDRESS/s/SCENARIO/RUN-ID, for example
  ANTHROPIC_BASE_URL=http://127.0.0.1:18080/s/ok/run-1 claude -p ...
GET ADDRESS/__state shows what was asked, /__reset forgets it, /__health answers {\"ok\":true}.

A script, in which the second session finishes what the first one began:
  {\"two-steps\": {\"sessions\": [
     [{\"write\": {\"path\": \"a.txt\", \"content\": \"half\"}}, {\"text\": \"More to do.\"}],
     [[{\"shell\": {\"command\": \"echo done >> a.txt\"}}], {\"text\": \"<promise>COMPLETE</promise>\"}]],
   \"faults\": [{\"kind\": \"rate_limit\", \"retry_after_s\": 1, \"times\": 1, \"turn\": 1}]}}";

fn main() -> ExitCode {
    match run(std::env::args().skip(1)) {
        Ok(()) => ExitCode::SUCCESS,
        Err(why) => {
            eprintln!("ralph-model-server: {why}\nSee ralph-model-server --help.");
            ExitCode::from(2)
        }
    }
}

fn run(mut args: impl Iterator<Item = String>) -> Result<(), String> {
    let mut port = 0;
    let mut scripts: BTreeMap<String, Script> = BTreeMap::new();
    while let Some(arg) = args.next() {
        let mut value = || args.next().ok_or_else(|| format!("{arg} needs a value"));
        match arg.as_str() {
            "--port" => {
                port = value()?.parse().map_err(|_| "--port needs a number up to 65535".to_owned())?
            }
            "--script" => scripts.extend(read(&value()?)?),
            "--list" => {
                SCENARIOS.iter().for_each(|(name, what)| println!("{name:12} {what}"));
                return Ok(());
            }
            "--help" | "-h" => {
                println!("{HELP}");
                return Ok(());
            }
            other => return Err(format!("unknown option {other}")),
        }
    }
    let server = ModelServer::start_on(port).map_err(|e| format!("cannot listen on port {port}: {e}"))?;
    for (name, script) in scripts {
        server.script(&name, script);
    }
    println!("http://127.0.0.1:{}", server.port());
    server.wait();
    Ok(())
}

fn read(path: &str) -> Result<BTreeMap<String, Script>, String> {
    let text = std::fs::read_to_string(path).map_err(|e| format!("cannot read {path}: {e}"))?;
    serde_json::from_str(&text).map_err(|e| format!("{path} isn't a JSON object of scripts: {e}"))
}
