#![allow(clippy::disallowed_methods, reason = "certificates are made by openssl")]

use super::super::http::{Address, Request, ask, upgrade};
use ralph_loop_http::tls::provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::server::WebPkiClientVerifier;
use rustls::{RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::{Shutdown, TcpListener};
use std::path::Path;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// A CA, and a certificate from it for both sides.
fn certificates(folder: &Path) {
    let openssl = |words: &str| {
        let done = Command::new("openssl").args(words.split(' ')).current_dir(folder).output().unwrap();
        assert!(done.status.success(), "{words}: {done:?}");
    };
    openssl("req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=ca -keyout ca-key.pem -out ca.pem");
    openssl("req -newkey rsa:2048 -nodes -subj /CN=engine -keyout key.pem -out request.pem");
    std::fs::write(folder.join("names"), "subjectAltName=IP:127.0.0.1\n").unwrap();
    openssl(
        "x509 -req -in request.pem -days 2 -CA ca.pem -CAkey ca-key.pem -CAcreateserial -extfile names -out cert.pem",
    );
}

/// An engine that requires a client certificate: answers `/version`, and echoes everything else after an upgrade.
fn engine(folder: &Path) -> String {
    let chain = |file: &str| CertificateDer::pem_file_iter(folder.join(file)).unwrap().map(Result::unwrap);
    let mut roots = RootCertStore::empty();
    roots.add(chain("ca.pem").next().unwrap()).unwrap();
    let clients = WebPkiClientVerifier::builder_with_provider(Arc::new(roots), provider()).build().unwrap();
    let key = PrivateKeyDer::from_pem_file(folder.join("key.pem")).unwrap();
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_client_cert_verifier(clients)
        .with_single_cert(chain("cert.pem").collect(), key)
        .unwrap();
    let config = Arc::new(config);
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap().to_string();
    std::thread::spawn(move || {
        for stream in listener.incoming() {
            let config = Arc::clone(&config);
            std::thread::spawn(move || {
                let connection = ServerConnection::new(config).unwrap();
                let mut reader = BufReader::new(StreamOwned::new(connection, stream.unwrap()));
                let mut head = String::new();
                while reader.read_line(&mut head).is_ok_and(|read| read > 2) {}
                if head.starts_with("GET /version") {
                    let answer = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}";
                    let _ = reader.get_mut().write_all(answer);
                } else {
                    let _ = reader.get_mut().write_all(b"HTTP/1.1 101 Go\r\n\r\n");
                    let mut all = Vec::new();
                    let _ = reader.read_to_end(&mut all);
                    let _ = reader.get_mut().write_all(&all);
                }
                let _ = reader.get_mut().flush();
                reader.get_mut().conn.send_close_notify();
                let _ = reader.get_mut().flush();
            });
        }
    });
    address
}

fn request(path: &str) -> Request<'_> {
    Request { method: "GET", path, body: None, limit: Duration::from_secs(20) }
}

#[test]
fn tls_engine_gets_a_client_certificate() {
    let folder = tempfile::tempdir().unwrap();
    certificates(folder.path());
    let host = engine(folder.path());
    let address = Address::parse(&format!("tcp://{host}")).unwrap().with_tls(folder.path());
    let reply = ask(&address, &request("/version")).unwrap();
    assert_eq!((reply.status, reply.body.as_slice()), (200, &b"{}"[..]));

    // More than all buffers on the way hold; closing our side doesn't end what we receive.
    let (mut stream, early) = upgrade(&address, &request("/echo")).unwrap().unwrap();
    let sent: Vec<u8> = (0..3_000_000_u32).map(|n| (n % 251) as u8).collect();
    let mut copy = stream.try_clone().unwrap();
    let feeder = std::thread::spawn({
        let sent = sent.clone();
        move || {
            copy.write_all(&sent).unwrap();
            copy.shutdown(Shutdown::Write);
        }
    });
    let mut heard = early;
    stream.read_to_end(&mut heard).unwrap();
    feeder.join().unwrap();
    assert!(heard == sent, "{} of {} bytes", heard.len(), sent.len());
}

#[test]
fn tls_engine_without_a_trusted_certificate_is_refused() {
    let (folder, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    certificates(folder.path());
    certificates(other.path());
    let host = engine(folder.path());
    let address = Address::parse(&format!("tcp://{host}")).unwrap().with_tls(other.path());
    let error = ask(&address, &request("/version")).unwrap_err();
    assert!(error.to_string().contains("certificate"), "{error}");
}
