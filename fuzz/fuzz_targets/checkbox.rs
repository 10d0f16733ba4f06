//! Ticking a box changes exactly one byte, and unticking brings the text back.
#![no_main]

use libfuzzer_sys::fuzz_target;
use ralph_domain::dialect::checkbox;

fuzz_target!(|text: &str| {
    for found in checkbox::read(text, 0).boxes {
        let Ok(ticked) = checkbox::tick(text, &found.id) else { continue };
        assert_eq!(ticked.len(), text.len());
        let changed = ticked.bytes().zip(text.bytes()).filter(|(a, b)| a != b).count();
        assert!(changed <= 1);
    }
});
