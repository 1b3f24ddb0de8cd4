//! Arguments are sealed under a key that can be destroyed.

use std::fs;

use wayleave_activity::{ActivityId, ArgumentKeyError, ArgumentKeys};

#[test]
fn arguments_open_for_their_own_call_alone_and_never_after_the_key_is_destroyed() {
    let folder = tempfile::tempdir().unwrap();
    let keys = ArgumentKeys::open(folder.path()).unwrap();
    let (id, other) = (ActivityId::now(), ActivityId::now());
    let sealed = keys.seal(id, b"{\"stream\":\"people\"}").unwrap();
    assert!(!sealed.bytes.windows(6).any(|part| part == b"people"));
    assert_eq!(
        keys.unseal(id, &sealed).unwrap(),
        b"{\"stream\":\"people\"}"
    );
    assert!(matches!(
        keys.unseal(other, &sealed),
        Err(ArgumentKeyError::Altered)
    ));
    let digest = keys.digest(b"x");
    assert_eq!(
        ArgumentKeys::open(folder.path()).unwrap().digest(b"x"),
        digest
    );
    let secret = fs::read(folder.path().join("activity.keys")).unwrap();
    keys.destroy().unwrap();
    assert!(matches!(
        keys.unseal(id, &sealed),
        Err(ArgumentKeyError::Destroyed)
    ));
    let again = ArgumentKeys::open(folder.path()).unwrap();
    assert!(matches!(
        again.unseal(id, &sealed),
        Err(ArgumentKeyError::Destroyed)
    ));
    assert_ne!(again.digest(b"x"), digest);
    for file in fs::read_dir(folder.path()).unwrap() {
        assert_ne!(fs::read(file.unwrap().path()).unwrap(), secret);
    }
}

#[test]
fn a_key_that_another_process_destroyed_opens_nothing_any_more() {
    let folder = tempfile::tempdir().unwrap();
    let (serving, other) = (
        ArgumentKeys::open(folder.path()).unwrap(),
        ArgumentKeys::open(folder.path()).unwrap(),
    );
    let id = ActivityId::now();
    let sealed = serving.seal(id, b"{}").unwrap();
    other.destroy().unwrap();
    assert!(matches!(
        serving.unseal(id, &sealed),
        Err(ArgumentKeyError::Destroyed)
    ));
}
