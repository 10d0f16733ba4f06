//! Landlock rules: the fallback if namespaces aren't allowed, and an extra layer otherwise.

use landlock::{
    ABI, Access as _, AccessFs, AccessNet, CompatLevel, Compatible as _, NetPort, PathBeneath, PathFd,
    Ruleset, RulesetAttr as _, RulesetCreatedAttr as _, RulesetStatus, Scope,
};
use std::path::PathBuf;

/// What is allowed; everything else isn't.
#[derive(Debug, Default)]
pub(in crate::local::isolation) struct Rules {
    /// Paths that can be read and executed.
    pub(in crate::local::isolation) read: Vec<PathBuf>,
    /// Paths that can also be changed.
    pub(in crate::local::isolation) write: Vec<PathBuf>,
    /// Ports that can be connected to.
    pub(in crate::local::isolation) connect: Vec<u16>,
}

/// The newest version known here; an older kernel applies what it knows, down to the version with TCP rules.
const NEWEST: ABI = ABI::V6;

/// Applies the rules to this process and its children.
pub(in crate::local::isolation) fn put_on(rules: &Rules) -> Result<(), String> {
    let failed = |error: landlock::RulesetError| format!("Landlock refused its rules: {error}");
    let all = AccessFs::from_all(NEWEST);
    let reading = AccessFs::from_read(NEWEST);
    let mut made = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        .handle_access(all)
        .map_err(failed)?
        // Binding a port is harmless: a dev server may.
        .handle_access(AccessNet::ConnectTcp)
        .map_err(failed)?
        .scope(Scope::AbstractUnixSocket | Scope::Signal)
        .map_err(failed)?
        .create()
        .map_err(failed)?;
    for (places, access) in [(&rules.read, reading), (&rules.write, all)] {
        for place in places {
            // A missing path needs no rule.
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

/// Keeps this process and its children from writing outside `places`. A read-only mount protects files, but not a
/// FIFO that another program of this user reads. Does nothing if the kernel lacks Landlock.
pub(in crate::local::isolation) fn limit_writes(places: &[PathBuf]) -> Result<(), String> {
    let failed = |error: landlock::RulesetError| format!("Landlock refused its rules: {error}");
    let mut made = Ruleset::default()
        .set_compatibility(CompatLevel::BestEffort)
        // Without handling `Refer`, nothing could be moved to another folder.
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
