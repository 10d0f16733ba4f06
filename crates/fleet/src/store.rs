//! Where artifacts lie that a machine must not take along when it vanishes: a folder that all machines share, or an
//! S3-compatible bucket.

use crate::error::FleetError;
use futures_util::{StreamExt as _, TryStreamExt as _};
use object_store::aws::{AmazonS3Builder, AmazonS3ConfigKey};
use object_store::local::LocalFileSystem;
use object_store::path::Path as Key;
use object_store::prefix::PrefixStore;
use object_store::{ObjectStore, ObjectStoreExt as _, PutPayload};
use ralph_loop_domain::vars::Vars;
use ralph_loop_protocol::id::RunId;
use std::ffi::OsStr;
use std::path::Path;
use std::sync::Arc;

/// Bytes of one object.
pub const OBJECT_MAX: u64 = 512 * 1024 * 1024;

/// Objects that are kept at the same time.
const AT_ONCE: usize = 8;

/// The artifact store.
#[derive(Debug, Clone)]
pub struct ArtifactStore {
    store: Arc<dyn ObjectStore>,
    runtime: Arc<tokio::runtime::Runtime>,
}

/// Objects that are on their way into the store.
#[derive(Debug)]
pub struct Pending(tokio::task::JoinHandle<Result<(), FleetError>>);

/// An object and how large it is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stored {
    /// Its name.
    pub name: String,
    /// Its bytes.
    pub size: u64,
}

impl ArtifactStore {
    /// The store that `RALPH_ARTIFACTS` names: a folder, or `s3://bucket/prefix` with the usual `AWS_…` variables.
    pub fn of(vars: &Vars) -> Result<Self, FleetError> {
        let Some(place) = vars.filled("RALPH_ARTIFACTS") else {
            return Err(FleetError::Setup {
                what: "RALPH_ARTIFACTS does not say where artifacts are kept".into(),
                hint: "name a folder that all machines share, or a bucket: `s3://bucket/prefix`".into(),
            });
        };
        Self::at(&place, vars)
    }

    /// The store at this place.
    pub fn at(place: &str, vars: &Vars) -> Result<Self, FleetError> {
        let store: Arc<dyn ObjectStore> = match place.strip_prefix("s3://") {
            Some(rest) => bucket(rest, vars)?,
            None => Arc::new(folder(Path::new(place))?),
        };
        let runtime = tokio::runtime::Builder::new_multi_thread()
            .worker_threads(1)
            .enable_all()
            .build()
            .map_err(|e| FleetError::Store(e.to_string()))?;
        Ok(Self { store, runtime: Arc::new(runtime) })
    }

    /// Keeps an object, whole or not at all. Must not be called where a runtime waits for it.
    pub fn put(&self, name: &str, bytes: Vec<u8>) -> Result<(), FleetError> {
        let key = key(name)?;
        self.runtime.block_on(async {
            self.store.put(&key, PutPayload::from(bytes)).await?;
            Ok(())
        })
    }

    /// Begins to keep several objects, a few at a time: each one waits for a disk or for a network.
    pub fn put_soon(&self, objects: Vec<(String, Vec<u8>)>) -> Result<Pending, FleetError> {
        let objects = objects.into_iter().map(|(name, bytes)| Ok((key(&name)?, PutPayload::from(bytes))));
        let objects = objects.collect::<Result<Vec<_>, FleetError>>()?;
        let store = self.store.clone();
        Ok(Pending(self.runtime.spawn(async move {
            let puts = futures_util::stream::iter(objects)
                .map(|(key, bytes)| async { store.put(&{ key }, bytes).await })
                .buffer_unordered(AT_ONCE);
            puts.try_for_each(|_| async { Ok(()) }).await?;
            Ok(())
        })))
    }

    /// Waits until they are kept. Where one failed, any of them may be there. Must not be called where a runtime waits for it.
    pub fn wait(&self, pending: Pending) -> Result<(), FleetError> {
        self.runtime.block_on(pending.0).map_err(|e| FleetError::Store(e.to_string()))?
    }

    /// An object; `None` where there is none.
    pub fn get(&self, name: &str) -> Result<Option<Vec<u8>>, FleetError> {
        let key = key(name)?;
        self.runtime.block_on(async {
            let found = match self.store.get(&key).await {
                Err(object_store::Error::NotFound { .. }) => return Ok(None),
                found => found?,
            };
            if found.meta.size > OBJECT_MAX {
                return Err(FleetError::Store(format!("`{name}` has {} bytes", found.meta.size)));
            }
            Ok(Some(found.bytes().await?.to_vec()))
        })
    }

