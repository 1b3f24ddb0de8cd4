use super::*;
use crate::datasets::fixture::mapping;

/// A time long after everything was written.
fn later() -> SystemTime {
    SystemTime::now() + Duration::from_mins(1)
}

fn project(folder: &Path) -> Project {
    let project = Project::create(folder, "").unwrap();
    fs::create_dir_all(project.drafts()).unwrap();
    for name in ["boats", "cats", "dogs"] {
        write(&project, name, &mapping(name, name, "first"));
    }
    project
}

fn write(project: &Project, name: &str, text: &str) {
    fs::write(draft::path_of(project, name), text).unwrap();
}

/// The summaries of the drafts, and how many files were read for them.
fn listed(cache: &mut CacheState, project: &Project, now: SystemTime) -> (Vec<String>, usize) {
    let before = cache.reads;
    let drafts = cache.list(project, now).unwrap();
    let listed = drafts.iter().map(|it| match &it.problem {
        None => format!("{} {}", it.name, it.connections.join(",")),
        Some(problem) => format!("{}: {problem}", it.name),
    });
    (listed.collect(), cache.reads - before)
}

#[test]
fn only_what_changed_is_looked_at_again() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let mut cache = CacheState::default();
    let first = listed(&mut cache, &project, later());
    assert_eq!(first.0, ["boats boats", "cats cats", "dogs dogs"]);
    assert_eq!(first.1, 3);
    assert_eq!(listed(&mut cache, &project, later()), (first.0.clone(), 0));

    // Of the same length, with its modification time set back.
    let path = draft::path_of(&project, "cats");
    let modified = fs::metadata(&path).unwrap().modified().unwrap();
    write(&project, "cats", &mapping("cats", "cows", "first"));
    let file = fs::File::options().write(true).open(&path).unwrap();
    file.set_modified(modified).unwrap();
    let now = listed(&mut cache, &project, later());
    assert_eq!(now.0, ["boats boats", "cats cows", "dogs dogs"]);
    assert_eq!(now.1, 1);

    fs::remove_file(&path).unwrap();
    fs::create_dir(&path).unwrap();
    let now = listed(&mut cache, &project, later());
    assert_eq!(now.0[1], "mappings/cats.toml: it is not a plain file");
    fs::remove_dir(&path).unwrap();
    let now = listed(&mut cache, &project, later());
    assert_eq!(now, (vec!["boats boats".into(), "dogs dogs".into()], 0));
    assert_eq!(cache.drafts.len(), 2);
}

#[test]
fn another_vocabulary_is_another_look_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let mut cache = CacheState::default();
    listed(&mut cache, &project, later());
    let place = folder.path().join(ONTOLOGY);
    fs::write(&place, "[[entity_types]]\nname = \"Other\"\n").unwrap();
    let (strict, reads) = listed(&mut cache, &project, later());
    assert_eq!(reads, 3);
    assert!(strict.iter().all(|it| it.contains("problem")), "{strict:?}");
    assert_eq!(listed(&mut cache, &project, later()), (strict, 0));
    fs::remove_file(&place).unwrap();
    let (free, reads) = listed(&mut cache, &project, later());
    assert_eq!((free[0].as_str(), reads), ("boats boats", 3));
}

#[test]
fn what_was_written_a_moment_ago_is_looked_at_every_time() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let mut cache = CacheState::default();
    for _ in 0..2 {
        assert_eq!(listed(&mut cache, &project, SystemTime::now()).1, 3);
    }
}

#[test]
fn a_folder_that_cannot_be_listed_is_an_error_and_not_empty() {
    let folder = tempfile::tempdir().unwrap();
    let project = project(folder.path());
    let mut cache = CacheState::default();
    fs::remove_dir_all(project.drafts()).unwrap();
    assert_eq!(
        listed(&mut cache, &project, later()).0,
        Vec::<String>::new()
    );
    fs::write(project.drafts(), "").unwrap();
    let error = cache.list(&project, later()).unwrap_err();
    assert!(error.to_string().contains("cannot be listed"), "{error}");
}
