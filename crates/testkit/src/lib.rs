//! Test support for `ralph`: a user's machine in a temporary folder, fixture repos, and the real binary;
//! a scripted model server ([`model_server`]); fake clouds ([`fake_daytona`], [`fake_e2b`], [`fake_vercel`]) and a fake GitHub
//! ([`fake_github`]); and one conformance suite for every sandbox ([`conformance`]).

pub mod conformance;
pub mod docker;
pub mod env;
pub mod fake_cloud;
pub mod fake_daytona;
pub mod fake_e2b;
pub mod fake_github;
pub mod fake_vercel;
pub mod libtest;
pub mod model_server;
pub mod pages;
pub mod postgres;
pub mod prism;
pub mod repo;
pub mod torture;

pub use env::{Finished, TestEnv};
pub use repo::TestRepo;

use std::ffi::{OsStr, OsString};

/// The test's environment variables, except language, time zone, git settings and shims.
#[allow(clippy::disallowed_methods, reason = "tests are a border, too")]
pub fn vars() -> ralph_loop_domain::vars::Vars {
    let own = [("LANG", "C.UTF-8".into()), ("TZ", "UTC".into()), ("PATH", env::search_path().into())];
    let of_user = |name: &OsStr| {
        let name = name.to_string_lossy();
        ["GIT_", "LC_"].iter().any(|start| name.starts_with(start))
            || own.iter().any(|(known, _)| name == *known)
    };
    let kept: Vec<_> = std::env::vars_os().filter(|(name, _)| !of_user(name)).collect();
    kept.into_iter().chain(own.map(|(name, value)| (OsString::from(name), value))).collect()
}

/// Reports a skipped test where both users and CI see it.
#[allow(clippy::disallowed_methods, reason = "tests are a border, too")]
pub fn skip(reason: &str) {
    use std::io::Write as _;
    let line = format!("skipped: {reason}\n");
    let _ = std::io::stdout().write_all(line.as_bytes());
    if let Some(path) = std::env::var_os("RALPH_SKIPS_FILE")
        && let Ok(mut file) = std::fs::OpenOptions::new().create(true).append(true).open(path)
    {
        let _ = file.write_all(line.as_bytes());
    }
}

/// The suite that every sandbox passes, as a separate test: the test's name, how to create a sandbox, and its capabilities. Checks to
/// leave out come last, each with its reason.
///
/// ```ignore
/// use ralph_loop_domain::ports::Capabilities;
/// ralph_loop_testkit::sandbox_conformance!(
///     memory_passes,
///     MemorySandbox::default,
///     Capabilities::default(),
///     "exec: " => "it has no processes",
/// );
/// ```
#[macro_export]
macro_rules! sandbox_conformance {
    ($name:ident, $make:expr, $capabilities:expr $(, $prefix:literal => $reason:literal)* $(,)?) => {
        #[test]
        fn $name() {
            let sandbox = ($make)();
            let subject = $crate::conformance::Subject::of_sandbox(&sandbox, $capabilities)
                $(.without($prefix, $reason))*;
            $crate::conformance::run(&subject).assert_passed();
        }
    };
}
