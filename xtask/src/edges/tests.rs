//! Tests the rules on small workspaces.

use serde_json::json;

use super::*;

/// A workspace written as `crate: kind dependency, …`, one line per crate of the workspace.
fn messages(description: &str) -> Vec<String> {
    let lines: Vec<(&str, Vec<(&str, &str)>)> = description
        .lines()
        .map(str::trim)
        .filter(|line| !line.is_empty())
        .map(|line| {
            let (name, uses) = line.split_once(':').unwrap();
            let uses = uses
                .split(',')
                .filter_map(|each| each.trim().split_once(' '))
                .collect();
            (name, uses)
        })
        .collect();
    let kind = |kind: &str| {
        if kind == "normal" {
            Value::Null
        } else {
            json!(kind)
        }
    };
    let mut packages = Vec::new();
    let mut nodes = Vec::new();
    for (name, uses) in &lines {
        let named = |(k, name): &(&str, &str)| json!({"name": name, "kind": kind(k)});
        packages.push(json!({
            "id": name, "name": name, "manifest_path": format!("/clone/crates/{name}/Cargo.toml"),
            "dependencies": uses.iter().map(named).collect::<Vec<_>>(),
        }));
        let resolved =
            |(k, name): &(&str, &str)| json!({"pkg": name, "dep_kinds": [{"kind": kind(k)}]});
        nodes.push(json!({"id": name, "deps": uses.iter().map(resolved).collect::<Vec<_>>()}));
    }
    for (_, name) in lines.iter().flat_map(|(_, uses)| uses) {
        if !packages.iter().any(|package| package["id"] == *name) {
            packages.push(json!({"id": name, "name": name}));
            nodes.push(json!({"id": name, "deps": []}));
        }
    }
    let members: Vec<&str> = lines
        .iter()
        .map(|(name, _)| *name)
        .filter(|name| !name.starts_with("foreign"))
        .collect();
    let metadata = json!({
        "workspace_root": "/clone", "workspace_members": members,
        "packages": packages, "resolve": {"nodes": nodes},
    });
    let workspace = Workspace::read(&metadata).unwrap();
    check(&workspace)
        .iter()
        .map(|finding| finding.message().to_owned())
        .collect()
}

#[test]
fn edges_of_the_table_are_allowed() {
    let found = messages(
        "wayleave-model: normal serde
         wayleave-store: normal wayleave-model
         wayleave-sql: normal wayleave-store, normal rusqlite, dev wayleave-test
         wayleave-test: normal wayleave-model",
    );
    assert_eq!(found, Vec::<String>::new());
}

#[test]
fn an_edge_that_points_up_is_refused() {
    let found = messages("wayleave-model: normal wayleave-store\nwayleave-store: normal serde");
    assert_eq!(
        found,
        ["`wayleave-model` may not depend on `wayleave-store`"]
    );
}

#[test]
fn a_dev_dependency_keeps_to_the_table_too() {
    let found = messages("wayleave-mcp: dev wayleave-model\nwayleave-model: normal serde");
    assert_eq!(found, ["`wayleave-mcp` may not depend on `wayleave-model`"]);
}

#[test]
fn the_surface_is_tested_with_a_real_store_and_built_without() {
    let members = "wayleave-sql: normal serde";
    let tested = messages(&format!("wayleave-surface: dev wayleave-sql\n{members}"));
    assert_eq!(tested, Vec::<String>::new());
    let built = messages(&format!("wayleave-surface: normal wayleave-sql\n{members}"));
    assert_eq!(
        built,
        ["`wayleave-surface` may not depend on `wayleave-sql`"]
    );
}

#[test]
fn the_test_crate_is_never_a_normal_dependency_of_the_product() {
    let found = messages("wayleave-server: normal wayleave-test\nwayleave-test: normal serde");
    assert_eq!(
        found,
        ["`wayleave-server` may not depend on `wayleave-test`"]
    );
}

#[test]
fn a_crate_without_a_place_is_refused() {
    assert_eq!(
        messages("wayleave-utils: normal serde"),
        ["crate `wayleave-utils` has no place in the architecture"]
    );
}

#[test]
fn the_sdk_and_the_drivers_stay_at_their_edges() {
    let found = messages(
        "wayleave-surface: normal rmcp, dev rusqlite
         wayleave-ledger: normal rusqlite, normal mysql_async, normal postgres-protocol",
    );
    assert_eq!(
        found,
        [
            "`wayleave-surface` may not depend on `rmcp`",
            "`wayleave-surface` may not depend on `rusqlite`",
            "`wayleave-ledger` may not depend on `mysql_async`",
            "`wayleave-ledger` may not depend on `postgres-protocol`",
        ]
    );
}

#[test]
fn a_pure_crate_may_not_reach_async_through_another() {
    let found = messages(
        "wayleave-plan: normal wayleave-model
         wayleave-model: normal foreign-middle
         foreign-middle: normal tokio",
    );
    assert_eq!(
        found,
        [
            "`wayleave-plan` is pure, yet reaches wayleave-plan → wayleave-model → foreign-middle → tokio",
            "`wayleave-model` is pure, yet reaches wayleave-model → foreign-middle → tokio",
        ]
    );
}

#[test]
fn the_tests_of_a_pure_crate_may_use_what_they_need() {
    assert_eq!(messages("wayleave-model: dev tokio"), Vec::<String>::new());
}

#[test]
fn a_row_of_the_table_uses_only_earlier_rows() {
    for (at, (name, uses)) in ALLOWED.iter().enumerate() {
        for used in *uses {
            let below = ALLOWED[..at].iter().any(|(other, _)| other == used);
            assert!(below, "`{name}` may use `{used}`, which is no earlier row");
        }
    }
}
