//! GitHub Apps: a token signed with the App's key, and installation tokens.

use super::state::{Holder, Reach, State};
use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::signature::{RSA_PKCS1_2048_8192_SHA256, RsaKeyPair, UnparsedPublicKey};
use serde_json::{Value, json};

/// A key made for these tests, PKCS#1.
const KEY: &[u8] = include_bytes!("app-key.der");
pub(crate) const INSTALLATION: u64 = 77;
pub(crate) const SLUG: &str = "ralph-test";

pub(crate) fn pem() -> String {
    armour("RSA PRIVATE KEY", KEY)
}

/// The same key in the format of other tools.
pub(crate) fn pem_pkcs8() -> String {
    // SEQUENCE { 0, { rsaEncryption, NULL }, OCTET STRING { key } }
    let mut inner = vec![2, 1, 0, 0x30, 13, 6, 9, 0x2a, 0x86, 0x48, 0x86, 0xf7, 0x0d, 1, 1, 1, 5, 0];
    inner.extend(long(4, KEY));
    armour("PRIVATE KEY", &long(0x30, &inner))
}

/// A DER value of more than 255 bytes.
fn long(tag: u8, content: &[u8]) -> Vec<u8> {
    let length = u16::try_from(content.len()).unwrap_or(u16::MAX).to_be_bytes();
    [&[tag, 0x82, length[0], length[1]], content].concat()
}

fn armour(label: &str, der: &[u8]) -> String {
    let text = STANDARD.encode(der);
    let lines: Vec<&str> =
        text.as_bytes().chunks(64).filter_map(|line| std::str::from_utf8(line).ok()).collect();
    format!("-----BEGIN {label}-----\n{}\n-----END {label}-----\n", lines.join("\n"))
}

/// Checks that the App signed a token recently; `Err` has the reason.
pub(crate) fn check(jwt: &str, app_id: &str, now: i64) -> Result<(), &'static str> {
    let (signed, signature) = jwt.rsplit_once('.').ok_or("A JSON web token could not be decoded")?;
    let (header, claims) = signed.split_once('.').ok_or("A JSON web token could not be decoded")?;
    let decoded =
        |text: &str| -> Option<Value> { serde_json::from_slice(&URL_SAFE_NO_PAD.decode(text).ok()?).ok() };
    let (header, claims) =
        decoded(header).zip(decoded(claims)).ok_or("A JSON web token could not be decoded")?;
    let pair = RsaKeyPair::from_der(KEY).map_err(|_| "the fake's own key is broken")?;
    let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| "A JSON web token could not be decoded")?;
    let key = UnparsedPublicKey::new(&RSA_PKCS1_2048_8192_SHA256, pair.public().as_ref());
    if header["alg"] != "RS256" || key.verify(signed.as_bytes(), &signature).is_err() {
        return Err("A JSON web token could not be decoded");
    }
    let (iat, exp) = (claims["iat"].as_i64().unwrap_or(i64::MAX), claims["exp"].as_i64().unwrap_or(0));
    if claims["iss"].as_str() != Some(app_id) {
        return Err("'Issuer' claim ('iss') must be the App's id");
    }
    if exp <= now || exp > now + 600 {
        return Err("'Expiration time' claim ('exp') is too far in the future");
    }
    if iat > now {
        return Err("'Issued at' claim ('iat') must be in the past");
    }
    Ok(())
}

pub(crate) fn issue(state: &mut State, now: i64) -> Value {
    state.issued += 1;
    let token = ["ghs", "fake", &format!("{:016}", state.issued)].join("_");
    let expires = now + state.lifetime;
    let login = format!("{SLUG}[bot]");
    state.holders.insert(token.clone(), Holder { login, reach: Reach::Write, expires: Some(expires) });
    json!({
        "token": token,
        "expires_at": jiff::Timestamp::from_second(expires).unwrap_or_default().to_string(),
        "permissions": { "contents": "write", "pull_requests": "write", "metadata": "read" },
        "repository_selection": "selected",
    })
}
