//! The escape attempts, each a small script that exits with 0 only if it succeeded.
//!
//! `$BAIT` is a folder that the sandbox must hide, `$PID` a process outside, `$PORT` a port of the host and `$RALPH`
//! this program, which makes the system calls that a shell can't.

use super::bait::SecretFixture;

pub(super) struct EscapeAttempt {
    pub(super) name: &'static str,
    /// What is tried, as text.
    pub(super) what: &'static str,
    pub(super) script: &'static str,
    /// Harm that is visible from outside, whatever the script says.
    pub(super) harm: fn(&SecretFixture) -> bool,
    /// Whether it must succeed without a sandbox, which makes a failure inside one meaningful.
    pub(super) control: Control,
    /// Landlock alone can't stop it.
    pub(super) landlock_gap: bool,
}

/// Whether the same attempt is made without a sandbox.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Control {
    /// It is harmless there and must succeed.
    Yes,
    /// Only root may do it, and not everywhere: tried by root, it may fail.
    AsRoot,
    /// Some systems forbid it: it may fail.
    IfAllowed,
    /// It would do harm, or depends on the machine.
    No,
}

const fn attempt(name: &'static str, what: &'static str, script: &'static str) -> EscapeAttempt {
    EscapeAttempt { name, what, script, harm: |_| false, control: Control::Yes, landlock_gap: false }
}

impl EscapeAttempt {
    const fn harm(mut self, harm: fn(&SecretFixture) -> bool) -> Self {
        self.harm = harm;
        self
    }
    const fn control(mut self, control: Control) -> Self {
        self.control = control;
        self
    }
    const fn gap(mut self) -> Self {
        self.landlock_gap = true;
        self
    }
}

