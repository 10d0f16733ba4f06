//! `ralph list`: runs of this folder, or of every folder.

use crate::error::CommandError;
use crate::output::Out;
use crate::text::table;
use crate::text::table::{Cell, Table};
use crate::text::words::{age, home_path, since};
use jiff::Timestamp;
use ralph_loop_app::App;
use ralph_loop_app::read::find;
use ralph_loop_app::read::list::ListEntry;
use ralph_loop_core::clock::SystemClock;
use ralph_loop_domain::ports::Clock as _;
use ralph_loop_protocol::describe::Tone;
use std::path::Path;

#[derive(Debug, Clone, Copy, clap::Args)]
#[command(after_help = "Examples:
  ralph list              list this folder's runs, newest last
  ralph list --all        list every folder's runs
  ralph list --json       print a JSON array")]
pub struct ListArgs {
    /// Include runs of every folder
    #[arg(short, long)]
    pub all: bool,
}

pub fn run(args: ListArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let ListArgs { all } = args;
    let top = find::top(folder);
    let entries = app.list(folder, all)?;
    if out.json {
        out.value(&entries);
        return Ok(0);
    }
    if entries.is_empty() {
        out.say(if all {
            "no run is registered on this machine".to_owned()
        } else {
            format!("no run in {}", top.display())
        });
        let next = if all {
            "`ralph run` starts one, `ralph demo` shows one"
        } else {
            "`ralph run` starts one; `ralph list --all` shows those of other folders"
        };
        out.say(format!("{} {next}", out.err(Tone::Plain, "next:")));
        return Ok(0);
    }
    print(&entries, all, SystemClock::default().now(), out);
    Ok(0)
}

fn print(entries: &[ListEntry], all: bool, now: Timestamp, out: &Out) {
    let mut folders: Vec<&Path> = Vec::new();
    for entry in entries {
        if !folders.contains(&entry.folder.as_path()) {
            folders.push(&entry.folder);
        }
    }
    for (n, folder) in folders.iter().enumerate() {
        // A heading per folder leaves more room for titles than a path column.
        if all {
            if n > 0 {
                out.line("");
            }
            let gone = if folder.is_dir() { "" } else { " (gone)" };
            out.line(format!("{}{gone}", table::fit_path(&home_path(folder), table::columns() - 7)));
        }
        let mut table = Table::new(2).indent(if all { 2 } else { 0 });
        table
            .row(["RUN", "STATUS", "TITLE", "ITERATION", "COST", "AGE"].map(|h| Cell::toned(Tone::Muted, h)));
        for entry in entries.iter().filter(|e| e.folder == **folder) {
            table.row(cells(entry, now, out));
        }
        table.lines(table::columns(), out).iter().for_each(|l| out.line(l));
    }
    if let Some(orphan) = entries.iter().rev().find(|e| e.orphaned) {
        out.say(format!(
            "{} run `ralph resume {}` to continue the {} run",
            out.err(Tone::Plain, "next:"),
            orphan.run_id,
            orphan.status
        ));
    } else if let Some(waiting) = entries.iter().rev().find(|e| e.status == "needs you") {
        out.say(format!(
            "{} run `ralph status {}` to see what it needs from you",
            out.err(Tone::Plain, "next:"),
            waiting.run_id
        ));
    }
}

fn cells(entry: &ListEntry, now: Timestamp, out: &Out) -> [Cell; 6] {
    let word = &entry.status;
    let (sign, tone) = out.look(word);
    let iteration = match (entry.iteration, entry.max_iterations) {
        (Some(n), Some(max)) => format!("{n}/{max}"),
        _ => "–".to_owned(),
    };
    [
        entry.run_id.as_str().into(),
        Cell::toned(tone, format!("{sign} {word}")),
        entry.title.as_str().into(),
        iteration.into(),
        entry.cost.to_string().into(),
        age(since(entry.active_at.unwrap_or(entry.created_at), now)).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_app::Environment;
    use ralph_loop_app::read::list::list_entry;
    use ralph_loop_journal::folder::registry::Registration;
    use ralph_loop_protocol::id::RunId;

    #[test]
    fn a_run_whose_folder_is_gone_is_shown_as_gone() {
        let entry = list_entry(
            &Environment::new(Default::default(), "/"),
            Registration {
                run_id: RunId::from("20261115-143307-k3f9"),
                title: "Fix the router".into(),
                origin: "/nonexistent/a".into(),
                workspace: "/nonexistent/a".into(),
                created_at: "2026-11-15T14:33:07Z".parse().unwrap(),
                record: None,
            },
        );
        insta::assert_json_snapshot!(entry, @r#"
        {
          "run_id": "20261115-143307-k3f9",
          "title": "Fix the router",
          "status": "gone",
          "driven": false,
          "iteration": null,
          "max_iterations": null,
          "cost_usd": null,
          "cost_basis": "unknown",
          "created_at": "2026-11-15T14:33:07Z",
          "last_event_at": null,
          "active_at": null,
          "folder": "/nonexistent/a",
          "workspace": "/nonexistent/a",
          "problem": "`/nonexistent/a` is gone"
        }
        "#);
        let out = table::tests::plain();
        let [id, status, ..] = cells(&entry, entry.created_at, &out);
        let mut table = Table::new(2);
        table.row([id, status]);
        assert!(table.lines(80, &out)[0].ends_with(" gone"));
    }
}
