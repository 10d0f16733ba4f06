//! Places with releases.

use crate::error::UpgradeError;
use crate::fetch::{Fetcher, Sink, is_safe};
use crate::version::Version;
use ralph_http::Url;

/// Where releases are, unless `RALPH_DOWNLOAD_URL` says otherwise.
pub const DEFAULT_BASE: &str = "https://github.com/ralph-loop/ralph/releases";

/// Bytes of a list of sums.
const SUMS_MAX: u64 = 256 * 1024;
/// Bytes of an archive.
const ARCHIVE_MAX: u64 = 512 * 1024 * 1024;

/// A place with releases.
#[derive(Debug)]
pub struct Releases {
    base: Url,
    fetcher: Fetcher,
}

/// The archives of one release with their sums.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Checksums {
    /// The version.
    pub version: Version,
    archives: Vec<(String, String)>,
}

impl Releases {
    /// The place that the variables name; proxies are theirs, too.
    pub fn from_vars(vars: &dyn Fn(&str) -> Option<String>) -> Result<Self, UpgradeError> {
        let named = vars("RALPH_DOWNLOAD_URL").filter(|text| !text.trim().is_empty());
        let address = named.unwrap_or_else(|| DEFAULT_BASE.to_owned());
        let base = Url::parse(address.trim().trim_end_matches('/')).ok().filter(is_safe);
        let base = base.ok_or_else(|| UpgradeError::Address { address: shown(&address) })?;
        Ok(Self { base, fetcher: Fetcher::new(vars)? })
    }

    /// The newest release.
    pub fn latest(&self) -> Result<Checksums, UpgradeError> {
        Checksums::parse(&self.text("the list of sums", "latest/download/SHA256SUMS")?)
    }

    /// This release.
    pub fn of(&self, version: &Version) -> Result<Checksums, UpgradeError> {
        let text =
            self.text(&format!("the list of sums of {version}"), &format!("download/v{version}/SHA256SUMS"))?;
        let sums = Checksums::parse(&text)?;
        match sums.version == *version {
            true => Ok(sums),
            false => Err(UpgradeError::Sums { reason: format!("it is that of {}", sums.version) }),
        }
    }

    pub(crate) fn archive(
        &self,
        version: &Version,
        name: &str,
        sink: &mut dyn Sink,
    ) -> Result<(), UpgradeError> {
        self.fetcher.fetch(name, &self.url(&format!("download/v{version}/{name}"))?, ARCHIVE_MAX, sink)
    }

    fn text(&self, what: &str, path: &str) -> Result<String, UpgradeError> {
        let mut bytes: Vec<u8> = Vec::new();
        self.fetcher.fetch(what, &self.url(path)?, SUMS_MAX, &mut bytes)?;
        String::from_utf8(bytes).map_err(|_| UpgradeError::Sums { reason: "it is no text".into() })
    }

    fn url(&self, path: &str) -> Result<Url, UpgradeError> {
        let address = format!("{}/{path}", self.base.as_str().trim_end_matches('/'));
        Url::parse(&address).map_err(|_| UpgradeError::Address { address: shown(&address) })
    }
}

/// An address without a login that may stand in it.
fn shown(address: &str) -> String {
    let short: String = address.chars().take(200).collect();
    match short.split_once("://").zip(short.rsplit_once('@')) {
        Some(((scheme, _), (_, rest))) => format!("{scheme}://{rest}"),
        None => short,
    }
}

impl Checksums {
    /// Reads lines of `sha256sum`: a sum, and the name of a file of the release. All archives are of one version.
    fn parse(text: &str) -> Result<Self, UpgradeError> {
        let wrong = |reason: String| UpgradeError::Sums { reason };
        let mut archives = Vec::new();
        let mut version: Option<Version> = None;
        for line in text.lines().filter(|line| !line.trim().is_empty()) {
            let (sum, name) = line
                .split_once(' ')
                .map(|(sum, name)| (sum, name.trim_start_matches([' ', '*'])))
                .filter(|(sum, name)| is_sum(sum) && is_name(name))
                .ok_or_else(|| wrong("a line is not a sum and a name".into()))?;
            let Some(of) = version_in(name) else { continue };
            if version.as_ref().is_some_and(|known| *known != of) {
                return Err(wrong(format!("it names archives of {of} and of another version")));
            }
            version = Some(of);
            archives.push((name.to_owned(), sum.to_ascii_lowercase()));
        }
        let version = version.ok_or_else(|| wrong("it names no archive".into()))?;
        Ok(Self { version, archives })
    }

