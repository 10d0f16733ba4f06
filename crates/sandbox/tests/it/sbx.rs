//! MicroVMs with a fake tool: it knows the same commands, checks its arguments, and runs commands locally.

use crate::common;
use ralph_loop_domain::ports::{Capabilities, ExecRequest, SandboxProvider, SandboxSpec, WriteMode};
use ralph_loop_protocol::id::RunId;
use ralph_loop_sandbox::sbx::{SbxOptions, SbxProvider, Tool};
use ralph_loop_testkit::conformance::{self, Subject};
use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};

/// The fake tool. A machine is a folder with its state; every call is logged. Unknown commands exit with 64.
const STAND_IN: &str = r#"#!/bin/sh
base=@BASE@ legacy=@LEGACY@
if [ "$legacy" = yes ]; then [ "$1" = sandbox ] || exit 64; shift; fi
{ printf '%s' "$1"; for a in "$@"; do [ "$a" = "$1" ] && continue; case $a in *'
'*) a=SCRIPT;; esac; printf ' [%s]' "$a"; done; echo; } >> "$base/log"
word=$1; shift
must() { [ -d "$base/vm/$1" ] || { echo "no such sandbox: $1" >&2; exit 1; }; }
case $word in
  policy)
    [ "$legacy" = no ] || exit 64
    case $1 in
      ls) [ -e "$base/policy" ] || { echo 'policy is not initialised' >&2; exit 1; }; echo '[]' ;;
      init) echo "$2" > "$base/policy" ;;
      allow) [ "$2 $3" = 'network --sandbox' ] || exit 64; must "$4"; echo "$5" > "$base/vm/$4/allowed" ;;
      *) exit 64 ;;
    esac ;;
  network) [ "$legacy $1" = 'yes proxy' ] || exit 64; must "$2"; echo "$*" > "$base/vm/$2/allowed" ;;
  create)
    [ "$legacy" = yes ] || [ -e "$base/policy" ] || { echo 'policy is not initialised' >&2; exit 1; }
    while [ "$1" != shell ]; do case $1 in
      --name) name=$2; shift 2 ;; -t|--cpus|-m) echo "$1 $2" >> "$base/wishes"; shift 2 ;; -q) shift ;; *) exit 64 ;;
    esac; done
    [ -d "$2" ] || exit 64
    shown() { for p in "$@"; do case $p in *:ro) [ -d "${p%:ro}" ] || exit 64 ;; *) exit 64 ;; esac; done; }
    (shift 2; shown "$@") || exit 64
    [ ! -d "$base/vm/$name" ] || { echo 'it exists' >&2; exit 1; }
    mkdir -p "$base/vm/$name"; echo "$2" > "$base/vm/$name/workspace"; echo running > "$base/vm/$name/status" ;;
  ls)
    [ "$1" = --json ] || exit 64
    echo 'the daemon starts'
    printf '{"sandboxes":['; comma=
    for d in "$base"/vm/*/; do [ -d "$d" ] || continue; n=${d%/}; n=${n##*/}
      ports=; [ ! -e "$d/port" ] || ports="{\"host_ip\":\"127.0.0.1\",\"host_port\":$(cat "$d/port"),\"sandbox_port\":$(cat "$d/port")}"
      printf '%s{"name":"%s","status":"%s","workspaces":["%s"],"created_at":"2026-11-01T10:00:00Z","ports":[%s]}' \
        "$comma" "$n" "$(cat "$d/status")" "$(cat "$d/workspace")" "$ports"; comma=,
    done; echo ']}' ;;
  stop) must "$1"; echo stopped > "$base/vm/$1/status" ;;
  rm) if [ "$legacy" = no ]; then [ "$1" = -f ] || exit 64; shift; fi; must "$1"; rm -rf "$base/vm/$1" ;;
  ports) must "$1"; [ "$2" = --publish ] || exit 64; echo "$3" > "$base/vm/$1/port" ;;
  exec)
    stdin=no
    set -- "$@" --END--
    args=
    env_words=
    while :; do case $1 in
      -i) stdin=yes; shift ;;
      -u) [ "$2" = root ] || exit 64; shift 2 ;;
      -e) case $2 in *=*) export "$2" ;; *) eval "[ \"\${$2+set}\" = set ]" || { echo "no value for $2" >&2; exit 65; } ;; esac; shift 2 ;;
      *) break ;;
    esac; done
    env >> "$base/env"
    name=$1; shift; must "$name"; echo running > "$base/vm/$name/status"
    n=$#; while [ $n -gt 1 ]; do a=$1; shift; set -- "$@" "$a"; n=$((n-1)); done; shift
    cd /
    if [ $stdin = yes ]; then exec "$@"; else exec "$@" < /dev/null; fi ;;
  *) exit 64 ;;
