//! Turns a command into a sandboxed command.

use super::runtime::{Kind, Runtime};
use super::{detect, env};
use crate::local::egress::INSIDE_PORT;
use crate::local::isolation::kernel::bwrap;
use crate::local::isolation::logins::covers;
use crate::local::isolation::logins::covers::CoverMounts;
use crate::local::isolation::view::git;
use crate::local::isolation::view::same_path;
use crate::local::isolation::view::same_path::Workspace;
use crate::local::watch::WATCHED;
use crate::wire::VARIABLES_FD;
use ralph_loop_domain::ports::{Credentials, ExecRequest, SandboxError};
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

/// An empty file in the sandbox's folder, to mount over files that must be empty.
pub(super) const NOTHING: &str = "nothing";
/// An empty folder for the same.
pub(super) const EMPTY: &str = "empty";
/// The file that tells git where borrowed objects are in the sandbox.
pub(super) const ALTERNATES: &str = "alternates";

pub(crate) struct Wrapped {
    pub(crate) argv: Vec<String>,
    /// The launchers' environment, up to the first process in the sandbox: only the engine's. Nothing from a repo, a
    /// fetched state or a model is in it.
    pub(crate) launchers: Vec<(OsString, OsString)>,
    /// The command's environment, before the request's variables.
    pub(crate) env: Vec<(OsString, OsString)>,
    pub(crate) left: LeftBehind,
}

/// What to clean up after a sandboxed command.
#[derive(Debug, Clone, Default)]
pub(crate) struct LeftBehind {
    /// Files that git's folder must not hold.
    pub(super) unwanted: Vec<PathBuf>,
    /// Folders of the workspace that were created as mount points.
    pub(super) made: Vec<PathBuf>,
}

impl Runtime {
    /// Sandboxes `request`, to be run in the folder `cwd` of the workspace (a local path). If it is watched, its
    /// activity goes into `seen`.
    pub(crate) fn wrap(
        &self,
        (workspace, cwd): (&Workspace, &Path),
        request: &ExecRequest,
        inherited: &[(OsString, OsString)],
        seen: Option<&Path>,
    ) -> Result<Wrapped, SandboxError> {
        let root = &workspace.host;
        if self.home.starts_with(root) {
            return Err(SandboxError::Broken(format!(
                "`{}` contains your home, which a sandbox must hide; work in a separate folder",
                root.display()
            )));
        }
        let program = request.argv.first().map_or("", String::as_str);
        self.find_program(program, workspace, request, inherited)?;
        let programs = same_path::covered_programs(workspace, &self.spec.programs);
        let placed = [programs.as_slice(), &self.placed].concat();
        let mut command = self.launcher();
        if let Some(seen) = seen {
            let watcher: [OsString; 5] = [
                self.program.clone().into(),
                "__watch".into(),
                seen.into(),
                (&workspace.inside).into(),
                "--".into(),
            ];
            command.splice(..0, watcher);
        }
        let (mut isolation, left) = match &self.kind {
            Kind::Bwrap(bwrap) => {
                self.make_mount_points(workspace)?;
                let covers = self.covers(workspace, cwd, request)?;
                let (args, git) = bwrap::command(&bwrap::View {
                    bwrap,
                    spec: &self.spec,
                    system: &self.system,
                    home: &self.home,
                    run_home: &self.run_home,
                    program: &self.program,
                    socket: self.egress.as_ref().map(|egress| egress.socket()),
                    shown: &self.shown,
                    caches: &self.caches,
                    hidden: &self.hidden,
                    workspace,
                    nothing: &self.spec.folder.join(NOTHING),
                    alternates: &self.spec.folder.join(ALTERNATES),
                    empty: &self.spec.folder.join(EMPTY),
                    covers: &covers,
                    placed: &placed,
                    cwd: &workspace.to_inside(cwd),
                });
                (args, LeftBehind { unwanted: git.unwanted, made: covers.made })
            }
            Kind::Landlock => self.landlocked(root),
        };
        command.append(&mut isolation);
        if seen.is_some() {
            command.push(WATCHED.into());
        }
        self.inside_flags(&mut command);
        command.push("--".into());
        let placed = same_path::program_inside(&programs, program);
        command.push(placed.unwrap_or_else(|| program.to_owned()).into());
        command.extend(request.argv.iter().skip(1).map(OsString::from));
        let argv =
            command.into_iter().map(|word| word.into_string().map_err(not_text)).collect::<Result<_, _>>()?;
        let agent = (request.credentials == Credentials::Agent).then_some(program);
        let launchers = env::of_launchers(inherited, &[&self.home, &workspace.host, &workspace.inside]);
        Ok(Wrapped { argv, launchers, env: self.environment(agent, inherited), left })
    }

