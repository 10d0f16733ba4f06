//! The engine's description of a container.

use super::options::{DockerOptions, Network, ProxySocket};
use crate::shell::{KEEPER, MARK};
use ralph_loop_domain::ports::{LABEL_OURS, SandboxError, SandboxSpec};
use serde_json::{Value, json};
use std::path::Path;

/// The label with the workspace's path inside.
pub(super) const LABEL_ROOT: &str = "ralph.root";
/// The label that identifies the local folder at that path: a recreated folder has the same path.
pub(super) const LABEL_FOLDER: &str = "ralph.folder";
/// The home folder of commands; the image's is read-only.
pub(super) const HOME: &str = "/home/ralph";
/// The workspace if it is a volume.
pub(super) const WORKSPACE: &str = "/workspace";

/// The first process: restarts the forwarder, reaps orphans, and ends on SIGTERM.
const KEEP: &str = r#"trap 'exit 0' TERM INT
if [ $# -gt 0 ]; then while :; do "$@"; sleep 1; done >/dev/null 2>&1 & fi
while :; do sleep 86400 & wait $!; done"#;

pub(super) fn own_volumes(name: &str, options: &DockerOptions) -> Vec<(String, &'static str)> {
    let mut volumes = vec![(format!("{name}-home"), HOME)];
    if options.workspace.is_none() {
        volumes.push((format!("{name}-work"), WORKSPACE));
    }
    volumes
}

pub(super) fn root(options: &DockerOptions) -> &Path {
    options.workspace.as_deref().unwrap_or(Path::new(WORKSPACE))
}

/// Tells the workspace from another folder with the same path, on this machine or another.
fn folder(options: &DockerOptions) -> Option<String> {
    use std::os::unix::fs::MetadataExt as _;
    let found = options.workspace.as_deref()?.metadata().ok()?;
    let made = found.created().ok().and_then(|made| made.duration_since(std::time::UNIX_EPOCH).ok());
    Some(format!("{}:{}", found.ino(), made.unwrap_or_default().as_nanos()))
}

/// Whether a container with these labels works on the workspace. One from another machine, or from before the folder
/// was recreated, mounts a different folder.
pub(super) fn works_on(labels: &Value, options: &DockerOptions) -> bool {
    let same = |label: &str, own: Option<&str>| labels[label].as_str().is_none_or(|made| Some(made) == own);
    same(LABEL_ROOT, root(options).to_str()) && same(LABEL_FOLDER, folder(options).as_deref())
}

pub(super) fn user(options: &DockerOptions) -> (u32, u32) {
    use std::os::unix::fs::MetadataExt as _;
    let told = options.user.as_deref().and_then(|user| {
        let (uid, gid) = user.split_once(':').unwrap_or((user, user));
        Some((uid.parse().ok()?, gid.parse().ok()?))
    });
    let owner = || options.workspace.as_deref()?.metadata().ok().map(|found| (found.uid(), found.gid()));
    told.or_else(owner).unwrap_or((1000, 1000))
}

pub(super) fn create(name: &str, spec: &SandboxSpec, options: &DockerOptions) -> Result<Value, SandboxError> {
    if !spec.allowed_hosts.is_empty() && options.proxy.is_none() {
        return Err(SandboxError::Broken(
            "a container cannot allow single hosts without the proxy; allow none, or give it a network"
                .to_owned(),
        ));
    }
    let root =
        root(options).to_str().ok_or_else(|| SandboxError::OutsideWorkspace(root(options).to_owned()))?;
    let mut labels = spec.all_labels();
    labels.insert(LABEL_ROOT.to_owned(), root.to_owned());
    labels.extend(folder(options).map(|folder| (LABEL_FOLDER.to_owned(), folder)));
    let (uid, gid) = user(options);
    let mut entry: Vec<&str> = vec!["sh", "-c", KEEP, "sh"];
    if let Some(proxy) = &options.proxy {
        entry.extend(proxy.forwarder.iter().map(String::as_str));
    }
    let ports: serde_json::Map<String, Value> =
        options.publish.iter().map(|port| (format!("{port}/tcp"), json!({}))).collect();
    Ok(json!({
        "Image": spec.image.as_deref().unwrap_or(&options.image),
        "Entrypoint": entry,
        "Cmd": [],
        "User": format!("{uid}:{gid}"),
        "WorkingDir": root,
        "Env": environment(spec, options),
        "Labels": labels,
        "ExposedPorts": ports,
        "StopTimeout": 2,
        "HostConfig": host_config(name, spec, options, root),
    }))
}

/// The body of the container that gives fresh volumes to the user of commands: root with this one capability,
/// briefly.
pub(super) fn give_volumes(name: &str, spec: &SandboxSpec, options: &DockerOptions) -> Value {
    let (uid, gid) = user(options);
    let own = own_volumes(name, options);
    let places = own.iter().map(|(volume, place)| (volume.as_str(), *place));
    let places: Vec<(&str, &str)> =
        places.chain(spec.volumes.iter().map(|(volume, place)| (volume.as_str(), place.as_str()))).collect();
    let mut entry = vec!["sh".to_owned(), "-c".to_owned(), "chown \"$@\"".to_owned(), "sh".to_owned()];
    entry.push(format!("{uid}:{gid}"));
    entry.extend(places.iter().map(|(_, place)| (*place).to_owned()));
    let mounts: Vec<Value> = places
        .iter()
        .map(
            |(volume, place)| json!({"Type": "volume", "Source": volume, "Target": place, "ReadOnly": false}),
        )
        .collect();
    json!({
        "Image": spec.image.as_deref().unwrap_or(&options.image),
        "Entrypoint": entry,
        "Cmd": [],
        "User": "0:0",
        "Labels": {LABEL_OURS: "true"},
        "HostConfig": {
            "Mounts": mounts,
            "NetworkMode": "none",
            "CapDrop": ["ALL"],
            "CapAdd": ["CHOWN"],
            "SecurityOpt": ["no-new-privileges"],
            "ReadonlyRootfs": true,
        },
    })
}

fn environment(spec: &SandboxSpec, options: &DockerOptions) -> Vec<String> {
    let mut env: Vec<String> = vec![format!("HOME={HOME}")];
    if let Some(proxy) = &options.proxy {
        let address = format!("http://127.0.0.1:{}", proxy.port);
        for name in ["HTTP_PROXY", "HTTPS_PROXY", "http_proxy", "https_proxy", "ALL_PROXY"] {
            env.push(format!("{name}={address}"));
        }
        env.push("NO_PROXY=localhost,127.0.0.1,::1".to_owned());
        env.push("no_proxy=localhost,127.0.0.1,::1".to_owned());
    }
    env.extend(spec.env.iter().map(|(name, value)| format!("{name}={value}")));
    // Last, so that nothing replaces it.
    env.push(format!("{MARK}={KEEPER}"));
    env
}

fn host_config(name: &str, spec: &SandboxSpec, options: &DockerOptions, root: &str) -> Value {
    let bytes = |gib: f64| (gib * 1024.0 * 1024.0 * 1024.0) as i64;
    let mount = |kind: &str, from: &str, to: &str, read_only: bool| json!({"Type": kind, "Source": from, "Target": to, "ReadOnly": read_only});
    let mut mounts: Vec<Value> = Vec::new();
    for (volume, place) in own_volumes(name, options) {
        mounts.push(mount("volume", &volume, place, false));
    }
    for (volume, place) in &spec.volumes {
        mounts.push(mount("volume", volume, place, false));
    }
    if options.workspace.is_some() {
        mounts.push(mount("bind", root, root, false));
    }
    for (path, writable) in &options.mounts {
        let path = path.to_string_lossy();
        mounts.push(mount("bind", &path, &path, !writable));
    }
    if let Some(proxy) = &options.proxy {
        let folder = proxy.host.parent().unwrap_or(Path::new("/nowhere"));
        mounts.push(mount("bind", &folder.to_string_lossy(), ProxySocket::INSIDE, true));
        if let Some(program) = &proxy.program {
            mounts.push(mount("bind", &program.to_string_lossy(), ProxySocket::PROGRAM, true));
        }
    }
    let bindings: serde_json::Map<String, Value> = options
        .publish
        .iter()
        .map(|port| (format!("{port}/tcp"), json!([{"HostIp": "127.0.0.1", "HostPort": ""}])))
        .collect();
    let memory = spec.resources.memory_gib.map_or(0, bytes);
    let network = match &options.network {
        Network::None => "none",
        Network::Named(name) => name,
    };
    json!({
        "Mounts": mounts,
        "NetworkMode": network,
        "PortBindings": bindings,
        "Privileged": false,
        // Commands run as one user, which owns its files, so no capability is needed.
        "CapDrop": ["ALL"],
        "SecurityOpt": ["no-new-privileges"],
        "ReadonlyRootfs": !options.writable_root,
        "Tmpfs": {
            "/tmp": format!("rw,exec,nosuid,nodev,mode=1777,size={}m", options.tmp_mib),
            "/run": "rw,noexec,nosuid,nodev,mode=0755,size=16m",
        },
        "PidsLimit": options.pids,
        "Memory": memory,
        // Equal to memory: no swap.
        "MemorySwap": memory,
        "NanoCpus": spec.resources.vcpu.map_or(0, |cpus| (cpus * 1e9) as i64),
        "IpcMode": "private",
        "RestartPolicy": {"Name": "no"},
    })
}
