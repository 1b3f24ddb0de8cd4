//! `cargo xtask edges`: checks that the dependencies between crates are those the architecture
//! allows.
//!
//! The tables below are the architecture; `cargo metadata` supplies the actual dependencies. This
//! module reads no source code.

use std::collections::{BTreeMap, VecDeque};
use std::process::Command;

use anyhow::{Context as _, bail};
use serde_json::Value;

use crate::finding::Finding;
use crate::repository::Repository;

/// Each crate and the crates of this workspace it may use, lowest first: a crate may use only
/// crates of earlier rows, so there are no cycles.
const ALLOWED: &[(&str, &[&str])] = &[
    ("wayleave-model", &[]),
    ("wayleave-plan", &["wayleave-model"]),
    ("wayleave-store", &["wayleave-model", "wayleave-plan"]),
    (
        "wayleave-sql",
        &["wayleave-model", "wayleave-plan", "wayleave-store"],
    ),
    (
        "wayleave-files",
        &["wayleave-model", "wayleave-plan", "wayleave-store"],
    ),
    (
        "wayleave-rdf",
        &["wayleave-model", "wayleave-plan", "wayleave-store"],
    ),
    (
        "wayleave-search",
        &["wayleave-model", "wayleave-plan", "wayleave-store"],
    ),
    ("wayleave-ledger", &["wayleave-model"]),
    // It knows calls, and nothing of the data they read.
    ("wayleave-activity", &[]),
    // Review, checks, activation and the texts about them: shared by the command line, the tools
    // and the console, so it knows none of these.
    (
        "wayleave-project",
        &[
            "wayleave-model",
            "wayleave-plan",
            "wayleave-store",
            "wayleave-sql",
            "wayleave-files",
            "wayleave-rdf",
            "wayleave-search",
            "wayleave-ledger",
            "wayleave-activity",
        ],
    ),
    ("wayleave-mcp", &[]),
    (
        "wayleave-surface",
        &[
            "wayleave-model",
            "wayleave-plan",
            "wayleave-store",
            "wayleave-search",
            "wayleave-ledger",
            "wayleave-activity",
            "wayleave-project",
            "wayleave-mcp",
        ],
    ),
    (
        "wayleave-console",
        &[
            "wayleave-model",
            "wayleave-plan",
            "wayleave-store",
            "wayleave-ledger",
            "wayleave-activity",
            "wayleave-project",
        ],
    ),
    (
        "wayleave-server",
        &[
            "wayleave-model",
            "wayleave-plan",
            "wayleave-store",
            "wayleave-search",
            "wayleave-ledger",
            "wayleave-activity",
            "wayleave-project",
            "wayleave-mcp",
            "wayleave-surface",
            "wayleave-console",
        ],
    ),
    (
        "wayleave",
        &[
            "wayleave-model",
            "wayleave-plan",
            "wayleave-store",
            "wayleave-ledger",
            "wayleave-activity",
            "wayleave-project",
            "wayleave-surface",
            "wayleave-server",
        ],
    ),
    (
        TEST_CRATE,
        &[
            "wayleave-model",
            "wayleave-plan",
            "wayleave-store",
            "wayleave-mcp",
        ],
    ),
    ("xtask", &[]),
    // It measures the parts of the product one by one: the driver alone, then the read service,
    // then the server, over a project that it creates.
    (
        "wayleave-bench",
        &[
            "wayleave-model",
            "wayleave-plan",
            "wayleave-store",
            "wayleave-sql",
            "wayleave-search",
            "wayleave-ledger",
            "wayleave-activity",
            "wayleave-project",
            "wayleave-mcp",
            "wayleave-surface",
            "wayleave-server",
            TEST_CRATE,
        ],
    ),
];

/// Further crates that the tests of a crate may use: a real implementation of a port.
const TESTED_WITH: &[(&str, &[&str])] = &[("wayleave-surface", &["wayleave-sql"])];

/// Stores, clients and fixtures for tests: a dev-dependency of any crate, a dependency of no
/// product crate.
const TEST_CRATE: &str = "wayleave-test";