    /// What of the workspace this command finds empty: settings of the agent CLI whose session it is.
    fn covers(
        &self,
        workspace: &Workspace,
        cwd: &Path,
        request: &ExecRequest,
    ) -> Result<CoverMounts, SandboxError> {
        let program = request.argv.first().filter(|_| request.credentials == Credentials::Agent);
        match program.and_then(|program| self.spec.covers.get(program)) {
            Some(covers) => covers::mounts(workspace, cwd, covers),
            None => Ok(CoverMounts::default()),
        }
    }

    /// Creates the links of the run's home, and the mount points whose path commands could have replaced by links:
    /// those in the run's home, and those in the workspace.
    fn make_mount_points(&self, workspace: &Workspace) -> Result<(), SandboxError> {
        let spec = &self.spec;
        for (at, target) in &self.shown.links {
            if let Ok(below) = at.strip_prefix(&self.home) {
                same_path::make_link(&self.run_home, below, target)?;
            }
        }
        let shown = self.shown.mounts.iter().chain(&spec.lent).chain(&spec.writable);
        let objects = spec.objects.iter().filter(|_| !workspace.is_moved());
        for place in shown.chain(objects).filter(|place| !workspace.covers(place)) {
            same_path::make_place_of(&self.run_home, &self.home, place)?;
        }
        for below in self.caches.iter().filter_map(|cache| cache.place.strip_prefix(&self.home).ok()) {
            same_path::make_below(&self.run_home, below, ralph_loop_safe_fs::Kind::Folder)?;
        }
        for below in self.placed.iter().filter_map(|(_, place)| place.strip_prefix(&self.home).ok()) {
            same_path::make_below(&self.run_home, below, ralph_loop_safe_fs::Kind::File)?;
        }
        if let Ok(below) = workspace.inside.strip_prefix(&self.home) {
            same_path::make_below(&self.run_home, below, ralph_loop_safe_fs::Kind::Folder)?;
        }
        for place in spec.read_only.iter().chain(&spec.lent).filter(|place| workspace.covers(place)) {
            same_path::make_place_of(&workspace.host, &workspace.inside, place)?;
        }
        Ok(())
    }

    /// `__fence`, the control groups to join, and the layers.
    fn launcher(&self) -> Vec<OsString> {
        let mut command: Vec<OsString> = vec![self.program.clone().into(), "__fence".into()];
        command.extend(self.groups.doors().map(OsString::from));
        command.extend(detect::layer_words(&self.caches));
        command.push("--".into());
        command
    }

    fn inside_flags(&self, command: &mut Vec<OsString>) {
        let mut flag = |name: &str, value: String| command.extend([name.into(), value.into()]);
        flag("--variables", VARIABLES_FD.to_string());
        flag("--processes", self.spec.limits.processes.to_string());
        flag("--file-size", self.spec.limits.file_size.to_string());
        let Some(egress) = self.egress.as_ref().filter(|_| self.kind != Kind::Landlock) else { return };
        flag("--bridge", bwrap::SOCKET.to_owned());
        flag("--port", INSIDE_PORT.to_string());
        for port in egress.local_ports() {
            flag("--local", port.to_string());
        }
    }

