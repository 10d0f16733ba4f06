//! Ends what a command started, whatever session or process group it hides in.
//!
//! Engines can't end a command in a container, let alone its children. Every process inherits its command's mark, so
//! a small script finds them in `/proc`. One that has cleared its environment is found by its parents; if those are
//! gone as well, it ends as soon as no other command runs.

use super::{HELPER, KEEPER, MARK, Shell};
use ralph_loop_domain::ports::SandboxError;

/// `$1` is the signal, `$2` the mark or `all`, `$3` `orphans` to end unmarked orphans as well.
///
/// It starts only a handful of processes itself, however many there are, and scans twice before it concludes that
/// nothing is left: a process may have been forked between two scans.
const SCRIPT: &str = r#"sig=$1 mark=$2 orphans=$3 killed=' ' count=0 round=0 clear=0
own() { # $1 a process: k says mine, other or orphan
  q=$1
  while :; do
    eval "k=\${kind_$q:-gone} up=\${up_$q:-0}"
    case $k in
      mine|other) return ;;
      none) if [ "$up" = 1 ]; then k=orphan; return; elif [ "$up" = 0 ]; then k=other; return; fi; q=$up ;;
      *) k=orphan; return ;;
    esac
  done
}
mark_all() { # $1 the kind of every process whose environment holds one of the other words
  kind=$1; shift
  for f in $(grep -l -s -z -F "$@" /proc/[0-9]*/environ 2>/dev/null); do
    f=${f#/proc/}; eval "kind_${f%/environ}=$kind"
  done
}
while :; do
  all=
  for d in /proc/[0-9]*; do
    stat=
    { while IFS= read -r line || [ -n "$line" ]; do stat="$stat $line"; done < "$d/stat"; } 2>/dev/null
    set -- ${stat##*) }
    case ${1:-X} in Z|X) continue ;; esac
    case ${2:-x} in *[!0-9]*) continue ;; esac
    eval "kind_${d#/proc/}=none up_${d#/proc/}=$2"
    all="$all ${d#/proc/}"
  done
  if [ "$mark" = all ]; then mark_all mine -e RALPH_EXEC=
  else mark_all other -e RALPH_EXEC=; mark_all mine -e "RALPH_EXEC=$mark"; fi
  mark_all other -e 'RALPH_EXEC=helper;' -e 'RALPH_EXEC=keeper;'
  left=0
  for p in $all; do
    [ "$p" = 1 ] || [ "$p" = $$ ] && continue
    own "$p"
    [ "$k" = mine ] || { [ "$k" = orphan ] && [ "$orphans" = orphans ]; } || continue
    left=$((left+1))
    kill -"$sig" "$p" 2>/dev/null
    case $killed in *" $p "*) ;; *) killed="$killed$p "; count=$((count+1)) ;; esac
  done
  [ "$sig" = KILL ] || break
  round=$((round+1))
  if [ "$left" = 0 ]; then clear=$((clear+1)); [ "$clear" -ge 2 ] && break; else clear=0; fi
  [ "$round" -lt 80 ] || { echo "$left processes do not end" >&2; exit 1; }
  [ "$round" -gt 4 ] && sleep 0.1
  for p in $all; do unset "kind_$p" "up_$p"; done
done
echo "$count""#;

#[derive(Debug, Clone, Copy)]
pub(crate) enum ProcessScope<'a> {
    /// Those of the command with this mark; `alone` if no other command runs, so that orphans must be its.
    Command { mark: &'a str, alone: bool },
    /// Those of every command, of any of our processes.
    #[cfg(feature = "docker")]
    All,
}

/// Sends SIGTERM without waiting.
#[cfg(feature = "docker")]
pub(crate) fn terminate(shell: &dyn Shell, whose: ProcessScope<'_>) -> Result<(), SandboxError> {
    signal(shell, "TERM", whose).map(drop)
}

/// Ends them and waits until they are gone; returns their number.
pub(crate) fn kill(shell: &dyn Shell, whose: ProcessScope<'_>) -> Result<u32, SandboxError> {
    signal(shell, "KILL", whose)
}

fn signal(shell: &dyn Shell, signal: &str, whose: ProcessScope<'_>) -> Result<u32, SandboxError> {
    debug_assert!(SCRIPT.contains(MARK) && SCRIPT.contains(HELPER) && SCRIPT.contains(KEEPER));
    let (mark, orphans) = match whose {
        ProcessScope::Command { mark, alone } => (mark, if alone { "orphans" } else { "" }),
        #[cfg(feature = "docker")]
        ProcessScope::All => ("all", "orphans"),
    };
    let answer = shell.script(SCRIPT, &[signal, mark, orphans], b"")?;
    let text = String::from_utf8_lossy(&answer.stdout);
    match (answer.code, text.trim().parse()) {
        (0, Ok(count)) => Ok(count),
        _ => Err(SandboxError::Broken(format!(
            "what a command left could not be ended: {}",
            answer.complaint()
        ))),
    }
}
