//! `ralph deploy daytona`: creates a sandbox, uploads this program and starts its server.
//!
//! Repeating it finds the same sandbox, uploads again and starts the server with a new token.

use crate::error::CommandError;
use crate::output::Out;
use ralph_loop_app::read::find;
use ralph_loop_app::{App, Environment};
use ralph_loop_domain::ports::{
    ExecOutcome, ExecRequest, ExecSink, ManagedSandbox, Preview, SandboxError, SandboxProvider as _,
    SandboxSpec, StopCause, Stream, WriteMode,
};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_protocol::display::text;
use ralph_loop_protocol::id::RunId;
use ralph_loop_providers::{Daytona, DaytonaOptions};
use serde_json::json;
use std::io::Read as _;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Duration;

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph deploy daytona
  ralph deploy daytona --env ANTHROPIC_API_KEY
  ralph deploy daytona --rm
Needs DAYTONA_API_KEY, which the dashboard gets for the sandboxes of its runs. Its sandbox costs money until you delete it with `--rm`.")]
pub struct DaytonaArgs {
    /// Delete the deployment
    #[arg(long)]
    pub rm: bool,
    /// Binary to deploy [default: this one]
    #[arg(long, value_name = "FILE", conflicts_with = "rm")]
    pub binary: Option<PathBuf>,
    /// Pass this environment variable (repeatable)
    #[arg(long, value_name = "NAME", conflicts_with = "rm")]
    pub env: Vec<String>,
    /// Port in the sandbox
    #[arg(long, value_name = "PORT", default_value_t = 8000, conflicts_with = "rm")]
    pub port: u16,
    /// Image or snapshot [default: Daytona's own]
    #[arg(long, value_name = "IMAGE", conflicts_with = "rm")]
    pub image: Option<String>,
}

/// Identifies the sandbox.
const RUN: &str = "dashboard";
/// Folder in the sandbox.
const FOLDER: &str = ".ralph-server";
/// Variables that the dashboard gets without being named: it creates sandboxes for its runs.
const OWN: &[&str] = &["DAYTONA_API_KEY", "DAYTONA_API_URL", "DAYTONA_SERVER_URL", PROVIDER];
const PROVIDER: &str = "RALPH_DEFAULT_PROVIDER";
/// Timeout of one step.
const STEP: Duration = Duration::from_secs(60);
/// Upload size per request.
const PIECE: usize = 16 * 1024 * 1024;
/// Output kept.
const KEPT: usize = 8 * 1024;

/// Starts the server in a new session and without the mark by which a command's processes are ended, so that
/// it outlives the command. `$1` is the port.
const START: &str = r#"
[ -f pid ] && kill "$(cat pid)" 2>/dev/null && sleep 0.5
rm -f pid serve.log
env -u RALPH_EXEC setsid sh -c 'echo $$ >pid; exec ./ralph serve --port "$1" --token-file token --host 0.0.0.0 --no-open' sh "$1" >serve.log 2>&1 </dev/null &
i=0; while [ ! -s pid ] && [ $i -lt 50 ]; do i=$((i+1)); sleep 0.1; done
"#;

/// Waits until the server listens (0), has ended (3) or takes too long (5). `$1` is the port in hexadecimal.
const WAIT: &str = r#"
i=0
while [ $i -lt 150 ]; do
  grep -qi ":$1 [0-9A-F:]* 0A" /proc/net/tcp /proc/net/tcp6 2>/dev/null && kill -0 "$(cat pid)" 2>/dev/null && exit 0
  kill -0 "$(cat pid)" 2>/dev/null || { tail -n 20 serve.log; exit 3; }
  i=$((i+1)); sleep 0.1
done
tail -n 20 serve.log; exit 5
"#;

pub fn run(args: &DaytonaArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let env = &app.environment().with_dotenv(&find::top(folder))?;
    let options = DaytonaOptions::from_env(&env.lookup_filled()).map_err(|error| {
        CommandError::environment("Daytona isn't available")
            .cause(error.to_string())
            .hint("set DAYTONA_API_KEY")
    })?;
    let provider = Daytona::new(options);
    if args.rm {
        return remove(&provider, out);
    }
    let binary = binary(args)?;
    let given = given(env, args)?;
    let mut spec = SandboxSpec::of_run(RunId::from(RUN));
    spec.image.clone_from(&args.image);
    // Stays until it is removed, even if unused.
    spec.auto_stop = Some(Duration::ZERO);
    out.say("a sandbox is made or found …");
    let sandbox = provider.create(&spec).map_err(|e| failed("a sandbox could not be made", &e))?;
    out.say(format!("{} go to {} …", text::count(binary.len() / (1024 * 1024), "MiB"), sandbox.id()));
    let token = bring(sandbox.as_ref(), &binary)?;
    let preview = sandbox.preview(args.port).map_err(|e| failed("its port could not be opened", &e))?;
    let problem = start(sandbox.as_ref(), args.port, given)?;
    print_report(sandbox.id(), &preview, &token, problem.as_deref(), out);
    Ok(if problem.is_none() { 0 } else { 4 })
}

