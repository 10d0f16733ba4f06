//! `ralph serve`: the dashboard, for this machine or for a team.

use crate::dashboard::Dashboard;
use crate::demo_repo;
use crate::error::CommandError;
use crate::output::Out;
use crate::process::server_env;
use ralph_loop_app::read::find;
use ralph_loop_app::trust::repo_file;
use ralph_loop_app::{App, Environment};
use ralph_loop_server::Network;
use ralph_loop_task::config::ProviderName;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

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
    /// Proxy whose X-Forwarded-For counts (repeatable)
    #[arg(long, value_name = "ADDRESS[/BITS]")]
    pub trusted_proxy: Vec<Network>,
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

/// Runs the command.
pub fn run(args: &ServeArgs, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
    let demos = if args.demo { Some(demo_repo::several(app.environment())?) } else { None };
    let app = &server_env::with_dotenv(app, folder, out)?;
    let env = app.environment();
    let repos = args.repo.iter().map(|repo| Ok(find::top(&env.folder(Some(repo))?)));
    let dashboard = Dashboard {
        host: args.host,
        port: args.port,
        token: token(args, env, folder)?,
        jobs: usize::try_from(args.jobs).unwrap_or(usize::MAX),
        jobs_with: args.jobs_with.iter().cloned().collect(),
        repos: repos.collect::<Result<_, CommandError>>()?,
        trusted_proxies: args.trusted_proxy.clone(),
        demos,
        open: !args.no_open,
    };
    dashboard.serve(app, folder, out)
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
