//! Raw disks and file systems.

use super::Call;
use crate::guard::category::{Category, Refusal};

const TOOLS: &[&str] = &[
    "fdisk",
    "sfdisk",
    "gdisk",
    "sgdisk",
    "cfdisk",
    "parted",
    "wipefs",
    "blkdiscard",
    "hdparm",
    "lvremove",
    "vgremove",
    "pvremove",
    "mkswap",
    "swapoff",
    "cryptsetup",
    "mdadm",
    "zpool",
    "badblocks",
    "debugfs",
    "tune2fs",
    "resize2fs",
    "newfs",
    "format",
];

pub(super) fn rule(call: &Call<'_>) -> Option<Refusal> {
    let looks = call.has(&["-l", "--list", "list", "status", "print", "--help", "--version"]);
    if call.name == "mkfs" || call.name.starts_with("mkfs.") || call.name == "mke2fs" {
        return call.refuse(Category::Disk, "It makes a new file system in place of what is there.");
    }
    if TOOLS.contains(&call.name) && !looks && !call.args.is_empty() {
        return call.refuse(Category::Disk, "It changes a disk.");
    }
    if call.name == "diskutil" && call.args.iter().any(|arg| arg.text.to_lowercase().contains("erase")) {
        return call.refuse(Category::Disk, "It erases a disk.");
    }
    if ["dd", "dcfldd", "pv"].contains(&call.name) {
        let to = call.args.iter().find_map(|arg| arg.text.strip_prefix("of="))?;
        let (category, why) = call.places.writing(&(call.resolve)(to))?;
        return call.refuse(category, why);
    }
    None
}
