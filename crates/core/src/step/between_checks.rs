//! What one command of a final check leaves for the next: settings in the home of the checks, tests that Python compiled.
//! Product that one check runs could decide the next one by that; so it is taken away, or told.

use crate::driver_parts::Driver;
use crate::error::DriveError;
use crate::proof::surroundings;
use crate::proof::watched::Watched;
use crate::step::verify::run_logged;
use ralph_loop_domain::ports::{ExecRequest, Sandbox, Surroundings};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

/// Settings in the home of the checks that programs read by themselves.
const SETTINGS: &str = ".*rc .*rc.* .npmrc .profile .bash_profile .zshenv .gitconfig .pydistutils.cfg .pytest.ini .cargo/config .cargo/config.toml .config/*/* .m2/settings.xml .gradle/*.gradle .gradle/gradle.properties .local/bin/* bin/* .local/lib/python*/site-packages/*customize.py .local/lib/python*/site-packages/*.pth .perl5/*";
/// What is found there before what is installed elsewhere.
const MODULES: &str = ".local/lib/python*/site-packages/*.py .local/lib/python*/site-packages/*/__init__.py .node_modules/* .node_modules/*/* .node_libraries/* .cargo/bin/* go/bin/* .gradle/init.d/*";
/// Compiled sources in the checkout, without those of installed packages.
const COMPILED: &str = "PATH=/usr/bin:/bin:$PATH; find . -type d \\( -name .git -o -name node_modules -o -name .venv -o -name venv -o -name .tox -o -name .nox -o -name site-packages \\) -prune -o -type d -name __pycache__ -prune -exec rm -rf {} + 2>/dev/null; true";
const TIMEOUT: Duration = Duration::from_secs(60);
const LIST_MAX: u64 = 256 * 1024;

/// What is known of the home of the checks before the first one.
pub(super) struct Between {
    python: bool,
    /// The files at home; `None` where the home is the user's own, or there is only one check.
    home: Option<String>,
    own_home: bool,
    /// Files there that a check rewrote.
    pub(super) rewritten: BTreeSet<String>,
}

impl Driver {
    /// Looks at the home of the checks, and takes away what a setup compiled.
    pub(super) fn before_checks(
        &mut self,
        sandbox: &dyn Sandbox,
        env: &[(String, String)],
        logs: &Path,
        (watched, checks): (&Watched, usize),
    ) -> Result<Between, DriveError> {
        let mut files = watched.tests().chain(watched.sources.iter().map(String::as_str));
        let python = files.any(|path| path.ends_with(".py"));
        let own_home =
            sandbox.capabilities().surroundings == Surroundings::Host && sandbox.exchange().is_none();
        let home = match checks > 1 && !own_home {
            true => self.files_at_home(sandbox, env, logs, MODULES)?,
            false => None,
        };
        if python && !self.ctx.state.spec.settings.setup_commands.is_empty() {
            self.quietly(sandbox, env, logs, &[COMPILED])?;
        }
        Ok(Between { python, home, own_home, rewritten: BTreeSet::new() })
    }

    /// Takes away what the last check left for the next one. Returns what it did to the user's own home, in words.
    pub(super) fn between_checks(
        &mut self,
        sandbox: &dyn Sandbox,
        env: &[(String, String)],
        logs: &Path,
        between: &mut Between,
    ) -> Result<Vec<String>, DriveError> {
        if between.python {
            self.quietly(sandbox, env, logs, &[COMPILED])?;
        }
        if between.own_home {
            let before = &self.ctx.state.surroundings;
            return Ok(match before.is_empty() {
                true => Vec::new(),
                false => surroundings::differences(before, &self.fingerprints()),
            });
        }
        let Some(before) = between.home.clone() else { return Ok(Vec::new()) };
        let now = self.files_at_home(sandbox, env, logs, MODULES)?.unwrap_or_default();
        let (came, other) = differences(&before, &now);
        between.rewritten.extend(other);
        if came.is_empty() {
            return Ok(Vec::new());
        }
        let script = "PATH=/usr/bin:/bin:$PATH; cd \"$HOME\" && rm -f -- \"$@\"";
        let words: Vec<&str> = [script, "sh"].into_iter().chain(came.iter().map(String::as_str)).collect();
        self.quietly(sandbox, env, logs, &words)?;
        let now = self.files_at_home(sandbox, env, logs, MODULES)?.unwrap_or_default();
        between.rewritten.extend(differences(&before, &now).0);
        Ok(Vec::new())
    }

    /// Files in the home of the checks that programs read by themselves, and those that `more` names, each with its digest.
    pub(super) fn files_at_home(
        &mut self,
        sandbox: &dyn Sandbox,
        env: &[(String, String)],
        logs: &Path,
        more: &str,
    ) -> Result<Option<String>, DriveError> {
        let script = format!(
            "cd \"$HOME\" 2>/dev/null || exit 0; for f in {SETTINGS} {more}; do [ -f \"$f\" ] && cksum \"$f\"; done; true"
        );
        let ended = self.quietly(sandbox, env, logs, &[&script])?;
        Ok(ended.then(|| crate::log_tail::read_tail(&logs.join("home.log"), LIST_MAX)))
    }

    /// Runs a script of the engine's own beside the checks; whether it ended well.
    fn quietly(
        &mut self,
        sandbox: &dyn Sandbox,
        env: &[(String, String)],
        logs: &Path,
        words: &[&str],
    ) -> Result<bool, DriveError> {
        let argv = ["sh", "-c"].iter().chain(words).map(|word| (*word).to_owned());
        let mut request = ExecRequest::new(argv.collect());
        request.timeout = Some(TIMEOUT);
        request.env = env.to_vec();
        let run = run_logged(&mut self.ctx, sandbox, &request, "setup", &logs.join("home.log"), false)?;
        Ok(run.outcome.is_ok_and(|outcome| outcome.end.success()))
    }
}

/// Files of a later list that came, and those that are others now or gone.
fn differences(before: &str, now: &str) -> (Vec<String>, Vec<String>) {
    let read = |text: &str| -> BTreeMap<String, String> {
        let split = |line: &str| {
            let mut parts = line.splitn(3, ' ');
            let sum = format!("{} {}", parts.next()?, parts.next()?);
            Some((parts.next()?.to_owned(), sum))
        };
        text.lines().filter_map(split).collect()
    };
    let (before, now) = (read(before), read(now));
    // A name with a line break could stand for a file elsewhere: it is told, and left.
    let (came, odd): (Vec<&String>, Vec<&String>) =
        now.keys().filter(|path| !before.contains_key(*path)).partition(|path| is_plain(path));
    let other = before.iter().filter(|(path, sum)| now.get(*path) != Some(*sum)).map(|(path, _)| path);
    (came.into_iter().cloned().collect(), other.chain(odd).cloned().collect())
}

fn is_plain(path: &str) -> bool {
    !path.starts_with('/') && !path.split('/').any(|part| part == "..")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_came_is_told_from_what_was_rewritten() {
        let before = "1 5 .npmrc\n2 5 .config/a/b c\n3 5 bin/tool\n";
        let now =
            "1 5 .npmrc\n9 5 .config/a/b c\n4 5 .local/lib/python3.12/site-packages/a.pth\n4 5 ../../x\n";
        let (came, other) = differences(before, now);
        assert_eq!(came, [".local/lib/python3.12/site-packages/a.pth"]);
        assert_eq!(other, [".config/a/b c", "bin/tool", "../../x"]);
        assert_eq!(differences(before, before), (Vec::new(), Vec::new()));
    }
}
