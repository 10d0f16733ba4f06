//! Splits a command's two output streams: a header of eight bytes before each piece names its stream and length.

use ralph_loop_domain::ports::Stream;

#[derive(Debug, Default)]
pub(super) struct Frames {
    head: Vec<u8>,
    left: usize,
    stream: Option<Stream>,
}

impl Frames {
    pub(super) fn feed(&mut self, mut bytes: &[u8], out: &mut dyn FnMut(Stream, &[u8])) {
        while !bytes.is_empty() {
            if self.left > 0 {
                let (piece, rest) = bytes.split_at(self.left.min(bytes.len()));
                self.left -= piece.len();
                bytes = rest;
                if let Some(stream) = self.stream {
                    out(stream, piece);
                }
                continue;
            }
            let (piece, rest) = bytes.split_at((8 - self.head.len()).min(bytes.len()));
            self.head.extend_from_slice(piece);
            bytes = rest;
            if let [kind, _, _, _, a, b, c, d] = *self.head.as_slice() {
                self.stream = match kind {
                    1 => Some(Stream::Stdout),
                    2 => Some(Stream::Stderr),
                    _ => None,
                };
                self.left = u32::from_be_bytes([a, b, c, d]) as usize;
                self.head.clear();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pieces_of_any_size_are_put_together() {
        let mut wire = Vec::new();
        for (kind, text) in [(1u8, "out"), (2, "error"), (1, ""), (1, "put")] {
            wire.extend([kind, 0, 0, 0]);
            wire.extend(u32::try_from(text.len()).unwrap().to_be_bytes());
            wire.extend(text.as_bytes());
        }
        for size in 1..wire.len() {
            let (mut frames, mut out, mut err) = (Frames::default(), Vec::new(), Vec::new());
            for piece in wire.chunks(size) {
                frames.feed(piece, &mut |stream, bytes| match stream {
                    Stream::Stdout => out.extend_from_slice(bytes),
                    Stream::Stderr => err.extend_from_slice(bytes),
                });
            }
            assert_eq!((out.as_slice(), err.as_slice()), (&b"output"[..], &b"error"[..]), "pieces of {size}");
        }
    }
}
