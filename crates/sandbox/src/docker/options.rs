//! How containers are set up.

use super::http::Address;
use ralph_loop_domain::vars::Vars;
use std::path::{Path, PathBuf};

/// The image that is built here where no other is named: everything in it comes from one file without a context.
pub const DOCKERFILE: &str = include_str!("../../images/Dockerfile");

/// Which network a container has.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Network {
    /// None but its own loopback; with [`DockerOptions::proxy`] the allowed hosts are reached through that.
    #[default]
    None,
    /// A network of the engine by its name (`bridge`): everything can be reached, and ports inside from this machine.
    Named(String),
}

/// The way out of a container that has no network: a proxy that listens on a socket of this machine.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ProxySocket {
    /// The socket on this machine. Its folder, which should hold nothing else, stands at [`ProxySocket::INSIDE`]: so a proxy
    /// that was started anew is found by a container that was there before.
    pub host: PathBuf,
    /// A program of this machine that is mounted read-only at [`ProxySocket::PROGRAM`], where the image has none of its own.
    pub program: Option<PathBuf>,
    /// The command that listens on `127.0.0.1:port` inside and passes everything on to the socket. It is started with the
    /// container, and again where it ends.
    pub forwarder: Vec<String>,
    /// That port; `HTTP_PROXY` and its kin point there.
    pub port: u16,
}

/// Listens on the port `$2` for the socket `$1`, and on each further port for the same port of the host: with `socat` where
/// the image has it, else with the program that is mounted. It also leads the way back, from the proxy to a port in here
/// (`egress::bridge` says how): the proxy is told that there is one, asks for ports by a number, and each gets a connection.
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
    /// Where the socket's folder stands inside.
    pub const INSIDE: &str = "/run/ralph";
    /// Where the program stands inside.
    pub const PROGRAM: &str = "/run/ralph-forward";
    const PORT: u16 = 3128;

    /// The proxy at `host`, and servers on this machine's own `ports`; `program` is `ralph` itself.
    pub fn new(host: &Path, ports: &[u16], program: Option<PathBuf>) -> Self {
        let name = host.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let mut forwarder = ["sh", "-c", FORWARD, "sh"].map(String::from).to_vec();
        forwarder.push(format!("{}/{name}", Self::INSIDE));
        forwarder.push(Self::PORT.to_string());
        forwarder.extend(ports.iter().map(u16::to_string));
        Self { host: host.to_owned(), program, forwarder, port: Self::PORT }
    }

    /// With `socat` of the image as the forwarder.
    pub fn socat(host: &Path) -> Self {
        Self::new(host, &[], None)
    }
}

/// How a [`super::DockerProvider`] makes its containers.
#[derive(Debug, Clone)]
pub struct DockerOptions {
    /// Where the engine listens.
    pub address: Address,
    /// The image where a spec names none; built from [`DockerOptions::dockerfile`] where the engine does not have it.
    pub image: String,
    /// What the default image is built from.
    pub dockerfile: String,
    /// A folder of this machine that is the workspace, at the same path inside; otherwise a volume of the container's own at
    /// `/workspace`.
    pub workspace: Option<PathBuf>,
    /// More of this machine that stands at the same path inside, and whether it can be written; deeper places lie over those
    /// above them.
    pub mounts: Vec<(PathBuf, bool)>,
    /// Who commands run as, `uid:gid`; otherwise the owner of the workspace's folder, or 1000 for a volume.
    pub user: Option<String>,
    /// The network.
    pub network: Network,
    /// The way out where there is no network.
    pub proxy: Option<ProxySocket>,
    /// Ports inside that get one on this machine's loopback.
    pub publish: Vec<u16>,
    /// Processes at most.
    pub pids: u32,
    /// Whether the image's own files can be changed inside. They cannot, unless told.
    pub writable_root: bool,
    /// The size of `/tmp`, in MiB.
    pub tmp_mib: u32,
}

impl DockerOptions {
    /// Every default, for the engine at `address`.
    pub fn at(address: Address) -> Self {
        // The name follows the file, so that a new file means a new image.
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

    /// For the engine that this machine has: `DOCKER_HOST`, else Docker's socket, else podman's. `None` where there is none,
    /// or where `DOCKER_HOST` is of a kind that is not spoken here (`ssh`). With `DOCKER_TLS_VERIFY`, an address is spoken to over
    /// TLS, with the certificates in `DOCKER_CERT_PATH` or `~/.docker`.
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

/// Where the certificates for an engine behind TLS are.
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