    /// Removes all that is kept of a run, of every hold on it.
    pub fn remove_run(&self, run: &RunId) -> Result<(), FleetError> {
        for stored in self.list(&format!("runs/{run}"))? {
            let key = key(&stored.name)?;
            match self.runtime.block_on(self.store.delete(&key)) {
                // Another process removed it first.
                Err(object_store::Error::NotFound { .. }) => {}
                removed => removed?,
            }
        }
        Ok(())
    }

    /// The objects below a prefix.
    pub fn list(&self, prefix: &str) -> Result<Vec<Stored>, FleetError> {
        let key = key(prefix)?;
        self.runtime.block_on(async {
            let all: Vec<_> = self.store.list(Some(&key)).try_collect().await?;
            let mut all: Vec<Stored> =
                all.into_iter().map(|m| Stored { name: m.location.to_string(), size: m.size }).collect();
            all.sort_by(|a, b| a.name.cmp(&b.name));
            Ok(all)
        })
    }
}

fn key(name: &str) -> Result<Key, FleetError> {
    Key::parse(name).map_err(|e| FleetError::Store(format!("`{name}` isn't an object name: {e}")))
}

fn folder(path: &Path) -> Result<LocalFileSystem, FleetError> {
    use std::os::unix::fs::DirBuilderExt as _;
    std::fs::DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(path)
        .map_err(|e| FleetError::Store(format!("cannot make the folder `{}`: {e}", path.display())))?;
    Ok(LocalFileSystem::new_with_prefix(path)?.with_fsync(true))
}

/// What opens a bucket.
const VARIABLES: [(&str, AmazonS3ConfigKey); 5] = [
    ("AWS_ACCESS_KEY_ID", AmazonS3ConfigKey::AccessKeyId),
    ("AWS_SECRET_ACCESS_KEY", AmazonS3ConfigKey::SecretAccessKey),
    ("AWS_SESSION_TOKEN", AmazonS3ConfigKey::Token),
    ("AWS_REGION", AmazonS3ConfigKey::Region),
    ("AWS_ENDPOINT_URL", AmazonS3ConfigKey::Endpoint),
];

/// Whether a variable of a worker opens the store of its fleet: nothing that a run of it may see.
pub fn is_own(name: &OsStr, vars: &Vars) -> bool {
    vars.filled("RALPH_ARTIFACTS").is_some_and(|place| place.starts_with("s3://"))
        && VARIABLES.iter().any(|(variable, _)| name == *variable)
}

fn bucket(rest: &str, vars: &Vars) -> Result<Arc<dyn ObjectStore>, FleetError> {
    let (name, prefix) = rest.split_once('/').unwrap_or((rest, ""));
    // The S3 client brings no crypto provider. A program that has already installed one keeps it.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let mut builder = AmazonS3Builder::new().with_bucket_name(name);
    for (variable, option) in VARIABLES {
        if let Some(value) = vars.filled(variable) {
            builder = builder.with_config(option, value);
        }
    }
    // A service of one's own on a private network often has no TLS; the address says so.
    let plain = vars.filled("AWS_ENDPOINT_URL").is_some_and(|url| url.starts_with("http://"));
    let store = builder.with_allow_http(plain).build()?;
    Ok(match prefix.trim_matches('/') {
        "" => Arc::new(store),
        prefix => Arc::new(PrefixStore::new(store, prefix)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_folder_keeps_what_was_put_and_lists_it() {
        let temp = tempfile::tempdir().unwrap();
        let store = ArtifactStore::at(&temp.path().display().to_string(), &Vars::default()).unwrap();
        store.put("runs/r/1/work.bundle", b"one".to_vec()).unwrap();
        store.put("runs/r/1/work.bundle", b"two".to_vec()).unwrap();
        let many = (0..20u8).map(|n| (format!("runs/q/1/{n}"), vec![n])).collect();
        store.wait(store.put_soon(many).unwrap()).unwrap();
        assert_eq!(store.list("runs/q").unwrap().len(), 20);
        assert_eq!(store.get("runs/q/1/7").unwrap().unwrap(), [7]);
        assert!(store.put_soon(vec![("../out".to_owned(), Vec::new())]).is_err());
        assert_eq!(store.get("runs/r/1/work.bundle").unwrap().unwrap(), b"two");
        assert_eq!(store.get("runs/r/1/absent").unwrap(), None);
        assert_eq!(store.list("runs/r").unwrap().len(), 1);
        store.put("runs/r-2/1/work.bundle", b"another run".to_vec()).unwrap();
        store.remove_run(&RunId::parse("r").unwrap()).unwrap();
        assert_eq!(store.list("runs/r").unwrap(), []);
        assert_eq!(store.list("runs/r-2").unwrap().len(), 1);
        assert!(store.put("../out", Vec::new()).is_err());
    }
}
