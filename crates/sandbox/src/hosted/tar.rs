//! Archives for sandboxes: plain files and links only.
//!
//! Writes a format that every `tar` reads (GNU's long names); reads what GNU, busybox and bsd `tar` write.

use ::tar::{Archive, Builder, EntryType, Header};
use std::collections::HashMap;
use std::io::Read as _;

const BLOCK: u64 = 512;
/// Most bytes of hard-linked files in an archive, beyond its own size.
const AGAIN_MAX: usize = 64 * 1024 * 1024;
/// Longest link target in a header.
const LINK_MAX: usize = 100;

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct Member {
    /// Its path below the root, without `./`.
    pub(super) path: String,
    pub(super) mode: u32,
    pub(super) body: Body,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Body {
    File(Vec<u8>),
    Link(String),
}

pub(super) struct Writer(Builder<Vec<u8>>);

impl Default for Writer {
    fn default() -> Self {
        Self(Builder::new(Vec::new()))
    }
}

impl Writer {
    pub(super) fn len(&self) -> usize {
        self.0.get_ref().len()
    }

    /// Adds a member; refuses a path that leads out of the root.
    pub(super) fn add(&mut self, member: &Member) -> std::io::Result<()> {
        let mut header = Header::new_gnu();
        header.set_mode(member.mode & 0o777);
        header.set_mtime(0);
        header.set_uid(0);
        header.set_gid(0);
        match &member.body {
            Body::File(bytes) => {
                header.set_entry_type(EntryType::Regular);
                header.set_size(bytes.len() as u64);
                self.0.append_data(&mut header, &member.path, bytes.as_slice())
            }
            Body::Link(to) => {
                header.set_entry_type(EntryType::Symlink);
                header.set_size(0);
                if to.len() > LINK_MAX {
                    return self.0.append_link(&mut header, &member.path, to);
                }
                // Literal: the other method would normalize it.
                header.set_link_name_literal(to)?;
                self.0.append_data(&mut header, &member.path, std::io::empty())
            }
        }
    }

    pub(super) fn finish(self) -> std::io::Result<Vec<u8>> {
        self.0.into_inner()
    }
}

/// The members of an archive; an error says what is wrong with it. Skips folders, devices and pipes.
pub(super) fn read(archive: &[u8]) -> Result<Vec<Member>, String> {
    let mut members: Vec<Member> = Vec::new();
    let mut by_path: HashMap<String, usize> = HashMap::new();
    let (mut end, mut again) = (0, 0);
    let broken = |error: std::io::Error| error.to_string();
    for entry in Archive::new(archive).entries().map_err(broken)? {
        let mut entry = entry.map_err(broken)?;
        end = entry.raw_file_position() + entry.size().next_multiple_of(BLOCK);
        let path = text(&entry.path_bytes());
        let link = entry.link_name_bytes().map(|bytes| text(&bytes)).unwrap_or_default();
        let mode = entry.header().mode().map_err(broken)? & 0o777;
        let body = match entry.header().entry_type() {
            EntryType::Regular => {
                let mut bytes = Vec::new();
                entry.read_to_end(&mut bytes).map_err(broken)?;
                // The reader takes the end of the input for the end of a file.
                if bytes.len() as u64 != entry.size() {
                    return Err("the archive ends in the middle of a file".to_owned());
                }
                Some(Body::File(bytes))
            }
            EntryType::Symlink => Some(Body::Link(link)),
            // Another name of an earlier file.
            EntryType::Link => {
                let member = by_path.get(link.trim_start_matches("./")).and_then(|at| members.get(*at));
                // A header of 512 bytes can refer to a whole file: few of them must not fill the memory.
                if let Some(Body::File(bytes)) = member.map(|member| &member.body) {
                    again += bytes.len();
                }
                if again > archive.len() + AGAIN_MAX {
                    return Err("the archive names the same files again and again".to_owned());
                }
                member.map(|member| member.body.clone())
            }
            _ => None,
        };
        let path = path.trim_start_matches("./").to_owned();
        if let Some(body) = body {
            by_path.entry(path.clone()).or_insert(members.len());
            members.push(Member { path, mode, body });
        }
    }
    // The reader also accepts an archive that was cut off between two members.
    let after = usize::try_from(end).ok().and_then(|end| archive.get(end..)?.get(..BLOCK as usize));
    match after {
        Some(block) if block.iter().all(|byte| *byte == 0) => Ok(members),
        _ => Err("the archive has no end".to_owned()),
    }
}

/// Lossy names differ from every real one.
fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample() -> Vec<Member> {
        let file = |path: &str, mode, bytes: &[u8]| Member {
            path: path.into(),
            mode,
            body: Body::File(bytes.into()),
        };
        vec![
            file("a.txt", 0o644, b"hello"),
            file("ü/run.sh", 0o755, &[0, 255, 10]),
            file(&format!("{}/x", "long".repeat(40)), 0o600, &[7; 1000]),
            Member { path: "link".into(), mode: 0o777, body: Body::Link("t".repeat(150)) },
            Member { path: "short".into(), mode: 0o777, body: Body::Link(".././a//b/./c/".into()) },
        ]
    }

    #[test]
    fn archive_round_trip_keeps_members() {
        let mut writer = Writer::default();
        sample().iter().for_each(|member| writer.add(member).unwrap());
        assert_eq!(read(&writer.finish().unwrap()).unwrap(), sample());
    }

    #[test]
    fn truncated_archive_is_refused() {
        let mut writer = Writer::default();
        sample().iter().for_each(|member| writer.add(member).unwrap());
        let whole = writer.finish().unwrap();
        for (cut, why) in [
            (100, "failed to read entire block"),
            (512, "the archive ends in the middle of a file"),
            (600, "unexpected EOF during skip"),
            (whole.len() - 1024, "the archive has no end"),
        ] {
            assert_eq!(read(&whole[..cut]).unwrap_err(), why, "{cut}");
        }
    }

    #[test]
    fn no_path_leads_out_of_the_root() {
        for path in ["/etc/passwd", "../x", "a/../../x"] {
            let member = Member { path: path.into(), mode: 0o644, body: Body::File(Vec::new()) };
            let refused = Writer::default().add(&member).unwrap_err().to_string();
            assert!(refused.starts_with("paths in archives must"), "{path}: {refused}");
        }
    }

    #[test]
    #[allow(clippy::disallowed_methods, reason = "asks the system's own tar")]
    fn archives_of_the_systems_own_tar_are_read() {
        let folder = tempfile::tempdir().unwrap();
        let long = format!("{0}/{0}", "long".repeat(20));
        std::fs::create_dir_all(folder.path().join(&long)).unwrap();
        std::fs::write(folder.path().join(&long).join("a.txt"), "hello").unwrap();
        std::fs::write(folder.path().join("short"), "hello").unwrap();
        std::fs::hard_link(folder.path().join("short"), folder.path().join("twin")).unwrap();
        std::os::unix::fs::symlink("a//b", folder.path().join("link")).unwrap();
        for format in ["gnu", "pax", "ustar"] {
            let tar = std::process::Command::new("tar")
                .arg(format!("--format={format}"))
                .args(["--sort=name", "-cf", "-", "."])
                .current_dir(folder.path())
                .output()
                .unwrap();
            let members = read(&tar.stdout).unwrap();
            let bodies: Vec<(&str, &Body)> = members.iter().map(|m| (m.path.as_str(), &m.body)).collect();
            let hello = Body::File(b"hello".into());
            let inner = format!("{long}/a.txt");
            let want = [
                ("link", &Body::Link("a//b".into())),
                (inner.as_str(), &hello),
                ("short", &hello),
                ("twin", &hello),
            ];
            assert_eq!(bodies, want, "{format}");
        }
    }
}
