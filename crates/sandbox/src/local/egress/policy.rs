//! Which hosts are reachable: only those on a list.

use std::fmt;
use std::io;
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::os::unix::net::UnixStream;
use std::sync::Arc;

/// A reachable host: `example.org`, `*.example.org` (every name below it, not itself), each optionally with `:port`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HostRule {
    name: String,
    below: bool,
    port: Option<u16>,
    /// Whether it may lead to a private address.
    private: bool,
}

impl HostRule {
    /// Parses a rule; the error says what is wrong with it.
    pub fn parse(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| Err(format!("`{text}` isn't a host that can be allowed: {why}"));
        let (host, port) = match text.rsplit_once(':') {
            Some((host, port)) => match port.parse() {
                Ok(port) if port > 0 => (host, Some(port)),
                _ => return wrong("its port is not a number from 1 to 65535"),
            },
            None => (text, None),
        };
        let (below, name) = host.strip_prefix("*.").map_or((false, host), |name| (true, name));
        let name = tidy(name);
        if name.contains('*') {
            return wrong("`*` is allowed only at the beginning, as in `*.example.org`");
        }
        if !is_name(&name) {
            return wrong("use a name such as `example.org`; addresses and top-level domains aren't allowed");
        }
        Ok(Self { name, below, port, private: false })
    }

    /// The user named this host, so it may be in the private network. Names below a domain stay public: others may
    /// choose where they lead.
    pub fn named_by_user(self) -> Self {
        Self { private: !self.below, ..self }
    }

    fn covers(&self, host: &str, port: u16) -> bool {
        let named = if self.below {
            host.strip_suffix(&self.name).is_some_and(|rest| rest.len() > 1 && rest.ends_with('.'))
        } else {
            host == self.name
        };
        named && self.port.map_or(matches!(port, 80 | 443), |own| own == port)
    }
}

impl fmt::Display for HostRule {
    /// The name without its port, as providers' lists expect it.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}{}", if self.below { "*." } else { "" }, self.name)
    }
}

fn tidy(host: &str) -> String {
    host.trim_end_matches('.').to_ascii_lowercase()
}

/// A name of at least two parts whose last part isn't a number.
fn is_name(name: &str) -> bool {
    let part = |part: &str| {
        !part.is_empty()
            && part.len() < 64
            && part.bytes().all(|b| b.is_ascii_alphanumeric() || b"-_".contains(&b))
    };
    let last = name.rsplit('.').next().unwrap_or_default();
    name.len() < 254
        && name.contains('.')
        && name.split('.').all(part)
        && !last.bytes().all(|b| b.is_ascii_digit())
}

/// A server that the user named with host and port, such as a model server on this machine or the local network.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Endpoint {
    /// Its name or address.
    pub host: String,
    /// Its port.
    pub port: u16,
}

impl Endpoint {
    /// Whether it is on this machine.
    pub fn is_local(&self) -> bool {
        self.host == "localhost"
            || bare(&self.host).parse::<IpAddr>().is_ok_and(|address| address.is_loopback())
    }
}

fn bare(host: &str) -> &str {
    host.strip_prefix('[').and_then(|host| host.strip_suffix(']')).unwrap_or(host)
}

/// Resolves a name to addresses.
pub type Resolver = Arc<dyn Fn(&str, u16) -> io::Result<Vec<IpAddr>> + Send + Sync>;
/// Connects to an address.
pub type Dialer = Arc<dyn Fn(SocketAddr) -> io::Result<TcpStream> + Send + Sync>;
/// Called with each refused connection.
pub type OnRefusal = Arc<dyn Fn(&EgressRefusal) + Send + Sync>;

/// What the user hears of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum EgressKind {
    /// The policy forbids it.
    Refused,
    /// The name has no address here.
    Unresolved,
    /// It is allowed, and leads into the private network.
    Private,
}

/// A connection that was refused, failed, or needs a warning.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct EgressRefusal {
    /// What happened.
    pub kind: EgressKind,
    /// The host that the command requested.
    pub host: String,
    /// The port.
    pub port: u16,
    /// Why, as the end of "cannot reach …: ".
    pub reason: String,
    /// What to add to the allowed hosts to reach it; `None` if that wouldn't help.
    pub allow: Option<String>,
}

