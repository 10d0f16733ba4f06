//! The text of a call that was already passed on.

use ralph_loop_domain::model::ModelSink;

/// What the sink has received, so that a retry doesn't repeat it.
#[derive(Debug, Default)]
pub(crate) struct StreamedText {
    said: String,
    /// How much of it this try has produced.
    at: usize,
}

impl StreamedText {
    pub fn restart(&mut self) {
        self.at = 0;
    }

    pub fn push(&mut self, piece: &str, sink: &mut dyn ModelSink) {
        let known = self.said[self.at..].bytes().zip(piece.bytes()).take_while(|(a, b)| a == b).count();
        // The common prefix of two texts may end within a character.
        let known = (0..=known).rev().find(|n| piece.is_char_boundary(*n)).unwrap_or(0);
        let new = &piece[known..];
        self.at += known;
        if new.is_empty() {
            return;
        }
        if self.at < self.said.len() {
            // This try differs from here on.
            self.said.truncate(self.at);
            sink.text("\n");
        }
        self.said.push_str(new);
        self.at = self.said.len();
        sink.text(new);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use ralph_loop_domain::ports::StopCause;
    use std::ops::ControlFlow;
    use std::time::Duration;

    #[derive(Default)]
    struct TextSink(String);

    impl ModelSink for TextSink {
        fn text(&mut self, piece: &str) {
            self.0.push_str(piece);
        }
        fn waiting(&mut self, _: Duration, _: &str) {}
        fn poll(&mut self) -> ControlFlow<StopCause> {
            ControlFlow::Continue(())
        }
    }

    fn heard(tries: &[&[&str]]) -> String {
        let (mut streamed, mut sink) = (StreamedText::default(), TextSink::default());
        for pieces in tries {
            streamed.restart();
            pieces.iter().for_each(|piece| streamed.push(piece, &mut sink));
        }
        sink.0
    }

    #[test]
    fn retry_streams_only_new_text() {
        assert_eq!(heard(&[&["Hel", "lo"], &["H", "ello wor", "ld"]]), "Hello world");
        assert_eq!(heard(&[&["Hello wor"], &["He"], &["Hello world"]]), "Hello world");
        assert_eq!(heard(&[&["Good day"], &["Good night", " all"]]), "Good day\nnight all");
        assert_eq!(heard(&[&["Zo\u{eb}"], &["Zo\u{ea}"]]), "Zo\u{eb}\n\u{ea}", "letters stay whole");
    }
}
