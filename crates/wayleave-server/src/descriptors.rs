//! The file descriptor limit of the process, and the share of it for connections.

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};

/// Divisor of the share of descriptors reserved for files and databases.
const RESERVED_SHARE: u64 = 4;
/// Smallest number of reserved descriptors.
const MIN_RESERVED: u64 = 64;

/// Raises the descriptor limit of this process as far as allowed, and returns the number of
/// connections it can have open beside its files and databases.
pub(crate) fn for_connections() -> usize {
    let limit = raised();
    let connections = limit.map_or(u64::MAX, connections_within);
    tracing::debug!(limit, connections, "file descriptors");
    usize::try_from(connections).unwrap_or(usize::MAX)
}

/// Raises the limit as far as allowed, and returns it; `None` if there is no limit.
fn raised() -> Option<u64> {
    let before = getrlimit(Resource::Nofile);
    if before.current == before.maximum {
        return before.current;
    }
    let wanted = Rlimit {
        current: before.maximum,
        ..before
    };
    // Some systems enforce a lower maximum than they report; the old limit then stays.
    if let Err(error) = setrlimit(Resource::Nofile, wanted) {
        tracing::debug!(%error, "the limit of file descriptors stays as it is");
    }
    getrlimit(Resource::Nofile).current
}

fn connections_within(limit: u64) -> u64 {
    let reserved = (limit / RESERVED_SHARE).max(MIN_RESERVED);
    limit.saturating_sub(reserved).max(1)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn connections_leave_descriptors_for_files_and_databases() {
        for (limit, connections) in [
            (0, 1),
            (64, 1),
            (256, 192),
            (1_024, 768),
            (524_288, 393_216),
        ] {
            assert_eq!(connections_within(limit), connections, "{limit}");
        }
    }

    #[test]
    fn the_limit_is_raised_and_connections_stay_below_it() {
        let connections = for_connections();
        let now = getrlimit(Resource::Nofile);
        if cfg!(target_os = "linux") {
            assert_eq!(now.current, now.maximum);
        }
        if let Some(limit) = now.current {
            assert!(u64::try_from(connections).unwrap() < limit);
        }
    }
}
