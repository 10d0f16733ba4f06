//! Starts Chromium: through a sandbox connection, with a fresh profile, controlled over two named pipes. No port is
//! opened, so no other process can control it, and it ends when this process closes the pipes.

use super::folder::TempFolder;
use crate::tools::process::Background;
use ralph_loop_domain::ports::{ExecRequest, HostAccess, Loopback, Sandbox};
use std::fs::File;
use std::path::Path;
use std::time::Duration;

pub(super) const MISSING: &str = "there is no Chromium here (tried $RALPH_CHROMIUM, chromium, chromium-browser, \
     google-chrome). On Debian and Ubuntu: apt-get install chromium. Continue without a browser, or install it";
/// The message if the sandbox doesn't allow one.
const NO_SOCKETS: &str = "no browser runs in this sandbox (Landlock), which allows no local sockets. Continue without one; \
     users can start the run with `--isolation bwrap`";
/// The message if the browser would run on another machine, or in a VM, where its pipes don't reach.
const ELSEWHERE: &str = "no browser runs in this sandbox: it is not on this machine. Continue without one; users can start \
     the run with `--provider local` or `--provider docker`";
/// Our script's exit code without Chromium.
pub(super) const MISSING_CODE: i32 = 127;
/// Time between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(3);

/// `$1` says whether there is a sandbox, and whether its commands share a loopback; `$2` and `$3` are the pipes, the
/// rest are Chromium's arguments.
///
/// In a sandbox Chromium can't create a nested one. If every command has a separate network, servers on this machine
/// are reached through the proxy as well, which knows the ports of the sandbox's other commands. If they share one (a
/// container), those servers are on its loopback, and nothing else is.
const SCRIPT: &str = r#"
sandboxed="$1" to="$2" from="$3"; shift 3
if [ -n "$sandboxed" ] || [ "$(id -u)" = 0 ]; then set -- --no-sandbox "$@"; fi
if [ -n "$sandboxed" ] && [ -n "${http_proxy:-}" ]; then
    [ "$sandboxed" = shared ] || set -- '--proxy-bypass-list=<-loopback>' "$@"
    set -- "--proxy-server=$http_proxy" "$@"
fi
for program in "${RALPH_CHROMIUM:-}" chromium chromium-browser google-chrome; do
    if [ -n "$program" ] && command -v "$program" >/dev/null 2>&1; then
        exec "$program" "$@" 3<"$to" 4>"$from"
    fi
done
exit 127
"#;

const ARGS: &[&str] = &[
    "--headless",
    "--remote-debugging-pipe",
    "--no-first-run",
    "--no-default-browser-check",
    "--disable-background-networking",
    "--disable-breakpad",
    "--disable-crash-reporter",
    "--disable-component-update",
    "--disable-default-apps",
    "--disable-dev-shm-usage",
    "--disable-extensions",
    "--disable-features=Translate,MediaRouter,OptimizationHints,AutofillServerCommunication",
    "--disable-gpu",
    "--disable-sync",
    "--hide-scrollbars",
    "--metrics-recording-only",
    "--mute-audio",
    "--no-pings",
    "--password-store=basic",
    "--use-mock-keychain",
    "--window-size=1280,800",
];

#[derive(Debug)]
pub(super) struct Chromium {
    pub(super) to: File,
    pub(super) from: File,
    pub(super) process: Background,
    // Dropped after the process, so that its folder is removed last.
    _folder: TempFolder,
}

pub(super) fn launch(sandbox: &dyn Sandbox, temp: &Path) -> Result<Chromium, String> {
    let exchange = sandbox.exchange();
    if exchange.as_ref().is_some_and(|exchange| !exchange.sockets) {
        return Err(NO_SOCKETS.to_owned());
    }
    if exchange.is_none() && sandbox.capabilities().surroundings == HostAccess::Own {
        return Err(ELSEWHERE.to_owned());
    }
    let folder = TempFolder::new(sandbox, temp)
        .map_err(|error| format!("no folder for the browser's profile: {error}"))?;
    let pipe =
        |name: &str| folder.pipe(name).map_err(|errno| format!("no pipe for the browser: {}", errno.desc()));
    let (to_path, to) = pipe("to")?;
    let (from_path, from) = pipe("from")?;
    let sandboxed = match exchange.map(|exchange| exchange.loopback) {
        None => "",
        Some(Loopback::OfCommand) => "alone",
        Some(Loopback::OfSandbox) => "shared",
    };
    let mut argv = ["sh", "-c", SCRIPT, "sh", sandboxed, &to_path, &from_path].map(str::to_owned).to_vec();
    argv.extend(ARGS.iter().map(|arg| (*arg).to_owned()));
    argv.push(format!("--user-data-dir={}", folder.inside.join("profile").display()));
    argv.push("about:blank".to_owned());
    let mut request = ExecRequest::new(argv);
    request.grace = GRACE;
    // Files next to its profile are removed with it.
    request.env = vec![("XDG_CONFIG_HOME".to_owned(), folder.inside.to_string_lossy().into_owned())];
    let connection = sandbox.new_connection().map_err(|error| error.to_string())?;
    let process = Background::start(connection, request, None)?;
    Ok(Chromium { to, from, process, _folder: folder })
}
