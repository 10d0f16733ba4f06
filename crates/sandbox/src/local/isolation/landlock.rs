//! Landlock rules: the second choice where namespaces are not allowed, and one more wall where they are.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use std::path::PathBuf;

/// What is allowed; everything else is not.
#[derive(Debug, Default)]
pub(super) struct Rules {
    /// Places that can be read, and programs run from.
    pub(super) read: Vec<PathBuf>,
    /// Places that can be changed, too.
    pub(super) write: Vec<PathBuf>,
    /// Ports that can be connected to.
    pub(super) connect: Vec<u16>,
}

/// The newest form that is known here; an older kernel takes what it knows, down to the one with rules for TCP.
const NEWEST: ABI = ABI::V6;

/// Puts the rules on this process and all it starts.
pub(super) fn put_on(rules: &Rules) -> Result<(), String> {
    let failed = |error: landlock::RulesetError| format!("Landlock refused its rules: {error}");
    let all = AccessFs::from_all(NEWEST);
    let reading = AccessFs::from_read(NEWEST);
    let mut made = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .map_err(failed)?
        // Binding a port harms nobody: a dev server may.
        .handle_access(AccessNet::ConnectTcp)
        .map_err(failed)?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)
        .map_err(failed)?
        .create()
        .map_err(failed)?;
    for (places, access) in [(&rules.read, reading), (&rules.write, all)] {
        for place in places {
            // What is missing needs no rule.
            let Ok(opened) = PathFd::new(place) else { continue };
            let access = if place.is_dir() { access } else { access & AccessFs::from_file(NEWEST) };
            made = made.add_rule(PathBeneath::new(opened, access)).map_err(failed)?;
        }
    }
    for port in &rules.connect {
        made = made.add_rule(NetPort::new(*port, AccessNet::ConnectTcp)).map_err(failed)?;
    }
    let status = made.restrict_self().map_err(failed)?;
    if status.ruleset == RulesetStatus::NotEnforced {
        return Err("Landlock is not enforced on this system".to_owned());
    }
    Ok(())
}

/// Keeps this process and all it starts from writing outside `places`. A read-only mount stops files from being written, but
/// not a FIFO that another program of this user reads. Where the kernel knows no Landlock, nothing happens.
pub(super) fn limit_writes(places: &[PathBuf]) -> Result<(), String> {
    let failed = |error: landlock::RulesetError| format!("Landlock refused its rules: {error}");
    let mut made = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        // Without a word about it, nothing could be moved to another folder.
        .handle_access(AccessFs::WriteFile | AccessFs::Refer)
        .map_err(failed)?
        .create()
        .map_err(failed)?;
    if let Ok(everywhere) = PathFd::new("/") {
        made = made.add_rule(PathBeneath::new(everywhere, AccessFs::Refer)).map_err(failed)?;
    }
    for place in places {
        let Ok(opened) = PathFd::new(place) else { continue };
        made = made.add_rule(PathBeneath::new(opened, AccessFs::WriteFile)).map_err(failed)?;
    }
    made.restrict_self().map(drop).map_err(failed)
}
