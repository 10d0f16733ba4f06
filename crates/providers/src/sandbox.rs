//! A cloud machine as a [`Sandbox`], for every vendor.

use crate::error::ProviderError;
use crate::exec::{self, ExecContext};
use crate::http::{VendorClient, never_stop};
use crate::machine::Machine;
use crate::{paths, preview, script};
use ralph_loop_domain::ports::{
    ExecOutcome, ExecRequest, ExecSink, HostAccess, ManagedSandbox, Preview, Sandbox, SandboxCapabilities,
    SandboxError, WriteMode,
};
use ralph_loop_http::random_word;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

const READ_MAX: u64 = 256 * 1024 * 1024;
/// A command inside is ended after this long without contact.
pub(crate) const ORPHAN_AFTER: Duration = Duration::from_secs(180);

pub(crate) struct CloudSandbox<M> {
    machine: Arc<M>,
    http: VendorClient,
    root: PathBuf,
    orphan_after: Duration,
}

enum PathKind {
    Nothing,
    Folder,
    File { size: u64, mode: u32 },
    Other,
}

impl<M: Machine> CloudSandbox<M> {
    /// Opens the workspace below `home`, creating it if missing.
    pub fn open(
        machine: M,
        http: VendorClient,
        home: &str,
        orphan_after: Duration,
    ) -> Result<Self, ProviderError> {
        let wanted = script::quoted(&format!("{}/workspace", home.trim_end_matches('/')));
        let out = machine.done(
            &http,
            "make the workspace",
            &format!("mkdir -p {wanted} && readlink -f {wanted}"),
        )?;
        let root = PathBuf::from(out.trim_end_matches('\n'));
        if !root.is_absolute() {
            return Err(http.garbled("make the workspace", format!("`{}` isn't a folder", root.display())));
        }
        Ok(Self { machine: Arc::new(machine), http, root, orphan_after })
    }

    fn stat(&self, verb: &'static str, path: &Path) -> Result<(String, PathKind), SandboxError> {
        let whole = paths::inside(&self.root, path)?;
        let script = script::stat(&self.root.to_string_lossy(), &whole);
        let out = self.machine.done(&self.http, "read a file", &script)?;
        let words: Vec<&str> = out.split_whitespace().collect();
        let found = match words.as_slice() {
            ["outside"] => return Err(SandboxError::OutsideWorkspace(path.to_owned())),
            ["none"] => PathKind::Nothing,
            ["dir"] => PathKind::Folder,
            ["other"] => PathKind::Other,
            ["file", size, mode] => {
                let size = size.parse().unwrap_or(u64::MAX);
                PathKind::File { size, mode: u32::from_str_radix(mode, 8).unwrap_or(0o644) }
            }
            _ => return Err(refused(verb, path, &format!("the sandbox said `{}`", out.trim()))),
        };
        Ok((whole, found))
    }

    fn failed(verb: &'static str, path: &Path) -> impl Fn(ProviderError) -> SandboxError {
        move |error| refused(verb, path, &error.to_string())
    }
}

fn refused(verb: &'static str, path: &Path, reason: &str) -> SandboxError {
    SandboxError::File { verb, path: path.to_owned(), reason: reason.to_owned() }
}

