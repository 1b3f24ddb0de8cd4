//! Values at the limits of their datatypes, the effects of triggers and defaults, and injected
//! text.

use serde_json::{Value as Json, json};
use wayleave_model::mapping::SourceKind;

use crate::writing::laboratory::{KINDS, Laboratory, mapping, tables, writer};

fn person(more: &Json) -> Json {
    let mut given = json!({ "name": "Ann", "status": "proposed", "region": "eu" });
    given
        .as_object_mut()
        .unwrap()
        .extend(more.as_object().unwrap().clone());
    given
}

#[tokio::test]
async fn values_at_the_edge_of_every_datatype_come_back_exactly() {
    for kind in KINDS {
        let without_bounds = mapping(kind)
            .replace("min_value = 0\n", "")
            .replace("max_value = 150\n", "")
            .replace("max_value = 1.5\n", "")
            .replace("max_value = 1000\n", "");
        let laboratory = Laboratory::with(kind, &tables(kind), &without_bounds).await;
        let exact = |field: &str, value: Json| (field.to_owned(), value.clone(), value);
        let mut cases = vec![
            exact("age", json!(i64::from(i32::MAX) + 1)),
            (
                "age".to_owned(),
                json!(i64::MAX),
                json!("9223372036854775807"),
            ),
            (
                "age".to_owned(),
                json!(i64::MIN),
                json!("-9223372036854775808"),
            ),
            exact("age", json!(9_007_199_254_740_991_i64)),
            exact("load", json!(f64::MAX)),
            exact("load", json!(5e-324)),
            exact("load", json!(0.1 + 0.2)),
            ("load".to_owned(), json!(-0.0), json!(0.0)),
            exact("pay", json!("-9999999999.99")),
            exact("pay", json!("0.01")),
            exact("active", json!(true)),
            exact("born", json!("9999-12-31")),
            exact("seen", json!("9999-12-31T23:59:59.999999Z")),
            exact("seen", json!("1970-01-01T00:00:00.000001Z")),
            exact(
                "note",
                json!({ "deep": [[[{ "a": null }]]], "text": "\u{1F600} \" \\ '" }),
            ),
            exact("name", json!("\u{1F600}\u{10FFFF}é\t\n\"'\\`${}%")),
            exact("region", json!("")),
            exact("region", json!(" trailing ")),
        ];
        if kind != SourceKind::Mysql {
            cases.push(exact("born", json!("0001-01-01")));
            cases.push(exact("seen", json!("0001-01-01T00:00:00Z")));
        }
        for (field, given, expected) in cases {
            let made = laboratory
                .done(&writer(), "crm_hire", person(&json!({ &field: given })))
                .await;
            assert_eq!(made["record"][&field], expected, "{kind} {field} {given}");
            let id = made["record"]["id"].clone();
            let changed = laboratory
                .done(&writer(), "crm_change", json!({ "id": id, &field: given }))
                .await;
            assert_eq!(
                changed["changed"],
                json!({}),
                "{kind} {field}: nothing changes"
            );
        }
    }
}

#[tokio::test]
async fn what_a_column_cannot_hold_exactly_is_refused_and_not_rounded() {
    for (kind, type_name) in [
        (SourceKind::Postgres, "numeric(12,2)"),
        (SourceKind::Mysql, "decimal(12,2)"),
    ] {
        let laboratory = Laboratory::new(kind, "").await;
        let told = laboratory
            .refused(&writer(), "crm_hire", person(&json!({ "pay": "1.005" })))
            .await;
        assert_eq!(
            told,
            [("pay".to_owned(), "datatype".to_owned())],
            "{kind} {type_name}"
        );
        assert!(laboratory.records("people").await.is_empty());
    }
}

#[tokio::test]
async fn triggers_and_defaults_set_nothing_that_is_forbidden() {
    for kind in KINDS {
        let trigger = match kind {
            SourceKind::Sqlite => {
                "CREATE TRIGGER t AFTER INSERT ON people WHEN NEW.name = 'evil' BEGIN \
                   UPDATE people SET status = 'owned' WHERE id = NEW.id; END; \
                 CREATE TRIGGER u AFTER INSERT ON people WHEN NEW.name = 'hide' BEGIN \
                   UPDATE people SET age = 999 WHERE id = NEW.id; END;"
            }
            SourceKind::Postgres => {
                "CREATE FUNCTION f() RETURNS trigger LANGUAGE plpgsql AS $$ BEGIN \
                   IF NEW.name = 'evil' THEN NEW.status := 'owned'; END IF; \
                   IF NEW.name = 'hide' THEN NEW.age := 999; END IF; RETURN NEW; END $$; \
                 CREATE TRIGGER t BEFORE INSERT ON people FOR EACH ROW EXECUTE FUNCTION f();"
            }
            _ => {
                "CREATE TRIGGER t BEFORE INSERT ON people FOR EACH ROW SET \
                   NEW.status = IF(NEW.name = 'evil', 'owned', NEW.status), \
                   NEW.age = IF(NEW.name = 'hide', 999, NEW.age);"
            }
        };
        let laboratory = Laboratory::new(kind, trigger).await;
        let told = laboratory
            .refused(&writer(), "crm_hire", person(&json!({ "name": "evil" })))
            .await;
        assert_eq!(
            told,
            [("status".to_owned(), "datatype".to_owned())],
            "{kind}"
        );
        let told = laboratory
            .refused(&writer(), "crm_hire", person(&json!({ "name": "hide" })))
            .await;
        assert_eq!(told, [("age".to_owned(), "max_value".to_owned())], "{kind}");
        assert!(laboratory.records("people").await.is_empty(), "{kind}");
        laboratory
            .done(&writer(), "crm_hire", person(&json!({})))
            .await;
    }
}

