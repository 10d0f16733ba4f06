//! The keys that a type reads, taken from its derive, because a separate list would go stale.

use serde::de::{DeserializeOwned, Deserializer, Error, Visitor};
use std::fmt::{Display, Formatter};

/// The keys of a struct, aliases included.
pub(crate) fn keys_of<T: DeserializeOwned>() -> &'static [&'static str] {
    match T::deserialize(KeyProbe) {
        Err(Keys(keys)) => keys,
        Ok(_) => &[],
    }
}

/// Fails at once: a struct tells its keys before it reads a value.
struct KeyProbe;

#[derive(Debug)]
struct Keys(&'static [&'static str]);

impl Display for Keys {
    fn fmt(&self, f: &mut Formatter<'_>) -> std::fmt::Result {
        f.write_str("only the keys are read")
    }
}

impl std::error::Error for Keys {}

impl Error for Keys {
    fn custom<T: Display>(_: T) -> Self {
        Self(&[])
    }
}

impl<'de> Deserializer<'de> for KeyProbe {
    type Error = Keys;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Keys> {
        Err(Keys(&[]))
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        _: &'static str,
        keys: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Keys> {
        Err(Keys(keys))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 u8 u16 u32 u64 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}
