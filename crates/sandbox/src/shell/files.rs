//! The file methods, as small scripts inside.
//!
//! Paths are checked twice: as text here, and inside after following links. A command could change a link in between,
//! but then it reaches only what it can reach anyway: the sandbox is the boundary, not the workspace.

use super::{ScriptOutput, Shell};
use ralph_loop_domain::ports::{SandboxError, WriteMode};
use std::path::Path;

/// Resolves the path `$2` below the root `$1` to the real path `$t`; exits with 90 if it is outside or in git's
/// folder.
const FIND: &str = r#"r=$1 p=$2 e=$1${2:+/$2} rest=
while [ ! -e "$e" ] && [ ! -L "$e" ]; do
  [ "$e" = "$r" ] && { echo "the workspace $r doesn't exist" >&2; exit 95; }
  rest=/${e##*/}$rest; e=${e%/*}
done
real=$(readlink -f "$e"; echo x); real=${real%?x}
case "$real/" in "$r"/*) ;; *) exit 90 ;; esac
t=$real$rest
case "${t#"$r"}/" in */.[gG][iI][tT]/*) exit 90 ;; esac
"#;

const READ: &str = r#"[ -e "$t" ] || exit 91
[ -d "$t" ] && exit 92
[ -f "$t" ] || exit 93
exec cat "$t""#;

/// A new file next to the old one, then a rename: a reader sees the old or the new content. `$3` is the length,
/// because a connection may break; `$4` says whether to append.
const WRITE: &str = r#"[ -d "$t" ] && exit 92
[ ! -e "$t" ] || [ -f "$t" ] || exit 93
d=${t%/*}; mkdir -p "$d" || exit 1
tmp=$d/.ralph-$$.tmp; trap 'rm -f "$tmp"' EXIT
cat > "$tmp" || exit 1
[ "$(wc -c < "$tmp")" -eq "$3" ] || exit 94
if [ "$4" = append ] && [ -e "$t" ]; then
  if [ "$(stat -c %h "$t")" -gt 1 ]; then cat "$t" "$tmp" > "$tmp.2" && mv -f "$tmp.2" "$tmp" || exit 1
  else cat "$tmp" >> "$t"; exit; fi
fi
if [ -e "$t" ]; then chmod "$(stat -c %a "$t")" "$tmp" || exit 1; fi
mv -f "$tmp" "$t""#;

const REMOVE: &str = r#"[ -d "$t/$3" ] && [ ! -L "$t/$3" ] && exit 92
[ -d "$t" ] || exit 0
rm -f "$t/$3""#;

const LIST: &str = r#"[ -e "$t" ] || exit 0
[ -d "$t" ] || { echo 'it is not a folder' >&2; exit 1; }
cd "$t" || exit 1
for f in * .*; do
  case $f in .|..) continue ;; esac
  if [ -e "$f" ] || [ -L "$f" ]; then printf '%s\0' "$f"; fi
done"#;

/// The text of a path that may be used inside; refuses absolute paths, `..` and git's folder.
pub(crate) fn inside(path: &Path) -> Result<String, SandboxError> {
    let names = crate::paths::names(path)?;
    let outside = || SandboxError::OutsideWorkspace(path.to_owned());
    let texts: Option<Vec<&str>> = names.iter().map(|name| name.to_str()).collect();
    let text = texts.ok_or_else(outside)?.join("/");
    if text.contains('\0') { Err(outside()) } else { Ok(text) }
}

pub(crate) struct Files<'a> {
    pub(crate) shell: &'a dyn Shell,
    pub(crate) root: &'a Path,
}

impl Files<'_> {
    fn ask(
        &self,
        verb: &'static str,
        path: &Path,
        script: &str,
        args: &[&str],
        stdin: &[u8],
    ) -> Result<ScriptOutput, SandboxError> {
        let text = inside(path)?;
        self.ask_at(verb, path, &text, script, args, stdin)
    }

    fn ask_at(
        &self,
        verb: &'static str,
        path: &Path,
        text: &str,
        script: &str,
        args: &[&str],
        stdin: &[u8],
    ) -> Result<ScriptOutput, SandboxError> {
        let root = self.root.to_str().ok_or_else(|| SandboxError::OutsideWorkspace(self.root.to_owned()))?;
        let mut all = vec![root, text];
        all.extend(args);
        let answer = self.shell.script(&format!("{FIND}{script}"), &all, stdin)?;
        let failed =
            |reason: &str| SandboxError::File { verb, path: path.to_owned(), reason: reason.to_owned() };
        match answer.code {
            0 | 91 => Ok(answer),
            90 => Err(SandboxError::OutsideWorkspace(path.to_owned())),
            92 => Err(failed("it is a folder")),
            // A named pipe would block forever, a device may do anything.
            93 => Err(failed("it is not a plain file")),
            94 => Err(failed("it arrived incomplete")),
            _ => Err(failed(&answer.complaint())),
        }
    }

    pub(crate) fn read(&self, path: &Path) -> Result<Option<Vec<u8>>, SandboxError> {
        let answer = self.ask("read", path, READ, &[], b"")?;
        Ok((answer.code == 0).then_some(answer.stdout))
    }

    pub(crate) fn write(&self, path: &Path, bytes: &[u8], mode: WriteMode) -> Result<(), SandboxError> {
        let (verb, word) = match mode {
            WriteMode::Replace => ("write", "replace"),
            WriteMode::Append => ("append to", "append"),
        };
        self.ask(verb, path, WRITE, &[&bytes.len().to_string(), word], bytes).map(drop)
    }

    pub(crate) fn remove(&self, path: &Path) -> Result<(), SandboxError> {
        let text = inside(path)?;
        // The link itself is meant, so only its parent is resolved.
        let (folder, name) = text.rsplit_once('/').unwrap_or(("", &text));
        if name.is_empty() {
            let reason = "it is a folder".to_owned();
            return Err(SandboxError::File { verb: "remove", path: path.to_owned(), reason });
        }
        self.ask_at("remove", path, folder, REMOVE, &[name], b"").map(drop)
    }

    pub(crate) fn list(&self, path: &Path) -> Result<Vec<String>, SandboxError> {
        let answer = self.ask("list", path, LIST, &[], b"")?;
        let names = answer.stdout.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let mut names: Vec<String> = names.map(|name| String::from_utf8_lossy(name).into_owned()).collect();
        names.sort();
        Ok(names)
    }

    pub(crate) fn make_dir(&self, path: &Path) -> Result<(), SandboxError> {
        self.ask("make", path, "mkdir -p \"$t\"", &[], b"").map(drop)
    }

    pub(crate) fn exists(&self, path: &Path) -> Result<bool, SandboxError> {
        Ok(self.ask("look for", path, "[ -e \"$t\" ] || exit 91", &[], b"")?.code == 0)
    }

    pub(crate) fn set_mode(&self, path: &Path, mode: u32) -> Result<(), SandboxError> {
        // No special bits: a sandbox doesn't need them.
        let bits = format!("{:o}", mode & 0o777);
        self.ask("change the mode of", path, "chmod \"$3\" \"$t\"", &[&bits], b"").map(drop)
    }
}