/// A server in this process, at a local port that only sandboxed commands reach. Landlock has no such ports.
#[derive(Clone)]
pub struct InsideServer {
    /// The port inside.
    pub port: u16,
    /// Serves a client in its thread.
    pub serve: Arc<dyn Fn(UnixStream) + Send + Sync>,
}

/// What is reachable from inside the sandbox.
#[derive(Clone)]
pub struct EgressPolicy {
    /// Hosts on the public internet.
    pub allow: Vec<HostRule>,
    /// Servers that the user named, wherever they are.
    pub endpoints: Vec<Endpoint>,
    /// A server of this process.
    pub inside: Option<InsideServer>,
    /// Called for each refused host, port and reason once, at most 200 in total.
    pub on_refusal: Option<OnRefusal>,
    /// Resolves names; the system's resolver except in tests.
    pub resolver: Resolver,
    /// Connects; directly except in tests.
    pub dialer: Dialer,
}

impl fmt::Debug for EgressPolicy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("EgressPolicy")
            .field("allow", &self.allow)
            .field("endpoints", &self.endpoints)
            .finish_non_exhaustive()
    }
}

impl EgressPolicy {
    /// These hosts and endpoints, resolved and dialed through the system.
    pub fn new(allow: Vec<HostRule>, endpoints: Vec<Endpoint>) -> Self {
        Self {
            allow,
            endpoints,
            inside: None,
            on_refusal: None,
            resolver: Arc::new(super::dial::resolve),
            dialer: Arc::new(super::dial::dial),
        }
    }

    /// The addresses to dial for `host` and `port`: checked here and dialed unchanged, so that a second lookup can't
    /// lead elsewhere.
    pub(super) fn addresses(&self, host: &str, port: u16) -> Result<Reachable, Unreachable> {
        let host = tidy(bare(host));
        if let Some(endpoint) = self.endpoints.iter().find(|e| tidy(bare(&e.host)) == host && e.port == port)
        {
            return self.endpoint(endpoint);
        }
        // From inside, every name of this machine means the same.
        let local = Endpoint { host: host.clone(), port };
        if local.is_local() && self.endpoints.iter().any(|e| e.is_local() && e.port == port) {
            return self.endpoint(&local);
        }
        if let Ok(address) = host.parse::<IpAddr>() {
            let inside = bracketed(address);
            let allow = (!is_metadata(address)).then(|| format!("{inside}:{port}"));
            return Err(Unreachable {
                allow,
                ..Unreachable::refused("addresses are not allowed, only names")
            });
        }
        let rule = if matches!(port, 80 | 443) { host.clone() } else { format!("{host}:{port}") };
        let rule = HostRule::parse(&rule).is_ok().then_some(rule);
        let rules = || self.allow.iter().filter(|rule| rule.covers(&host, port));
        if rules().next().is_none() {
            let known = self.allow.iter().any(|rule| rule.covers(&host, 443));
            let why = if known { "the port is not allowed" } else { "the host is not on the list" };
            return Err(Unreachable { allow: rule, ..Unreachable::refused(why) });
        }
        let may_be_private = rules().any(|rule| rule.private);
        let (mut why, mut allow) = (None, None);
        let mut good = Reachable::default();
        for address in self.resolved(&host, port)? {
            match super::address::forbidden(address) {
                None => good.addresses.push(SocketAddr::new(address, port)),
                Some(reason) if may_be_private && super::address::is_private_network(address) => {
                    good.addresses.push(SocketAddr::new(address, port));
                    good.warning = Some(format!("its name leads to {address}: {reason}"));
                }
                Some(reason) => {
                    allow = rule.clone().filter(|_| super::address::is_private_network(address));
                    why = Some(format!("its name leads to {address}: {reason}"));
                }
            }
        }
        match why {
            _ if !good.addresses.is_empty() => Ok(good),
            Some(why) => Err(Unreachable { allow, ..Unreachable::refused(&why) }),
            None => Err(Unreachable::unresolved("its name has no address".into())),
        }
    }

    /// Why this machine must not contact `host` on behalf of others: it isn't on the public internet, and no rule
    /// names it.
    pub fn refuses_outside(&self, host: &str, port: u16) -> Option<String> {
        let name = tidy(bare(host));
        let is_endpoint = |e: &Endpoint| tidy(bare(&e.host)) == name && e.port == port;
        let is_named =
            |rule: &HostRule| rule.private && (rule.covers(&name, port) || rule.covers(&name, 443));
        if self.endpoints.iter().any(is_endpoint) || self.allow.iter().any(is_named) {
            return None;
        }
        let addresses = match name.parse() {
            Ok(address) => Ok(vec![address]),
            Err(_) => self.resolved(&name, port),
        };
        match addresses {
            // The program that connects may take any of them.
            Ok(found) => found
                .into_iter()
                .find_map(|at| Some(format!("it leads to {at}: {}", super::address::forbidden(at)?))),
            Err(error) => Some(error.why),
        }
    }

