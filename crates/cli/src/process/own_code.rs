//! Reduces the memory used by this program's code.
//!
//! On a page fault the kernel also maps fifteen surrounding pages of the same mapping, so over time most of a
//! large binary becomes resident. `madvise` on alternating blocks splits one large mapping into many small
//! ones, so page faults bring in less.
#![allow(unsafe_code, reason = "a word to the system about this program's own code")]

use nix::libc;

/// Block size.
const BLOCK: usize = 8 * 1024;

/// Splits the code mapping into blocks, if the kernel reports where it is.
pub fn in_small_blocks() {
    let Some((start, length)) = mapping() else { return };
    for at in (0..length).step_by(2 * BLOCK) {
        let size = BLOCK.min(length - at);
        // SAFETY: the range is this program's own code, and the advice only affects read-ahead.
        let _ = unsafe { libc::madvise((start + at) as *mut libc::c_void, size, libc::MADV_RANDOM) };
    }
}

/// Address and length of the code mapping.
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
