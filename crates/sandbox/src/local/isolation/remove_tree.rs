//! Removing what a command has left.

use std::fs;
use std::path::Path;

/// Removes a folder, also one whose folders were made read-only, as Go does with its modules.
pub(super) fn remove_tree(path: &Path) {
    use std::os::unix::fs::PermissionsExt as _;
    if fs::remove_dir_all(path).is_ok() {
        return;
    }
    let mut open = vec![path.to_owned()];
    while let Some(folder) = open.pop() {
        if fs::symlink_metadata(&folder).is_ok_and(|about| about.is_dir()) {
            fs::set_permissions(&folder, fs::Permissions::from_mode(0o700)).ok();
            let entries = fs::read_dir(&folder).into_iter().flatten().flatten();
            open.extend(entries.filter(|e| e.file_type().is_ok_and(|k| k.is_dir())).map(|e| e.path()));
        }
    }
    fs::remove_dir_all(path).ok();
}
