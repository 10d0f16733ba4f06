//! Redirects variables from the workspace to the checkout for a proof on this machine.

use std::path::Path;

/// Variables that locate programs and libraries.
const WAYS: &[&str] = &[
    "PATH",
    "PYTHONPATH",
    "PYTHONHOME",
    "VIRTUAL_ENV",
    "NODE_PATH",
    "NODE_OPTIONS",
    "LD_LIBRARY_PATH",
    "LD_PRELOAD",
    "DYLD_LIBRARY_PATH",
    "CLASSPATH",
    "RUBYLIB",
    "RUBYOPT",
    "GEM_PATH",
    "GEM_HOME",
    "BUNDLE_PATH",
    "PERL5LIB",
    "GOFLAGS",
    "GOPATH",
    "BASH_ENV",
    "ENV",
    "CARGO_TARGET_DIR",
];

/// Changes to `vars` for commands in `checkout`, so that none points into `workspace`.
pub(crate) fn redirected(
    vars: impl Iterator<Item = (String, String)>,
    workspace: &Path,
    checkout: &Path,
) -> Vec<(String, String)> {
    let (Some(from), Some(to)) = (workspace.to_str(), checkout.to_str()) else { return Vec::new() };
    vars.filter(|(name, value)| WAYS.contains(&name.as_str()) && value.contains(from))
        .map(|(name, value)| {
            let moved = replaced(&value, from, to);
            (name, moved)
        })
        .collect()
}

/// Replaces the path `from` as a whole path or prefix.
fn replaced(text: &str, from: &str, to: &str) -> String {
    let from = from.trim_end_matches('/');
    let mut out = String::new();
    let mut rest = text;
    while let Some(at) = rest.find(from) {
        let (before, after) = (&rest[..at], &rest[at + from.len()..]);
        out.push_str(before);
        let whole = after.is_empty() || after.starts_with(['/', ':', ' ', ';', '"', '\'', ',']);
        out.push_str(if whole { to } else { from });
        rest = after;
    }
    out + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ways_into_the_workspace_lead_into_the_checkout() {
        let vars = [
            ("PATH", "/repo/node_modules/.bin:/usr/bin:/repository/bin:/repo"),
            ("PYTHONPATH", "/elsewhere"),
            ("HOME", "/repo/home"),
        ];
        let vars = vars.into_iter().map(|(a, b)| (a.to_owned(), b.to_owned()));
        assert_eq!(
            redirected(vars, Path::new("/repo"), Path::new("/proof/repo")),
            [(
                "PATH".to_owned(),
                "/proof/repo/node_modules/.bin:/usr/bin:/repository/bin:/proof/repo".to_owned()
            )]
        );
    }
}