    fn resolved(&self, host: &str, port: u16) -> Result<Vec<IpAddr>, Unreachable> {
        (self.resolver)(host, port)
            .map_err(|error| Unreachable::unresolved(format!("its name cannot be resolved: {error}")))
    }

    fn endpoint(&self, endpoint: &Endpoint) -> Result<Reachable, Unreachable> {
        let found = match bare(&endpoint.host).parse() {
            Ok(address) => vec![address],
            Err(_) if endpoint.host == "localhost" => vec![IpAddr::from([127, 0, 0, 1])],
            Err(_) => self.resolved(&endpoint.host, endpoint.port)?,
        };
        // No user's model server is at a cloud's metadata address.
        let found: Vec<SocketAddr> = found
            .into_iter()
            .filter(|a| !is_metadata(*a))
            .map(|a| SocketAddr::new(a, endpoint.port))
            .collect();
        match found.is_empty() {
            true => Err(Unreachable::refused("its name leads to a metadata address")),
            false => Ok(Reachable { addresses: found, warning: None }),
        }
    }
}

fn is_metadata(address: IpAddr) -> bool {
    matches!(address, IpAddr::V4(v4) if v4.is_link_local())
}

/// An address as a rule has it before its port.
fn bracketed(address: IpAddr) -> String {
    if address.is_ipv6() { format!("[{address}]") } else { address.to_string() }
}

/// The addresses to dial, and what the user should know about them.
#[derive(Debug, Default)]
pub(super) struct Reachable {
    pub(super) addresses: Vec<SocketAddr>,
    pub(super) warning: Option<String>,
}

/// Why a host can't be reached.
#[derive(Debug)]
pub(super) struct Unreachable {
    pub(super) kind: EgressKind,
    pub(super) why: String,
    pub(super) allow: Option<String>,
}

impl Unreachable {
    fn refused(why: &str) -> Self {
        Self { kind: EgressKind::Refused, why: why.to_owned(), allow: None }
    }