    /// The archive for a target: its name and its sum.
    pub fn archive(&self, target: &str) -> Result<(&str, &str), UpgradeError> {
        let wanted = format!("ralph-{}-{target}.tar.gz", self.version);
        let found = self.archives.iter().find(|(name, _)| *name == wanted);
        let found = found.ok_or_else(|| UpgradeError::NoArchive { target: target.to_owned() })?;
        Ok((&found.0, &found.1))
    }
}

/// Whether it is a SHA-256 sum.
pub(crate) fn is_sum(text: &str) -> bool {
    text.len() == 64 && text.bytes().all(|b| b.is_ascii_hexdigit())
}

fn is_name(name: &str) -> bool {
    !name.is_empty()
        && !name.starts_with('.')
        && name.bytes().all(|b| b.is_ascii_alphanumeric() || b"._+-@~".contains(&b))
}

/// The version in `ralph-VERSION-TARGET.tar.gz`.
fn version_in(name: &str) -> Option<Version> {
    let middle = name.strip_prefix("ralph-")?.strip_suffix(".tar.gz")?;
    let arch = ["-x86_64-", "-aarch64-"].into_iter().find_map(|arch| middle.find(arch))?;
    Version::parse(&middle[..arch]).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    const SUM: &str = "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

    #[test]
    fn the_list_of_sums_names_version_and_archives() {
        let text = format!(
            "{SUM}  ralph-0.2.0-rc.1-x86_64-unknown-linux-gnu.tar.gz\n{SUM} *ralph-0.2.0-rc.1-aarch64-apple-darwin.tar.gz\n{SUM}  ralph_0.2.0_amd64.deb\n"
        );
        let sums = Checksums::parse(&text).unwrap();
        assert_eq!(sums.version.to_string(), "0.2.0-rc.1");
        let (name, sum) = sums.archive("aarch64-apple-darwin").unwrap();
        assert_eq!((name, sum), ("ralph-0.2.0-rc.1-aarch64-apple-darwin.tar.gz", SUM));
        assert!(matches!(sums.archive("riscv64-unknown-linux-gnu"), Err(UpgradeError::NoArchive { .. })));
    }

    #[test]
    fn a_list_that_is_none_is_refused() {
        let two = format!("{SUM}  ralph-0.1.0-x86_64-a.tar.gz\n{SUM}  ralph-0.2.0-x86_64-a.tar.gz\n");
        let path = format!("{SUM}  ../ralph-0.1.0-x86_64-a.tar.gz\n");
        for text in ["", "<html>", &SUM[1..], &format!("{SUM}  notes.txt"), &two, &path] {
            assert!(Checksums::parse(text).is_err(), "{text}");
        }
    }

    #[test]
    fn only_addresses_over_tls_or_on_this_machine_are_taken() {
        let of = |address: &'static str| {
            Releases::from_vars(&move |name| (name == "RALPH_DOWNLOAD_URL").then(|| address.to_owned()))
        };
        for good in ["https://mirror.example/ralph/", "http://127.0.0.1:8000", " "] {
            assert!(of(good).is_ok(), "{good}");
        }
        for bad in ["http://mirror.example", "file:///srv", "mirror.example", "javascript:alert(1)"] {
            assert!(matches!(of(bad), Err(UpgradeError::Address { .. })), "{bad}");
        }
        let login = of("http://me:hunter2@mirror.example").unwrap_err().to_string();
        assert!(!login.contains("hunter2"), "{login}");
    }
}
