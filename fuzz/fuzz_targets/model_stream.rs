//! Answers of models: any bytes in any chunking, on every wire, streamed or whole, are read or refused.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_agents::models::read_anything;
use ralph_domain::config::Wire;

fuzz_target!(|data: (u8, Vec<u8>)| {
    let (size, bytes) = data;
    let pieces: Vec<&[u8]> = bytes.chunks(usize::from(size).max(1)).collect();
    for wire in [Wire::Anthropic, Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Gemini] {
        assert!(read_anything(wire, &pieces, true) <= 3 * bytes.len());
        read_anything(wire, &pieces, false);
    }
});
