//! The system calls that a sandboxed command doesn't get.
//!
//! Everything else is allowed: an allowlist would break the next version of some compiler. These change the machine,
//! inspect other processes, or have been used for sandbox escapes.

use nix::libc;
use seccompiler::{
    BpfProgram, SeccompAction, SeccompCmpArgLen as Len, SeccompCmpOp as Op, SeccompCondition as Condition,
    SeccompFilter, SeccompRule, TargetArch,
};
use std::collections::BTreeMap;

/// Which ways to other processes and hosts only the filter can close.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(in crate::local::isolation) enum Network {
    /// The command has a separate network namespace.
    Namespace,
    /// It shares the machine's: no datagrams (the proxy resolves names) and no sockets in the file system.
    Shared,
}

/// Missing in musl's list for arm64.
#[cfg(all(target_arch = "aarch64", target_env = "musl"))]
const KEXEC_FILE_LOAD: i64 = 294;
#[cfg(not(all(target_arch = "aarch64", target_env = "musl")))]
const KEXEC_FILE_LOAD: i64 = libc::SYS_kexec_file_load;

/// No build, test or agent needs these.
#[rustfmt::skip]
const DENIED: &[i64] = &[
    libc::SYS_mount, libc::SYS_umount2, libc::SYS_pivot_root, libc::SYS_chroot, libc::SYS_move_mount,
    libc::SYS_open_tree, libc::SYS_fsopen, libc::SYS_fsconfig, libc::SYS_fsmount, libc::SYS_fspick,
    libc::SYS_mount_setattr, libc::SYS_setns,
    libc::SYS_ptrace, libc::SYS_process_vm_readv, libc::SYS_process_vm_writev, libc::SYS_pidfd_getfd,
    libc::SYS_kcmp, libc::SYS_process_madvise,
    libc::SYS_keyctl, libc::SYS_add_key, libc::SYS_request_key,
    libc::SYS_bpf, libc::SYS_userfaultfd, libc::SYS_perf_event_open,
    libc::SYS_io_uring_setup, libc::SYS_io_uring_enter, libc::SYS_io_uring_register,
    libc::SYS_kexec_load, KEXEC_FILE_LOAD,
    libc::SYS_init_module, libc::SYS_finit_module, libc::SYS_delete_module,
    libc::SYS_reboot, libc::SYS_swapon, libc::SYS_swapoff, libc::SYS_acct, libc::SYS_syslog,
    libc::SYS_quotactl, libc::SYS_open_by_handle_at, libc::SYS_lookup_dcookie, libc::SYS_vhangup,
    libc::SYS_settimeofday, libc::SYS_clock_settime, libc::SYS_sethostname, libc::SYS_setdomainname,
];

/// What a watcher must see.
const WATCHED_CALLS: &[i64] = &[
    libc::SYS_openat,
    libc::SYS_openat2,
    libc::SYS_execve,
    libc::SYS_execveat,
    libc::SYS_renameat,
    libc::SYS_renameat2,
    libc::SYS_unlinkat,
    libc::SYS_linkat,
    libc::SYS_symlinkat,
    libc::SYS_truncate,
    libc::SYS_connect,
];
/// Their old forms, which not every architecture has.
#[cfg(target_arch = "x86_64")]
const OLD_CALLS: &[i64] =
    &[libc::SYS_open, libc::SYS_creat, libc::SYS_rename, libc::SYS_unlink, libc::SYS_link, libc::SYS_symlink];
#[cfg(not(target_arch = "x86_64"))]
const OLD_CALLS: &[i64] = &[];

/// Every kind of `CLONE_NEW…`.
const NAMESPACES: [libc::c_int; 8] = [
    libc::CLONE_NEWNS,
    libc::CLONE_NEWCGROUP,
    libc::CLONE_NEWUTS,
    libc::CLONE_NEWIPC,
    libc::CLONE_NEWUSER,
    libc::CLONE_NEWPID,
    libc::CLONE_NEWNET,
    0x80,
];

/// Socket families that lead into the kernel or past the network namespace.
const FAMILIES: [libc::c_int; 8] = [
    libc::AF_PACKET,
    libc::AF_KEY,
    libc::AF_ALG,
    libc::AF_VSOCK,
    libc::AF_BLUETOOTH,
    libc::AF_CAN,
    libc::AF_TIPC,
    libc::AF_XDP,
];

/// On x86-64 the kernel may also accept the numbers of its x32 form, which must not bypass the filter.
const X32: i64 = 0x4000_0000;
/// Calls with a separate number there.
const X32_OWN: [i64; 4] = [521, 528, 539, 540];
const X32_IOCTL: i64 = 514;

type Rules = BTreeMap<i64, Vec<SeccompRule>>;
type Built<T> = Result<T, seccompiler::BackendError>;

