//! Leaving a container, or starting one that is none.

use super::Call;
use crate::guard::category::{Category, Refusal};

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let refuse = |why: &str| call.refuse(Category::Container, why);
    match call.name {
        "docker" | "podman" | "nerdctl" | "docker-compose" => engine(call),
        "nsenter" => refuse("It enters another container, or the machine itself."),
        "chroot" => refuse("It leaves the file system that it is in."),
        "mount" | "umount" if call.operands().count() > 0 => {
            refuse("It changes which file systems are there.")
        }
        "losetup" | "pivot_root" | "ctr" | "crictl" | "runc" => {
            refuse("It acts on the machine's containers.")
        }
        "kubectl"
            if call.has(&["--privileged"])
                || call
                    .args
                    .iter()
                    .any(|arg| arg.text.contains("hostPID") || arg.text.contains("\"privileged\":true")) =>
        {
            refuse("It starts a container with the rights of the machine.")
        }
        "curl"
            if call
                .value(&["--unix-socket"])
                .is_some_and(|socket| socket.ends_with("docker.sock") || socket.contains("containerd")) =>
        {
            refuse("It talks to the container engine past its own program.")
        }
        _ => None,
    }
}

fn engine(call: &Call<'_>) -> Option<Refusal> {
    let why = "It starts a container with the rights, folders or devices of the machine.";
    let rights = [
        "--privileged",
        "--pid=host",
        "--ipc=host",
        "--userns=host",
        "--uts=host",
        "--cap-add=ALL",
        "--cap-add=SYS_ADMIN",
        "--security-opt=seccomp=unconfined",
        "--security-opt=apparmor=unconfined",
    ];
    let pairs = [
        ("--pid", "host"),
        ("--ipc", "host"),
        ("--userns", "host"),
        ("--cap-add", "ALL"),
        ("--cap-add", "SYS_ADMIN"),
        ("--cap-add", "all"),
        ("--security-opt", "seccomp=unconfined"),
    ];
    let wide = call.has(&rights)
        || call.args.windows(2).any(|two| pairs.contains(&(two[0].text.as_str(), two[1].text.as_str())));
    let mounts = call.args.iter().enumerate().any(|(at, arg)| {
        let value = match arg.text.as_str() {
            "-v" | "--volume" | "--mount" | "--device" => {
                call.args.get(at + 1).map(|next| next.text.as_str())
            }
            text => text
                .strip_prefix("--volume=")
                .or_else(|| text.strip_prefix("--mount="))
                .or_else(|| text.strip_prefix("--device=")),
        };
        value.is_some_and(|value| is_machines(call, value))
    });
    if wide || mounts { call.refuse(Category::Container, why) } else { None }
}

/// Whether what is mounted belongs to the machine.
fn is_machines(call: &Call<'_>, value: &str) -> bool {
    let named =
        value.split(',').find_map(|part| part.strip_prefix("source=").or_else(|| part.strip_prefix("src=")));
    let source = named.unwrap_or_else(|| value.split(':').next().unwrap_or(value));
    if !source.starts_with(['/', '~', '.']) {
        return false;
    }
    let path = (call.resolve)(source);
    let socket =
        path.ends_with("docker.sock") || path.ends_with("containerd.sock") || path.ends_with("podman.sock");
    let whole = path == "/" || path == call.places.home || call.places.reading(&path).is_some();
    socket
        || whole
        || ["/etc", "/root", "/proc", "/sys", "/dev", "/var", "/var/run", "/boot", "/usr", "/home"]
            .contains(&path.as_str())
}
