//! The few archives that are sent to an engine: a build's files, and a folder's owner.

/// One member.
pub(super) struct Member<'a> {
    pub(super) name: &'a str,
    pub(super) mode: u32,
    pub(super) owner: (u32, u32),
    /// `None` for a folder.
    pub(super) content: Option<&'a [u8]>,
}

/// An archive in the old plain format (`ustar`).
pub(super) fn archive(members: &[Member<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for member in members {
        let content = member.content.unwrap_or_default();
        out.extend_from_slice(&header(member, content.len()));
        out.extend_from_slice(content);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

fn header(member: &Member<'_>, length: usize) -> [u8; 512] {
    let mut head = [0u8; 512];
    let mut put = |at: usize, text: &str, room: usize| {
        for (place, byte) in head.iter_mut().skip(at).take(room).zip(text.bytes()) {
            *place = byte;
        }
    };
    put(0, member.name, 100);
    put(100, &format!("{:07o}", member.mode), 8);
    put(108, &format!("{:07o}", member.owner.0), 8);
    put(116, &format!("{:07o}", member.owner.1), 8);
    put(124, &format!("{length:011o}"), 12);
    put(136, &format!("{:011o}", 0), 12);
    // The sum is taken over a head whose own sum is blank.
    put(148, "        ", 8);
    put(156, if member.content.is_some() { "0" } else { "5" }, 1);
    put(257, "ustar\x0000", 8);
    let sum: u32 = head.iter().map(|byte| u32::from(*byte)).sum();
    let text = format!("{sum:06o}\0 ");
    for (place, byte) in head.iter_mut().skip(148).zip(text.bytes()) {
        *place = byte;
    }
    head
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_and_sum() {
        let file = Member { name: "Dockerfile", mode: 0o644, owner: (0, 0), content: Some(b"FROM x\n") };
        let folder = Member { name: "./", mode: 0o755, owner: (1000, 1000), content: None };
        let bytes = archive(&[file, folder]);
        assert_eq!(bytes.len(), 512 + 512 + 512 + 1024);
        let head = &bytes[..512];
        let told = u32::from_str_radix(std::str::from_utf8(&head[148..154]).unwrap(), 8).unwrap();
        let blank =
            head.iter().enumerate().map(|(at, b)| if (148..156).contains(&at) { 32 } else { u32::from(*b) });
        assert_eq!(told, blank.sum::<u32>());
    }
}
