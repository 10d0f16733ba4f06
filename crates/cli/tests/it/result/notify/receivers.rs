//! Receivers for these tests: a web server and a mail server, each on its own thread.

use base64_lite::decode;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer};
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::{Arc, Mutex};

/// One request.
#[derive(Debug, Clone)]
pub struct Received {
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// A web server that records its requests. It answers with the given codes in turn, then 200.
pub struct Web {
    pub port: u16,
    received: Arc<Mutex<Vec<Received>>>,
}

impl Web {
    pub fn start(codes: &[u16]) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let received: Arc<Mutex<Vec<Received>>> = Arc::default();
        let (kept, codes) = (received.clone(), codes.to_vec());
        std::thread::spawn(move || {
            let mut codes = codes.into_iter();
            for stream in listener.incoming().flatten() {
                let Some(request) = read(&stream) else { continue };
                kept.lock().unwrap().push(request);
                let code = codes.next().unwrap_or(200);
                let answer =
                    format!("HTTP/1.1 {code} Word\r\ncontent-length: 2\r\nconnection: close\r\n\r\nok");
                let _ = (&stream).write_all(answer.as_bytes());
            }
        });
        Self { port, received }
    }

    pub fn url(&self) -> String {
        format!("http://127.0.0.1:{}/hook", self.port)
    }

    pub fn received(&self) -> Vec<Received> {
        self.received.lock().unwrap().clone()
    }

    /// The occasions that a signed webhook received.
    pub fn occasions(&self) -> Vec<String> {
        self.received().iter().map(|r| r.headers["x-ralph-event"].clone()).collect()
    }
}

fn read(stream: &TcpStream) -> Option<Received> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    assert!(line.starts_with("POST /hook "), "{line}");
    let mut headers = BTreeMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let mut body = vec![0; headers.get("content-length")?.parse().ok()?];
    reader.read_exact(&mut body).ok()?;
    Some(Received { headers, body: String::from_utf8(body).unwrap() })
}

/// One session of the mail server: its lines, and the mail.
#[derive(Debug, Clone, Default)]
pub struct Mail {
    pub said: Vec<String>,
    pub mail: String,
}

/// A mail server that requires a login.
pub struct Post {
    pub port: u16,
    mails: Arc<Mutex<Vec<Mail>>>,
}

/// A mail server's requirements.
#[derive(Clone)]
pub struct SmtpSettings {
    /// `PLAIN` or `LOGIN`.
    pub method: &'static str,
    pub user: &'static str,
    pub password: &'static str,
    /// Offers STARTTLS, and accepts no login before it.
    pub tls: Option<Arc<ServerConfig>>,
    /// Uses TLS from the first byte.
    pub implicit: bool,
}

impl Post {
    pub fn start(settings: SmtpSettings) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mails: Arc<Mutex<Vec<Mail>>> = Arc::default();
        let kept = mails.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(mail) = serve(stream, &settings) {
                    kept.lock().unwrap().push(mail);
                }
            }
        });
        Self { port, mails }
    }

    /// The received mail. The sender may end before its last message is stored, so this retries an empty box.
    pub fn mails(&self) -> Vec<Mail> {
        for _ in 0..100 {
            let mails = self.mails.lock().unwrap().clone();
            if !mails.is_empty() {
                return mails;
            }
            std::thread::sleep(std::time::Duration::from_millis(20));
        }
        Vec::new()
    }
}

trait Wire: Read + Write {}
impl<T: Read + Write> Wire for T {}

fn protected(stream: TcpStream, config: &Arc<ServerConfig>) -> Box<dyn Wire> {
    Box::new(StreamOwned::new(ServerConnection::new(config.clone()).unwrap(), stream))
}

fn hear(wire: &mut dyn Wire) -> Option<String> {
    let mut line = Vec::new();
    let mut byte = [0];
    while byte != *b"\n" {
        wire.read_exact(&mut byte).ok()?;
        line.push(byte[0]);
    }
    Some(String::from_utf8(line).unwrap().trim_end().to_owned())
}

