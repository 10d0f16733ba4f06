//! Who commits in a sandbox: the user, with their git identity.

/// The name and email for commits of a sandboxed command, unless the repo or a variable overrides them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct GitIdentity {
    /// `user.name`.
    pub name: String,
    /// `user.email`.
    pub email: String,
}

impl GitIdentity {
    /// A git config file, which the repo's config and variables override.
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
    fn name_with_special_characters_stays_one_value() {
        let who = GitIdentity { name: "Ann \"A\\B\"\nx".into(), email: "a@b.org".into() };
        assert_eq!(who.config_file(), "[user]\n\tname = \"Ann \\\"A\\\\B\\\"\\nx\"\n\temail = \"a@b.org\"\n");
    }
}
