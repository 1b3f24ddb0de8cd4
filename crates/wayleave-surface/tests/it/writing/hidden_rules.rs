//! Rules of the store itself that could reveal hidden records: indexes over expressions, conditions
//! and case-folded texts, and foreign keys from and to tables that are not mapped.

use serde_json::{Value as Json, json};
use wayleave_mcp::RpcError;
use wayleave_model::mapping::SourceKind;

use crate::writing::laboratory::{
    KINDS, Laboratory, mapping, narrow, tables, with_capabilities, with_mask, writer,
};
use crate::writing::narrowing::{sequence, timeless};

/// Creates two worlds; only in the first a hidden record would conflict.
async fn worlds(kind: SourceKind, sql: &str) -> [Laboratory; 2] {
    // The mapping does not declare the badge unique, so only the store's own rules apply.
    let mapping = mapping(kind).replace("unique = [[\"badge\"]]\n", "");
    let seen = "INSERT INTO people (id, name, status, badge, region) VALUES \
        (1, 'Ann', 'proposed', 'B-77', 'eu');";
    let hidden = "INSERT INTO people (id, name, status, badge, region) VALUES \
        (2, 'Dan', 'proposed', 'b-10', 'EU');";
    let keys = sequence(kind);
    let one = Laboratory::with(kind, &format!("{sql}{seen}{hidden}{keys}"), &mapping).await;
    let other = Laboratory::with(kind, &format!("{sql}{seen}{keys}"), &mapping).await;
    [one, other]
}

/// Makes a call in both worlds, and checks that they answer alike.
async fn told(worlds: &[Laboratory; 2], tool: &str, given: &Json) -> Result<Json, RpcError> {
    let [one, other] = worlds;
    let first = one.call(&narrow(), tool, given).await.map(timeless);
    let second = other.call(&narrow(), tool, given).await.map(timeless);
    assert_eq!(first, second, "{} {tool} {given}", one.kind);
    second
}

