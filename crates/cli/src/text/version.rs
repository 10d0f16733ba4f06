//! Version of this binary: number, commit, target and profile.

use std::fmt::Write as _;

pub const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The commit, set by `scripts/release`. Asking git here would rebuild after every commit.
pub const COMMIT: Option<&str> = option_env!("RALPH_BUILD_COMMIT");

pub const PROFILE: &str = if cfg!(debug_assertions) { "debug" } else { "release" };

/// The target triple of release archives, such as `x86_64-unknown-linux-gnu`.
fn target() -> String {
    let system = match (std::env::consts::OS, cfg!(target_env = "musl")) {
        ("macos", _) => "apple-darwin".to_owned(),
        ("linux", true) => "unknown-linux-musl".to_owned(),
        ("linux", false) => "unknown-linux-gnu".to_owned(),
        (other, _) => format!("unknown-{other}"),
    };
    format!("{}-{system}", std::env::consts::ARCH)
}

/// The output of `ralph --version --verbose`.
pub fn text() -> String {
    let mut text = format!("ralph {VERSION}\n");
    let target = target();
    let rows = [
        ("commit", COMMIT.filter(|commit| !commit.is_empty()).unwrap_or("not recorded")),
        ("target", &target),
        ("profile", PROFILE),
    ];
    for (name, value) in rows {
        let _ = writeln!(text, "{:<10}{value}", format!("{name}:"));
    }
    text
}

/// The same as JSON.
pub fn json() -> serde_json::Value {
    serde_json::json!({
        "version": VERSION,
        "commit": COMMIT.filter(|commit| !commit.is_empty()),
        "target": target(),
        "profile": PROFILE,
    })
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VersionRequest {
    /// One line.
    Short,
    /// Everything.
    Long,
    /// Everything, as JSON.
    Json,
}

/// Recognizes a version request without building the parser: shell prompts and editors ask at every start.
pub fn requested(args: impl Iterator<Item = std::ffi::OsString>) -> Option<VersionRequest> {
    let (mut version, mut asked) = (false, VersionRequest::Short);
    for arg in args {
        match arg.to_str()? {
            "--version" | "-V" => version = true,
            "--verbose" | "-v" | "-vv" if asked == VersionRequest::Short => asked = VersionRequest::Long,
            "--verbose" | "-v" | "-vv" => {}
            "-Vv" | "-vV" => {
                (version, asked) =
                    (true, if asked == VersionRequest::Json { asked } else { VersionRequest::Long })
            }
            "--json" => asked = VersionRequest::Json,
            _ => return None,
        }
    }
    version.then_some(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(line: &str) -> Option<VersionRequest> {
        requested(line.split_whitespace().map(Into::into))
    }

    #[test]
    fn only_the_version_is_answered_at_once() {
        assert_eq!((of("--version"), of("-V")), (Some(VersionRequest::Short), Some(VersionRequest::Short)));
        for line in ["--version --verbose", "--verbose --version", "-V -v", "-Vv", "-vV -v"] {
            assert_eq!(of(line), Some(VersionRequest::Long), "{line}");
        }
        assert_eq!(
            (of("--json -V"), of("-V --json -v")),
            (Some(VersionRequest::Json), Some(VersionRequest::Json))
        );
        for line in ["", "--verbose", "--json", "run --version", "-V status"] {
            assert_eq!(of(line), None, "{line}");
        }
    }

    #[test]
    fn the_long_form_names_the_build() {
        let text = text();
        assert!(text.starts_with(&format!("ralph {VERSION}\ncommit:   ")), "{text}");
        for row in ["target:   ", "profile:  "] {
            assert!(text.contains(row), "{row}: {text}");
        }
    }
}
