//! Plain names for Rust's number types.

/// The number type with an article; `None` for other types.
pub(crate) fn of_number(kind: &str) -> Option<String> {
    let up_to = |max: u64| format!("a whole number from 0 to {max}");
    Some(match kind {
        "u8" => up_to(u8::MAX.into()),
        "u16" => up_to(u16::MAX.into()),
        "u32" => up_to(u32::MAX.into()),
        "u64" | "usize" => "a whole number of at least 0".into(),
        "i8" | "i16" | "i32" | "i64" => "a whole number".into(),
        "f32" | "f64" | "floating point" => "a number".into(),
        _ => return None,
    })
}