/// Foreign crates that only some crates of the workspace may use.
const CONFINED: &[(&str, &[&str])] = &[
    // The benchmark compares Wayleave with it, and with the drivers.
    ("rmcp", &["wayleave-mcp", "wayleave-bench"]),
    (
        "rusqlite",
        &[
            "wayleave-sql",
            // Its tests measure ranking against SQLite's own search.
            "wayleave-search",
            "wayleave-ledger",
            TEST_CRATE,
            "wayleave-bench",
        ],
    ),
    (
        "tokio-postgres",
        &[
            "wayleave-sql",
            "wayleave-ledger",
            TEST_CRATE,
            "wayleave-bench",
        ],
    ),
    // The messages of PostgreSQL's protocol and their values are the driver's business. Only an
    // adapter may need to name a type of them.
    ("postgres-protocol", &["wayleave-sql"]),
    ("postgres-types", &["wayleave-sql"]),
    ("mysql_async", &["wayleave-sql", TEST_CRATE]),
    ("mysql_common", &["wayleave-sql"]),
    ("tantivy", &["wayleave-search"]),
];

/// Crates without async, clock, file, environment or network.
const PURE: &[&str] = &["wayleave-model", "wayleave-plan"];

/// Crates that a pure crate must not depend on, even transitively.
const IMPURE: &[&str] = &[
    "async-trait",
    "futures",
    "futures-util",
    "hyper",
    "reqwest",
    "rusqlite",
    "tokio",
];

const TABLE: &str = "xtask/src/edges.rs";

/// Checks the manifests of the workspace.
pub(crate) fn run(repository: &Repository) -> anyhow::Result<Vec<Finding>> {
    let output = Command::new(std::env::var_os("CARGO").unwrap_or_else(|| "cargo".into()))
        .args(["metadata", "--format-version", "1", "--locked"])
        .current_dir(repository.root())
        .output()
        .context("cannot run `cargo metadata`")?;
    if !output.status.success() {
        bail!(
            "`cargo metadata` failed: {}",
            String::from_utf8_lossy(&output.stderr).trim()
        );
    }
    let metadata: Value =
        serde_json::from_slice(&output.stdout).context("cannot parse `cargo metadata`")?;
    let workspace = Workspace::read(&metadata).context("`cargo metadata` has another shape")?;
    Ok(check(&workspace))
}

/// When a dependency is built.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Normal,
    Build,
    Dev,
}

struct Dependency {
    name: String,
    kind: Kind,
}

struct Member {
    name: String,
    manifest: String,
    dependencies: Vec<Dependency>,
}

/// The parts of `cargo metadata` that the rules need.
struct Workspace {
    members: Vec<Member>,
    /// Maps a package id to its name and the ids of its dependencies, without dev-dependencies.
    resolved: BTreeMap<String, (String, Vec<String>)>,
}

impl Workspace {
    fn read(metadata: &Value) -> Option<Self> {
        let root = metadata.get("workspace_root")?.as_str()?;
        let member_ids = metadata.get("workspace_members")?.as_array()?;
        let mut members = Vec::new();
        let mut names = BTreeMap::new();
        for package in metadata.get("packages")?.as_array()? {
            let name = package.get("name")?.as_str()?;
            names.insert(package.get("id")?.as_str()?, name);
            if member_ids.contains(package.get("id")?) {
                let manifest = package.get("manifest_path")?.as_str()?;
                members.push(Member {
                    name: name.to_owned(),
                    manifest: manifest
                        .trim_start_matches(root)
                        .trim_start_matches('/')
                        .to_owned(),
                    dependencies: dependencies(package)?,
                });
            }
        }
        let mut resolved = BTreeMap::new();
        for node in metadata.get("resolve")?.get("nodes")?.as_array()? {
            let id = node.get("id")?.as_str()?;
            let mut uses = Vec::new();
            for dependency in node.get("deps")?.as_array()? {
                let kinds = dependency.get("dep_kinds")?.as_array()?;
                if kinds
                    .iter()
                    .any(|kind| kind.get("kind").is_some_and(Value::is_null))
                {
                    uses.push(dependency.get("pkg")?.as_str()?.to_owned());
                }
            }
            resolved.insert(id.to_owned(), ((*names.get(id)?).to_owned(), uses));
        }
        Some(Self { members, resolved })
    }

