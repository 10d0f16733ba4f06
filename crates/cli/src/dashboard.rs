//! The dashboard: what `ralph serve` and `ralph demo --web` have in common.
#![allow(clippy::disallowed_methods, reason = "a desktop's own program opens the address")]

use crate::demo_repo::{self, DemoRun};
use crate::error::CommandError;
use crate::output::Out;
use crate::process::server_env;
use ralph_loop_agents::presets::find_program;
use ralph_loop_app::read::find;
use ralph_loop_app::{App, Environment};
use ralph_loop_protocol::describe::Tone;
use ralph_loop_server::{DemoStarter, Limits, Network, Ready, ServeOptions};
use serde_json::json;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

/// A server to start.
pub struct Dashboard {
    /// The address to listen on.
    pub host: IpAddr,
    /// The port; 0 for any free one.
    pub port: u16,
    /// The owner's token; one is made where absent.
    pub token: Option<String>,
    /// Active runs; more wait in a queue.
    pub jobs: usize,
    /// The same for one sandbox provider.
    pub jobs_with: BTreeMap<String, usize>,
    /// Folders that runs may be started in, besides the current one.
    pub repos: Vec<PathBuf>,
    /// Proxies whose `X-Forwarded-For` counts.
    pub trusted_proxies: Vec<Network>,
    /// Scripted runs to start.
    pub demos: Option<Vec<DemoRun>>,
    /// Open a browser.
    pub open: bool,
}

impl Dashboard {
    /// One demo, on any free port of this machine.
    pub fn of_demo(demo: DemoRun) -> Self {
        Self {
            host: Ipv4Addr::LOCALHOST.into(),
            port: 0,
            token: None,
            jobs: 1,
            jobs_with: BTreeMap::new(),
            repos: Vec::new(),
            trusted_proxies: Vec::new(),
            demos: Some(vec![demo]),
            open: true,
        }
    }

    /// Serves until it is stopped.
    pub fn serve(&self, app: &App, folder: &Path, out: &Out) -> Result<u8, CommandError> {
        let env = app.environment();
        let mut repos = self.repos.clone();
        let here = find::top(folder);
        if here.join(".git").exists() {
            repos.push(here);
        }
        let demos = self.demos.as_deref().unwrap_or_default();
        repos.extend(demos.iter().map(|demo| demo.folder.clone()));
        let options = ServeOptions {
            host: self.host,
            port: self.port,
            token: self.token.clone(),
            limits: Limits { runs: self.jobs, providers: self.jobs_with.clone() },
            repos,
            folder: folder.to_owned(),
            trusted_proxies: self.trusted_proxies.clone(),
            demo: self.demos.is_some(),
            demos: Some(DemoStarter::new({
                let app = app.clone();
                move |scenario| demo_repo::start(&app, scenario)
            })),
        };
        let start = |demo: &DemoRun| (demo_repo::on_its_own(app, &demo.folder), demo.request.clone());
        let starts: Vec<_> = demos.iter().map(start).collect();
        // A demo that can't start doesn't end the server.
        std::thread::spawn(move || starts.into_iter().for_each(|(app, request)| drop(app.spawn(&request))));
        ralph_loop_server::serve(app, &options, |ready| self.print_ready(ready, env, out))?;
        out.say("the server has ended; runs continue (`ralph list --all`)");
        Ok(0)
    }

    fn print_ready(&self, ready: &Ready, env: &Environment, out: &Out) {
        if out.json {
            out.value(&json!({ "url": ready.url, "token": ready.token, "login_url": ready.login_url }));
        } else {
            out.line(format!("address  {}", ready.url));
            out.line(format!("token    {}", ready.token));
        }
        server_env::report_set_aside(ready.set_aside.as_deref(), out);
        if !self.host.is_loopback() {
            out.say("other machines can reach it: put a TLS proxy in front of it");
        }
        let opened = self.open && !out.json && self.host.is_loopback() && open(env, &ready.login_url);
        if opened {
            out.say("opened in your browser, logged in");
        } else if self.demos.is_some() {
            out.say(format!("{} open {}", out.err(Tone::Plain, "next:"), ready.login_url));
        } else {
            out.say(format!("{} open the address and log in with the token", out.err(Tone::Plain, "next:")));
        }
    }
}

/// Hands the address to the desktop; whether there is one.
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
