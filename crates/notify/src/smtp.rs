//! A small SMTP client (RFC 5321): greeting, TLS, login, one mail, quit.
//!
//! Not `lettre` (0.11): after STARTTLS it keeps data received before TLS began, it sets up TLS itself, and it adds 8
//! crates for one mail.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ralph_loop_http::tls::{ClientConnection, ServerName, StreamOwned, client_config};
use ralph_loop_protocol::display::text::one_line;
use ralph_loop_task::config::MailTls;
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::time::Duration;

/// Time limit of one step; the caller limits the whole.
const STEP: Duration = Duration::from_secs(4);
const ANSWER: usize = 16 * 1024;

pub(crate) struct Server {
    pub host: String,
    pub port: u16,
    pub tls: MailTls,
    pub login: Option<Login>,
}

pub(crate) struct Login {
    pub user: String,
    pub password: String,
}

enum Wire {
    Plain(TcpStream),
    Protected(Box<StreamOwned<ClientConnection, TcpStream>>),
}

struct Session {
    wire: Wire,
    /// Received, but not yet read as a line.
    ahead: Vec<u8>,
}

impl Server {
    pub fn deliver(&self, from: &str, to: &[String], mail: &str) -> Result<(), String> {
        let stream = self.connect()?;
        let wire = match self.tls {
            MailTls::Implicit => self.protect(stream)?,
            MailTls::None | MailTls::Starttls => Wire::Plain(stream),
        };
        let mut session = Session { wire, ahead: Vec::new() };
        session.expect(220, "greeting")?;
        let mut abilities = session.hello()?;
        if self.tls == MailTls::Starttls {
            session = self.upgrade(session, &abilities)?;
            abilities = session.hello()?;
        }
        if let Some(login) = &self.login {
            self.log_in(&mut session, login, &abilities)?;
        }
        session.say(&format!("MAIL FROM:<{from}>"), 250, "MAIL")?;
        for address in to {
            session.say(&format!("RCPT TO:<{address}>"), 250, "RCPT")?;
        }
        session.say("DATA", 354, "DATA")?;
        session.say(&format!("{}\r\n.", mail.trim_end()), 250, "the mail")?;
        // It is delivered; a failing QUIT doesn't matter.
        let _ = session.say("QUIT", 221, "QUIT");
        Ok(())
    }

    fn connect(&self) -> Result<TcpStream, String> {
        let server = format!("the mail server {}:{}", self.host, self.port);
        let found = (self.host.as_str(), self.port)
            .to_socket_addrs()
            .map_err(|e| format!("{server} cannot be found: {e}"))?;
        let mut why = "it has no address".to_owned();
        for address in found.take(4) {
            match TcpStream::connect_timeout(&address, STEP) {
                Ok(stream) => {
                    let limited = stream
                        .set_read_timeout(Some(STEP))
                        .and_then(|()| stream.set_write_timeout(Some(STEP)));
                    limited.map_err(|e| e.to_string())?;
                    return Ok(stream);
                }
                Err(e) => why = e.to_string(),
            }
        }
        Err(format!("{server} cannot be reached: {why}"))
    }

    fn protect(&self, stream: TcpStream) -> Result<Wire, String> {
        let config = client_config().map_err(|e| e.to_string())?;
        let name = ServerName::try_from(self.host.clone())
            .map_err(|_| format!("`{}` isn't a valid server name for TLS", self.host))?;
        let connection = ClientConnection::new(config, name).map_err(|e| e.to_string())?;
        Ok(Wire::Protected(Box::new(StreamOwned::new(connection, stream))))
    }

    fn upgrade(&self, mut session: Session, abilities: &[String]) -> Result<Session, String> {
        if !abilities.iter().any(|line| line == "STARTTLS") {
            return Err("the mail server offers no STARTTLS; perhaps `tls` is `implicit` there".into());
        }
        session.say("STARTTLS", 220, "STARTTLS")?;
        match session.wire {
            // Data from before TLS must not count as received under it.
            Wire::Plain(stream) if session.ahead.is_empty() => {
                Ok(Session { wire: self.protect(stream)?, ahead: Vec::new() })
            }
            _ => Err("the mail server spoke before the connection was protected".into()),
        }
    }