impl<M: Machine> Sandbox for CloudSandbox<M> {
    fn kind(&self) -> &'static str {
        self.machine.kind()
    }

    fn capabilities(&self) -> SandboxCapabilities {
        SandboxCapabilities { surroundings: HostAccess::Own }
    }

    fn root(&self) -> &Path {
        &self.root
    }

    fn exec(&self, request: &ExecRequest, sink: &mut dyn ExecSink) -> Result<ExecOutcome, SandboxError> {
        let context = ExecContext {
            machine: &*self.machine,
            http: &self.http,
            root: &self.root,
            orphan_after: self.orphan_after,
        };
        exec::exec(&context, request, sink)
    }

    fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError> {
        match self.stat("read", path)? {
            (_, PathKind::Nothing) => Ok(None),
            (_, PathKind::Folder) => Err(refused("read", path, "it is a folder")),
            (_, PathKind::Other) => Err(refused("read", path, "it is not a plain file")),
            (_, PathKind::File { size, .. }) if size > READ_MAX => {
                Err(refused("read", path, "it is larger than 256 MiB"))
            }
            (whole, PathKind::File { .. }) => {
                self.machine.get(&self.http, &whole).map(Some).map_err(Self::failed("read", path))
            }
        }
    }

    fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError> {
        let (whole, found) = self.stat("write", path)?;
        let old = match found {
            PathKind::Nothing => None,
            PathKind::File { mode, .. } => Some(mode),
            PathKind::Folder => return Err(refused("write", path, "it is a folder")),
            PathKind::Other => return Err(refused("write", path, "it is not a plain file")),
        };
        let failed = Self::failed("write", path);
        match mode {
            WriteMode::Replace => self.machine.put(&self.http, &whole, bytes, old).map_err(failed),
            WriteMode::Append => {
                let part = format!("/tmp/.ralph-part-{}", random_word());
                self.machine.put(&self.http, &part, bytes, None).map_err(&failed)?;
                self.machine
                    .done(&self.http, "append to a file", &script::append(&part, &whole))
                    .map(drop)
                    .map_err(failed)
            }
        }
    }

    fn remove(&self, path: &Path) -> Result<(), SandboxError> {
        // A link itself is removed, so only its parent must be inside.
        let above = path.parent().unwrap_or(Path::new(""));
        let whole = paths::inside(&self.root, path)?;
        self.stat("remove", above)?;
        let shell = format!(
            "p={}; [ -L \"$p\" ] && exit 5; [ -d \"$p\" ] && exit 6; [ -e \"$p\" ] || exit 7",
            script::quoted(&whole)
        );
        match self.machine.shell(&self.http, &shell, &mut never_stop)?.code {
            5 => self
                .machine
                .done(&self.http, "remove a link", &format!("rm -f {}", script::quoted(&whole)))
                .map(drop)
                .map_err(Self::failed("remove", path)),
            6 => Err(refused("remove", path, "it is a folder")),
            7 => Ok(()),
            _ => self.machine.delete(&self.http, &whole).map_err(Self::failed("remove", path)),
        }
    }

    fn list(&self, path: &Path) -> Result<Vec<String>, SandboxError> {
        match self.stat("list", path)? {
            // A missing folder counts as empty, as for git.
            (_, PathKind::Nothing) => Ok(Vec::new()),
            (_, PathKind::File { .. } | PathKind::Other) => Err(refused("list", path, "it is not a folder")),
            (whole, PathKind::Folder) => {
                let mut names = self.machine.names(&self.http, &whole).map_err(Self::failed("list", path))?;
                names.sort();
                Ok(names)
            }
        }
    }

    fn new_connection(&self) -> Result<Box<dyn Sandbox>, SandboxError> {
        self.over(self.root.clone())
    }

    fn with_root(&self, root: &Path) -> Result<Box<dyn Sandbox>, SandboxError> {
        let text = root.to_str().filter(|_| root.is_absolute());
        let text = text.ok_or_else(|| refused("open", root, "it isn't an absolute path"))?;
        let asked = format!("cd {} 2>/dev/null && pwd -P", script::quoted(text));
        let shell = self.machine.shell(&self.http, &asked, &mut never_stop)?;
        if shell.code != 0 {
            return Err(refused("open", root, "it is not a folder"));
        }
        self.over(PathBuf::from(shell.out.trim_end_matches('\n')))
    }
}

impl<M: Machine> CloudSandbox<M> {
    fn over(&self, root: PathBuf) -> Result<Box<dyn Sandbox>, SandboxError> {
        let http = self.http.another()?;
        Ok(Box::new(Self { machine: Arc::clone(&self.machine), http, root, orphan_after: self.orphan_after }))
    }
}

impl<M: Machine> ManagedSandbox for CloudSandbox<M> {
    fn id(&self) -> &str {
        self.machine.id()
    }

    fn start(&self) -> Result<(), SandboxError> {
        Ok(self.machine.start(&self.http)?)
    }

    fn stop(&self) -> Result<(), SandboxError> {
        Ok(self.machine.stop(&self.http)?)
    }

    fn destroy(&self) -> Result<(), SandboxError> {
        Ok(self.machine.destroy(&self.http)?)
    }

    fn preview(&self, port: u16) -> Result<Preview, SandboxError> {
        let preview = self.machine.preview(&self.http, port)?;
        Ok(preview::checked(&self.http, self.machine.server(), preview)?)
    }

    fn keep_alive(&self) -> Result<(), SandboxError> {
        Ok(self.machine.keep_alive(&self.http)?)
    }

    fn make_dir(&self, path: &Path) -> Result<(), SandboxError> {
        match self.stat("make", path)? {
            (_, PathKind::Folder) => Ok(()),
            (whole, PathKind::Nothing) => {
                self.machine.make_dir(&self.http, &whole).map_err(Self::failed("make", path))
            }
            _ => Err(refused("make", path, "there is a file")),
        }
    }

    fn exists(&self, path: &Path) -> Result<bool, SandboxError> {
        Ok(!matches!(self.stat("look at", path)?.1, PathKind::Nothing))
    }

    fn set_mode(&self, path: &Path, mode: u32) -> Result<(), SandboxError> {
        let (whole, found) = self.stat("set the mode of", path)?;
        if matches!(found, PathKind::Nothing) {
            return Err(refused("set the mode of", path, "no such file"));
        }
        self.machine
            .set_mode(&self.http, &whole, mode & 0o7777)
            .map_err(Self::failed("set the mode of", path))
    }
}