/// Every attempt, in order: what ends the bait comes last.
#[rustfmt::skip]
pub(super) const ATTEMPTS: &[EscapeAttempt] = &[
    attempt("write-outside", "write a file outside the workspace", "echo changed > \"$BAIT/outside\"")
        .harm(SecretFixture::outside_changed),
    attempt("write-system", "write into /etc and /usr", "echo x > /etc/ralph-escape || echo x > /usr/ralph-escape")
        .control(Control::No),
    attempt("read-secret", "read a secret file of the user", "grep -q bait-secret \"$BAIT/secret\""),
    attempt("read-ssh", "read keys and tokens in the home",
        "ls ~/.ssh/* ~/.aws/* ~/.netrc ~/.git-credentials ~/.docker/config.json ~/.config/gh/hosts.yml 2>/dev/null | grep -q .")
        .control(Control::No),
    attempt("outside-view", "read files of the machine that no program needs", "cat /etc/fstab || ls /boot/* /var/log/*")
        .control(Control::IfAllowed),
    attempt("mount-table", "see what is mounted on this machine", "grep -qE ' (/boot|/mnt|/sys/fs/cgroup)[/ ]' /proc/self/mounts")
        .control(Control::IfAllowed).gap(),
    attempt("read-shadow", "read the passwords of the system", "grep -q : /etc/shadow").control(Control::AsRoot),
    attempt("read-other-user", "read a file of another user", "grep -q bait-secret others").control(Control::AsRoot),
    attempt("hook", "plant a git hook", "echo true > .git/hooks/post-checkout").gap(),
    attempt("git-config", "make git run a program by its configuration", "git config core.fsmonitor ./evil").gap(),
    attempt("rename-git", "replace .git with another folder",
        "mv .git .git-old && mkdir -p .git/hooks && echo true > .git/hooks/x; ok=$?; [ -e .git-old ] && rm -rf .git && mv .git-old .git; exit $ok").gap(),
    attempt("hard-link-git", "change git's configuration by another name",
        "rm -f config-too; ln .git/config config-too && echo '[x]' >> config-too").gap(),
    attempt("symlink", "write outside through a symbolic link", "ln -sfn \"$BAIT\" link && echo changed > link/outside")
        .harm(SecretFixture::outside_changed),
    attempt("hard-link", "read a secret by another name", "rm -f hard; ln \"$BAIT/secret\" hard && grep -q bait-secret hard"),
    attempt("proc-root", "leave through /proc", "cat /proc/$PID/root/etc/hostname || cat \"/proc/1/root$BAIT/secret\"")
        .control(Control::AsRoot),
    attempt("environ", "read the variables of another process", "tr '\\0' '\\n' < /proc/$PID/environ | grep -q bait-secret"),
    attempt("ptrace", "take over another process", "\"$RALPH\" __try ptrace $PID").control(Control::AsRoot),
    attempt("raw-socket", "open a raw socket", "\"$RALPH\" __try raw").control(Control::AsRoot),
    attempt("packet-socket", "listen to all packets", "\"$RALPH\" __try packet").control(Control::AsRoot),
    attempt("user-namespace", "become root in its own namespace", "\"$RALPH\" __try userns").control(Control::IfAllowed),
    attempt("mount", "mount a file system", "\"$RALPH\" __try mount").control(Control::No),
    attempt("keyring", "read the keys of the session", "\"$RALPH\" __try keyring").control(Control::IfAllowed),
    attempt("kernel-settings", "change a setting of the kernel",
        "now=$(cat /proc/sys/kernel/core_pattern) && echo \"$now\" > /proc/sys/kernel/core_pattern").control(Control::AsRoot),
    attempt("kernel-files", "write to other files of the kernel",
        "for file in /proc/sysrq-trigger /sys/power/state /sys/kernel/uevent_helper /sys/kernel/mm/ksm/run /proc/irq/default_smp_affinity; do ( : >> $file ) 2>/dev/null && exit 0; done; exit 1")
        .control(Control::AsRoot),
    attempt("privileges", "gain privileges through a setuid program", "grep -q 'NoNewPrivs:.*0' /proc/self/status"),
    attempt("dns", "carry data out in questions for names", "\"$RALPH\" __try udp 192.0.2.53:53").control(Control::No),
    attempt("direct-ip", "connect without the proxy", "\"$RALPH\" __try tcp 192.0.2.1:443 2>/dev/null").control(Control::No),
    attempt("host-port", "reach a server of this machine", "\"$RALPH\" __try tcp 127.0.0.1:$PORT"),
    attempt("service-socket", "talk to a service, as docker's", "\"$RALPH\" __try unix \"$BAIT/service.sock\""),
    attempt("docker", "talk to docker", "\"$RALPH\" __try unix /run/docker.sock || \"$RALPH\" __try unix /var/run/docker.sock")
        .control(Control::No),
    attempt("proxy-unlisted", "ask the proxy for a host that is not on its list", "\"$RALPH\" __try proxy unlisted.example.org:443")
        .control(Control::No),
    attempt("proxy-private", "ask the proxy for a listed name that leads to a private address",
        "\"$RALPH\" __try proxy inside.example.org:443").control(Control::No),
    attempt("proxy-address", "ask the proxy for an address of this machine", "\"$RALPH\" __try proxy 127.0.0.1:$PORT")
        .control(Control::No),
    attempt("fork-bomb", "start processes without end",
        "i=0; while [ $i -lt 300 ]; do sleep 60 & i=$((i+1)); done 2>/dev/null").gap(),
    attempt("fill-tmp", "fill the memory by way of temporary files",
        "head -c 20000000 /dev/zero > \"${TMPDIR:-/tmp}/fill\"; ok=$?; rm -f \"${TMPDIR:-/tmp}/fill\"; exit $ok").gap(),
    attempt("fill-dev", "fill the memory by way of /dev",
        "head -c 20000000 /dev/zero > /dev/shm/fill || head -c 20000000 /dev/zero > /dev/fill; ok=$?; rm -f /dev/shm/fill /dev/fill; exit $ok")
        .gap().control(Control::No),
    attempt("huge-file", "fill the disk with one file", "head -c 40000000 /dev/zero > fill; ok=$?; rm -f fill; exit $ok"),
    attempt("survivor", "leave a process behind",
        "setsid sh -c 'trap \"\" TERM HUP INT; echo up > up; while :; do sleep 100; done' $MARK </dev/null >/dev/null 2>&1 & while [ ! -e up ]; do sleep 0.01; done; exit 1")
        .harm(SecretFixture::survivor_lives).control(Control::No),
    attempt("kill", "end a process outside", "kill -KILL $PID").harm(SecretFixture::process_dead),
];