#[tokio::test]
async fn rules_of_the_store_are_told_without_naming_what_is_hidden() {
    for kind in KINDS {
        let sql = tables(kind).replace(
            "FOREIGN KEY (org_id)",
            "CHECK (name <> 'nobody'), FOREIGN KEY (org_id)",
        );
        let laboratory = Laboratory::with(kind, &sql, &mapping(kind)).await;
        let error = laboratory
            .call(&writer(), "crm_hire", &person(&json!({ "name": "nobody" })))
            .await
            .unwrap_err();
        let told = crate::writing::laboratory::fields(&error);
        assert_eq!(told, [("*".to_owned(), "check".to_owned())], "{kind}");
        let text = format!("{error} {:?}", error.data);
        for word in ["people", "constraint ", "CHECK", "nobody'"] {
            assert!(
                !text.replace("\"constraint\"", "").contains(word),
                "{kind}: {text}"
            );
        }
    }
}

#[tokio::test]
async fn injected_text_is_text_in_every_field_and_key() {
    let payloads = [
        "'; DROP TABLE people; --",
        "\"; DROP TABLE people; --",
        "`; DROP TABLE people; --",
        "\\'; --",
        "$1",
        "?1",
        "{\"claim\":\"x\"}",
        "%s%n",
        "1 OR 1=1",
        "\u{0}x",
        "); DELETE FROM orgs; --",
    ];
    for kind in KINDS {
        let laboratory = Laboratory::new(kind, "").await;
        for payload in payloads {
            let outcome = laboratory.call(&writer(), "crm_hire", &person(&json!({
                "name": format!("ab{payload}"), "region": payload, "note": { payload: payload },
                "idempotency_key": payload,
            }))).await;
            match outcome {
                Ok(done) => {
                    assert_eq!(done["data"]["record"]["region"], payload, "{kind}");
                    assert_eq!(
                        done["data"]["record"]["note"],
                        json!({ payload: payload }),
                        "{kind}"
                    );
                }
                Err(error) => assert!(
                    payload.contains('\0'),
                    "{kind} {payload}: {error} {:?}",
                    error.data
                ),
            }
            for given in [
                json!({ "id": payload, "name": "Bob" }),
                json!({ payload: 1, "id": 1, "name": "Bob" }),
            ] {
                laboratory.refused(&writer(), "crm_change", given).await;
            }
        }
        assert_eq!(
            laboratory.records("people").await.len(),
            payloads.len() - 1,
            "{kind}"
        );
    }
}

/// Orders of shops in the same region; the key of a shop is its region and its number.
pub const SHOPS: &str = r#"
[dataset]
name = "crm"
kind = "KIND"
[[connections]]
id = "crm"
source = "crm"
[streams.shops]
type = "Shop"
key = ["region", "number"]
[streams.shops.fields.region]
datatype = "string"
[streams.shops.fields.number]
datatype = "integer"
[streams.orders]
type = "Order"
key = ["id"]
[streams.orders.fields.id]
datatype = "integer"
[streams.orders.fields.region]
datatype = "string"
[streams.orders.fields.shop]
datatype = "integer"
[streams.orders.relations.of]
to = "shops"
on = { region = "region", shop = "number" }
[capabilities.move]
stream = "orders"
action = "update"
fields = ["shop"]
source = "crm_rw"
[capabilities.order]
stream = "orders"
action = "create"
fields = ["id", "shop"]
source = "crm_rw"
"#;

#[tokio::test]
async fn a_reference_of_several_fields_exists_though_a_call_sets_only_one() {
    for kind in KINDS {
        let sql = "CREATE TABLE shops (region varchar(20) NOT NULL, number bigint NOT NULL, PRIMARY KEY (region, number));
            CREATE TABLE orders (id bigint PRIMARY KEY, region varchar(20) DEFAULT 'us', shop bigint);
            INSERT INTO shops VALUES ('eu', 1), ('eu', 2), ('us', 7);
            INSERT INTO orders VALUES (1, 'eu', 1);";
        let laboratory = Laboratory::with(kind, sql, &SHOPS.replace("KIND", kind.as_str())).await;
        let package = crate::writing::laboratory::with_capabilities(&["move", "order"]);
        laboratory
            .done(&package, "crm_move", json!({ "id": 1, "shop": 2 }))
            .await;
        let none = [("shop".to_owned(), "reference".to_owned())];
        let told = laboratory
            .refused(&package, "crm_move", json!({ "id": 1, "shop": 7 }))
            .await;
        assert_eq!(told, none, "{kind}");
        // The store's default sets the other field of a new record.
        let told = laboratory
            .refused(&package, "crm_order", json!({ "id": 2, "shop": 1 }))
            .await;
        assert_eq!(told, none, "{kind}");
        laboratory
            .done(&package, "crm_order", json!({ "id": 2, "shop": 7 }))
            .await;
    }
}
