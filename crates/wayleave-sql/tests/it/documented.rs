//! Checks that the stores reference lists every declared difference and every DSN parameter.

use wayleave_model::mapping::SourceKind;
use wayleave_sql::{Dsn, StoreOptions, store};

fn reference() -> String {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../../docs/reference/stores.md"
    );
    std::fs::read_to_string(path).unwrap()
}

#[test]
fn every_parameter_of_a_dsn_is_in_the_reference() {
    let reference = reference();
    let mut sections = reference.split("\n## ");
    let section = sections.find(|it| it.starts_with("DSNs\n")).unwrap();
    let mut documented: Vec<&str> = section
        .lines()
        .filter_map(|line| line.strip_prefix("| `")?.split_once(['=', '`']))
        .map(|(name, _)| name)
        .collect();
    documented.dedup();
    let mut parameters = Vec::new();
    for kind in [SourceKind::Postgres, SourceKind::Mysql, SourceKind::Sqlite] {
        for name in Dsn::parameters(kind).unwrap() {
            if !parameters.contains(name) {
                parameters.push(*name);
            }
        }
    }
    assert_eq!(documented, parameters);
}

#[test]
fn every_difference_is_in_the_reference() {
    let reference = reference();
    let mut sections = reference.split("\n## ").skip(1);
    for (kind, title, dsn) in [
        (SourceKind::Sqlite, "SQLite", "never-opened.db"),
        (
            SourceKind::Postgres,
            "PostgreSQL",
            "postgres://never/opened",
        ),
        (
            SourceKind::Mysql,
            "MySQL and MariaDB",
            "mysql://never/opened",
        ),
    ] {
        let store = store(Dsn::parse(kind, dsn).unwrap(), StoreOptions::default());
        let section = sections.next().unwrap();
        assert!(section.starts_with(title), "{title}: {section}");
        let capabilities = store.capabilities();
        assert_eq!(capabilities.kind, kind);
        assert!(capabilities.differences.is_sorted_by_key(|it| it.topic));
        let rows = section.lines().filter(|line| line.starts_with("| `"));
        let declared = capabilities
            .differences
            .iter()
            .map(|it| format!("| `{}` | {} |", it.topic.as_str(), it.note));
        assert_eq!(rows.collect::<Vec<_>>(), declared.collect::<Vec<_>>());
    }
}
