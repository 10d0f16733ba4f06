//! Encrypts the server's secrets for one run. The process that holds a run publishes a public key, and the server encrypts for
//! it only what this run needs. Other workers and readers of the database can't decrypt it.

use crate::error::FleetError;
use crate::lease::Lease;
use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::agreement::{EphemeralPrivateKey, PublicKey, UnparsedPublicKey, X25519, agree_ephemeral};
use ring::hkdf::{HKDF_SHA256, Salt};
use ring::rand::SystemRandom;
use sqlx::{PgExecutor, PgPool};

/// Bytes of a public key.
const PUBLIC: usize = 32;
/// What the keys are for.
const PURPOSE: &[u8] = b"ralph fleet grant 1";

/// The key of one hold. It opens one grant.
pub struct GrantKey {
    private: EphemeralPrivateKey,
    public: PublicKey,
}

/// A hold whose process waits for its secrets.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The run.
    pub run: String,
    /// Which hold it is.
    pub epoch: i64,
    /// The worker that holds it.
    pub worker: Option<String>,
    /// Its public key.
    pub key: Vec<u8>,
    /// The names of what the run is given.
    pub secrets: Vec<String>,
}

from_row!(Wanted: run, epoch, worker, key, secrets);

fn failed() -> FleetError {
    FleetError::Setup {
        what: "the secrets of the run cannot be read".into(),
        hint: "server and worker must be of versions that know each other".into(),
    }
}

fn context(run: &str, epoch: i64) -> Vec<u8> {
    format!("{run}/{epoch}").into_bytes()
}

/// The key of one message, from what both sides know.
fn cipher(shared: &[u8], publics: [&[u8]; 2]) -> Option<LessSafeKey> {
    let salt = Salt::new(HKDF_SHA256, &publics.concat());
    let known = salt.extract(shared);
    let okm = known.expand(&[PURPOSE], &AES_256_GCM).ok()?;
    Some(LessSafeKey::new(UnboundKey::from(okm)))
}

/// The key is of one message, so the nonce need not be.
fn nonce() -> Nonce {
    Nonce::assume_unique_for_key([0; NONCE_LEN])
}

impl GrantKey {
    /// A new one.
    pub fn new() -> Result<Self, FleetError> {
        let private = EphemeralPrivateKey::generate(&X25519, &SystemRandom::new()).map_err(|_| failed())?;
        let public = private.compute_public_key().map_err(|_| failed())?;
        Ok(Self { private, public })
    }

    /// The part that others see.
    pub fn public(&self) -> &[u8] {
        self.public.as_ref()
    }

    fn open(self, run: &str, epoch: i64, sealed: &[u8]) -> Option<Vec<u8>> {
        let (theirs, text) = sealed.split_at_checked(PUBLIC)?;
        let own = self.public;
        let key = agree_ephemeral(self.private, &UnparsedPublicKey::new(&X25519, theirs), |shared| {
            cipher(shared, [theirs, own.as_ref()])
        });
        let mut bytes = text.to_vec();
        let plain = key.ok()??.open_in_place(nonce(), Aad::from(context(run, epoch)), &mut bytes).ok()?;
        Some(plain.to_vec())
    }
}

/// Encrypts what a run is given for the process that holds it.
fn seal(wanted: &Wanted, plain: &[u8]) -> Option<Vec<u8>> {
    let own = GrantKey::new().ok()?;
    let mine = own.public;
    let key = agree_ephemeral(own.private, &UnparsedPublicKey::new(&X25519, &wanted.key), |shared| {
        cipher(shared, [mine.as_ref(), &wanted.key])
    });
    let mut bytes = plain.to_vec();
    let context = Aad::from(context(&wanted.run, wanted.epoch));
    key.ok()??.seal_in_place_append_tag(nonce(), context, &mut bytes).ok()?;
    Some([mine.as_ref(), &bytes].concat())
}