    fn log_in(&self, session: &mut Session, login: &Login, abilities: &[String]) -> Result<(), String> {
        let at_home = matches!(self.host.as_str(), "localhost" | "127.0.0.1" | "::1");
        if self.tls == MailTls::None && !at_home {
            return Err("a password is not sent over a connection that is not protected: set `tls`".into());
        }
        let ways = abilities.iter().find_map(|line| line.strip_prefix("AUTH ")).unwrap_or_default();
        let offers = |way: &str| ways.split(' ').any(|word| word == way);
        let Login { user, password } = login;
        if offers("PLAIN") {
            let token = STANDARD.encode(format!("\0{user}\0{password}"));
            return session.say(&format!("AUTH PLAIN {token}"), 235, "the login").map(|_| ());
        }
        if offers("LOGIN") {
            session.say("AUTH LOGIN", 334, "the login")?;
            session.say(&STANDARD.encode(user), 334, "the login")?;
            return session.say(&STANDARD.encode(password), 235, "the login").map(|_| ());
        }
        Err(format!("the mail server offers no login that ralph knows (it offers `{}`)", one_line(ways, 80)))
    }
}

impl Session {
    /// Sends EHLO and returns the server's features.
    fn hello(&mut self) -> Result<Vec<String>, String> {
        let lines = self.say("EHLO ralph.localdomain", 250, "EHLO")?;
        Ok(lines.into_iter().skip(1).map(|line| line.to_ascii_uppercase()).collect())
    }

    /// Sends a line and reads the answer. `what` names it in errors: the line may hold a password.
    fn say(&mut self, line: &str, want: u16, what: &str) -> Result<Vec<String>, String> {
        let bytes = format!("{line}\r\n");
        let sent = match &mut self.wire {
            Wire::Plain(stream) => stream.write_all(bytes.as_bytes()),
            Wire::Protected(stream) => stream.write_all(bytes.as_bytes()).and_then(|()| stream.flush()),
        };
        sent.map_err(|e| format!("the mail server does not take {what}: {e}"))?;
        self.expect(want, what)
    }

    fn expect(&mut self, want: u16, what: &str) -> Result<Vec<String>, String> {
        let mut lines = Vec::new();
        loop {
            let line = self.line().map_err(|why| format!("the mail server's answer to {what}: {why}"))?;
            let code: u16 =
                line.get(..3).and_then(|code| code.parse().ok()).ok_or("the mail server speaks no SMTP")?;
            let last = line.as_bytes().get(3) != Some(&b'-');
            lines.push(line.get(4..).unwrap_or_default().trim().to_owned());
            if !last {
                continue;
            }
            // 251: it will be forwarded, which is fine.
            if code == want || (want == 250 && code == 251) {
                return Ok(lines);
            }
            return Err(format!(
                "the mail server refused {what}: {code} {}",
                one_line(&lines.join(" "), 200)
            ));
        }
    }

    fn line(&mut self) -> Result<String, String> {
        loop {
            if let Some(end) = self.ahead.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.ahead.drain(..=end).collect();
                return Ok(String::from_utf8_lossy(&line).trim_end().to_owned());
            }
            if self.ahead.len() > ANSWER {
                return Err("it has no end".into());
            }
            let mut piece = [0u8; 1024];
            let read = match &mut self.wire {
                Wire::Plain(stream) => stream.read(&mut piece),
                Wire::Protected(stream) => stream.read(&mut piece),
            };
            match read.map_err(|e| e.to_string())? {
                0 => return Err("the connection ended".into()),
                length => self.ahead.extend_from_slice(&piece[..length]),
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::TcpListener;

    fn server(words: &'static [&'static str]) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        std::thread::spawn(move || {
            let (mut stream, _) = listener.accept().unwrap();
            let mut heard = [0; 512];
            for (number, word) in words.iter().enumerate() {
                if number > 0 && stream.read(&mut heard).is_ok_and(|read| read == 0) {
                    return;
                }
                let _ = stream.write_all(word.as_bytes());
            }
            // Open until the client has gone.
            while stream.read(&mut heard).is_ok_and(|read| read > 0) {}
        });
        Server { host: "127.0.0.1".into(), port, tls: MailTls::Starttls, login: None }
    }

    fn refusal(words: &'static [&'static str]) -> String {
        server(words).deliver("a@b.org", &["c@d.org".to_owned()], "Subject: x\r\n\r\ny").unwrap_err()
    }

    #[test]
    fn data_from_before_tls_is_not_trusted() {
        let why = refusal(&["220 hi\r\n", "250-hi\r\n250 STARTTLS\r\n", "220 go\r\n250 AUTH PLAIN\r\n"]);
        assert_eq!(why, "the mail server spoke before the connection was protected");
    }

    #[test]
    fn server_without_tls_is_refused() {
        let why = refusal(&["220 hi\r\n", "250-hi\r\n250 8BITMIME\r\n"]);
        assert!(why.contains("offers no STARTTLS"), "{why}");
    }
}
