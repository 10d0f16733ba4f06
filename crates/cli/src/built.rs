//! What this binary is: its version, the commit it was built from, for what, and with which optional parts.

use std::fmt::Write as _;

/// The version.
pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, where whoever built it said so. `scripts/release` does; asking git here would build anew after every commit.
pub const COMMIT: Option<&str> = option_env!("RALPH_BUILD_COMMIT");

/// Optional parts that are built in: `page` is the dashboard that `ralph serve` shows.
pub fn features() -> Vec<&'static str> {
    let page = ralph_server::HAS_PAGE.then_some("page");
    page.into_iter().collect()
}

/// How it was compiled.
pub const PROFILE: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

/// What `ralph --version --verbose` says.
pub fn text() -> String {
    let mut text = format!("ralph {VERSION}\n");
    let features = Some(features().join(", ")).filter(|all| !all.is_empty()).unwrap_or_else(|| "none".into());
    let target = ralph_upgrade::target();
    let rows = [
        ("commit", COMMIT.filter(|commit| !commit.is_empty()).unwrap_or("not recorded")),
        ("target", &target),
        ("features", &features),
        ("profile", PROFILE),
    ];
    for (name, value) in rows {
        let _ = writeln!(text, "{:<10}{value}", format!("{name}:"));
    }
    text
}

/// The same for programs.
pub fn json() -> serde_json::Value {
    serde_json::json!({
        "version": VERSION,
        "commit": COMMIT.filter(|commit| !commit.is_empty()),
        "target": ralph_upgrade::target(),
        "features": features(),
        "profile": PROFILE,
    })
}

/// How much of it is asked for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Asked {
    /// One line.
    Short,
    /// All of it.
    Long,
    /// All of it, for programs.
    Json,
}

/// Whether the command line asks for nothing but the version: found without building the whole command line, because shell
/// prompts and editors ask at every start.
pub fn asked(args: impl Iterator<Item = std::ffi::OsString>) -> Option<Asked> {
    let (mut version, mut asked) = (false, Asked::Short);
    for arg in args {
        match arg.to_str()? {
            "--version" | "-V" => version = true,
            "--verbose" | "-v" | "-vv" if asked == Asked::Short => asked = Asked::Long,
            "--verbose" | "-v" | "-vv" => {}
            "-Vv" | "-vV" => {
                (version, asked) = (true, if asked == Asked::Json { asked } else { Asked::Long })
            }
            "--json" => asked = Asked::Json,
            _ => return None,
        }
    }
    version.then_some(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<Asked> {
        asked(line.split_whitespace().map(Into::into))
    }

    #[test]
    fn only_the_version_is_answered_at_once() {
        assert_eq!((of("--version"), of("-V")), (Some(Asked::Short), Some(Asked::Short)));
        for line in ["--version --verbose", "--verbose --version", "-V -v", "-Vv", "-vV -v"] {
            assert_eq!(of(line), Some(Asked::Long), "{line}");
        }
        assert_eq!((of("--json -V"), of("-V --json -v")), (Some(Asked::Json), Some(Asked::Json)));
        for line in ["", "--verbose", "--json", "run --version", "-V status"] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn the_long_form_names_what_was_built() {
        let text = text();
        assert!(text.starts_with(&format!("ralph {VERSION}\ncommit:   ")), "{text}");
        for row in ["target:   ", "features: ", "profile:  "] {
            assert!(text.contains(row), "{row}: {text}");
        }
    }
}
