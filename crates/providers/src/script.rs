//! The small shell scripts that run commands inside. They need `sh`, `setsid`, coreutils or busybox, and `/proc`.

use std::fmt::Write as _;
use std::time::Duration;

/// How long one wait for output lasts, in tenths of a second.
const HOLD_TICKS: u32 = 50;
/// Most bytes of each stream per wait.
pub(crate) const CHUNK: u64 = 512 * 1024;

pub(crate) fn quoted(text: &str) -> String {
    format!("'{}'", text.replace('\'', r"'\''"))
}

/// The folder of one command, outside the workspace.
pub(crate) fn folder(token: &str) -> String {
    format!("/tmp/.ralph-{token}")
}

pub(crate) struct Command<'a> {
    pub token: &'a str,
    pub argv: &'a [String],
    pub cwd: &'a str,
    pub env: &'a [(String, String)],
    /// Whether the command's folder has `stdin`.
    pub stdin: bool,
}

/// A script that sends the signal `$1` to every process of a command and prints their number. It finds them by their
/// mark in the environment and by their session; it must run in another session.
fn hunt(token: &str) -> String {
    // Spares the runner, which must record how the command ended.
    format!(
        r#"s=$(cat {folder}/sid 2>/dev/null)
of() {{
  for f in $(grep -ls RALPH_EXEC={token} /proc/[0-9]*/environ 2>/dev/null); do p=${{f#/proc/}}; p=${{p%/environ}}; [ "$p" = "$s" ] || echo "$p"; done
  [ -n "$s" ] && for f in /proc/[0-9]*/stat; do
    read -r l <"$f" || continue
    p=${{l%% *}}; l=${{l##*) }}; set -- $l
    [ "$1" != Z ] && [ "$4" = "$s" ] && [ "$p" != "$s" ] && echo "$p"
  done 2>/dev/null
}}
n=0; for p in $(of | sort -u); do kill -"$1" "$p" 2>/dev/null && n=$((n+1)); done; echo "$n""#,
        folder = folder(token)
    )
}

/// The script that runs a command and records its end. It is written to the command's folder as a file, because
/// command lines are visible inside and the variables may be secrets; it removes itself first.
pub(crate) fn runner(command: &Command<'_>) -> String {
    let mut inner = format!("cd {} || exit 126; export RALPH_EXEC={}", quoted(command.cwd), command.token);
    for (name, value) in command.env {
        let _ = write!(inner, "; export {name}={}", quoted(value));
    }
    inner.push_str("; exec");
    for word in command.argv {
        inner.push(' ');
        inner.push_str(&quoted(word));
    }
    let stdin = if command.stdin { r#""$d/stdin""# } else { "/dev/null" };
    format!(
        r#"{{ d={folder}; h={hunt}
rm -f "$d/run"; echo $$ >"$d/sid.new"; mv "$d/sid.new" "$d/sid"
( {inner} ) <{stdin} >"$d/out" 2>"$d/err" &
wait $!; c=$?
left=$(setsid sh -c "$h" h KILL); i=0
while [ "$(setsid sh -c "$h" h KILL)" != 0 ] && [ $i -lt 100 ]; do i=$((i+1)); sleep 0.05; done
echo "$c $left" >"$d/code.new"; mv "$d/code.new" "$d/code"; exit 0; }}
"#,
        folder = folder(command.token),
        hunt = quoted(&hunt(command.token))
    )
}

/// Starts the runner in the folder, and a watch that ends a command whose client is gone. Idempotent.
pub(crate) fn launch(token: &str, orphan_after: Duration) -> String {
    let watch = format!(
        r#"d={folder}; h={hunt}
while sleep 1; do
  b=$(stat -c %Y "$d/beat" 2>/dev/null) || exit 0
  if [ $(($(date +%s) - b)) -gt {orphan} ]; then
    sh -c "$h" h KILL; sleep 0.2; sh -c "$h" h KILL
    kill -9 "$(cat "$d/sid")" 2>/dev/null; rm -rf "$d"; exit 0
  fi
done"#,
        folder = folder(token),
        hunt = quoted(&hunt(token)),
        orphan = orphan_after.as_secs().max(1)
    );
    format!(
        r#"d={folder}; chmod 700 "$d"
if mkdir "$d/started" 2>/dev/null; then
  : >"$d/out"; : >"$d/err"; : >"$d/beat"
  setsid sh "$d/run" >/dev/null 2>&1 </dev/null &
  setsid sh -c {watch} >/dev/null 2>&1 </dev/null &
fi
"#,
        folder = folder(token),
        watch = quoted(&watch)
    )
}

/// Waits for output beyond these positions, or for the end. After a little output it waits a bit longer, so that a
/// chatty command doesn't cause many calls. Answers `c CODE LEFT` (`c -` while it runs, `c lost` if the runner is
/// gone), `o BASE64`, `e BASE64`.
pub(crate) fn wait(token: &str, out: u64, err: u64) -> String {
    format!(
        r#"d={folder}; o={out}; e={err}; i=0
[ -d "$d/started" ] || {{ echo "c gone"; exit 0; }}
while :; do
  : >"$d/beat"
  if [ -f "$d/code" ]; then c=$(cat "$d/code"); break; fi
  a=$(wc -c <"$d/out"); b=$(wc -c <"$d/err")
  if [ $a -gt $o ] || [ $b -gt $e ]; then
    c=-
    if [ $((a-o)) -lt {CHUNK} ] && [ $((b-e)) -lt {CHUNK} ]; then
      j=0; while [ $j -lt 3 ] && [ ! -f "$d/code" ]; do j=$((j+1)); sleep 0.1; done
      [ -f "$d/code" ] && c=$(cat "$d/code")
    fi
    break
  fi
  i=$((i+1))
  if [ $i -ge {HOLD_TICKS} ]; then
    s=$(cat "$d/sid" 2>/dev/null); c=-
    [ -n "$s" ] && ! kill -0 "$s" 2>/dev/null && [ ! -f "$d/code" ] && c=lost
    break
  fi
  if [ $i -lt 5 ]; then sleep 0.03; else sleep 0.1; fi
done
echo "c $c"
printf 'o '; tail -c +$((o+1)) "$d/out" | head -c {CHUNK} | base64 | tr -d '\n'; echo
printf 'e '; tail -c +$((e+1)) "$d/err" | head -c {CHUNK} | base64 | tr -d '\n'; echo
exit 0"#,
        folder = folder(token)
    )
}

pub(crate) fn signal(token: &str, name: &str) -> String {
    format!(
        r#"d={folder}; i=0; while [ ! -s "$d/sid" ] && [ -d "$d" ] && [ $i -lt 50 ]; do i=$((i+1)); sleep 0.1; done
sh -c {hunt} h {name}"#,
        folder = folder(token),
        hunt = quoted(&hunt(token))
    )
}

/// Ends every process of a command and removes its folder.
pub(crate) fn clear(token: &str) -> String {
    format!(
        r#"d={folder}; [ -d "$d" ] || exit 0
[ -f "$d/code" ] || sh -c {hunt} h KILL >/dev/null; rm -rf "$d"; exit 0"#,
        folder = folder(token),
        hunt = quoted(&hunt(token))
    )
}

/// Reports what is at a path: `outside`, `none`, `dir`, `other`, `file SIZE MODE`.
pub(crate) fn stat(root: &str, path: &str) -> String {
    format!(
        r#"r=$(readlink -f {root}) || {{ echo none; exit 0; }}
p={path}; q=$p
while [ ! -e "$q" ] && [ ! -L "$q" ]; do q=$(dirname "$q"); done
a=$(readlink -f "$q") || {{ echo outside; exit 0; }}
case "$a/" in "$r"/*) ;; *) echo outside; exit 0;; esac
case "${{a#"$r"}}/" in */.[gG][iI][tT]/*) echo outside; exit 0;; esac
if [ -d "$p" ]; then echo dir
elif [ -f "$p" ]; then stat -L -c 'file %s %a' "$p"
elif [ -e "$p" ] || [ -L "$p" ]; then echo other
else echo none; fi"#,
        root = quoted(root),
        path = quoted(path)
    )
}

/// Appends a separate part to a file. Idempotent.
pub(crate) fn append(part: &str, path: &str) -> String {
    let (part, path) = (quoted(part), quoted(path));
    format!(
        r#"p={part}; f={path}; mv "$p" "$p.now" 2>/dev/null || exit 0
mkdir -p "$(dirname "$f")" && cat "$p.now" >>"$f"; c=$?; rm -f "$p.now"; exit $c"#
    )
}