fn failed(what: &str, error: &SandboxError) -> CommandError {
    CommandError::environment(what)
        .cause(error.to_string())
        .hint("run `ralph deploy daytona` to continue, or `ralph deploy daytona --rm` to remove it")
}

fn binary(args: &DaytonaArgs) -> Result<Vec<u8>, CommandError> {
    let path = args.binary.clone().unwrap_or_else(|| PathBuf::from("/proc/self/exe"));
    std::fs::read(&path).map_err(|e| {
        CommandError::usage(format!("`{}` cannot be read: {e}", path.display()))
            .hint("pass the program to upload with `--binary FILE`")
    })
}

fn given(env: &Environment, args: &DaytonaArgs) -> Result<Vec<(String, String)>, CommandError> {
    let value = |name: &String| {
        let value = env.vars().get(name).ok_or_else(|| {
            CommandError::usage(format!("the variable `{name}` is not set"))
                .hint("set it, or leave it out of `--env`")
        })?;
        Ok::<_, CommandError>((name.clone(), value))
    };
    let mut given = args.env.iter().map(value).collect::<Result<Vec<_>, CommandError>>()?;
    // Its runs work in separate sandboxes.
    let own = OWN.iter().filter(|name| !args.env.iter().any(|known| known == *name));
    let own: Vec<_> = own.filter_map(|name| Some(((*name).to_owned(), env.vars().filled(name)?))).collect();
    given.extend(own);
    if !given.iter().any(|(name, _)| name == PROVIDER) {
        given.push((PROVIDER.to_owned(), "daytona".to_owned()));
    }
    Ok(given)
}

/// Uploads the program and a new token, and checks that it runs.
fn bring(sandbox: &dyn ManagedSandbox, binary: &[u8]) -> Result<String, CommandError> {
    let place = |name: &str| Path::new(FOLDER).join(name);
    let done = |what: &'static str| move |error: SandboxError| failed(what, &error);
    sandbox.make_dir(Path::new(FOLDER)).map_err(done("can't create its folder"))?;
    sandbox.set_mode(Path::new(FOLDER), 0o700).map_err(done("can't create its folder"))?;
    // In pieces, because requests have a size limit.
    sh(sandbox, "rm -f part-*", &[], Vec::new())?;
    for (number, piece) in binary.chunks(PIECE).enumerate() {
        sandbox
            .write(&place(&format!("part-{number:04}")), piece, WriteMode::Replace)
            .map_err(done("can't upload the program"))?;
    }
    let token = token()?;
    sandbox
        .write(&place("token"), token.as_bytes(), WriteMode::Replace)
        .map_err(done("can't upload the token"))?;
    sandbox.set_mode(&place("token"), 0o600).map_err(done("can't upload the token"))?;
    // A running program can't be written to, but it can be replaced by renaming.
    let join = "cat part-* >ralph.new && rm -f part-* && chmod 755 ralph.new && mv -f ralph.new ralph && ./ralph --version";
    let tried = sh(sandbox, join, &[], Vec::new())?;
    if tried.0 != Some(0) {
        return Err(CommandError::environment("the program does not run in the sandbox")
            .cause(text::one_line(&tried.1, 300))
            .hint(
                "upload another one with `--binary FILE`; a static build for x86-64 Linux runs in every sandbox",
            ));
    }
    Ok(token)
}

/// Starts the server, or returns why it doesn't run.
fn start(
    sandbox: &dyn ManagedSandbox,
    port: u16,
    given: Vec<(String, String)>,
) -> Result<Option<String>, CommandError> {
    sh(sandbox, START, &[port.to_string()], given)?;
    let (code, said) = sh(sandbox, WAIT, &[format!("{port:04X}")], Vec::new())?;
    let said = text::one_line(&said, 300);
    Ok(match code {
        Some(0) => None,
        Some(3) => Some(format!("the server exited at once: {said}")),
        _ => Some(format!("the server does not listen on port {port}: {said}")),
    })
}