    /// The shortest dependency path from a crate to a foreign one, as names, if there is one.
    fn way(&self, from: &str, to: &str) -> Option<Vec<&str>> {
        let (start, _) = self.resolved.iter().find(|(_, (name, _))| name == from)?;
        let mut ways: VecDeque<Vec<&String>> = VecDeque::from([vec![start]]);
        let mut seen = vec![start];
        while let Some(way) = ways.pop_front() {
            let (name, uses) = self.resolved.get(*way.last()?)?;
            if name == to {
                let names = way.iter().filter_map(|id| self.resolved.get(*id));
                return Some(names.map(|(name, _)| name.as_str()).collect());
            }
            for next in uses {
                if !seen.contains(&next) {
                    seen.push(next);
                    ways.push_back(way.iter().copied().chain([next]).collect());
                }
            }
        }
        None
    }
}

fn dependencies(package: &Value) -> Option<Vec<Dependency>> {
    let read = |dependency: &Value| {
        Some(Dependency {
            name: dependency.get("name")?.as_str()?.to_owned(),
            kind: match dependency.get("kind")?.as_str() {
                None => Kind::Normal,
                Some("dev") => Kind::Dev,
                Some(_) => Kind::Build,
            },
        })
    };
    package
        .get("dependencies")?
        .as_array()?
        .iter()
        .map(read)
        .collect()
}

fn check(workspace: &Workspace) -> Vec<Finding> {
    let mut findings = Vec::new();
    for member in &workspace.members {
        let Some((_, allowed)) = ALLOWED.iter().find(|(name, _)| *name == member.name) else {
            findings.push(Finding::failure(
                &member.manifest,
                1,
                format!("crate `{}` has no place in the architecture", member.name),
                format!("add it to `ALLOWED` in {TABLE} and to the map in ARCHITECTURE.md"),
            ));
            continue;
        };
        for dependency in &member.dependencies {
            let ours = workspace
                .members
                .iter()
                .any(|other| other.name == dependency.name);
            findings.extend(if ours {
                inner_edge(member, dependency, allowed)
            } else {
                outer_edge(member, dependency)
            });
        }
        if PURE.contains(&member.name.as_str()) {
            findings.extend(impurities(workspace, member));
        }
    }
    findings
}

fn inner_edge(member: &Member, dependency: &Dependency, allowed: &[&str]) -> Option<Finding> {
    let tested_with = TESTED_WITH
        .iter()
        .any(|(name, with)| *name == member.name && with.contains(&dependency.name.as_str()));
    let to_tests = (dependency.name == TEST_CRATE || tested_with) && dependency.kind == Kind::Dev;
    if to_tests || dependency.name == member.name || allowed.contains(&dependency.name.as_str()) {
        return None;
    }
    Some(Finding::failure(
        &member.manifest,
        1,
        format!("`{}` may not depend on `{}`", member.name, dependency.name),
        format!(
            "move the code to the crate whose role it is, or argue the edge in {TABLE} and an ADR"
        ),
    ))
}

fn outer_edge(member: &Member, dependency: &Dependency) -> Option<Finding> {
    let (name, homes) = CONFINED.iter().find(|(name, _)| *name == dependency.name)?;
    if homes.contains(&member.name.as_str()) {
        return None;
    }
    Some(Finding::failure(
        &member.manifest,
        1,
        format!("`{}` may not depend on `{name}`", member.name),
        format!("only {} may: use what they offer", homes.join(", ")),
    ))
}

fn impurities(workspace: &Workspace, member: &Member) -> Vec<Finding> {
    let finding = |way: Vec<&str>| {
        Finding::failure(
            &member.manifest,
            1,
            format!("`{}` is pure, yet reaches {}", member.name, way.join(" → ")),
            "pass the value in from a crate that may do I/O, or turn the feature off",
        )
    };
    IMPURE
        .iter()
        .filter_map(|name| workspace.way(&member.name, name))
        .map(finding)
        .collect()
}

#[cfg(test)]
mod tests;