/// Asks for what the run is given.
pub async fn ask(db: impl PgExecutor<'_>, lease: &Lease) -> Result<GrantKey, FleetError> {
    let key = GrantKey::new()?;
    sqlx::query("INSERT INTO ralph_seal.grants (run, epoch, key) VALUES ($1, $2, $3)")
        .bind(&lease.run)
        .bind(lease.epoch)
        .bind(key.public())
        .execute(db)
        .await?;
    Ok(key)
}

/// What the server has encrypted for this hold, once it has.
pub async fn answer(db: impl PgExecutor<'_>, lease: &Lease) -> Result<Option<Vec<u8>>, FleetError> {
    let sealed: Option<Option<Vec<u8>>> =
        sqlx::query_scalar("SELECT sealed FROM ralph_seal.grants WHERE run = $1 AND epoch = $2")
            .bind(&lease.run)
            .bind(lease.epoch)
            .fetch_optional(db)
            .await?;
    Ok(sealed.flatten())
}

/// Reads the answer. The key is used up by it.
pub fn read(key: GrantKey, lease: &Lease, sealed: &[u8]) -> Result<Vec<(String, String)>, FleetError> {
    let plain = key.open(&lease.run, lease.epoch, sealed).ok_or_else(failed)?;
    serde_json::from_slice(&plain).map_err(|_| failed())
}

/// Holds whose processes wait for secrets. Those of the past are forgotten with what they were given.
pub async fn wanted(pool: &PgPool) -> Result<Vec<Wanted>, FleetError> {
    sqlx::query(
        "DELETE FROM ralph_seal.grants g USING ralph_seal.leases l
         WHERE l.run = g.run AND (l.epoch <> g.epoch OR l.until IS NULL OR l.until <= now())",
    )
    .execute(pool)
    .await?;
    Ok(sqlx::query_as(
        "SELECT g.run, g.epoch, r.worker, g.key, r.secrets FROM ralph_seal.grants g
         JOIN ralph_seal.leases l ON l.run = g.run AND l.epoch = g.epoch
         JOIN ralph_seal.runs r ON r.run = g.run
         WHERE g.sealed IS NULL AND l.until > now() LIMIT 100",
    )
    .fetch_all(pool)
    .await?)
}

/// Gives a hold what it waits for.
pub async fn give(pool: &PgPool, wanted: &Wanted, values: &[(String, String)]) -> Result<(), FleetError> {
    let plain = serde_json::to_vec(values).map_err(|e| FleetError::Database(e.to_string()))?;
    let sealed = seal(wanted, &plain).ok_or_else(failed)?;
    sqlx::query("UPDATE ralph_seal.grants SET sealed = $3 WHERE run = $1 AND epoch = $2")
        .bind(&wanted.run)
        .bind(wanted.epoch)
        .bind(sealed)
        .execute(pool)
        .await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wanted(key: &GrantKey) -> Wanted {
        let (run, worker, secrets) = ("r1".into(), None, Vec::new());
        Wanted { run, epoch: 3, worker, key: key.public().to_vec(), secrets }
    }

    #[test]
    fn only_the_hold_that_asked_can_read_what_it_is_given() {
        let key = GrantKey::new().unwrap();
        let sealed = seal(&wanted(&key), b"sk-very-secret").unwrap();
        assert!(!sealed.windows(7).any(|part| part == b"sk-very"));
        assert_eq!(key.open("r1", 3, &sealed).unwrap(), b"sk-very-secret");
        let (one, two) = (GrantKey::new().unwrap(), GrantKey::new().unwrap());
        let sealed = seal(&wanted(&one), b"x").unwrap();
        assert!(two.open("r1", 3, &sealed).is_none(), "another key");
        assert!(one.open("r1", 4, &sealed).is_none(), "another hold");
        assert!(GrantKey::new().unwrap().open("r1", 3, b"short").is_none());
    }
}