fn serve(stream: TcpStream, settings: &SmtpSettings) -> Option<Mail> {
    let mut wire: Box<dyn Wire> = match &settings.tls {
        Some(config) if settings.implicit => protected(stream.try_clone().unwrap(), config),
        _ => Box::new(stream.try_clone().unwrap()),
    };
    let mut safe = settings.tls.is_none() || settings.implicit;
    let mut logged_in = false;
    let mut mail = Mail::default();
    let answer = |wire: &mut dyn Wire, line: &str| {
        wire.write_all(format!("{line}\r\n").as_bytes()).and_then(|()| wire.flush()).ok()
    };
    answer(&mut wire, "220 mail.test ESMTP")?;
    loop {
        let line = hear(&mut wire)?;
        mail.said.push(line.clone());
        let reply = match line.split(' ').next().unwrap() {
            "EHLO" if safe => &format!("250-mail.test\r\n250-AUTH {}\r\n250 8BITMIME", settings.method),
            "EHLO" => "250-mail.test\r\n250 STARTTLS",
            "STARTTLS" => {
                answer(&mut wire, "220 ready")?;
                wire = protected(stream.try_clone().unwrap(), settings.tls.as_ref()?);
                safe = true;
                continue;
            }
            "AUTH" => {
                let login = match settings.method {
                    "PLAIN" => decode(line.rsplit(' ').next().unwrap()),
                    _ => {
                        answer(&mut wire, "334 VXNlcm5hbWU6")?;
                        let name = decode(&hear(&mut wire)?);
                        answer(&mut wire, "334 UGFzc3dvcmQ6")?;
                        format!("\0{name}\0{}", decode(&hear(&mut wire)?))
                    }
                };
                logged_in = safe && login == format!("\0{}\0{}", settings.user, settings.password);
                if logged_in { "235 welcome" } else { "535 wrong login" }
            }
            "MAIL" if !logged_in => "530 log in first",
            "MAIL" | "RCPT" => "250 fine",
            "DATA" => {
                answer(&mut wire, "354 send the message")?;
                loop {
                    match hear(&mut wire)?.as_str() {
                        "." => break,
                        line => mail.mail.push_str(&format!("{line}\n")),
                    }
                }
                "250 taken"
            }
            "QUIT" => {
                answer(&mut wire, "221 bye")?;
                return Some(mail);
            }
            _ => "500 what?",
        };
        answer(&mut wire, reply)?;
    }
}

/// A self-signed certificate for 127.0.0.1.
pub fn certificate(folder: &Path) -> (PathBuf, Arc<ServerConfig>) {
    let (cert, key) = (folder.join("cert.pem"), folder.join("key.pem"));
    let done = Command::new("openssl")
        .args(["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=test"])
        .args([
            "-addext",
            "subjectAltName=IP:127.0.0.1",
            "-addext",
            "basicConstraints=critical,CA:FALSE",
            "-keyout",
        ])
        .arg(&key)
        .arg("-out")
        .arg(&cert)
        .output()
        .unwrap();
    assert!(done.status.success(), "{done:?}");
    let chain = CertificateDer::pem_file_iter(&cert).unwrap().map(Result::unwrap).collect();
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
    let key = PrivateKeyDer::from_pem_file(&key).unwrap();
    (cert, Arc::new(config.with_no_client_auth().with_single_cert(chain, key).unwrap()))
}

/// Just enough base64 to read what a client sends.
pub mod base64_lite {
    pub fn decode(text: &str) -> String {
        const DIGITS: &[u8] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
        let (mut bytes, mut bits, mut held) = (Vec::new(), 0, 0u32);
        for digit in text.bytes().filter_map(|b| DIGITS.iter().position(|d| *d == b)) {
            held = held << 6 | digit as u32;
            bits += 6;
            if bits >= 8 {
                bits -= 8;
                bytes.push((held >> bits) as u8);
            }
        }
        String::from_utf8(bytes).unwrap()
    }
}
