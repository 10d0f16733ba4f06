//! Handles the folder on the other side with small scripts, which need only `sh`, `find` and `tar`.

use super::tar;
use ralph_loop_domain::ports::{
    ExecEnd, ExecRequest, ExecSink, Sandbox, SandboxError, Stdin, StopCause, Stream,
};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::ControlFlow;
use std::time::Duration;

const LIMIT: Duration = Duration::from_secs(600);
const ANSWER_MAX: usize = 192 * 1024 * 1024;

/// Kind, size, times or digest, mode and path of every file and link. If `find` can't print times (busybox), every
/// file's digest is taken.
const LIST: &str = r#"command -v find >/dev/null && command -v tar >/dev/null || exit 97
for p; do shift; set -- "$@" -o -path "./$p"; done
if find . -maxdepth 0 -printf '' >/dev/null 2>&1; then
  find . \( -name .git -o -path ./.ralph/runs "$@" \) -prune -o \( -type f -o -type l \) -printf '%y %s %T@ %C@ %m %P\0'
else
  find . \( -name .git -o -path ./.ralph/runs "$@" \) -prune -o \( -type f -o -type l \) -exec sh -c 'for f; do
    if [ -L "$f" ]; then printf "l 0 %s 0 777 %s\0" "$(readlink "$f" | md5sum | cut -c1-32)" "${f#./}"
    else printf "f %s %s 0 %s %s\0" "$(wc -c <"$f")" "$(md5sum <"$f" | cut -c1-32)" "$(stat -c %a "$f")" "${f#./}"; fi
  done' sh {} +
fi
exit 0"#;

const REMOVE: &str = r#"xargs -0 rm -rf --"#;

const UNPACK: &str = r#"tar -xf - 2>&1 >/dev/null"#;

const PACK: &str = r#"if tar --version 2>/dev/null | grep -q GNU; then tar --null -T - --hard-dereference -cf - 2>/dev/null
else tr '\0' '\n' | tar -T - -cf - 2>/dev/null; fi; exit 0"#;

/// A repo with one commit in the sandbox, so that `git status` and `git diff` show an agent its changes.
const OWN_REPO: &str = r#"command -v git >/dev/null || exit 0
[ -d .git ] && exit 0
export GIT_AUTHOR_NAME=Ralph GIT_AUTHOR_EMAIL=ralph@localhost GIT_COMMITTER_NAME=Ralph GIT_COMMITTER_EMAIL=ralph@localhost
git init -q . && echo .ralph/ >>.git/info/exclude && git add -A && git commit -q --no-verify --allow-empty -m 'where the run began'"#;

/// The user's git identity, unless one is set.
const IDENTITY: &str = r#"command -v git >/dev/null || exit 0
mkdir -p "$HOME"
git config --global user.name >/dev/null 2>&1 || git config --global user.name "$1"
git config --global user.email >/dev/null 2>&1 || git config --global user.email "$2"
exit 0"#;

