//! Checks start, stop, find, preview and destroy. They run last, because they end the sandbox.

use super::fixture::{eq, wrong};
use super::{Check, Fault, Fixture, Need};
use ralph_loop_domain::ports::{Preview, SandboxInfo, WriteMode::Replace};
use std::io::{Read as _, Write as _};
use std::net::{TcpStream, ToSocketAddrs as _};
use std::path::Path;
use std::time::Duration;

pub(super) const CHECKS: &[Check] = &[
    Check { name: "life: a port inside can be reached", needs: &[Need::Life, Need::Preview], run: preview },
    Check { name: "life: starting twice is harmless", needs: &[Need::Life], run: start_twice },
    Check { name: "life: files stay over stop and start", needs: &[Need::Life, Need::StopStart], run: stop },
    Check { name: "life: it is listed with its run, state and age", needs: &[Need::Provider], run: listed },
    Check {
        name: "life: it is listed as stopped while it is",
        needs: &[Need::Provider, Need::StopStart],
        run: listed_stopped,
    },
    Check { name: "life: attached again by its id", needs: &[Need::Provider], run: attach },
    Check { name: "life: creating again finds it", needs: &[Need::Provider], run: create_again },
    Check { name: "life: an unknown id is nothing", needs: &[Need::Provider], run: unknown },
    Check { name: "life: destroyed, it is gone", needs: &[Need::Life], run: destroy },
];

const SERVE: &str = "if command -v python3 >/dev/null; then exec python3 -m http.server $PORT; \
    elif busybox httpd --help 2>&1 | grep -q Usage; then exec busybox httpd -f -p $PORT; else exit 44; fi";

fn preview(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let managed = fixture.managed()?;
    fixture.sandbox().write(&fixture.path("hello.txt"), b"hello from inside\n", Replace)?;
    let address = managed.preview(fixture.port())?;
    if !address.url.starts_with("http://") && !address.url.starts_with("https://") {
        return wrong(format!("`{}` is not an address", address.url));
    }
    let named = fixture.preview_place(&address).map(|place| place.to_string());
    let Some(host) = plain_host(&address).or(named) else {
        return Err(Fault::Skip(format!("`{}` was not asked: it is not on this machine", address.url)));
    };
    let mut request = fixture.sh(SERVE)?;
    let connection = fixture.sandbox().new_connection()?;
    request.timeout = Some(Duration::from_secs(200));
    request.env = vec![("PORT".to_owned(), fixture.port().to_string())];
    let (told, mut sink) = super::connections::stopper();
    let running = std::thread::spawn(move || connection.exec(&request, &mut sink));
    let mut answer = String::new();
    while !running.is_finished() && !answer.contains("hello from inside") {
        answer = ask(&host, &address).unwrap_or_default();
        // The server needs time to start; a command inside is the pause between two requests.
        fixture.run("sleep 0.2")?;
    }
    told.store(true, std::sync::atomic::Ordering::Release);
    let ended = running.join().map_err(|_| Fault::Wrong("the connection panicked".to_owned()))??;
    if ended.end.code() == Some(44) {
        return Err(Fault::Skip("there is no small web server inside".to_owned()));
    }
    if answer.contains("hello from inside") { Ok(()) } else { wrong(format!("no answer at {}", address.url)) }
}

/// `host:port` of a plain `http` URL.
fn plain_host(address: &Preview) -> Option<String> {
    let rest = address.url.strip_prefix("http://")?;
    let host = rest.split('/').next()?;
    Some(if host.contains(':') { host.to_owned() } else { format!("{host}:80") })
}

fn ask(host: &str, address: &Preview) -> std::io::Result<String> {
    let limit = Duration::from_secs(2);
    let place = host.to_socket_addrs()?.next().ok_or(std::io::ErrorKind::NotFound)?;
    let mut stream = TcpStream::connect_timeout(&place, limit)?;
    stream.set_read_timeout(Some(limit))?;
    let mut head = format!("GET /hello.txt HTTP/1.0\r\nHost: {host}\r\n");
    for (name, value) in &address.headers {
        head.push_str(&format!("{name}: {value}\r\n"));
    }
    stream.write_all(format!("{head}\r\n").as_bytes())?;
    let mut answer = String::new();
    stream.take(64 * 1024).read_to_string(&mut answer)?;
    Ok(answer)
}