esac
"#;

struct Fixture {
    dir: tempfile::TempDir,
    tool: Tool,
}

fn fixture(legacy: bool) -> Fixture {
    let dir = tempfile::tempdir().unwrap();
    let base = dir.path().join("base");
    std::fs::create_dir_all(base.join("vm")).unwrap();
    std::fs::create_dir_all(dir.path().join("work")).unwrap();
    let path = dir.path().join(if legacy { "docker" } else { "sbx" });
    let text = STAND_IN
        .replace("@BASE@", base.to_str().unwrap())
        .replace("@LEGACY@", if legacy { "yes" } else { "no" });
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)).unwrap();
    let tool = if legacy { Tool::DockerSandbox(path) } else { Tool::Sbx(path) };
    Fixture { dir, tool }
}

impl Fixture {
    fn options(&self) -> SbxOptions {
        let mut options = SbxOptions::new(self.tool.clone(), &ralph_loop_testkit::vars());
        options.workspace = Some(self.dir.path().join("work"));
        options.guard = Some(PathBuf::from(common::PROBE));
        options
    }
    fn file(&self, name: &str) -> String {
        std::fs::read_to_string(self.dir.path().join("base").join(name)).unwrap_or_default()
    }
}

fn spec(word: &str) -> SandboxSpec {
    SandboxSpec::of_run(RunId::new(format!("sbx-{word}")))
}

#[test]
fn a_machine_passes_the_suite() {
    let b = fixture(false);
    let provider = SbxProvider::new(b.options());
    let spec = spec("suite");
    let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let subject = Subject::of_provider(&provider, &spec).unwrap().port(free);
    let report = conformance::run(&subject);
    report.assert_passed();
    assert_eq!(report.skipped(), ["exec: streams are separate"]);
}

#[test]
fn the_retired_tool_passes_too() {
    let b = fixture(true);
    let provider = SbxProvider::new(b.options());
    let mut spec = spec("legacy");
    spec.allowed_hosts = vec!["example.test".to_owned()];
    let subject = Subject::of_provider(&provider, &spec).unwrap();
    let allowed = b.file("vm/ralph-run-sbx-legacy/allowed");
    assert_eq!(allowed.trim(), "proxy ralph-run-sbx-legacy --policy deny --allow-host example.test");
    conformance::run(&subject).assert_passed();
}

#[test]
fn made_once_set_up_and_restarted_on_resume() {
    let b = fixture(false);
    let mut options = b.options();
    options.setup = vec!["echo set-up >> set-up-ran".to_owned()];
    options.setup[0] = format!("echo x >> {}", b.dir.path().join("set-up-ran").display());
    let provider = SbxProvider::new(options);
    let mut spec = spec("once");
    spec.image = Some("an/image:1".to_owned());
    spec.resources.vcpu = Some(1.5);
    spec.resources.memory_gib = Some(2.0);
    spec.allowed_hosts = vec!["example.test".to_owned(), "*.example.org".to_owned()];
    let first = provider.create(&spec).unwrap();
    assert_eq!(b.file("policy").trim(), "deny-all", "no policy was chosen before");
    assert_eq!(b.file("vm/ralph-run-sbx-once/allowed").trim(), "example.test,*.example.org");
    assert_eq!(b.file("wishes"), "-t an/image:1\n--cpus 2\n-m 2048m\n");
    drop(first);
    provider.create(&spec).unwrap();
    let log = b.file("log");
    assert_eq!(log.lines().filter(|line| line.starts_with("create")).count(), 1, "{log}");
    let stop = log.lines().position(|line| line == "stop [ralph-run-sbx-once]").unwrap();
    assert!(log.lines().skip(stop).any(|line| line.starts_with("exec")), "{log}");
    assert_eq!(std::fs::read_to_string(b.dir.path().join("set-up-ran")).unwrap(), "x\nx\n");
}

#[test]
fn a_secret_is_in_no_argument() {
    let b = fixture(false);
    let provider = SbxProvider::new(b.options());
    let mut spec = spec("secret");
    spec.env.insert("OF_THE_RUN".to_owned(), "hidden-one".to_owned());
    let made = provider.create(&spec).unwrap();
    let mut request: ExecRequest = common::sh("echo $OF_THE_RUN $OF_THE_COMMAND $HOME; cat");
    request.stdin = ralph_loop_domain::ports::Stdin::Bytes(b"its input".to_vec());
    request.env = [("OF_THE_COMMAND", "hidden-two"), ("HOME", "/inside")]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .to_vec();
    assert_eq!(common::run(made.as_ref(), &request).stdout, "hidden-one hidden-two /inside\nits input");
    let log = b.file("log");
    assert!(log.contains("exec [-i]") && !log.contains("hidden"), "{log}");
}