/// Applies the filter to this process and its children, which also can't gain privileges any more. A watcher, if any,
/// decides each call that opens, replaces or runs a file.
pub(in crate::local::isolation) fn put_on(network: Network, watched: bool) -> Result<(), String> {
    let programs = programs(network).map_err(|error| error.to_string())?;
    let told = match watched {
        true => Some(watching().map_err(|error| error.to_string())?),
        false => None,
    };
    for program in programs.into_iter().chain(told) {
        seccompiler::apply_filter(&program).map_err(|error| error.to_string())?;
    }
    Ok(())
}

fn programs(network: Network) -> Built<[BpfProgram; 2]> {
    // Its flags are in memory, which a filter can't read. "Not implemented" makes every libc fall back to `clone`.
    let absent: Rules = [(libc::SYS_clone3, Vec::new())].into();
    Ok([program(absent, libc::ENOSYS)?, program(rules(network)?, libc::EPERM)?])
}

/// The filter that stops a process for its watcher.
fn watching() -> Built<BpfProgram> {
    let mut rules: Rules = WATCHED_CALLS.iter().map(|call| (*call, Vec::new())).collect();
    if cfg!(target_arch = "x86_64") {
        rules.extend(OLD_CALLS.iter().map(|call| (*call, Vec::new())));
    }
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    SeccompFilter::new(rules, SeccompAction::Allow, SeccompAction::Trace(0), arch)?.try_into()
}

fn program(rules: Rules, errno: i32) -> Built<BpfProgram> {
    let arch = TargetArch::try_from(std::env::consts::ARCH)?;
    let answer = SeccompAction::Errno(u32::try_from(errno).unwrap_or(1));
    SeccompFilter::new(rules, SeccompAction::Allow, answer, arch)?.try_into()
}

fn rules(network: Network) -> Built<Rules> {
    let mut rules = Rules::new();
    for call in DENIED {
        rules.insert(*call, Vec::new());
    }
    let spaces = || -> Built<Vec<SeccompRule>> {
        NAMESPACES.iter().map(|bit| rule([has_bits(0, number(*bit))?])).collect()
    };
    rules.insert(libc::SYS_clone, spaces()?);
    rules.insert(libc::SYS_unshare, spaces()?);
    // Types into a terminal as its owner.
    let typing = || -> Built<Vec<SeccompRule>> {
        [0x5412, 0x541C].into_iter().map(|command| rule([is(1, command)?])).collect()
    };
    rules.insert(libc::SYS_ioctl, typing()?);
    rules.insert(libc::SYS_socket, sockets(network)?);
    if cfg!(target_arch = "x86_64") {
        let same_calls: Vec<(i64, Vec<SeccompRule>)> =
            rules.iter().map(|(call, rules)| (call | X32, rules.clone())).collect();
        rules.extend(same_calls);
        rules.extend(X32_OWN.map(|call| (call | X32, Vec::new())));
        rules.insert(X32_IOCTL | X32, typing()?);
        rules.insert(libc::SYS_clone3 | X32, Vec::new());
    }
    Ok(rules)
}

fn sockets(network: Network) -> Built<Vec<SeccompRule>> {
    let mut rules: Vec<SeccompRule> =
        FAMILIES.iter().map(|family| rule([is(0, number(*family))?])).collect::<Built<_>>()?;
    // Of netlink only the protocol that lists interfaces.
    rules.push(rule([is(0, number(libc::AF_NETLINK))?, not(2, 0)?])?);
    for family in [libc::AF_INET, libc::AF_INET6] {
        rules.push(rule([is(0, number(family))?, kind(libc::SOCK_RAW)?])?);
        if network == Network::Shared {
            rules.push(rule([is(0, number(family))?, kind(libc::SOCK_DGRAM)?])?);
        }
    }
    if network == Network::Shared {
        rules.push(rule([is(0, number(libc::AF_UNIX))?])?);
    }
    Ok(rules)
}

fn number(value: libc::c_int) -> u64 {
    u64::from(value.cast_unsigned())
}

fn rule<const N: usize>(conditions: [Condition; N]) -> Built<SeccompRule> {
    SeccompRule::new(conditions.to_vec())
}

fn is(argument: u8, value: u64) -> Built<Condition> {
    Condition::new(argument, Len::Dword, Op::Eq, value)
}

fn not(argument: u8, value: u64) -> Built<Condition> {
    Condition::new(argument, Len::Dword, Op::Ne, value)
}

fn has_bits(argument: u8, bits: u64) -> Built<Condition> {
    Condition::new(argument, Len::Dword, Op::MaskedEq(bits), bits)
}

/// A socket's type, without the flags in the same argument.
fn kind(kind: libc::c_int) -> Built<Condition> {
    Condition::new(1, Len::Dword, Op::MaskedEq(0xf), number(kind))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filters_are_valid_and_fit_into_the_kernel() {
        for network in [Network::Namespace, Network::Shared] {
            for program in programs(network).unwrap() {
                assert!(!program.is_empty() && program.len() < 4096, "{}", program.len());
            }
        }
    }
}