    fn unresolved(why: String) -> Self {
        Self { kind: EgressKind::Unresolved, why, allow: None }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn policy(allow: &[&str], to: &'static str) -> EgressPolicy {
        let rules = allow.iter().map(|rule| HostRule::parse(rule).unwrap()).collect();
        let mut policy = EgressPolicy::new(rules, vec![Endpoint { host: "localhost".into(), port: 4000 }]);
        policy.resolver = Arc::new(move |_, _| Ok(to.split(' ').map(|a| a.parse().unwrap()).collect()));
        policy
    }

    #[test]
    fn only_listed_hosts_are_allowed() {
        let policy = policy(&["example.org", "*.example.com", "git.example.net:8443"], "93.184.216.34");
        let reach = |host: &str, port| policy.addresses(host, port).is_ok();
        assert!(reach("example.org", 443) && reach("Example.ORG.", 80));
        assert!(!reach("www.example.org", 443) && !reach("example.org", 22) && !reach("notexample.org", 443));
        assert!(reach("a.example.com", 443) && reach("a.b.example.com", 443));
        assert!(!reach("example.com", 443) && !reach(".example.com", 443) && !reach("xexample.com", 443));
        assert!(reach("git.example.net", 8443) && !reach("git.example.net", 443));
        assert!(!reach("93.184.216.34", 443) && !reach("[::1]", 443) && !reach("localhost", 443));
        assert!(reach("localhost", 4000) && reach("127.0.0.1", 4000) && !reach("127.0.0.1", 4001));
    }

    #[test]
    fn name_with_private_addresses_is_refused_or_limited_to_public_ones() {
        for inside in ["127.0.0.1", "10.0.0.1 192.168.0.1", "169.254.169.254", "::ffff:10.0.0.1"] {
            let error = policy(&["example.org"], inside).addresses("example.org", 443).unwrap_err();
            assert!(error.why.contains("leads to") && error.kind == EgressKind::Refused, "{error:?}");
        }
        let mixed = policy(&["example.org"], "10.0.0.1 93.184.216.34").addresses("example.org", 443).unwrap();
        assert_eq!(mixed.addresses, ["93.184.216.34:443".parse().unwrap()]);
    }

    #[test]
    fn a_refusal_names_what_would_allow_it() {
        let policy = policy(&["example.org", "*.example.com"], "10.1.2.3");
        let allow = |host: &str, port| policy.addresses(host, port).unwrap_err().allow;
        assert_eq!(allow("other.org", 443).as_deref(), Some("other.org"));
        assert_eq!(allow("other.org", 5432).as_deref(), Some("other.org:5432"));
        assert_eq!(allow("10.1.2.3", 8080).as_deref(), Some("10.1.2.3:8080"));
        assert_eq!(allow("[fd12::1]", 80).as_deref(), Some("[fd12::1]:80"));
        assert_eq!(allow("npm.example.com", 443).as_deref(), Some("npm.example.com"), "private, by name");
        assert_eq!(allow("169.254.169.254", 80), None);
        assert_eq!(allow("db", 5432), None, "not a name that a rule can have");
    }

    #[test]
    fn the_machine_itself_contacts_public_and_named_hosts_only() {
        let refused = |host: &str, port, to| policy(&[], to).refuses_outside(host, port).is_some();
        assert!(!refused("example.org", 443, "93.184.216.34") && !refused("93.184.216.34", 22, ""));
        for to in ["127.0.0.1", "10.0.0.1", "169.254.169.254", "::1", "93.184.216.34 192.168.0.1"] {
            assert!(refused("example.org", 443, to), "{to}");
        }
        for host in ["127.0.0.1", "[::1]", "0.0.0.0", "10.1.2.3", "[::ffff:127.0.0.1]"] {
            assert!(refused(host, 443, "93.184.216.34"), "{host}");
        }
        assert!(!refused("localhost", 4000, "127.0.0.1") && refused("localhost", 4001, "127.0.0.1"));
        let mut named = policy(&[], "10.0.0.1");
        named.allow.push(HostRule::parse("git.corp.example").unwrap().named_by_user());
        assert_eq!(named.refuses_outside("git.corp.example", 22), None);
        assert!(named.refuses_outside("other.corp.example", 22).is_some());
        named.resolver = Arc::new(|_, _| Err(io::Error::other("no such name")));
        assert!(named.refuses_outside("nowhere.example", 443).unwrap().contains("cannot be resolved"));
    }

    #[test]
    fn private_address_of_a_name_that_the_user_gave_is_reached_with_a_warning() {
        let named = |rule: &str, to| {
            let mut policy = policy(&[], to);
            policy.allow.push(HostRule::parse(rule).unwrap().named_by_user());
            policy.addresses("npm.corp.example", 443)
        };
        for private in ["10.1.2.3", "192.168.0.9", "fd12::1", "100.64.0.7"] {
            let reached = named("npm.corp.example", private).unwrap();
            assert!(reached.warning.unwrap().contains(private));
            assert!(named("*.corp.example", private).is_err(), "names below a domain stay public");
        }
        for never in ["127.0.0.1", "169.254.169.254", "100.100.100.200", "fd00:ec2::254", "0.0.0.0"] {
            assert!(named("npm.corp.example", never).is_err(), "{never}");
        }
    }

    #[test]
    fn name_without_an_address_is_not_called_refused() {
        let mut policy = policy(&["example.org"], "93.184.216.34");
        policy.resolver = Arc::new(|_, _| Err(io::Error::other("no such name")));
        let error = policy.addresses("example.org", 443).unwrap_err();
        assert_eq!(error.kind, EgressKind::Unresolved);
        assert_eq!(error.why, "its name cannot be resolved: no such name");
        assert_eq!(policy.addresses("other.example", 443).unwrap_err().kind, EgressKind::Refused);
    }

    #[test]
    fn rules_that_would_open_too_much_are_refused() {
        for bad in [
            "*",
            "*.",
            "*.org",
            "org",
            "a.*.org",
            "127.0.0.1",
            "1.2.3.4:80",
            "::1",
            "a b.org",
            "x.org:0",
            "x.org:99999",
        ] {
            let refused = HostRule::parse(bad).unwrap_err();
            assert!(refused.starts_with(&format!("`{bad}` isn't a host that can be allowed")), "{refused}");
        }
    }
}
