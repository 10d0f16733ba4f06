//! The memory that this program's own code takes.
//!
//! Where one page of a file is needed, the system maps fifteen more around it. Over a run that touches a bit of everything, most of
//! a large binary is mapped that way, though a step needs little of it. Between two steps the pages are given back: what the next
//! one needs comes from the page cache, without reading anything.
#![allow(unsafe_code, reason = "a word to the system about this program's own code")]

use nix::libc;

/// Where the code of this program is mapped.
#[derive(Debug, Clone, Copy)]
pub struct OwnCode {
    start: usize,
    length: usize,
}

impl OwnCode {
    /// Finds it; nothing where the system does not tell.
    pub fn find() -> Option<Self> {
        let here = Self::find as fn() -> Option<Self> as usize;
        let maps = std::fs::read_to_string("/proc/self/maps").ok()?;
        maps.lines().find_map(|line| {
            let (start, rest) = line.split_once('-')?;
            let (end, rest) = rest.split_once(' ')?;
            let start = usize::from_str_radix(start, 16).ok()?;
            let length = usize::from_str_radix(end, 16).ok()?.checked_sub(start)?;
            // Code that nobody may write is as it is in the file: nothing is lost with its pages.
            (rest.starts_with("r-xp") && start <= here && here - start < length)
                .then_some(Self { start, length })
        })
    }

    /// Gives its pages back.
    pub fn give_back(self) {
        // SAFETY: the range is a private mapping of this program's file that was never writable, so that a page that is needed
        // again is the same page.
        let _ = unsafe { libc::madvise(self.start as *mut libc::c_void, self.length, libc::MADV_DONTNEED) };
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_that_was_given_back_runs_again() {
        let code = OwnCode::find().expect("this program has code");
        for _ in 0..100 {
            code.give_back();
            assert_eq!("12".parse::<u8>().map(|n| n + 1), Ok(13));
        }
    }
}
