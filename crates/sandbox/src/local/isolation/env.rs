//! Which variables of this process a sandboxed command inherits.

use super::IsolationSpec;
use ralph_loop_domain::secret_name::{is_engine_secret, is_secret_name};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// Harmless variables, including those that tools need to find themselves.
const PLAIN: [&str; 29] = [
    "PATH",
    "LANG",
    "LANGUAGE",
    "TERM",
    "COLORTERM",
    "NO_COLOR",
    "FORCE_COLOR",
    "CI",
    "TZ",
    "HOME",
    "USER",
    "LOGNAME",
    "SHELL",
    "JAVA_HOME",
    "PYENV_ROOT",
    "NVM_DIR",
    "VOLTA_HOME",
    "RUSTUP_HOME",
    "RUSTUP_TOOLCHAIN",
    "GOROOT",
    "RBENV_ROOT",
    "ASDF_DATA_DIR",
    "MISE_DATA_DIR",
    "DOTNET_ROOT",
    "CONDA_PREFIX",
    "LD_LIBRARY_PATH",
    "LLVM_PROFILE_FILE",
    "EDITOR",
    "PAGER",
];

/// The launchers' part of the variables `all` of this process: the library paths in folders that no command can write
/// (`writable` are those below which one can), and where coverage tools write.
pub(super) fn of_launchers(all: &[(OsString, OsString)], writable: &[&Path]) -> Vec<(OsString, OsString)> {
    let safe =
        |folder: &PathBuf| folder.is_absolute() && !writable.iter().any(|place| folder.starts_with(place));
    let mut kept = Vec::new();
    for (name, value) in all {
        if name == "LLVM_PROFILE_FILE" {
            kept.push((name.clone(), value.clone()));
        } else if name == "LD_LIBRARY_PATH" {
            let folders: Vec<PathBuf> = std::env::split_paths(value).filter(safe).collect();
            if let Some(value) = std::env::join_paths(&folders).ok().filter(|_| !folders.is_empty()) {
                kept.push((name.clone(), value));
            }
        }
    }
    kept
}

fn inherited(spec: &IsolationSpec, name: &OsStr) -> bool {
    let Some(name) = name.to_str() else { return false };
    let prefixed = (name.starts_with("LC_") || name.starts_with("RALPH_")) && !is_secret_name(name);
    PLAIN.contains(&name) || prefixed || spec.pass_env.iter().any(|passed| passed == name)
}

/// A command's part of the variables `all`: including the keys of `agent` if it is its session. Never the engine's
/// secrets.
pub(super) fn passed<'a>(
    spec: &IsolationSpec,
    all: &'a [(OsString, OsString)],
    agent: Option<&str>,
) -> Vec<(&'a OsStr, &'a OsStr)> {
    let keys = agent.and_then(|program| spec.keys.get(program)).map_or(&[][..], Vec::as_slice);
    all.iter()
        .filter(|(name, _)| inherited(spec, name) || keys.iter().any(|key| name == key.as_str()))
        .filter(|(name, value)| !is_engine_secret(&name.to_string_lossy(), &value.to_string_lossy()))
        .map(|(name, value)| (name.as_os_str(), value.as_os_str()))
        .collect()
}

/// The variables that a sandbox sets: the temporary folder, and the proxy.
pub(super) fn environment_variables(proxy_port: Option<u16>) -> Vec<(String, String)> {
    let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
    let mut told = vec![
        pair("TMPDIR", "/tmp"),
        // The git folder is a separate mount: git must look for it across file systems.
        pair("GIT_DISCOVERY_ACROSS_FILESYSTEM", "1"),
    ];
    let Some(port) = proxy_port else { return told };
    let proxy = format!("http://127.0.0.1:{port}");
    for name in ["HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"] {
        told.push(pair(name, &proxy));
    }
    // Tools that ignore those: yarn 2 and newer, Maven, Gradle.
    for name in ["YARN_HTTP_PROXY", "YARN_HTTPS_PROXY"] {
        told.push(pair(name, &proxy));
    }
    let java =
        ["http", "https"].map(|kind| format!("-D{kind}.proxyHost=127.0.0.1 -D{kind}.proxyPort={port}"));
    for name in ["MAVEN_OPTS", "GRADLE_OPTS"] {
        told.push(pair(name, &java.join(" ")));
    }
    for name in ["NO_PROXY", "no_proxy"] {
        told.push(pair(name, "localhost,127.0.0.1,::1"));
    }
    // Node ignores proxy variables by default.
    told.push(pair("NODE_USE_ENV_PROXY", "1"));
    told
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(spec: &IsolationSpec, agent: Option<&str>) -> Vec<String> {
        let all: Vec<(OsString, OsString)> = [
            "PATH",
            "LC_ALL",
            "RALPH_RUN",
            "RALPH_HOOK_TOKEN",
            "RALPH_DB_URL",
            "SSH_AUTH_SOCK",
            "DOCKER_HOST",
            "AWS_SECRET_ACCESS_KEY",
            "ANTHROPIC_API_KEY",
            "MINE",
            "HTTP_PROXY",
            "DBUS_SESSION_BUS_ADDRESS",
        ]
        .map(|name| (name.into(), "x".into()))
        .to_vec();
        passed(spec, &all, agent).into_iter().map(|(n, _)| n.to_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn launchers_get_only_library_paths_that_commands_cannot_write() {
        let all: Vec<(OsString, OsString)> = [
            ("PATH", "/bin"),
            ("LD_PRELOAD", "/usr/lib/x.so"),
            ("LD_LIBRARY_PATH", "/opt/lib::rel:/repo/lib:/home/u/lib:/repository/lib"),
        ]
        .map(|(name, value)| (name.into(), value.into()))
        .to_vec();
        let kept = of_launchers(&all, &[Path::new("/repo"), Path::new("/home/u")]);
        assert_eq!(kept, [("LD_LIBRARY_PATH".into(), "/opt/lib:/repository/lib".into())]);
        let none = [("LD_LIBRARY_PATH".into(), ":".into())];
        assert_eq!(of_launchers(&none, &[]), []);
    }

    #[test]
    fn only_known_names_pass_and_keys_only_to_their_program() {
        let mut spec = IsolationSpec::new("/x");
        assert_eq!(names(&spec, None), ["PATH", "LC_ALL", "RALPH_RUN"]);
        spec.pass_env.extend(["MINE".to_owned(), "RALPH_DB_URL".to_owned()]);
        spec.keys.insert("/opt/bin/claude".into(), vec!["ANTHROPIC_API_KEY".into()]);
        assert_eq!(names(&spec, None), ["PATH", "LC_ALL", "RALPH_RUN", "MINE"]);
        assert_eq!(
            names(&spec, Some("/opt/bin/claude")),
            ["PATH", "LC_ALL", "RALPH_RUN", "ANTHROPIC_API_KEY", "MINE"]
        );
        for other in ["claude", "./claude", "/repo/bin/claude", "/opt/bin/../bin/claude"] {
            assert_eq!(names(&spec, Some(other)), ["PATH", "LC_ALL", "RALPH_RUN", "MINE"], "{other}");
        }
    }
}
