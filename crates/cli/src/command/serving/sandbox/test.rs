//! `ralph sandbox test`: tests the sandbox on this machine.

use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::parse::isolation;
use ralph_loop_app::App;
use ralph_loop_app::agents::isolation;
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text::count;
use ralph_loop_sandbox::escapes::{self, AttemptResult, Row};
use ralph_loop_sandbox::isolation::SystemView;
use ralph_loop_task::config::Isolation;
use std::path::Path;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph sandbox test
  ralph sandbox test --isolation landlock --json
Exits with 0 if the sandbox holds, 1 if something escapes, 4 without a sandbox.")]
pub struct TestArgs {
    /// Sandbox to test: auto, bwrap, landlock
    #[arg(long, value_name = "HOW", value_parser = isolation, default_value = "auto")]
    pub isolation: Isolation,
}

pub fn run(args: TestArgs, app: &App, out: &Out) -> Result<u8, CommandError> {
    if args.isolation == Isolation::None {
        return Err(CommandError::usage("without a sandbox there is nothing to test")
            .hint("use `--isolation auto`, `bwrap` or `landlock`"));
    }
    let kind = isolation::resolve(app.environment(), args.isolation)?;
    let folder =
        app.environment().state_home()?.path().join("fences").join(format!("test-{}", std::process::id()));
    let (name, rows) =
        escapes::try_all(kind, &folder, Path::new("/proc/self/exe"), app.environment().vars())?;
    let wrong = rows.iter().filter(|row| !row.ok()).count();
    if out.json {
        let rows: Vec<_> = rows.iter().map(json).collect();
        let view = SystemView::of_machine().readable;
        out.value(&serde_json::json!({ "ok": wrong == 0, "fence": name, "escapes": rows, "view": view }));
    } else {
        print(name, &rows, wrong, out);
    }
    Ok(u8::from(wrong > 0))
}

fn json(row: &Row) -> serde_json::Value {
    serde_json::json!({
        "escape": row.name,
        "what": row.what,
        "expected": row.expected.word(),
        "seen": row.seen.word(),
        "without": row.without.word(),
        "ok": row.ok(),
    })
}

fn print(name: &str, rows: &[Row], wrong: usize, out: &Out) {
    let wide = rows.iter().map(|row| row.name.len()).max().unwrap_or(0);
    out.line(out.out(Tone::Muted, &format!("   {:wide$}  expected  seen     without a fence", "escape")));
    for row in rows {
        let (tone, sign) = match (row.ok(), row.seen) {
            (false, _) => (Tone::Bad, Sign::Bad),
            (true, AttemptResult::Stopped) => (Tone::Good, Sign::Good),
            (true, _) => (Tone::Attention, Sign::Open),
        };
        let sign = out.out(tone, out.sign(sign));
        let (expected, seen) = (row.expected.word(), row.seen.word());
        out.line(format!("{sign}  {:wide$}  {expected:8}  {seen:8} {}", row.name, row.without.word()));
        if !row.ok() {
            out.line(format!("     {}", row.what));
        }
    }
    out.line("");
    let view: Vec<String> =
        SystemView::of_machine().readable.iter().map(|path| path.display().to_string()).collect();
    out.line(format!("Commands read, besides the workspace and your tools: {}", view.join(", ")));
    out.line("");
    out.line(match wrong {
        0 => format!("{} the sandbox ({name}) holds", out.out(Tone::Good, out.sign(Sign::Good))),
        n => format!(
            "{} the sandbox ({name}) does not hold: {}",
            out.out(Tone::Bad, out.sign(Sign::Bad)),
            count(n, "way") + " out"
        ),
    });
}
