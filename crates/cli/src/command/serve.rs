//! `ralph serve`: the dashboard, for one machine or a team.
#![allow(clippy::disallowed_methods, reason = "a desktop's own program opens the address")]

use crate::demo_repo::{self, DemoRun};
use crate::error::CommandError;
use crate::output::Out;
use crate::server_env;
use ralph_loop_agents::presets::find_program;
use ralph_loop_app::{App, Environment, find, repo_file};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_server::{Limits, Ready, ServeOptions};
use ralph_loop_task::config::ProviderName;
use serde_json::json;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

#[derive(Debug, clap::Args)]
#[command(after_help = "Examples:
  ralph serve                              open http://127.0.0.1:8000
  ralph serve --demo                       show scripted runs
  ralph serve --host 0.0.0.0 --token-file token   add TLS in front
Runs continue after the server ends.")]
pub struct ServeArgs {
    /// Address to listen on
    #[arg(long, value_name = "ADDRESS", default_value = "127.0.0.1")]
    pub host: IpAddr,
    /// Port, 0 for any free one
    #[arg(long, value_name = "PORT", default_value_t = 8000)]
    pub port: u16,
    /// File with the owner's token [env: RALPH_SERVE_TOKEN]
    #[arg(long, value_name = "FILE")]
    pub token_file: Option<PathBuf>,
    /// Active dashboard runs; more wait in a queue
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = clap::value_parser!(u32).range(1..))]
    pub jobs: u32,
    /// Limit for one sandbox provider (repeatable)
    #[arg(long, value_name = "PROVIDER=N", value_parser = provider_jobs)]
    pub jobs_with: Vec<(String, usize)>,
    /// Allow starting runs in this folder (repeatable)
    #[arg(long, value_name = "DIR")]
    pub repo: Vec<PathBuf>,
    /// Start a few scripted runs
    #[arg(long)]
    pub demo: bool,
    /// Don't open a browser
    #[arg(long)]
    pub no_open: bool,
}

fn provider_jobs(text: &str) -> Result<(String, usize), String> {
    let (name, most) = text.split_once('=').ok_or("write it as `docker=4`")?;
    let name = ProviderName::parse(name)?.as_str().to_owned();
    let most = most.parse().ok().filter(|most| *most > 0).ok_or("the number is at least 1")?;
    Ok((name, most))
}

pub fn run(args: &ServeArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let demos = if args.demo { demo_repo::several(app.environment())? } else { Vec::new() };
    serve(args, demos, app, folder, out)
}

/// Runs one demo in a dashboard on any free port.
pub fn run_demo(demo: DemoRun, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let args = ServeArgs {
        host: Ipv4Addr::LOCALHOST.into(),
        port: 0,
        token_file: None,
        jobs: 1,
        jobs_with: Vec::new(),
        repo: Vec::new(),
        demo: true,
        no_open: false,
    };
    serve(&args, vec![demo], app, folder, out)
}

fn serve(
    args: &ServeArgs,
    demos: Vec<DemoRun>,
    app: &App,
    folder: &Path,
    out: &Out,
) -> Result<u8, CommandError> {
    let app = &server_env::with_dotenv(app, folder, out)?;
    let env = app.environment();
    let mut repos: Vec<PathBuf> = Vec::new();
    for repo in &args.repo {
        repos.push(find::top(&env.folder(Some(repo))?));
    }
    let here = find::top(folder);
    if here.join(".git").exists() {
        repos.push(here);
    }
    repos.extend(demos.iter().map(|demo| demo.folder.clone()));
    let options = ServeOptions {
        host: args.host,
        port: args.port,
        token: token(args, env, folder)?,
        limits: Limits {
            runs: usize::try_from(args.jobs).unwrap_or(usize::MAX),
            providers: args.jobs_with.iter().cloned().collect(),
        },
        repos,
        folder: folder.to_owned(),
        demo: args.demo,
    };
    // A demo that can't start is reported; the server continues.
    let starts = demos.into_iter().map(|demo| (demo_repo::on_its_own(app, &demo.folder), demo.request));
    let starts: Vec<_> = starts.collect();
    std::thread::spawn(move || starts.into_iter().for_each(|(app, request)| drop(app.spawn(&request))));
    ralph_loop_server::serve(app, &options, |ready| print_ready(ready, args, env, out))?;
    out.say("the server has ended; runs continue (`ralph list --all`)");
    Ok(0)
}

fn token(args: &ServeArgs, env: &Environment, folder: &Path) -> Result<Option<String>, CommandError> {
    let Some(file) = &args.token_file else { return Ok(env.vars().filled("RALPH_SERVE_TOKEN")) };
    let path = folder.join(file);
    let bytes = repo_file::read_own(&path).map_err(|e| {
        CommandError::usage(format!("cannot read the token `{}`: {e}", path.display()))
            .hint("`openssl rand -hex 32 > token && chmod 600 token` makes one")
    })?;
    let text = String::from_utf8_lossy(&bytes).trim().to_owned();
    match text.is_empty() {
        true => Err(CommandError::usage(format!("`{}` is empty", path.display()))),
        false => Ok(Some(text)),
    }
}

fn print_ready(ready: &Ready, args: &ServeArgs, env: &Environment, out: &Out) {
    if out.json {
        out.value(&json!({ "url": ready.url, "token": ready.token, "login_url": ready.login_url }));
    } else {
        out.line(format!("address  {}", ready.url));
        out.line(format!("token    {}", ready.token));
    }
    server_env::report_set_aside(ready.set_aside.as_deref(), out);
    if !args.host.is_loopback() {
        out.say("others can reach it: put a proxy with TLS in front of it");
    }
    let opened = !args.no_open && !out.json && args.host.is_loopback() && open(env, &ready.login_url);
    if opened {
        out.say("opened in your browser, logged in");
    } else if args.demo {
        out.say(format!("{} open {}", out.err(Tone::Plain, "next:"), ready.login_url));
    } else {
        out.say(format!("{} open the address and log in with the token", out.err(Tone::Plain, "next:")));
    }
}

/// Opens the address on the desktop; returns whether there is one.
fn open(env: &Environment, address: &str) -> bool {
    let vars = env.vars();
    if !["DISPLAY", "WAYLAND_DISPLAY"].into_iter().any(|name| vars.is_filled(name)) {
        return false;
    }
    let program = ["xdg-open", "open"].into_iter().find_map(|name| find_program(name, &env.path()));
    let Some(program) = program else { return false };
    let mut command = Command::new(program);
    command.arg(address).env_clear().envs(vars.iter());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    match command.spawn() {
        Ok(mut child) => {
            std::thread::spawn(move || child.wait());
            true
        }
        Err(_) => false,
    }
}
