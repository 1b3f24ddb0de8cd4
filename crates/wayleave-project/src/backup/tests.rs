use super::*;

#[test]
fn only_paths_of_a_project_are_known() {
    for path in [
        "wayleave.toml",
        "ontology.toml",
        "mappings/crm.toml",
        ".wayleave/ledger.db",
        ".wayleave/activity/00/head",
    ] {
        assert!(is_known_path(path), "{path}");
    }
    for path in [
        "",
        "/etc/passwd",
        "../wayleave.toml",
        ".wayleave/../../x",
        ".wayleave",
        ".wayleave/",
        ".wayleave//x",
        "mappings/sub/crm.toml",
        "mappings/run.sh",
        "mappings/../x.toml",
        ".bashrc",
        ".wayleave/a\nb",
        ".wayleave/a\\b",
    ] {
        assert!(!is_known_path(path), "{path}");
    }
}