fn print_report(id: &str, preview: &Preview, token: &str, problem: Option<&str>, out: &Out) {
    let key = preview.headers.get("X-Daytona-Preview-Token").map_or("", String::as_str);
    let link = format!("{}/?DAYTONA_SANDBOX_AUTH_KEY={key}", preview.url.trim_end_matches('/'));
    if out.json {
        out.value(&json!({
            "sandbox": id, "url": preview.url, "link": link, "headers": preview.headers, "token": token,
            "running": problem.is_none(), "problem": problem,
        }));
        return;
    }
    out.line(format!("sandbox  {id}"));
    out.line(format!("link     {link}"));
    out.line(format!("token    {token}"));
    if let Some(problem) = problem {
        out.say(format!("{} {problem}", out.err(Tone::Bad, "not running:")));
    }
    out.say(format!("{} `ralph deploy daytona --rm` removes it", out.err(Tone::Plain, "later:")));
}

fn remove(provider: &Daytona, out: &Out) -> Result<u8, CommandError> {
    let found = provider.list().map_err(|e| failed("the sandboxes could not be listed", &e))?;
    let ours = found.into_iter().filter(|info| info.run.as_ref().is_some_and(|run| run.as_str() == RUN));
    let mut removed = Vec::new();
    for info in ours {
        provider.destroy(&info.id).map_err(|e| failed("the sandbox could not be removed", &e))?;
        removed.push(info.id);
    }
    match removed.is_empty() {
        true => out.say("nothing is deployed"),
        false => out.say(format!("removed: {}", removed.join(", "))),
    }
    if out.json {
        out.value(&json!({ "removed": removed }));
    }
    Ok(0)
}

/// 256 random bits.
fn token() -> Result<String, CommandError> {
    let mut bytes = [0u8; 32];
    std::fs::File::open("/dev/urandom")
        .and_then(|mut file| file.read_exact(&mut bytes))
        .map_err(|e| CommandError::environment(format!("no token could be made: {e}")))?;
    Ok(bytes.iter().map(|byte| format!("{byte:02x}")).collect())
}

/// Runs a script in the folder; returns exit code and output.
fn sh(
    sandbox: &dyn ManagedSandbox,
    script: &str,
    words: &[String],
    env: Vec<(String, String)>,
) -> Result<(Option<i32>, String), CommandError> {
    let mut argv = vec!["sh".to_owned(), "-c".to_owned(), script.to_owned(), "sh".to_owned()];
    argv.extend(words.iter().cloned());
    let mut request = ExecRequest::new(argv);
    request.cwd = PathBuf::from(FOLDER);
    request.env = env;
    request.timeout = Some(STEP);
    let mut heard = CommandOutput(Vec::new());
    let outcome: ExecOutcome = sandbox
        .exec(&request, &mut heard)
        .map_err(|e| failed("a command could not be run in the sandbox", &e))?;
    Ok((outcome.end.code(), String::from_utf8_lossy(&heard.0).into_owned()))
}

struct CommandOutput(Vec<u8>);

impl ExecSink for CommandOutput {
    fn output(&mut self, _: Stream, bytes: &[u8]) {
        let room = KEPT.saturating_sub(self.0.len());
        self.0.extend_from_slice(&bytes[..bytes.len().min(room)]);
    }
    fn poll(&mut self) -> ControlFlow<StopCause> {
        ControlFlow::Continue(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dashboard_can_create_sandboxes_for_its_runs() {
        let args = |env: &[&str]| DaytonaArgs {
            rm: false,
            binary: None,
            env: env.iter().map(|name| (*name).to_owned()).collect(),
            port: 8000,
            image: None,
        };
        let given = |vars: &[(&str, &str)], named: &[&str]| {
            let env = Environment::new(vars.iter().copied().collect(), "/");
            super::given(&env, &args(named)).map(|given| {
                given.into_iter().map(|(name, value)| format!("{name}={value}")).collect::<Vec<_>>()
            })
        };
        let key = ("DAYTONA_API_KEY", "k");
        assert_eq!(given(&[key], &[]).unwrap(), ["DAYTONA_API_KEY=k", "RALPH_DEFAULT_PROVIDER=daytona"]);
        let chosen = given(&[key, ("RALPH_DEFAULT_PROVIDER", "e2b"), ("A", "1")], &["A"]).unwrap();
        assert_eq!(chosen, ["A=1", "DAYTONA_API_KEY=k", "RALPH_DEFAULT_PROVIDER=e2b"]);
        assert!(given(&[key], &["A"]).is_err());
    }
}
