//! Login codes: a URL with a code logs in without a token, once, within a minute.

use super::{random_bytes, same};
use ralph_loop_app::AppError;
use std::sync::Mutex;
use std::time::{Duration, Instant};

/// Lifetime of a code.
const AGE: Duration = Duration::from_secs(60);
/// Pending codes.
const MOST: usize = 8;

/// The pending codes.
#[derive(Debug, Default)]
pub struct LoginCodes(Mutex<Vec<(String, Instant)>>);

impl LoginCodes {
    pub fn make(&self) -> Result<String, AppError> {
        let code = ralph_loop_protocol::id::hex(&random_bytes::<16>()?);
        let mut codes = self.0.lock().unwrap_or_else(|e| e.into_inner());
        codes.retain(|(_, at)| at.elapsed() < AGE);
        if codes.len() >= MOST {
            codes.remove(0);
        }
        codes.push((code.clone(), Instant::now()));
        Ok(code)
    }

    /// Whether the code is valid; uses it up.
    pub fn take(&self, code: &str) -> bool {
        let mut codes = self.0.lock().unwrap_or_else(|e| e.into_inner());
        codes.retain(|(_, at)| at.elapsed() < AGE);
        let before = codes.len();
        codes.retain(|(known, _)| !same(known.as_bytes(), code.as_bytes()));
        codes.len() < before
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_code_works_once() {
        let codes = LoginCodes::default();
        let code = codes.make().unwrap();
        assert!(!codes.take("x"));
        assert!(codes.take(&code));
        assert!(!codes.take(&code));
    }
}
