//! Another version of `ralph` in the place of this one, from the archives that `scripts/release` makes and `install.sh` takes.
//!
//! - [`Releases`] is a place with releases: `latest/download/SHA256SUMS` names the newest version and the sum of each archive,
//!   `download/vVERSION/` holds them. Nothing else is asked, and nothing is sent.
//! - [`Place`] is where this program was installed, with the list of what was put there. What came from a package manager is
//!   refused: that one would not know.
//! - [`take`] downloads an archive into the place, compares its sum, unpacks it beside what is there, tries whether it starts,
//!   and only then renames file by file, the program last. Until there, whatever goes wrong leaves the old version as it was.

mod archive;
mod error;
mod fetch;
mod place;
mod releases;
mod take;
mod target;
mod version;

pub use error::UpgradeError;
pub use place::Place;
pub use releases::{Checksums, DEFAULT_BASE, Releases};
pub use take::{Taken, take};
pub use target::target;
pub use version::Version;
