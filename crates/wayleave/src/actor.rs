//! The actor of a command: the name they give, or the name of the system user.

use std::fs;

/// Who acts, and why.
#[derive(Debug, clap::Args)]
pub(crate) struct ActorArgs {
    /// Why, in your words; kept for ever.
    #[arg(
        long,
        value_name = "TEXT",
        default_value = "",
        hide_default_value = true
    )]
    pub(crate) note: String,
    /// Who you are [default: the user of this machine].
    #[arg(long, value_name = "NAME")]
    who: Option<String>,
}

impl ActorArgs {
    /// The given name, or the name of the system user.
    pub(crate) fn who(&self) -> String {
        self.who.clone().unwrap_or_else(os_user)
    }
}

/// The user this process runs as, by name if known.
pub(crate) fn os_user() -> String {
    let uid = rustix::process::getuid().as_raw();
    let listed = fs::read_to_string("/etc/passwd")
        .ok()
        .and_then(|users| name_in(&users, uid));
    // The file does not contain users of a directory service.
    listed
        .or_else(|| std::env::var("USER").ok().filter(|name| !name.is_empty()))
        .unwrap_or_else(|| format!("user {uid}"))
}

fn name_in(users: &str, uid: u32) -> Option<String> {
    let uid = uid.to_string();
    users.lines().find_map(|line| {
        let mut fields = line.split(':');
        let name = fields.next()?;
        let _password = fields.next()?;
        (fields.next()? == uid).then(|| name.to_owned())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_found_by_number_and_not_by_a_number_that_begins_alike() {
        let users = "root:x:0:0:root:/root:/bin/sh\nana:x:1000:1000::/var/ana:/bin/sh\n";
        assert_eq!(name_in(users, 1000).as_deref(), Some("ana"));
        assert_eq!(name_in(users, 100), None);
    }
}
