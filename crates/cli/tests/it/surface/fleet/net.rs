//! A separate network for machine 0 whose only way out can be cut: packets are lost silently.

use ralph_loop_testkit::env::until;
use std::process::Command;

pub struct Net {
    name: String,
    /// The near end of the link.
    link: String,
    /// Its address.
    pub host: String,
}

fn ip(args: &[&str]) -> Result<(), String> {
    let done = Command::new("ip").args(args).output().map_err(|e| format!("`ip`: {e}"))?;
    match done.status.success() {
        true => Ok(()),
        false => Err(String::from_utf8_lossy(&done.stderr).trim().to_owned()),
    }
}

impl Net {
    /// `None`, with the reason printed, if this machine doesn't allow it.
    pub fn new() -> Option<Self> {
        let id = std::process::id();
        let (name, link) = (format!("ralph-test-{id}"), format!("rt{id}"));
        let net = format!("10.{}.{}", 200 + id / 256 % 50, id % 256);
        let made = Self { name, link, host: format!("{net}.1") };
        match made.make(&format!("{net}.2")) {
            Ok(()) => Some(made),
            Err(why) => {
                ralph_loop_testkit::skip(&format!("no network of a worker's own here: {why}"));
                None
            }
        }
    }

    fn make(&self, inside: &str) -> Result<(), String> {
        let (name, link) = (self.name.as_str(), self.link.as_str());
        ip(&["netns", "add", name])?;
        ip(&["link", "add", link, "type", "veth", "peer", "name", "out", "netns", name])?;
        ip(&["addr", "add", &format!("{}/30", self.host), "dev", link])?;
        ip(&["link", "set", link, "up"])?;
        ip(&["-n", name, "addr", "add", &format!("{inside}/30"), "dev", "out"])?;
        ip(&["-n", name, "link", "set", "out", "up"])?;
        ip(&["-n", name, "link", "set", "lo", "up"])
    }

    /// The same command, inside the network.
    pub fn inside(&self, command: &Command) -> Command {
        let mut inside = Command::new("nsenter");
        inside.arg(format!("--net=/run/netns/{}", self.name)).arg(command.get_program());
        inside.args(command.get_args()).env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default());
        inside.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
        if let Some(folder) = command.get_current_dir() {
            inside.current_dir(folder);
        }
        inside
    }

    /// Drops all packets.
    pub fn cut(&self) {
        ip(&["link", "set", &self.link, "down"]).unwrap();
    }

    /// Lets packets through again, at least to this port of the other side.
    pub fn mend(&self, port: u16) {
        ip(&["link", "set", &self.link, "up"]).unwrap();
        // Processes inside may have given up on the other side, and notice a little later that it is back.
        until("the network", || {
            let mut knock = Command::new("bash");
            knock.args(["-c", &format!("exec 3<>/dev/tcp/{}/{port}", self.host)]);
            self.inside(&knock).output().is_ok_and(|done| done.status.success()).then_some(())
        });
    }
}

impl Drop for Net {
    fn drop(&mut self) {
        let _ = (ip(&["link", "del", &self.link]), ip(&["netns", "del", &self.name]));
    }
}
