//! Any bytes in any chunking: the readers of all wires never panic and never report more than they received.

use proptest::prelude::*;
use ralph_loop_agents::models::read_anything;
use ralph_loop_task::config::Wire;

const WIRES: [Wire; 4] = [Wire::Anthropic, Wire::OpenaiChat, Wire::OpenaiResponses, Wire::Gemini];

/// Words that wires are made of, so that chance gets past the first brace.
const WORDS: &[&str] = &[
    "data: ",
    "event: ",
    "\n",
    "\n\n",
    "\r\n\r\n",
    "{",
    "}",
    "[",
    "]",
    ":",
    ",",
    "\"",
    "null",
    "1",
    "-1",
    "1e999",
    "[DONE]",
    "\"type\":",
    "\"content_block_start\"",
    "\"content_block_delta\"",
    "\"content_block\":{\"type\":\"text\",\"text\":\"a\"}",
    "\"delta\":{\"type\":\"input_json_delta\",\"partial_json\":\"{\"}",
    "\"index\":18446744073709551615",
    "\"choices\":[{\"delta\":{",
    "\"tool_calls\":[{\"index\":9,\"function\":{\"arguments\":\"x\"}}]",
    "\"candidates\":[{\"content\":{\"parts\":[",
    "\"functionCall\":{}",
    "\"usage\":{\"prompt_tokens\":1,\"prompt_tokens_details\":{\"cached_tokens\":5}}",
    "\"error\":",
    "\"response\":{\"output\":[]}",
    "\"response.completed\"",
    "\"message_stop\"",
    "\u{feff}",
];

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]
    #[test]
    fn any_answer_is_read_or_refused(
        words in proptest::collection::vec(
            prop_oneof![
                4 => (0..WORDS.len()).prop_map(|n| WORDS[n].as_bytes().to_vec()),
                1 => proptest::collection::vec(any::<u8>(), 0..20),
            ],
            0..60,
        ),
        size in 1usize..40,
    ) {
        let bytes = words.concat();
        let pieces: Vec<&[u8]> = bytes.chunks(size).collect();
        for wire in WIRES {
            // A byte that isn't valid text becomes a character of three bytes.
            prop_assert!(read_anything(wire, &pieces, true) <= 3 * bytes.len());
            read_anything(wire, &pieces, false);
        }
    }
}