#[test]
fn the_tool_on_this_machine_sees_no_variable_of_a_command() {
    let b = fixture(false);
    let provider = SbxProvider::new(b.options());
    let mut spec = spec("variables");
    spec.env.insert("LD_AUDIT".to_owned(), "evil-of-run".to_owned());
    let made = provider.create(&spec).unwrap();
    // Set by a repo's agent, or by a model for a process that it starts; `it's` and a line break test the quoting.
    let mut request: ExecRequest =
        common::sh("printf %s \"$LD_X|$DOCKER_HOST|$SBX_X|$XDG_CONFIG_HOME|$LD_AUDIT\"");
    request.env = [
        ("LD_X", "evil it's\n`x` $(y)"),
        ("DOCKER_HOST", "evil-docker"),
        ("SBX_X", "evil-sbx"),
        ("XDG_CONFIG_HOME", "evil-config"),
    ]
    .map(|(name, value)| (name.to_owned(), value.to_owned()))
    .to_vec();
    let said = common::run(made.as_ref(), &request).stdout;
    assert_eq!(said, "evil it's\n`x` $(y)|evil-docker|evil-sbx|evil-config|evil-of-run");
    let seen = b.file("env");
    assert!(seen.contains("RALPH_EXEC=") && !seen.contains("evil"), "{seen}");
}

#[test]
fn other_machines_are_left_alone() {
    let b = fixture(false);
    let provider = SbxProvider::new(b.options());
    let foreign = b.dir.path().join("base/vm/foreign");
    std::fs::create_dir_all(&foreign).unwrap();
    std::fs::write(foreign.join("status"), "running").unwrap();
    std::fs::write(foreign.join("workspace"), "/").unwrap();
    let made = provider.create(&spec("own")).unwrap();
    let ids: Vec<String> = provider.list().unwrap().into_iter().map(|info| info.id).collect();
    assert_eq!(ids, [made.id()]);
    assert!(provider.attach("foreign").unwrap().is_none());
    let error = provider.destroy("foreign").unwrap_err().to_string();
    assert!(error.contains("wasn't created by ralph") && foreign.exists(), "{error}");
}

#[test]
fn tool_errors_are_reported() {
    let b = fixture(false);
    let mut options = b.options();
    options.workspace = None;
    assert!(
        SbxProvider::new(options.clone()).create(&spec("x")).err().unwrap().to_string().contains("folder")
    );
    options.workspace = Some(b.dir.path().join("work"));
    let provider = SbxProvider::new(options);
    let made = provider.create(&spec("gone")).unwrap();
    std::fs::remove_dir_all(b.dir.path().join("base/vm/ralph-run-sbx-gone")).unwrap();
    let error = made.write(Path::new("x"), b"x", WriteMode::Replace).unwrap_err().to_string();
    assert!(error.contains("no such sandbox"), "{error}");
    assert_ne!(provider.capabilities(), Capabilities::default());
}

#[test]
fn unsupported_size_is_reported_by_the_retired_tool() {
    use ralph_loop_domain::ports::{SandboxError, SandboxEvent, SandboxKeeper as _};
    use ralph_loop_sandbox::hosted::{HostedOptions, HostedSandbox, Logins, ProviderFactory};
    struct Machines(SbxOptions);
    impl ProviderFactory for Machines {
        fn provider(&self, folder: &Path) -> Result<Box<dyn SandboxProvider>, SandboxError> {
            let options = SbxOptions { workspace: Some(folder.to_owned()), ..self.0.clone() };
            Ok(Box::new(SbxProvider::new(options)))
        }
        fn mounts(&self) -> bool {
            true
        }
    }
    let told = |legacy: bool| {
        let b = fixture(legacy);
        let mut spec = spec("size");
        spec.resources.vcpu = Some(2.0);
        let options = HostedOptions {
            spec,
            maker: Box::new(Machines(b.options())),
            pull_every: std::time::Duration::from_secs(60),
            keep: false,
            hourly: None,
            variables: std::sync::Arc::new(|_| Vec::new()),
            logins: Logins { home: PathBuf::from("/nowhere"), files: std::sync::Arc::new(|_| Vec::new()) },
            identity: None,
            record: None,
            ignored: std::sync::Arc::new(|_| std::collections::BTreeSet::new()),
        };
        let (_sandbox, keeper) = HostedSandbox::start(&b.dir.path().join("work"), options).unwrap();
        let words = keeper.news().into_iter();
        words.filter(|news| matches!(news, SandboxEvent::Notice(text) if text.contains("size"))).count()
    };
    assert_eq!((told(true), told(false)), (1, 0));
}