fn reason(answer: Result<Json, RpcError>) -> String {
    let error = answer.unwrap_err();
    assert_eq!(error.code, -32002, "{error} {:?}", error.data);
    error.data.unwrap()["reason"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn unique_rules_of_the_store_tell_nothing_of_hidden_records() {
    for kind in KINDS {
        let plain = tables(kind).replace(" UNIQUE,", ",");
        let folded = match kind {
            SourceKind::Mysql => {
                "ALTER TABLE people ADD folded varchar(190) AS (lower(badge)) PERSISTENT, \
                   ADD UNIQUE (folded);"
            }
            _ => "CREATE UNIQUE INDEX folded ON people (lower(badge));",
        };
        let partial = match kind {
            // MariaDB has no partial indexes, but indexes of the beginning of a text.
            SourceKind::Mysql => "CREATE UNIQUE INDEX partial ON people (badge(1), name(1));",
            _ => "CREATE UNIQUE INDEX partial ON people (badge) WHERE status = 'proposed';",
        };
        for rule in [folded, partial] {
            let worlds = worlds(kind, &format!("{plain}{rule}")).await;
            let dan =
                json!({ "name": "Dan", "status": "proposed", "badge": "B-10", "region": "eu" });
            assert_eq!(
                reason(told(&worlds, "crm_hire", &dan).await),
                "hidden_conflict"
            );
            let change = json!({ "id": 1, "badge": "B-10" });
            assert_eq!(
                reason(told(&worlds, "crm_change", &change).await),
                "hidden_conflict"
            );
        }
    }
}

#[tokio::test]
async fn a_fixed_field_shows_all_conflicts_only_where_the_store_compares_it_exactly() {
    for kind in [SourceKind::Sqlite, SourceKind::Mysql] {
        let plain = tables(kind).replace(" UNIQUE,", ",");
        let (exact, folding) = match kind {
            SourceKind::Mysql => (
                "ALTER TABLE people ADD UNIQUE (region, badge);",
                "ALTER TABLE people MODIFY region varchar(190) CHARACTER SET utf8mb4 \
                   COLLATE utf8mb4_general_ci NOT NULL, ADD UNIQUE (region, badge);",
            ),
            _ => (
                "CREATE UNIQUE INDEX r ON people (region, badge);",
                "CREATE UNIQUE INDEX r ON people (region COLLATE NOCASE, badge COLLATE NOCASE);",
            ),
        };
        let dan = json!({ "name": "Dan", "status": "proposed", "badge": "B-10", "region": "eu" });
        let both = worlds(kind, &format!("{plain}{folding}")).await;
        assert_eq!(
            reason(told(&both, "crm_hire", &dan).await),
            "hidden_conflict",
            "{kind}"
        );
        let both = worlds(kind, &format!("{plain}{exact}")).await;
        told(&both, "crm_hire", &dan).await.unwrap();
        // A conflict with a visible record is reported as such.
        let error = told(&both, "crm_hire", &dan).await.unwrap_err();
        assert_eq!(error.code, -32602, "{kind} {error}");
    }
}

/// A mapping of people; neither their teams nor the table of their keys is mapped.
const TEAMS: &str = r#"
[dataset]
name = "crm"
kind = "KIND"
[[connections]]
id = "crm"
source = "crm"
[streams.people]
type = "Person"
key = ["id"]
[streams.people.fields.id]
datatype = "integer"
[streams.people.fields.team]
datatype = "integer"
[capabilities.hire]
stream = "people"
action = "create"
fields = ["id", "team"]
source = "crm_rw"
[capabilities.change]
stream = "people"
action = "update"
fields = ["team"]
source = "crm_rw"
[capabilities.forget]
stream = "people"
action = "delete"
source = "crm_rw"
"#;

fn teams(keys: &str) -> String {
    format!(
        "CREATE TABLE teams (id bigint PRIMARY KEY);
         CREATE TABLE people (id bigint PRIMARY KEY, team bigint, FOREIGN KEY (team) REFERENCES teams (id));
         INSERT INTO teams VALUES (1), (2); INSERT INTO people VALUES (1, 1); {keys}"
    )
}

#[tokio::test]
async fn foreign_keys_tell_nothing_of_what_is_not_mapped_and_take_nothing_along() {
    let keys = "CREATE TABLE door_keys (id bigint PRIMARY KEY, person bigint, \
          FOREIGN KEY (person) REFERENCES people (id) ON DELETE CASCADE);
        INSERT INTO door_keys VALUES (1, 1);";
    let package = with_capabilities(&["hire", "change", "forget"]);
    for kind in KINDS {
        let mapping = TEAMS.replace("KIND", kind.as_str());
        let laboratory = Laboratory::with(kind, &teams(keys), &mapping).await;
        for team in [2, 9] {
            for (tool, given) in [
                ("crm_hire", json!({ "id": 5, "team": team })),
                ("crm_change", json!({ "id": 1, "team": team })),
            ] {
                let answer = laboratory.call(&package, tool, &given).await;
                assert_eq!(reason(answer), "hidden_reference", "{kind} {tool}");
            }
        }
        // A null reference reveals nothing.
        laboratory
            .done(&package, "crm_hire", json!({ "id": 5 }))
            .await;
        laboratory
            .done(&package, "crm_change", json!({ "id": 1, "team": null }))
            .await;
        // One person with a key and one without: a deletion would delete the key too, or reveal it.
        for id in [1, 5] {
            let answer = laboratory
                .call(&package, "crm_forget", &json!({ "id": id }))
                .await;
            assert_eq!(reason(answer), "hidden_reference", "{kind}");
        }
    }
}

/// People of a team, each with a pin that is unique in it. The mapping says nothing of that.
const PINS: &str = r#"
[dataset]
name = "crm"
kind = "KIND"
[[connections]]
id = "crm"
source = "crm"
[streams.people]
type = "Person"
key = ["id"]
[streams.people.fields.id]
datatype = "integer"
[streams.people.fields.team]
datatype = "integer"
[streams.people.fields.pin]
datatype = "string"
[capabilities.change]
stream = "people"
action = "update"
fields = ["team"]
source = "crm_rw"
"#;

#[tokio::test]
async fn a_unique_rule_tells_nothing_of_masked_values() {
    let package = with_mask("people", "pin", "redact", &["change"]);
    let given = json!({ "id": 1, "team": 2 });
    for kind in KINDS {
        for pin in ["1234", "5678"] {
            let sql = format!(
                "CREATE TABLE people (id bigint PRIMARY KEY, team bigint, pin varchar(20), UNIQUE (team, pin));
                 INSERT INTO people VALUES (1, 1, '1234'), (2, 2, '{pin}');"
            );
            let mapping = PINS.replace("KIND", kind.as_str());
            let laboratory = Laboratory::with(kind, &sql, &mapping).await;
            let answer = laboratory.call(&package, "crm_change", &given).await;
            assert_eq!(reason(answer), "hidden_conflict", "{kind} {pin}");
            // Without the mask it is a conflict only if there is one.
            let open = with_capabilities(&["change"]);
            let answer = laboratory.call(&open, "crm_change", &given).await;
            assert_eq!(answer.is_ok(), pin != "1234", "{kind} {answer:?}");
        }
    }
}

#[tokio::test]
async fn values_that_a_person_listed_may_refer_to_what_is_not_mapped() {
    let package = with_capabilities(&["hire", "change", "forget"]);
    for kind in KINDS {
        let mapping = TEAMS.replace("KIND", kind.as_str()).replace(
            "[streams.people.fields.team]\n",
            "[streams.people.fields.team]\none_of = [1, 2]\n",
        );
        let laboratory = Laboratory::with(kind, &teams(""), &mapping).await;
        laboratory
            .done(&package, "crm_hire", json!({ "id": 5, "team": 2 }))
            .await;
        laboratory
            .done(&package, "crm_forget", json!({ "id": 5 }))
            .await;
    }
}

#[tokio::test]
async fn a_reference_set_in_part_is_refused_alike_whether_it_is_hidden_or_missing() {
    let shops = crate::writing::edges::SHOPS;
    for kind in KINDS {
        let sql = "CREATE TABLE shops (region varchar(20) NOT NULL, number bigint NOT NULL, PRIMARY KEY (region, number));
            CREATE TABLE orders (id bigint PRIMARY KEY, region varchar(20) DEFAULT 'us', shop bigint,
              FOREIGN KEY (region, shop) REFERENCES shops (region, number));
            INSERT INTO shops VALUES ('eu', 1), ('us', 7);
            INSERT INTO orders VALUES (1, 'eu', 1);";
        let laboratory = Laboratory::with(kind, sql, &shops.replace("KIND", kind.as_str())).await;
        let package = with_capabilities(&["move", "order"]);
        for (tool, given) in [
            ("crm_order", json!({ "id": 2, "shop": 9 })),
            ("crm_move", json!({ "id": 1, "shop": 9 })),
        ] {
            let told = laboratory.refused(&package, tool, given).await;
            assert_eq!(
                told,
                [("shop".to_owned(), "reference".to_owned())],
                "{kind} {tool}"
            );
        }
        laboratory
            .done(&package, "crm_order", json!({ "id": 2, "shop": 7 }))
            .await;
    }
}

#[tokio::test]
async fn a_trigger_that_names_a_missing_table_is_not_told_as_missing_keys() {
    let trigger = "CREATE TABLE log (id bigint); \
        CREATE TRIGGER t AFTER INSERT ON people BEGIN INSERT INTO log VALUES (1); END;";
    let laboratory = Laboratory::new(SourceKind::Sqlite, trigger).await;
    wayleave_test::sqlite_execute(&laboratory.dsn, "DROP TABLE log").unwrap();
    let given = json!({ "name": "Ann", "status": "proposed", "region": "eu" });
    let error = laboratory
        .call(&writer(), "crm_hire", &given)
        .await
        .unwrap_err();
    let text = format!("{error} {:?}", error.data);
    assert!(
        !text.contains("idempotency") && !text.contains("log"),
        "{text}"
    );
}
