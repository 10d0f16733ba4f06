//! Who gets the messages in these tests: a web server and a mail server, each on a thread of the test.

use base64_lite::decode;
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};

/// One request.
#[derive(Debug, Clone)]
pub struct Received {
    pub headers: BTreeMap<String, String>,
    pub body: String,
}

/// A web server that keeps what it is sent. It answers with the given codes in turn, then 200.
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

    /// The occasions that a signed webhook was told of.
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

/// What a mail server heard in one session: its lines, and the mail.
#[derive(Debug, Clone, Default)]
pub struct Mail {
    pub said: Vec<String>,
    pub mail: String,
}

/// A mail server without protection that wants a login.
pub struct Post {
    pub port: u16,
    mails: Arc<Mutex<Vec<Mail>>>,
}

impl Post {
    /// Takes this login only, by this method (`PLAIN` or `LOGIN`).
    pub fn start(method: &'static str, user: &'static str, password: &'static str) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let mails: Arc<Mutex<Vec<Mail>>> = Arc::default();
        let kept = mails.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                if let Some(mail) = serve(&stream, method, user, password) {
                    kept.lock().unwrap().push(mail);
                }
            }
        });
        Self { port, mails }
    }

    pub fn mails(&self) -> Vec<Mail> {
        self.mails.lock().unwrap().clone()
    }
}

fn serve(stream: &TcpStream, method: &str, user: &str, password: &str) -> Option<Mail> {
    let mut reader = BufReader::new(stream);
    let answer = |line: &str| {
        let mut stream = stream;
        stream.write_all(format!("{line}\r\n").as_bytes()).unwrap();
    };
    let mut mail = Mail::default();
    let mut logged_in = false;
    answer("220 mail.test ESMTP");
    let mut hear = move || {
        let mut line = String::new();
        reader.read_line(&mut line).ok().filter(|length| *length > 0).map(|_| line.trim_end().to_owned())
    };
    while let Some(line) = hear() {
        mail.said.push(line.clone());
        let word = line.split(' ').next().unwrap().to_owned();
        match word.as_str() {
            "EHLO" => {
                answer("250-mail.test");
                answer(&format!("250-AUTH {method}"));
                answer("250 8BITMIME");
            }
            "AUTH" if method == "PLAIN" => {
                logged_in = decode(line.rsplit(' ').next().unwrap()) == format!("\0{user}\0{password}");
                answer(if logged_in { "235 welcome" } else { "535 wrong login" });
            }
            "AUTH" => {
                answer("334 VXNlcm5hbWU6");
                let name = decode(&hear()?);
                answer("334 UGFzc3dvcmQ6");
                logged_in = (name, decode(&hear()?)) == (user.to_owned(), password.to_owned());
                answer(if logged_in { "235 welcome" } else { "535 wrong login" });
            }
            "MAIL" if !logged_in => answer("530 log in first"),
            "MAIL" | "RCPT" => answer("250 fine"),
            "DATA" => {
                answer("354 go on");
                loop {
                    match hear()?.as_str() {
                        "." => break,
                        line => mail.mail.push_str(&format!("{line}\n")),
                    }
                }
                answer("250 taken");
            }
            "QUIT" => {
                answer("221 bye");
                return Some(mail);
            }
            _ => answer("500 what?"),
        }
    }
    None
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