fn start_twice(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let managed = fixture.managed()?;
    managed.start()?;
    managed.start()?;
    managed.keep_alive()?;
    fixture.sandbox().write(&fixture.path("f"), b"x", Replace)?;
    eq("it works", fixture.sandbox().read(&fixture.path("f"))?, Some(b"x".to_vec()))
}

fn stop(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let managed = fixture.managed()?;
    managed.write(&fixture.path("stays"), b"here", Replace)?;
    managed.stop()?;
    managed.stop()?;
    managed.start()?;
    eq("the file", managed.read(&fixture.path("stays"))?, Some(b"here".to_vec()))
}

fn own_row(fixture: &Fixture<'_>) -> Result<SandboxInfo, Fault> {
    let (provider, _) = fixture.provider()?;
    let id = fixture.managed()?.id();
    let all = provider.list()?;
    match all.iter().find(|info| info.id == id) {
        Some(own) => Ok(own.clone()),
        None => wrong(format!("it is not among {all:?}")),
    }
}

fn listed(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let (provider, spec) = fixture.provider()?;
    let own = own_row(fixture)?;
    eq("its run", own.run.clone(), Some(spec.run.clone()))?;
    eq("its state", own.state.as_str(), "running")?;
    // Mixing up seconds and milliseconds gives dates far outside of these years.
    let year = own.created_at.map(|made| made.as_second() / (365 * 24 * 60 * 60) + 1970);
    if !year.is_some_and(|year| (2020..2200).contains(&year)) {
        return wrong(format!("when it was made is not told: {:?}", own.created_at));
    }
    match provider.list()?.iter().find(|info| info.provider != provider.name()) {
        None => Ok(()),
        Some(other) => wrong(format!("{other:?} is not of this provider")),
    }
}

fn listed_stopped(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let managed = fixture.managed()?;
    let before = own_row(fixture)?;
    managed.stop()?;
    eq(
        "the row of a stopped one",
        own_row(fixture)?,
        SandboxInfo { state: "stopped".to_owned(), ..before.clone() },
    )?;
    managed.start()?;
    eq("the row of one that was started again", own_row(fixture)?, before)
}

fn attach(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let (provider, _) = fixture.provider()?;
    let managed = fixture.managed()?;
    managed.write(&fixture.path("left"), b"by the first", Replace)?;
    let Some(again) = provider.attach(managed.id())? else { return wrong("it is not found by its id") };
    eq("the id", again.id(), managed.id())?;
    eq("the root", again.root(), managed.root())?;
    eq("the file", again.read(&fixture.path("left"))?, Some(b"by the first".to_vec()))
}

fn create_again(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let (provider, spec) = fixture.provider()?;
    let managed = fixture.managed()?;
    managed.write(&fixture.path("left"), b"by the first", Replace)?;
    let again = provider.create(spec)?;
    eq("the id", again.id(), managed.id())?;
    eq("the file", again.read(&fixture.path("left"))?, Some(b"by the first".to_vec()))?;
    if provider.capabilities().stop_start {
        managed.stop()?;
        let again = provider.create(spec)?;
        eq("the id after a stop", again.id(), managed.id())?;
        eq("the file after a stop", again.read(&fixture.path("left"))?, Some(b"by the first".to_vec()))?;
    }
    let ours = provider.list()?.into_iter().filter(|info| info.run.as_ref() == Some(&spec.run)).count();
    eq("sandboxes of the run", ours, 1)
}

fn unknown(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let (provider, _) = fixture.provider()?;
    if provider.attach("ralph-no-such-sandbox")?.is_some() {
        return wrong("an unknown id found a sandbox");
    }
    Ok(provider.destroy("ralph-no-such-sandbox")?)
}

fn destroy(fixture: &Fixture<'_>) -> Result<(), Fault> {
    let managed = fixture.managed()?;
    let id = managed.id().to_owned();
    managed.destroy()?;
    managed.destroy()?;
    if managed.read(Path::new("anything")).is_ok_and(|found| found.is_some()) {
        return wrong("a file is still there");
    }
    let Ok((provider, _)) = fixture.provider() else { return Ok(()) };
    provider.destroy(&id)?;
    if provider.attach(&id)?.is_some() {
        return wrong("it is still found by its id");
    }
    match provider.list()?.iter().find(|info| info.id == id) {
        None => Ok(()),
        Some(info) => wrong(format!("it is still listed: {info:?}")),
    }
}
