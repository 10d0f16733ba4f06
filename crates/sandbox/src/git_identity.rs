//! Who commits in a sandbox: the user, as their own git says.

/// The name and address that git of a sandboxed command signs with, unless somebody says otherwise there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitIdentity {
    /// `user.name`.
    pub name: String,
    /// `user.email`.
    pub email: String,
}

impl GitIdentity {
    /// As a file of git's configuration. What a repo or a variable says stands above it.
    pub(crate) fn config_file(&self) -> String {
        let quoted = |text: &str| {
            text.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").replace('\t', "\\t")
        };
        format!("[user]\n\tname = \"{}\"\n\temail = \"{}\"\n", quoted(&self.name), quoted(&self.email))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_stays_one_value() {
        let who = GitIdentity { name: "Ann \"A\\B\"\nx".into(), email: "a@b.org".into() };
        assert_eq!(who.config_file(), "[user]\n\tname = \"Ann \\\"A\\\\B\\\"\\nx\"\n\temail = \"a@b.org\"\n");
    }
}
