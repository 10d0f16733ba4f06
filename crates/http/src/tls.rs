//! The one place that sets TLS up: ring as the cryptography, the machine's own certificates as what is trusted.

use rustls::crypto::{CryptoProvider, ring};
use rustls::{ClientConfig, RootCertStore};
use rustls_platform_verifier::BuilderVerifierExt as _;
use std::sync::{Arc, OnceLock};

/// TLS cannot be set up: usually, the machine has no certificates.
#[derive(Debug, Clone, thiserror::Error)]
#[error("TLS cannot be set up: {0}")]
pub struct TlsError(String);

impl From<rustls::Error> for TlsError {
    fn from(error: rustls::Error) -> Self {
        Self(error.to_string())
    }
}

/// Trusts what the machine trusts. The certificates are read once in the life of a process.
pub fn client_config() -> Result<Arc<ClientConfig>, TlsError> {
    static CONFIG: OnceLock<Arc<ClientConfig>> = OnceLock::new();
    if let Some(config) = CONFIG.get() {
        return Ok(Arc::clone(config));
    }
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    let config = Arc::new(builder.with_platform_verifier()?.with_no_client_auth());
    Ok(Arc::clone(CONFIG.get_or_init(|| config)))
}

/// Trusts nobody: for addresses without TLS on machines without certificates.
pub(crate) fn config_without_roots() -> Result<Arc<ClientConfig>, TlsError> {
    let builder = ClientConfig::builder_with_provider(provider()).with_safe_default_protocol_versions()?;
    Ok(Arc::new(builder.with_root_certificates(RootCertStore::empty()).with_no_client_auth()))
}

/// The cryptography that every TLS connection here uses.
pub fn provider() -> Arc<CryptoProvider> {
    static PROVIDER: OnceLock<Arc<CryptoProvider>> = OnceLock::new();
    Arc::clone(PROVIDER.get_or_init(|| Arc::new(ring::default_provider())))
}
