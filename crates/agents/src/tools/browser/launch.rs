//! Starting Chromium: through a lane of the sandbox, with a fresh profile, spoken to over two named pipes. No port is
//! opened, so nobody else on the machine can drive it, and it ends by itself when this process closes the pipes.

use crate::tools::process::Background;
use nix::sys::stat::Mode;
use nix::unistd::mkfifo;
use ralph_domain::ports::{ExecRequest, Sandbox};
use std::fs::{DirBuilder, File, OpenOptions};
use std::os::unix::fs::DirBuilderExt as _;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::Duration;

/// What is said where there is no Chromium.
pub(super) const MISSING: &str = "there is no Chromium here (tried $RALPH_CHROMIUM, chromium, chromium-browser, \
     google-chrome). On Debian and Ubuntu: apt-get install chromium. Go on without a browser, or install it";
/// The exit code of our script where there is none.
pub(super) const MISSING_CODE: i32 = 127;
/// Time between the polite signal and the final one.
const GRACE: Duration = Duration::from_secs(3);

/// `$1` and `$2` are the pipes, the rest are Chromium's arguments.
const SCRIPT: &str = r#"
to="$1" from="$2"; shift 2
if [ "$(id -u)" = 0 ]; then set -- --no-sandbox "$@"; fi
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

/// A running Chromium.
#[derive(Debug)]
pub(super) struct Chromium {
    /// What we write and it reads.
    pub(super) to: File,
    /// What it writes and we read.
    pub(super) from: File,
    /// Its process.
    pub(super) process: Background,
    // After the process: its folder goes when it is gone.
    _folder: Folder,
}

/// Starts one.
pub(super) fn launch(sandbox: &dyn Sandbox) -> Result<Chromium, String> {
    let folder = Folder::new().map_err(|error| format!("no folder for the browser's profile: {error}"))?;
    let pipe = |name: &str| -> Result<(String, File), String> {
        let path = folder.0.join(name);
        let failed = |why: String| format!("no pipe for the browser: {why}");
        mkfifo(&path, Mode::S_IRUSR | Mode::S_IWUSR).map_err(|errno| failed(errno.desc().to_owned()))?;
        // Open for both, so that opening waits for nobody.
        let file = OpenOptions::new()
            .read(true)
            .write(true)
            .custom_flags(nix::libc::O_NONBLOCK)
            .open(&path)
            .map_err(|error| failed(error.to_string()))?;
        Ok((path.to_string_lossy().into_owned(), file))
    };
    let (to_path, to) = pipe("to")?;
    let (from_path, from) = pipe("from")?;
    let mut argv = ["sh", "-c", SCRIPT, "sh", &to_path, &from_path].map(str::to_owned).to_vec();
    argv.extend(ARGS.iter().map(|arg| (*arg).to_owned()));
    argv.push(format!("--user-data-dir={}", folder.0.join("profile").display()));
    argv.push("about:blank".to_owned());
    let mut request = ExecRequest::new(argv);
    request.grace = GRACE;
    // Whatever it keeps beside its profile goes with it, too.
    request.env = vec![("XDG_CONFIG_HOME".to_owned(), folder.0.to_string_lossy().into_owned())];
    let lane = sandbox.lane().map_err(|error| error.to_string())?;
    let process = Background::start(lane, request, None)?;
    Ok(Chromium { to, from, process, _folder: folder })
}

/// A folder of our own that goes with us.
#[derive(Debug)]
struct Folder(PathBuf);

impl Folder {
    fn new() -> std::io::Result<Self> {
        static NEXT: AtomicU32 = AtomicU32::new(0);
        let number = NEXT.fetch_add(1, Ordering::Relaxed);
        let name = format!("ralph-browser-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        // One that a killed process of the same number left behind.
        remove(&path);
        DirBuilder::new().mode(0o700).create(&path)?;
        Ok(Self(path))
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        remove(&self.0);
    }
}

fn remove(path: &Path) {
    // Nothing depends on it; what cannot be removed lies in the folder for temporary files.
    std::fs::remove_dir_all(path).ok();
}
