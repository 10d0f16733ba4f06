//! The archive that an engine builds an image from.

/// One member.
pub(super) struct Member<'a> {
    pub(super) name: &'a str,
    pub(super) content: &'a [u8],
}

/// An archive in the old plain format (`ustar`).
pub(super) fn archive(members: &[Member<'_>]) -> Vec<u8> {
    let mut out = Vec::new();
    for member in members {
        out.extend_from_slice(&header(member));
        out.extend_from_slice(member.content);
        out.resize(out.len().next_multiple_of(512), 0);
    }
    out.resize(out.len() + 1024, 0);
    out
}

fn header(member: &Member<'_>) -> [u8; 512] {
    let mut head = [0u8; 512];
    let mut put = |at: usize, text: &str, room: usize| {
        for (place, byte) in head.iter_mut().skip(at).take(room).zip(text.bytes()) {
            *place = byte;
        }
    };
    put(0, member.name, 100);
    put(100, "0000644", 8);
    put(108, "0000000", 8);
    put(116, "0000000", 8);
    put(124, &format!("{:011o}", member.content.len()), 12);
    put(136, &format!("{:011o}", 0), 12);
    // The sum is taken over a head whose own sum is blank.
    put(148, "        ", 8);
    put(156, "0", 1);
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
        let file = Member { name: "Dockerfile", content: b"FROM x\n" };
        let bytes = archive(&[file]);
        assert_eq!(bytes.len(), 512 + 512 + 1024);
        let head = &bytes[..512];
        let told = u32::from_str_radix(std::str::from_utf8(&head[148..154]).unwrap(), 8).unwrap();
        let blank =
            head.iter().enumerate().map(|(at, b)| if (148..156).contains(&at) { 32 } else { u32::from(*b) });
        assert_eq!(told, blank.sum::<u32>());
    }
}