    fn environment(
        &self,
        agent: Option<&str>,
        inherited: &[(OsString, OsString)],
    ) -> Vec<(OsString, OsString)> {
        let landlock = self.kind == Kind::Landlock;
        let port = self.egress.as_ref().map(|egress| match egress.tcp_port() {
            Some(port) if landlock => port,
            _ => INSIDE_PORT,
        });
        let mut told = env::environment_variables(port);
        told.push(("HOME".into(), self.home.to_string_lossy().into_owned()));
        if landlock {
            told.retain(|(name, _)| name != "TMPDIR" && name != "HOME");
            told.push(("TMPDIR".into(), self.spec.folder.join("tmp").to_string_lossy().into_owned()));
            told.push(("HOME".into(), self.run_home.to_string_lossy().into_owned()));
        }
        if let Some(instead) = agent.and_then(|program| self.spec.instead.get(program)).filter(|_| !landlock)
        {
            told.extend(instead.iter().cloned());
        }
        // The system's Ruby would install gems next to its own, where commands can't write.
        if !self.spec.pass_env.iter().any(|name| name == "GEM_HOME") {
            let home = if landlock { &self.run_home } else { &self.home };
            told.push(("GEM_HOME".into(), home.join(".local/share/gem/ruby").to_string_lossy().into_owned()));
        }
        let given = |name: &OsStr| told.iter().any(|(other, _)| name == other.as_str());
        let mut env: Vec<(OsString, OsString)> = env::passed(&self.spec, inherited, agent)
            .into_iter()
            .filter(|(name, _)| !given(name))
            .map(|(name, value)| (name.to_owned(), value.to_owned()))
            .collect();
        env.extend(told.into_iter().map(|(name, value)| (name.into(), value.into())));
        env
    }

    /// Reports a missing program as without a sandbox, before anything is built.
    fn find_program(
        &self,
        program: &str,
        workspace: &Workspace,
        request: &ExecRequest,
        inherited: &[(OsString, OsString)],
    ) -> Result<(), SandboxError> {
        if program.contains('/') {
            return Ok(());
        }
        let asked = request.env.iter().rev().find(|(name, _)| name == "PATH").map(|(_, path)| path.into());
        let path: Option<OsString> =
            asked.or_else(|| inherited.iter().find(|(name, _)| name == "PATH").map(|(_, path)| path.clone()));
        let Some(path) = path else { return Ok(()) };
        let has = |folder: &Path| workspace.to_host(folder).join(program).is_file();
        if std::env::split_paths(&path).any(|folder| has(&folder) || folder.is_relative()) {
            return Ok(());
        }
        Err(super::super::request::cannot_start(program, "there is no such program on the PATH"))
    }

    fn landlocked(&self, root: &Path) -> (Vec<OsString>, LeftBehind) {
        let git = git::mounts(root, self.spec.git);
        let mut args: Vec<OsString> = vec![self.program.clone().into(), "__inside".into()];
        let mut flag = |name: &str, path: &Path| args.extend([name.into(), path.into()]);
        for path in &self.system.readable {
            flag("--read", path);
        }
        for path in ["/proc", "/dev", "/etc/passwd", "/etc/group"] {
            flag("--read", Path::new(path));
        }
        let spec = &self.spec;
        let shown =
            self.shown.mounts.iter().chain(&spec.programs).chain(&spec.read_only).chain(&spec.objects);
        for path in shown.chain(&spec.lent).chain([&self.program]) {
            flag("--read", path);
        }
        let temporary = self.spec.folder.join("tmp");
        for path in [&self.run_home, &temporary, &root.to_owned()].into_iter().chain(&self.spec.writable) {
            flag("--write", path);
        }
        for device in
            ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/shm"]
        {
            flag("--write", Path::new(device));
        }
        for (path, writable) in &git.mounts {
            flag(if *writable { "--write" } else { "--read" }, path);
        }
        let ports = self.egress.iter().flat_map(|e| e.tcp_port().into_iter().chain(e.local_ports()));
        for port in ports.collect::<Vec<_>>() {
            args.extend(["--connect".into(), port.to_string().into()]);
        }
        (args, LeftBehind { unwanted: git.unwanted, made: Vec::new() })
    }
}

fn not_text(word: OsString) -> SandboxError {
    SandboxError::Broken(format!("the path `{}` is not valid text, which a sandbox needs", word.display()))
}
