//! Container settings.

use super::http::Address;
use ralph_loop_domain::vars::Vars;
use std::path::{Path, PathBuf};

/// The default image, built here from one file without a context.
pub const DOCKERFILE: &str = include_str!("../../images/Dockerfile");

#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Network {
    /// Only its loopback; with [`DockerOptions::proxy`], allowed hosts are reachable through that.
    #[default]
    None,
    /// A network of the engine by name (`bridge`): everything is reachable, and this machine can reach ports inside.
    Named(String),
}

/// Network access for a container without a network: a proxy on a local socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxySocket {
    /// The socket on this machine. Its folder, which should hold nothing else, is mounted at [`ProxySocket::INSIDE`],
    /// so that an existing container finds a restarted proxy.
    pub host: PathBuf,
    /// A local program that is mounted read-only at [`ProxySocket::PROGRAM`], if the image has none.
    pub program: Option<PathBuf>,
    /// The command that listens on `127.0.0.1:port` inside and forwards to the socket. Started with the container,
    /// and restarted if it ends.
    pub forwarder: Vec<String>,
    /// That port, used by `HTTP_PROXY` and similar variables.
    pub port: u16,
}

/// Listens on port `$2` for the socket `$1`, and on each further port for the same port of the host: with the image's
/// `socat`, else with the mounted program. It also serves the way back, from the proxy to a port in here (see
/// `egress::bridge`): it registers with the proxy, which requests ports by number and gets a connection for each.
const FORWARD: &str = r#"s=$1 p=$2; shift 2
if command -v socat >/dev/null; then
  export RALPH_SOCKET="$s"
  export RALPH_CARRY='echo RALPH-CARRY $ID $WORD; [ $WORD = no ] || exec socat -t 1800 STDIO,shut-down TCP:127.0.0.1:$PORT'
  export RALPH_REACH='echo RALPH-REACH; while read -r PORT ID; do export PORT ID WORD=no; socat -u OPEN:/dev/null TCP:127.0.0.1:$PORT && WORD=ok; socat -t 1800 UNIX-CONNECT:$RALPH_SOCKET SYSTEM:"eval \$RALPH_CARRY" & done'
  while :; do socat "UNIX-CONNECT:$s" 'SYSTEM:eval $RALPH_REACH'; sleep 1; done &
  for l; do socat "TCP-LISTEN:$l,bind=127.0.0.1,fork,reuseaddr" "PROXY:127.0.0.1:127.0.0.1:$l,proxyport=$p" & done
  exec socat "TCP-LISTEN:$p,bind=127.0.0.1,fork,reuseaddr" "UNIX-CONNECT:$s"
fi
exec /run/ralph-forward __forward "$s" "$p" "$@""#;

impl ProxySocket {
    /// The path of the socket's folder inside.
    pub const INSIDE: &str = "/run/ralph";
    pub const PROGRAM: &str = "/run/ralph-forward";
    const PORT: u16 = 3128;

    /// The proxy at `host`, and local servers on `ports`; `program` is `ralph` itself.
    pub fn new(host: &Path, ports: &[u16], program: Option<PathBuf>) -> Self {
        let name = host.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut forwarder = ["sh", "-c", FORWARD, "sh"].map(String::from).to_vec();
        forwarder.push(format!("{}/{name}", Self::INSIDE));
        forwarder.push(Self::PORT.to_string());
        forwarder.extend(ports.iter().map(u16::to_string));
        Self { host: host.to_owned(), program, forwarder, port: Self::PORT }
    }

    /// Uses the image's `socat` as the forwarder.
    pub fn socat(host: &Path) -> Self {
        Self::new(host, &[], None)
    }
}

