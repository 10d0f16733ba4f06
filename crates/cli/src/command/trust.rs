//! `ralph trust`: what a repo asks for and only its user can allow.

use crate::confirm::{confirm, may_ask};
use crate::consent;
use crate::error::CommandError;
use crate::output::{Out, Sign};
use ralph_app::consent::Difference;
use ralph_app::trust::Ask;
use ralph_app::{App, Asked, PlaceRequest, RunRequest, TaskInput};
use ralph_domain::describe::Tone;
use ralph_domain::text::count;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};

/// Shows what the files of this repo ask for that opens the sandbox, sends a key or a login somewhere, chooses where results are
/// pushed, or stands in for the program of a known agent, and allows it: for this repo, as long as exactly that is asked for.
/// It is kept in your own state folder, never in the repo. On a terminal you are asked first.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph trust              show, ask, allow
  ralph trust --show       only show; exit code 3 where something waits for you
  ralph trust --json       { repo, hash, allowed, asks, gone }
  ralph trust --revoke     forget what was allowed to this repo
  RALPH_TRUST=HASH ralph run    for CI: allows exactly the set that `ralph trust --show --json` names")]
pub struct TrustArgs {
    /// The task file whose settings are looked at, too; found by itself where there is only one.
    #[arg(value_name = "FILE")]
    pub file: Option<PathBuf>,
    /// Only show what is asked for.
    #[arg(long)]
    pub show: bool,
    /// What the repo at this address asks for, as `ralph run --clone` would work on it.
    #[arg(long, value_name = "URL|PATH", conflicts_with = "revoke")]
    pub clone: Option<String>,
    /// Forget everything that was allowed to this repo.
    #[arg(long, conflicts_with_all = ["show", "file"])]
    pub revoke: bool,
    /// Allow without asking.
    #[arg(short, long, conflicts_with_all = ["show", "revoke"])]
    pub yes: bool,
}

/// Runs the command.
pub fn run(args: TrustArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let task = args.file.map_or(TaskInput::Found, TaskInput::File);
    let place = args.clone.map_or(PlaceRequest::InPlace, |from| PlaceRequest::Clone {
        from,
        depth: None,
        sparse: Vec::new(),
    });
    let request = app.settle(&RunRequest { task, place, ..RunRequest::in_folder(folder) })?;
    let asked = app.asked(&request)?;
    if args.revoke {
        return revoke(&asked, out);
    }
    let difference = asked.difference()?;
    if args.show || difference.new.is_empty() && difference.gone.is_empty() {
        print(&asked, &difference, out);
        return Ok(if difference.new.is_empty() { 0 } else { 3 });
    }
    if may_ask(out) && !args.yes {
        consent::show(&difference, out);
        if !confirm("Allow this, from now on?", out) {
            out.say("nothing was allowed");
            return Ok(3);
        }
    }
    asked.allow()?;
    print(&asked, &asked.difference()?, out);
    Ok(0)
}

fn revoke(asked: &Asked, out: &Out) -> Result<u8, CommandError> {
    let had = asked.store().revoke()?;
    if out.json {
        out.value(&json!({ "repo": asked.store().repo(), "revoked": had }));
    } else {
        out.say(match had {
            0 => "nothing was allowed to this repo".to_owned(),
            had => format!("{} forgotten; this repo is asked about again", count(had, "allowed thing")),
        });
    }
    Ok(0)
}

fn print(asked: &Asked, difference: &Difference, out: &Out) {
    if out.json {
        out.value(&object(asked, difference));
        return;
    }
    if asked.asks().is_empty() {
        out.line("this repository asks for nothing that needs your word");
        return;
    }
    out.line("This repository asks for:");
    for (asks, tone, sign, word) in [
        (&difference.known, Tone::Good, Sign::Good, "allowed"),
        (&difference.new, Tone::Attention, Sign::Open, "waits for you"),
    ] {
        for ask in asks {
            out.line(format!("  {} {}: {}", out.out(tone, out.sign(sign)), ask.shown(), out.out(tone, word)));
        }
    }
    if !difference.new.is_empty() {
        let next = out.out(Tone::Plain, "next:");
        out.line(format!("{next} `ralph trust` allows it; in CI set RALPH_TRUST={}", asked.hash()));
    }
}

fn object(asked: &Asked, difference: &Difference) -> Value {
    let row = |ask: &Ask| {
        json!({
            "kind": ask.kind, "source": ask.source, "setting": ask.setting, "text": ask.text,
            "allowed": difference.known.contains(ask),
        })
    };
    json!({
        "repo": asked.store().repo(),
        "hash": asked.hash(),
        "allowed": difference.new.is_empty(),
        "asks": asked.asks().iter().map(row).collect::<Vec<_>>(),
        "gone": difference.gone.iter().map(row).collect::<Vec<_>>(),
    })
}