/// Ends commands of a dead process: they work in this folder and have another mark than this script.
const SWEEP: &str = r#"own=$RALPH_EXEC; here=$(pwd -P)
for d in /proc/[0-9]*; do
  c=$(readlink "$d/cwd" 2>/dev/null) || continue
  case "$c/" in "$here"/*) ;; *) continue ;; esac
  m=$(tr '\0' '\n' <"$d/environ" 2>/dev/null | grep '^RALPH_EXEC=') || continue
  [ "$m" = "RALPH_EXEC=$own" ] || kill -9 "${d#/proc/}" 2>/dev/null
done; exit 0"#;

/// Logins go into the home of the user of commands, readable only for that user.
const LOG_IN: &str = r#"umask 077; mkdir -p "$HOME" && cd "$HOME" && tar -xf -"#;
/// Takes the logins out, possibly renewed, and removes them.
const LOG_OUT: &str = r#"cd "$HOME" || exit 0; tar -cf - "$@" 2>/dev/null; rm -f -- "$@"; exit 0"#;

struct ScriptOutput {
    code: Option<i32>,
    out: Vec<u8>,
    err: Vec<u8>,
}

fn ask(
    sandbox: &dyn Sandbox,
    script: &str,
    args: &[&str],
    stdin: Vec<u8>,
) -> Result<ScriptOutput, SandboxError> {
    let mut argv = ["sh", "-c", script, "sh"].map(String::from).to_vec();
    argv.extend(args.iter().map(|arg| (*arg).to_owned()));
    let mut request = ExecRequest::new(argv);
    request.timeout = Some(LIMIT);
    if !stdin.is_empty() {
        request.stdin = Stdin::Bytes(stdin);
    }
    let mut kept = KeptOutput::default();
    let outcome = sandbox.exec(&request, &mut kept)?;
    match outcome.end {
        _ if kept.full => Err(SandboxError::Broken("the sandbox answers with more than 192 MiB".to_owned())),
        ExecEnd::Exited(code) => Ok(ScriptOutput { code: Some(code), out: kept.out, err: kept.err }),
        ExecEnd::GuardLost => Err(SandboxError::Broken("the sandbox went away".to_owned())),
        end => Err(SandboxError::Broken(format!("a script inside ended with {end:?}"))),
    }
}

/// The files inside, each with a fingerprint; nothing below the folders `pruned`.
pub(super) fn list(
    sandbox: &dyn Sandbox,
    pruned: &BTreeSet<String>,
) -> Result<BTreeMap<String, String>, SandboxError> {
    let pruned: Vec<&str> = pruned.iter().map(String::as_str).collect();
    let answer = ask(sandbox, LIST, &pruned, Vec::new())?;
    match answer.code {
        Some(0) => {}
        Some(97) => {
            return Err(SandboxError::Broken(
                "the sandbox has no `find` or no `tar`, which copying the workspace needs; choose an image with both"
                    .to_owned(),
            ));
        }
        _ => {
            return Err(SandboxError::Broken(format!(
                "the workspace inside cannot be listed: {}",
                complaint(&answer)
            )));
        }
    }
    let rows = answer.out.split(|byte| *byte == 0).filter_map(|row| std::str::from_utf8(row).ok());
    let mut found = BTreeMap::new();
    for row in rows.filter(|row| !row.is_empty()) {
        if let Some((at, _)) = row.match_indices(' ').nth(4) {
            found.insert(row[at + 1..].to_owned(), row[..at].to_owned());
        }
        if found.len() > super::host::FILES_MAX {
            return Err(SandboxError::Broken(format!(
                "the workspace inside holds more than {} files that git does not ignore",
                super::host::FILES_MAX
            )));
        }
    }
    Ok(found)
}

/// The size from a row of the list.
pub(super) fn size(stamp: &str) -> u64 {
    stamp.split(' ').nth(1).and_then(|size| size.parse().ok()).unwrap_or(0)
}

pub(super) fn remove(sandbox: &dyn Sandbox, paths: &[String]) -> Result<(), SandboxError> {
    if paths.is_empty() {
        return Ok(());
    }
    done(&ask(sandbox, REMOVE, &[], names(paths))?, "files inside cannot be removed")
}

pub(super) fn unpack(sandbox: &dyn Sandbox, archive: Vec<u8>) -> Result<(), SandboxError> {
    done(&ask(sandbox, UNPACK, &[], archive)?, "files cannot be written inside")
}

/// Packs files and links; leaves out what has disappeared.
pub(super) fn pack(sandbox: &dyn Sandbox, paths: &[String]) -> Result<Vec<tar::Member>, SandboxError> {
    let answer = ask(sandbox, PACK, &[], names(paths))?;
    tar::read(&answer.out)
        .map_err(|why| SandboxError::Broken(format!("files of the sandbox cannot be read: {why}")))
}

/// Creates a repo in the sandbox if it has git. Optional.
pub(super) fn own_repo(sandbox: &dyn Sandbox) -> Result<(), SandboxError> {
    ask(sandbox, OWN_REPO, &[], Vec::new()).map(drop)
}

pub(super) fn set_identity(sandbox: &dyn Sandbox, identity: &crate::GitIdentity) -> Result<(), SandboxError> {
    ask(sandbox, IDENTITY, &[&identity.name, &identity.email], Vec::new()).map(drop)
}

pub(super) fn log_in(sandbox: &dyn Sandbox, archive: Vec<u8>) -> Result<(), SandboxError> {
    done(&ask(sandbox, LOG_IN, &[], archive)?, "a login cannot be put into the sandbox")
}

pub(super) fn log_out(sandbox: &dyn Sandbox, paths: &[&str]) -> Result<Vec<tar::Member>, SandboxError> {
    let answer = ask(sandbox, LOG_OUT, paths, Vec::new())?;
    Ok(tar::read(&answer.out).unwrap_or_default())
}

/// Ends what a dead process left running in the workspace.
pub(super) fn sweep(sandbox: &dyn Sandbox) -> Result<(), SandboxError> {
    ask(sandbox, SWEEP, &[], Vec::new()).map(drop)
}

/// Every name starts with `./`, so that none is an option.
fn names(paths: &[String]) -> Vec<u8> {
    paths.iter().flat_map(|path| format!("./{path}\0").into_bytes()).collect()
}

fn done(answer: &ScriptOutput, what: &str) -> Result<(), SandboxError> {
    if answer.code == Some(0) {
        return Ok(());
    }
    Err(SandboxError::Broken(format!("{what}: {}", complaint(answer))))
}

fn complaint(answer: &ScriptOutput) -> String {
    let text =
        String::from_utf8_lossy(if answer.err.is_empty() { &answer.out } else { &answer.err }).into_owned();
    text.lines().next().unwrap_or("no reason given").chars().take(300).collect()
}

#[derive(Default)]
struct KeptOutput {
    out: Vec<u8>,
    err: Vec<u8>,
    full: bool,
}

impl ExecSink for KeptOutput {
    fn output(&mut self, stream: Stream, bytes: &[u8]) {
        let place = if stream == Stream::Stdout { &mut self.out } else { &mut self.err };
        if place.len() + bytes.len() > ANSWER_MAX {
            self.full = true;
        } else {
            place.extend_from_slice(bytes);
        }
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        if self.full { ControlFlow::Break(StopCause::Hopeless) } else { ControlFlow::Continue(()) }
    }
}
