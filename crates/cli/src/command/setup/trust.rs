//! `ralph trust`: reviews what a repo requests that only its user can allow.

use crate::confirm::{confirm, may_ask};
use crate::consent;
use crate::error::CommandError;
use crate::output::{Out, Sign};
use ralph_loop_app::agents::agent_settings;
use ralph_loop_app::trust::Ask;
use ralph_loop_app::trust::consent::Difference;
use ralph_loop_app::trust::store::TrustStore;
use ralph_loop_app::{App, RunRequest, TaskInput, TrustRequest, Workplace};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::count;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph trust              show the list, ask, allow
  ralph trust --show       only show it; exits with 3 if something is pending
  ralph trust --show --json    print the hash for RALPH_TRUST in CI
  ralph trust --agent-settings .claude")]
pub struct TrustArgs {
    /// Include this task file's settings
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Show the list without asking
    #[arg(long)]
    pub show: bool,
    /// Review the repo at this URL or path
    #[arg(long, value_name = "URL|PATH", conflicts_with = "revoke")]
    pub clone: Option<String>,
    /// Show this settings file or folder to agents
    #[arg(long, value_name = "PATH", conflicts_with_all = ["show", "file", "clone", "revoke", "yes"])]
    pub agent_settings: Option<PathBuf>,
    /// Revoke everything this repo was allowed
    #[arg(long, conflicts_with_all = ["show", "file"])]
    pub revoke: bool,
    /// Allow without asking
    #[arg(short, long, conflicts_with_all = ["show", "revoke"])]
    pub yes: bool,
}

pub fn run(args: TrustArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let task = args.file.clone().map_or(TaskInput::Found, TaskInput::File);
    let place = args.clone.clone().map_or(Workplace::InPlace, |from| Workplace::Clone {
        from,
        depth: None,
        sparse: Vec::new(),
    });
    let request = RunRequest { task, place, ..RunRequest::in_folder(folder) };
    if let Some(path) = &args.agent_settings {
        return show_to_agents(app, folder, path, out);
    }
    if args.revoke {
        return revoke(&app.trust_stores(&request)?, out);
    }
    let (mut all, mut hashes) = (Vec::new(), Vec::new());
    // A task's repo isn't contacted before that is allowed.
    if let Some(first) = app.asked_for_source(&request)? {
        let waits = !first.difference()?.new.is_empty();
        hashes.extend(hash(&first));
        if waits && (args.show || !allow(&first, args.yes, out)?) {
            return print(&[first], &hashes, out);
        }
        all.push(first);
    }
    let sandboxed = app.asked(&app.settle(&request)?)?;
    hashes.extend(hash(&sandboxed));
    // Runs may be started without a sandbox by a flag, so include those requests.
    let asked = sandboxed.for_any_isolation();
    hashes.extend(hash(&asked).filter(|hash| !hashes.contains(hash)));
    let difference = asked.difference()?;
    let is_settled = difference.new.is_empty() && difference.gone.is_empty();
    if !args.show && !is_settled && !allow(&asked, args.yes, out)? && !out.json {
        return Ok(3);
    }
    all.push(asked);
    print(&all, &hashes, out)
}

/// The `RALPH_TRUST` value of a set; `None` if it is empty.
fn hash(asked: &TrustRequest) -> Option<String> {
    (!asked.asks().is_empty()).then(|| asked.hash().to_string())
}

/// Allows it, if the user or the flag confirms.
fn allow(asked: &TrustRequest, yes: bool, out: &Out) -> Result<bool, CommandError> {
    if !yes {
        let difference = asked.difference()?;
        if !out.json {
            consent::show(&difference, out);
        }
        if !may_ask(out) {
            out.say(
                "nothing allowed: `ralph` can't ask without a terminal; run `ralph trust --yes` to allow it",
            );
            return Ok(false);
        }
        if !confirm("Allow this, from now on?", out) {
            out.say("nothing was allowed");
            return Ok(false);
        }
    }
    asked.allow()?;
    Ok(true)
}

/// Agent settings that are the repo's product.
fn show_to_agents(app: &App, folder: &Path, path: &Path, out: &Out) -> Result<u8, CommandError> {
    let ask = agent_settings::show(app.environment(), folder, path)?;
    match out.json {
        true => out.value(&json!({ "source": ask.source, "digest": ask.digest })),
        false => out.say(format!("agent sessions see `{}` from now on, until it changes", ask.source)),
    }
    Ok(0)
}

fn revoke(stores: &[TrustStore], out: &Out) -> Result<u8, CommandError> {
    let mut had = 0;
    for store in stores {
        had += store.revoke().map_err(CommandError::from)?;
    }
    if out.json {
        out.value(&json!({ "repo": stores.first().map(TrustStore::repo), "revoked": had }));
    } else {
        out.say(match had {
            0 => "you have allowed this repo nothing".to_owned(),
            had => format!("revoked {}; `ralph` will ask again", count(had, "allowed thing")),
        });
    }
    Ok(0)
}

/// Shows everything examined; exit code 3 if something is pending.
fn print(all: &[TrustRequest], hashes: &[String], out: &Out) -> Result<u8, CommandError> {
    let mut shown = Difference { new: Vec::new(), known: Vec::new(), gone: Vec::new() };
    for asked in all {
        let Difference { new, known, gone } = asked.difference()?;
        shown.new.extend(new);
        shown.known.extend(known);
        shown.gone.extend(gone);
    }
    let code = if shown.new.is_empty() { 0 } else { 3 };
    let hash = match (hashes, all.last()) {
        ([], Some(asked)) => asked.hash().to_string(),
        (hashes, _) => hashes.join(","),
    };
    if out.json {
        out.value(&object(all, &shown, &hash));
        return Ok(code);
    }
    if shown.new.is_empty() && shown.known.is_empty() {
        out.line("this repository requests no permissions");
        return Ok(code);
    }
    out.line("This repository asks for:");
    for (asks, tone, sign, word) in [
        (&shown.known, Tone::Good, Sign::Good, "allowed"),
        (&shown.new, Tone::Attention, Sign::Open, "waits for you"),
    ] {
        for ask in asks {
            out.line(format!("  {} {}: {}", out.out(tone, out.sign(sign)), ask.shown(), out.out(tone, word)));
        }
    }
    if !shown.new.is_empty() {
        let next = out.out(Tone::Plain, "next:");
        out.line(format!("{next} `ralph trust` allows it; in CI set RALPH_TRUST={hash}"));
    }
    Ok(code)
}

fn object(all: &[TrustRequest], shown: &Difference, hash: &str) -> Value {
    let row = |ask: &Ask| {
        json!({
            "kind": ask.kind, "source": ask.source, "setting": ask.setting, "text": ask.text,
            "allowed": shown.known.contains(ask),
        })
    };
    let asks = all.iter().flat_map(|asked| asked.asks());
    json!({
        "repo": all.first().map(|asked| asked.store().repo()),
        "hash": hash,
        "allowed": shown.new.is_empty(),
        "asks": asks.map(row).collect::<Vec<_>>(),
        "gone": shown.gone.iter().map(row).collect::<Vec<_>>(),
    })
}
