//! The only place that sets up TLS: ring for cryptography, the machine's certificates for trust.

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::path::Path;
use std::sync::{Arc, OnceLock};

pub use rustls::pki_types::ServerName;
pub use rustls::{ClientConnection, StreamOwned};

/// TLS can't be set up, usually because the machine has no certificates.
#[derive(Debug, Clone, thiserror::Error)]
#[error("TLS cannot be set up: {0}")]
pub struct TlsError(String);

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self(error.to_string())
    }
}

/// Trusts the machine's certificates, which are read once per process.
pub fn client_config() -> Result<Arc<ClientConfig>, TlsError> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let config = Arc::new(builder.with_platform_verifier()?.with_no_client_auth());
    Ok(Arc::clone(CONFIG.get_or_init(|| config)))
}

/// Trusts one CA (default: the machine's) and presents a certificate if given with its key. All are PEM files.
pub fn client_config_of_files(
    authority: Option<&Path>,
    identity: Option<(&Path, &Path)>,
) -> Result<Arc<ClientConfig>, TlsError> {
    let unread = |path: &Path, why: String| TlsError(format!("`{}` cannot be read: {why}", path.display()));
    let certificates = |path: &Path| -> Result<Vec<CertificateDer<'static>>, TlsError> {
        let all = CertificateDer::pem_file_iter(path).and_then(|all| all.collect::<Result<Vec<_>, _>>());
        all.map_err(|error| unread(path, error.to_string()))
    };
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let builder = match authority {
        None => builder.with_platform_verifier()?,
        Some(path) => {
            let mut roots = RootCertStore::empty();
            for certificate in certificates(path)? {
                roots.add(certificate)?;
            }
            builder.with_root_certificates(roots)
        }
    };
    let config = match identity {
        None => builder.with_no_client_auth(),
        Some((certificate, key)) => {
            let secret = PrivateKeyDer::from_pem_file(key).map_err(|error| unread(key, error.to_string()))?;
            builder.with_client_auth_cert(certificates(certificate)?, secret)?
        }
    };
    Ok(Arc::new(config))
}

/// Trusts no certificate: for URLs without TLS on machines without certificates.
pub(crate) fn config_without_roots() -> Result<Arc<ClientConfig>, TlsError> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    Ok(Arc::new(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()))
}

/// The cryptography of every TLS connection here.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(ring::default_provider())))
}