/// Settings of a [`super::DockerProvider`].
#[derive(Debug, Clone)]
pub struct DockerOptions {
    pub address: Address,
    /// The default image; built from [`DockerOptions::dockerfile`] if the engine lacks it.
    pub image: String,
    /// What the default image is built from.
    pub dockerfile: String,
    /// A local folder that is the workspace, at the same path inside; otherwise a volume of the container at
    /// `/workspace`.
    pub workspace: Option<PathBuf>,
    /// More local paths that are mounted at the same path inside, and whether they are writable; deeper paths cover
    /// those above them.
    pub mounts: Vec<(PathBuf, bool)>,
    /// The user of commands, `uid:gid`; otherwise the owner of the workspace's folder, or 1000 for a volume.
    pub user: Option<String>,
    pub network: Network,
    /// Network access if there is no network.
    pub proxy: Option<ProxySocket>,
    /// Ports inside that are published on this machine's loopback.
    pub publish: Vec<u16>,
    pub pids: u32,
    /// Whether the image's files can be changed inside; by default not.
    pub writable_root: bool,
    /// The size of `/tmp`, in MiB.
    pub tmp_mib: u32,
}

impl DockerOptions {
    /// Default options for the engine at `address`.
    pub fn at(address: Address) -> Self {
        // The name includes the file's digest, so that a new file means a new image.
        let digest = ralph_loop_protocol::id::Digest::of(DOCKERFILE.as_bytes());
        Self {
            address,
            image: format!("ralph-sandbox:{}", digest.short()),
            dockerfile: DOCKERFILE.to_owned(),
            workspace: None,
            mounts: Vec::new(),
            user: None,
            network: Network::None,
            proxy: None,
            publish: Vec::new(),
            pids: 2048,
            writable_root: false,
            tmp_mib: 1024,
        }
    }

    /// Finds this machine's engine: `DOCKER_HOST`, else Docker's socket, else podman's. `None` if there is none, or
    /// if `DOCKER_HOST` has an unsupported scheme (`ssh`). With `DOCKER_TLS_VERIFY`, uses TLS with the certificates
    /// in `DOCKER_CERT_PATH` or `~/.docker`.
    pub fn found(vars: &Vars) -> Option<Self> {
        if let Some(host) = vars.get_os("DOCKER_HOST").filter(|host| !host.is_empty()) {
            let address = Address::parse(host.to_str()?)?;
            let tls = vars.is_filled("DOCKER_TLS_VERIFY");
            return Some(Self::at(if tls { address.with_tls(&certificates(vars)) } else { address }));
        }
        let var = |name: &str| vars.get_os(name).map(PathBuf::from);
        let mut places = vec![PathBuf::from("/var/run/docker.sock")];
        places.extend(var("HOME").map(|home| home.join(".docker/run/docker.sock")));
        if let Some(run) = var("XDG_RUNTIME_DIR") {
            places.push(run.join("docker.sock"));
            places.push(run.join("podman/podman.sock"));
        }
        places.push(PathBuf::from("/run/podman/podman.sock"));
        places.into_iter().find(|place| place.exists()).map(|place| Self::at(Address::Unix(place)))
    }
}

fn certificates(vars: &Vars) -> PathBuf {
    match vars.get_os("DOCKER_CERT_PATH").filter(|path| !path.is_empty()) {
        Some(path) => PathBuf::from(path),
        None => vars.home().unwrap_or(Path::new("/")).join(".docker"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_lead_to_an_engine_behind_tls() {
        let at = |vars: &[(&str, &str)]| {
            DockerOptions::found(&vars.iter().copied().collect()).map(|options| options.address)
        };
        let host = ("DOCKER_HOST", "tcp://10.0.0.1:2376");
        let tls =
            |folder: &str| Some(Address::Tls { host: "10.0.0.1:2376".into(), certificates: folder.into() });
        assert_eq!(at(&[host]), Some(Address::Tcp("10.0.0.1:2376".into())));
        assert_eq!(at(&[host, ("DOCKER_TLS_VERIFY", "1"), ("DOCKER_CERT_PATH", "/certs")]), tls("/certs"));
        assert_eq!(at(&[host, ("DOCKER_TLS_VERIFY", "1"), ("HOME", "/me")]), tls("/me/.docker"));
        let socket = [("DOCKER_HOST", "unix:///x.sock"), ("DOCKER_TLS_VERIFY", "1")];
        assert_eq!(at(&socket), Some(Address::Unix("/x.sock".into())));
    }
}
