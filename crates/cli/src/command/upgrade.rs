//! `ralph upgrade`: the newest release in the place of this program.

use crate::error::CommandError;
use crate::output::{Out, Sign};
use crate::words::home_path;
use ralph_app::App;
use ralph_domain::describe::Tone;
use ralph_domain::outcome::ErrorCode;
use ralph_upgrade::{Checksums, Place, Releases, UpgradeError, Version, take, target};
use serde_json::json;

/// Takes the newest release, with the checks of `install.sh`: the archive must have the sum that the release lists, and the new
/// program must start, before anything is replaced. Runs that are going on keep the program they began with. Nothing is ever
/// upgraded, and nobody is asked about it, unless you call this.
#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph upgrade --check          only say whether there is a newer one
  ralph upgrade
  ralph upgrade --to 0.1.0       this version, also an older one

What came from a package manager is renewed by that one; this command then names it.
RALPH_DOWNLOAD_URL names another place with releases, HTTPS_PROXY the way there.")]
pub struct UpgradeArgs {
    /// Only say whether there is a newer version.
    #[arg(long)]
    pub check: bool,
    /// Take this version instead of the newest.
    #[arg(long, value_name = "VERSION")]
    pub to: Option<String>,
    /// The SHA-256 sum of the archive, got another way; it must be this.
    #[arg(long, value_name = "SUM", conflicts_with = "check")]
    pub sha256: Option<String>,
}

/// Runs the command.
pub fn run(args: UpgradeArgs, app: &App, out: &Out) -> Result<u8, CommandError> {
    let UpgradeArgs { check, to, sha256 } = args;
    let failed = |error: UpgradeError| {
        let told = match error.is_usage() {
            true => CommandError::usage(error.to_string()),
            false if error.is_of_files() => {
                CommandError::environment(error.to_string()).code(ErrorCode::StorageFailed)
            }
            false => CommandError::environment(error.to_string()).code(ErrorCode::DownloadFailed),
        };
        CommandError { cause: error.cause(), ..told }.hint(error.hint())
    };
    let here = Version::parse(crate::built::VERSION).map_err(failed)?;
    let wanted = to.as_deref().map(Version::parse).transpose().map_err(failed)?;
    // Said before anything is fetched: what is not ours to replace stays so.
    let place = (!check).then(|| Place::of(own_program(app)?).map_err(failed)).transpose()?;
    let releases = Releases::from_vars(&app.environment().lookup()).map_err(failed)?;
    let sums = match &wanted {
        Some(version) => releases.of(version),
        None => releases.latest(),
    };
    let sums = sums.map_err(failed)?;
    let differs = if wanted.is_some() { sums.version != here } else { sums.version > here };
    let Some(place) = place.filter(|_| differs) else {
        tell(&here, &sums, differs, check, out);
        return Ok(0);
    };
    let (name, _) = sums.archive(&target()).map_err(failed)?;
    out.say(format!("fetching {name}"));
    let taken = take(&releases, &sums, &target(), &place, sha256.as_deref()).map_err(failed)?;
    if out.json {
        out.value(&json!({
            "current": here.to_string(), "latest": sums.version.to_string(), "newer": differs, "upgraded": true,
            "target": target(), "prefix": place.prefix, "archive": taken.archive, "sha256": taken.sha256,
        }));
    } else {
        out.say(format!("its sum is {}", taken.sha256));
        let good = out.err(Tone::Good, out.sign(Sign::Good));
        out.say(format!(
            "{good} ralph {} is in {}, where {here} was",
            sums.version,
            home_path(&place.prefix.join("bin"))
        ));
    }
    Ok(0)
}

/// Says how this version and the release stand to each other.
fn tell(here: &Version, sums: &Checksums, differs: bool, check: bool, out: &Out) {
    let there = &sums.version;
    if out.json {
        out.value(&json!({
            "current": here.to_string(), "latest": there.to_string(), "newer": differs, "upgraded": false,
            "target": target(),
        }));
    } else if !differs && here > there {
        out.line(format!("ralph {here} is newer than the newest release, {there}"));
    } else if !differs {
        out.line(format!("ralph {here} is the newest"));
    } else if check {
        out.line(format!("ralph {there} is there; this is {here}"));
        out.say(format!("{} ralph upgrade", out.err(Tone::Plain, "next:")));
    }
}

/// The file of this program.
fn own_program(app: &App) -> Result<&std::path::Path, CommandError> {
    app.environment().program().ok_or_else(|| {
        CommandError::environment("the file of this program cannot be found")
            .hint("start it by its full path, or install it again with install.sh")
    })
}
