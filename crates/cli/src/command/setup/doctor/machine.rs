//! Checks the machine: git, temporary folders, guard, state folder, disk space, isolation.

use super::{Area, DoctorCheck};
use crate::error::CommandError;
use crate::text::words::{home_path, size};
use ralph_loop_app::{Environment, clean};
use ralph_loop_git::Git;
use ralph_loop_sandbox::isolation::detect::LANDLOCK_GAPS;
use ralph_loop_sandbox::isolation::{IsolationReport, detect};
use ralph_loop_task::config::Isolation;
use std::path::Path;
use std::time::Duration;

/// The oldest git with every option used.
const GIT_MIN: (u32, u32) = (2, 30);
/// Disk use by runs that is worth mentioning.
const KEPT_MUCH: u64 = 5 << 30;
/// Free space below which a run may fail midway.
const SPACE_LOW: u64 = 1 << 30;

/// Everything that doesn't depend on the repo.
pub fn checks(env: &Environment, folder: &Path, scratch: Option<&CommandError>) -> Vec<DoctorCheck> {
    let mut checks = vec![git(env, folder), processes(scratch), state_home(env)];
    checks.extend(space(folder));
    checks.extend(kept(env));
    checks.push(isolation(&detect(env.vars())));
    checks
}

/// What isolates agents here, and what would be stronger.
fn isolation(report: &IsolationReport) -> DoctorCheck {
    let told = |works: bool| -> Vec<String> {
        let found = report.findings.iter().filter(|finding| finding.works == works);
        found.map(|finding| format!("{}: {}", finding.name, finding.detail)).collect()
    };
    let (good, bad) = (told(true).join("; "), told(false).join("; "));
    match (report.strongest(), bad.is_empty()) {
        (Isolation::Bwrap, true) => DoctorCheck::ok(Area::Machine, "isolation", good),
        (Isolation::Bwrap, false) => DoctorCheck::ok(Area::Machine, "isolation", good).why(bad),
        (Isolation::Landlock, _) => {
            DoctorCheck::warn(Area::Machine, "isolation", format!("only Landlock works here ({bad})"))
                .why(LANDLOCK_GAPS.join("; "))
                .fix("install or enable bubblewrap (see above)")
        }
        _ => DoctorCheck::warn(Area::Machine, "isolation", format!("agents can't be sandboxed here ({bad})"))
            .why("an agent then acts with all your rights: only use agents and repos that you trust")
            .fix("install bubblewrap (apt install bubblewrap), or pass `--isolation none` to `ralph run`"),
    }
}

fn git(env: &Environment, folder: &Path) -> DoctorCheck {
    let why = "every iteration is recorded with git";
    let fix = "install git 2.30 or newer: apt install git, dnf install git, brew install git";
    let text = match Git::in_folder(env.vars(), folder)
        .with_timeout(Duration::from_secs(10))
        .call(["version"])
        .run()
    {
        Ok(output) => output.text(),
        Err(error) => {
            return DoctorCheck::missing(Area::Machine, "git", error.to_string())
                .why(why)
                .fix(error.hint.unwrap_or_else(|| fix.into()));
        }
    };
    match version(&text) {
        Some(found) if found < GIT_MIN => {
            DoctorCheck::missing(Area::Machine, "git", format!("{text} is too old")).why(why).fix(fix)
        }
        Some(_) => DoctorCheck::ok(Area::Machine, "git", text),
        None => {
            DoctorCheck::warn(Area::Machine, "git", format!("cannot read a version from `{text}`")).fix(fix)
        }
    }
}

/// `git version 2.43.0.windows.1` → (2, 43).
fn version(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.split_whitespace().nth(2)?.split('.');
    Some((numbers.next()?.parse().ok()?, numbers.next()?.parse().ok()?))
}

fn processes(failed: Option<&CommandError>) -> DoctorCheck {
    match failed {
        None => DoctorCheck::ok(
            Area::Machine,
            "processes",
            "commands can be started and ended together with all they start",
        ),
        Some(error) => {
            let check = DoctorCheck::missing(Area::Machine, "processes", error.message.clone());
            check
                .why("agents and checks run under a guard that ends whatever they leave behind")
                .fix(error.hint.clone().unwrap_or_else(|| "try again".into()))
        }
    }
}

fn state_home(env: &Environment) -> DoctorCheck {
    let why = "runs are registered and journals are sealed outside the repo";
    let home = match env.state_home() {
        Ok(home) => home,
        Err(error) => {
            return DoctorCheck::missing(Area::Machine, "state", error.message)
                .why(why)
                .fix(error.hint.unwrap_or_default());
        }
    };
    let path = home.path();
    let mark = path.join(format!(".doctor-{}", std::process::id()));
    let tried = std::fs::create_dir_all(path)
        .and_then(|()| std::fs::write(&mark, b""))
        .and_then(|()| std::fs::remove_file(&mark));
    match tried {
        Ok(()) => DoctorCheck::ok(Area::Machine, "state", format!("{} can be written", home_path(path))),
        Err(e) => {
            DoctorCheck::missing(Area::Machine, "state", format!("cannot write to {}: {e}", home_path(path)))
                .why(why)
                .fix(format!(
                    "make it yours: sudo chown -R \"$USER\" '{}', or set XDG_STATE_HOME",
                    path.display()
                ))
        }
    }
}

/// Disk use of past runs.
fn kept(env: &Environment) -> Option<DoctorCheck> {
    let home = env.state_home().ok()?;
    let bytes = clean::size(home.path());
    let message = format!("{} in {}", size(bytes), home_path(home.path()));
    if bytes < KEPT_MUCH {
        return Some(DoctorCheck::ok(Area::Machine, "kept by runs", message));
    }
    let check = DoctorCheck::warn(Area::Machine, "kept by runs", message);
    Some(
        check
            .why("worktrees, clones, copies and logs of runs stay until they are cleaned up")
            .fix("`ralph clean --all --dry-run` shows what could go"),
    )
}

fn space(folder: &Path) -> Option<DoctorCheck> {
    let stat = nix::sys::statvfs::statvfs(folder).ok()?;
    #[allow(clippy::unnecessary_cast, reason = "the width of these numbers differs between systems")]
    let free = (stat.blocks_available() as u64).saturating_mul(stat.fragment_size() as u64);
    Some(space_check(free))
}

fn space_check(free: u64) -> DoctorCheck {
    let message = format!("{} free", size(free));
    if free > SPACE_LOW {
        return DoctorCheck::ok(Area::Machine, "disk", message);
    }
    let check = DoctorCheck::warn(Area::Machine, "disk", format!("only {message}"));
    check.why("snapshots, logs and clean checkouts need more than 1 GiB of room").fix("free some disk space")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::command::setup::doctor::Status;

    #[test]
    fn versions_are_compared_as_numbers() {
        assert_eq!(version("git version 2.43.0"), Some((2, 43)));
        assert_eq!(version("git version 2.9.1.windows.1"), Some((2, 9)));
        assert_eq!(version("git version"), None);
        assert!((2, 9) < GIT_MIN && (2, 30) >= GIT_MIN);
    }

    #[test]
    fn little_space_is_a_note() {
        assert_eq!(space_check(SPACE_LOW + 1).status, Status::Ok);
        assert_eq!(space_check(SPACE_LOW).status, Status::Warn);
    }
}
