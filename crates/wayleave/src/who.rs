//! Who is at the keyboard, as the system knows them.

use std::fs;

/// The user this process runs as, by name where one is known.
pub(crate) fn os_user() -> String {
    let uid = rustix::process::getuid().as_raw();
    let listed = fs::read_to_string("/etc/passwd")
        .ok()
        .and_then(|users| name_in(&users, uid));
    // A directory service's users are not in the file.
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
