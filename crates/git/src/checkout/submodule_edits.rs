//! Finds edits in pinned submodules, which no commit records. Uses a private index and objects of the user's repo,
//! and no setting, filter or hook of the submodule.

use crate::checkout::submodules::{pinned, store_of, stores};
use crate::error::Result;
use crate::hand_back::apply::stat_of_file;
use crate::objects::private_index::PrivateIndex;
use crate::repo::Repo;
use crate::snapshot::entry::text;
use ralph_loop_protocol::id::RunId;
use ralph_loop_safe_fs::{Kind, SafeDir};
use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::Path;

const DEPTH_MAX: usize = 8;
const NAMED_MAX: usize = 1000;

/// The files below `top`, a checkout of `commit`, that differ from the pinned submodules: changed, removed and new
/// ones, except those that the submodule ignores. Each comes with a fingerprint that shows whether it was written
/// since.
pub(crate) fn edited(
    source: &Repo,
    run: &RunId,
    commit: &str,
    top: &Path,
) -> Result<BTreeMap<String, String>> {
    let mut found = BTreeMap::new();
    if !std::fs::symlink_metadata(top.join(".gitmodules")).is_ok_and(|meta| meta.is_file()) {
        return Ok(found);
    }
    let git = source.git();
    let mut left: Vec<_> = pinned(&git, commit, None)?.into_iter().map(|one| (Vec::new(), one, 0)).collect();
    let stores = stores(source);
    let dir = SafeDir::open(top).map_err(|e| crate::error::Error::file("open", top, e))?;
    while let Some((above, one, depth)) = left.pop() {
        let Some(store) = store_of(&git, &stores, &one.commit) else { continue };
        let path = [above.as_slice(), one.path.as_slice()].concat();
        let is_folder = dir.facts(OsStr::from_bytes(&path)).is_ok_and(|facts| facts.kind == Kind::Folder);
        if !is_folder || found.len() >= NAMED_MAX {
            continue;
        }
        let place = top.join(OsStr::from_bytes(&path));
        let own = source.git().with_work_tree(&place);
        let index = PrivateIndex::new(source, run)?;
        let look = |args: &[&str]| {
            index
                .call(&own, args)
                .env("GIT_ALTERNATE_OBJECT_DIRECTORIES", &store)
                .env("GIT_ATTR_SOURCE", source.object_format.id_of("tree", b"").to_string())
                .accept(&[1])
                .run()
        };
        look(&["read-tree", &one.commit])?;
        look(&["update-index", "-q", "--refresh"])?;
        let changed = look(&["diff-files", "--name-only", "-z", "--ignore-submodules=all"])?.stdout;
        let new = look(&["ls-files", "-o", "--exclude-standard", "-z"])?.stdout;
        for name in changed.split(|b| *b == 0).chain(new.split(|b| *b == 0)).filter(|name| !name.is_empty()) {
            if found.len() < NAMED_MAX {
                let stamp = format!("{:?}", stat_of_file(&place, name));
                found.insert(text(&[path.as_slice(), b"/", name].concat()), stamp);
            }
        }
        if depth < DEPTH_MAX {
            let above = [path.as_slice(), b"/"].concat();
            let inner = pinned(&git, &one.commit, Some(&store))?;
            left.extend(inner.into_iter().map(|one| (above.clone(), one, depth + 1)));
        }
    }
    Ok(found)
}
