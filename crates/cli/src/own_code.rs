//! The memory that this program's own code takes.
//!
//! Where one page of a file is needed, the system maps fifteen more around it, as long as they belong to the same mapping. Over a
//! run that touches a bit of everything, most of a large binary is mapped that way, though little of it is needed. A word to the
//! system about every second block of the code makes many small mappings of the one large: then only what stands close by comes
//! along.
#![allow(unsafe_code, reason = "a word to the system about this program's own code")]

use nix::libc;

/// Bytes of code that may come together.
const BLOCK: usize = 8 * 1024;

/// Lets the code of this program come in small blocks. Nothing happens where the system does not tell where it is.
pub fn in_small_blocks() {
    let Some((start, length)) = mapping() else { return };
    for at in (0..length).step_by(2 * BLOCK) {
        let size = BLOCK.min(length - at);
        // SAFETY: the range is part of this program's own code; the word is about reading ahead and changes nothing in it.
        let _ = unsafe { libc::madvise((start + at) as *mut libc::c_void, size, libc::MADV_RANDOM) };
    }
}

/// Where the code of this program is mapped, and how long that is.
fn mapping() -> Option<(usize, usize)> {
    let here = in_small_blocks as fn() as usize;
    let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
    maps.lines().find_map(|line| {
        let (start, rest) = line.split_once('-')?;
        let (end, rest) = rest.split_once(' ')?;
        let start = usize::from_str_radix(start, 16).ok()?;
        let length = usize::from_str_radix(end, 16).ok()?.checked_sub(start)?;
        (rest.starts_with("r-xp") && start <= here && here - start < length).then_some((start, length))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_code_is_in_many_mappings_then_and_runs() {
        let (_, before) = mapping().expect("this program has code");
        in_small_blocks();
        let (_, after) = mapping().expect("this program has code");
        assert!(after <= BLOCK && after < before, "{before} bytes, then {after}");
    }
}
