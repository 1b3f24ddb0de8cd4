//! Masked fields: the masks that a grant may set, the operations that a mask disables, and the
//! masking of rows before anyone sees them.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::json;
use wayleave_model::grant::Claims;
use wayleave_model::mapping::AggregateOp;
use wayleave_model::mask::Mask;
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::mask::MaskKey;
use wayleave_plan::package::{Grant, GrantSelection, Grants, Package};
use wayleave_plan::plan::{Column, Read};
use wayleave_plan::query::QueryPlan;
use wayleave_plan::request::QueryRequest;
use wayleave_plan::value::Value;
use wayleave_plan::view::{FieldView, StreamView, View};

use crate::fixture::{NOW, arguments, at, keys, ratified};

const STAFF: &str = r#"
[dataset]
name = "staff"
kind = "sqlite"
[[connections]]
id = "staff"
source = "staff"

[streams.people]
type = "Person"
key = ["id"]
title = "name"
event_time = "hired"
updated = "changed"
search = ["name", "bio"]
unique = [["email"], ["desk", "name"]]
[streams.people.fields]
id = { datatype = "integer", required = true }
name = { datatype = "string" }
email = { datatype = "string", one_of = ["a@b", "c@d"] }
bio = { datatype = "string" }
desk = { datatype = "integer" }
hired = { datatype = "datetime" }
changed = { datatype = "datetime" }
boss = { datatype = "integer" }
pay = { datatype = "decimal" }
papers = { datatype = "json" }
label = { datatype = "string", compute = "name || '!'" }
badge = { datatype = "string", compute = "label || '?'" }
twice = { datatype = "decimal", compute = "pay * 2" }
of_boss = { datatype = "string", compute = "lead.name" }
[streams.people.measures]
payroll = "sum(pay)"
doubled = "sum(twice)"
bosses = "count_distinct(boss)"
[streams.people.relations]
lead = { to = "people", on = { boss = "id" } }
letters = { to = "mails", on = { email = "sender" } }

[streams.mails]
type = "Mail"
key = ["id"]
[streams.mails.fields]
id = { datatype = "integer", required = true }
sender = { datatype = "string" }
text = { datatype = "string" }
[streams.mails.relations]
from = { to = "people", on = { sender = "email" } }

[capabilities.hire]
stream = "people"
action = "create"
fields = ["id", "name", "desk"]
source = "staff_rw"
[capabilities.move]
stream = "people"
action = "update"
fields = ["desk"]
source = "staff_rw"
[capabilities.pay]
stream = "people"
action = "update"
fields = ["pay"]
source = "staff_rw"
"#;

fn active_datasets(text: &str) -> ActiveDatasets {
    ActiveDatasets::new(vec![ratified("staff", text)]).unwrap()
}

/// Parses a selection of everything, with masks as `stream.field=mask` words.
fn selection(masks: &str) -> GrantSelection {
    let mut selection = GrantSelection {
        capabilities: ["hire", "move", "pay"].map(str::to_owned).into(),
        ..GrantSelection::default()
    };
    for word in masks.split_whitespace() {
        let (path, mask) = word.split_once('=').unwrap();
        let (stream, field) = path.split_once('.').unwrap();
        let masks = selection.masks.entry(stream.to_owned()).or_default();
        masks.insert(field.to_owned(), mask.parse().unwrap());
    }
    selection
}

/// The view of a grant of `STAFF`, after the mapping became `now`.
fn later(now: &str, masks: &str) -> View {
    let mut selection = selection(masks);
    let mut terms = loop {
        match selection.terms(&ratified("staff", STAFF)) {
            Ok(terms) => break terms,
            // Capabilities that do not fit are granted anyway, to check that they are withheld.
            Err(_) if !selection.capabilities.is_empty() => selection.capabilities.clear(),
            Err(unfit) => panic!("{unfit:?}"),
        }
    };
    terms.capabilities = ["hire", "move", "pay"].map(str::to_owned).into();
    let (grant, _) = Grant::from_terms("g_test", &terms, &Claims::new());
    let package = Package {
        subject: "t_test".to_owned(),
        epoch: 1,
        grants: Grants::Only(Arc::new(BTreeMap::from([("staff".to_owned(), grant)]))),
    };
    let keys = keys().with_mask_key(MaskKey::new([9; 32]));
    View::with_keys(&active_datasets(now), &package, &keys)
}

fn view(masks: &str) -> View {
    later(STAFF, masks)
}

fn people(view: &View) -> &StreamView {
    view.holders("people")[0].1
}

fn fields(stream: &StreamView) -> Vec<&str> {
    stream.fields().map(FieldView::name).collect()
}

fn plan(view: &View, given: serde_json::Value) -> Result<QueryPlan, String> {
    let request = QueryRequest::parse(&arguments(given)).unwrap();
    let keys = keys();
    QueryPlan::new(view, &request, at(&keys, NOW)).map_err(|it| it.to_string())
}

#[test]
fn a_mask_must_fit_its_field_and_its_mapping() {
    let required = STAFF.replace(
        "pay = { datatype = \"decimal\" }",
        "pay = { datatype = \"decimal\", mask = \"bucket:1000\" }",
    );
    let required = required.replace(
        "twice = { datatype = \"decimal\", compute = \"pay * 2\" }\n",
        "",
    );
    let required = required.replace("payroll = \"sum(pay)\"\ndoubled = \"sum(twice)\"\n", "");
    let (capability, _) = required.split_once("[capabilities.pay]").unwrap();
    let required = capability.to_owned();
    for (text, masks, said) in [
        (STAFF, "people.id=redact", "it is in the key"),
        (STAFF, "people.nam=redact", "no field `nam`"),
        (STAFF, "peopel.name=redact", "no stream `peopel`"),
        (
            STAFF,
            "people.name=year",
            "`year` is for `date` and `datetime`",
        ),
        (STAFF, "people.papers=token", "every datatype but `json`"),
        (
            STAFF,
            "people.pay=last4",
            "field `pay` of `people` is masked",
        ),
        (
            required.as_str(),
            "people.pay=bucket:10",
            "the mapping requires `bucket:1000`",
        ),
        (
            required.as_str(),
            "people.pay=token",
            "the mapping requires `bucket:1000`",
        ),
    ] {
        let mut selection = selection(masks);
        selection
            .capabilities
            .retain(|it| *it == "pay" && text == STAFF);
        let unfit = selection.terms(&ratified("staff", text)).unwrap_err();
        let told: Vec<String> = unfit.iter().map(ToString::to_string).collect();
        assert!(told.iter().any(|it| it.contains(said)), "{masks}: {told:?}");
        assert!(unfit.iter().all(|it| it.hint().is_some()));
    }
    let mut selection = selection("people.pay=redact people.name=token");
    selection.capabilities.clear();
    let terms = selection.terms(&ratified("staff", &required)).unwrap();
    assert_eq!(terms.streams["people"].masks["pay"], Mask::Redact);
    assert!(terms.streams["mails"].masks.is_empty());
    // A field that is not granted cannot be masked.
    selection
        .streams
        .insert("people".to_owned(), Some(["name".to_owned()].into()));
    let unfit = selection.terms(&ratified("staff", &required)).unwrap_err();
    assert!(
        unfit[0].to_string().contains("the field is not granted"),
        "{unfit:?}"
    );
}

#[test]
fn terms_without_masks_are_written_as_before_and_unknown_masks_are_refused() {
    let mut selection = selection("");
    selection.capabilities.clear();
    let terms = selection.terms(&ratified("staff", STAFF)).unwrap();
    let written = serde_json::to_string(&terms).unwrap();
    assert!(!written.contains("masks"), "{written}");
    let mut read: serde_json::Value = serde_json::from_str(&written).unwrap();
    read["streams"]["people"]["masks"] = json!({ "name": "blur" });
    let error = serde_json::from_value::<wayleave_model::grant::Terms>(read).unwrap_err();
    assert!(error.to_string().contains("a mask is"), "{error}");
}

#[test]
fn a_masked_field_names_orders_follows_and_finds_no_record() {
    let view = view("people.name=last4 people.hired=year people.changed=redact people.bio=redact");
    let stream = people(&view);
    assert!(stream.title().is_none() && stream.event_time().is_none());
    assert!(stream.updated().is_none() && stream.search().next().is_none());
    let read = plan(&view, json!({ "stream": "people" })).unwrap();
    let Read::Rows(rows) = read.rows().read() else {
        panic!("it reads rows")
    };
    let order: Vec<&str> = rows.order.iter().map(|it| it.column.label()).collect();
    assert_eq!(order, ["id"]);
    let columns: Vec<&str> = rows.columns.iter().map(Column::label).collect();
    assert!(
        !columns.contains(&"bio") && !columns.contains(&"changed"),
        "{columns:?}"
    );
    let since = json!({ "stream": "people", "changes_since": "beginning" });
    assert!(
        plan(&view, since)
            .unwrap_err()
            .contains("cannot be followed")
    );
    for refused in [
        json!({ "stream": "people", "sort": ["name"] }),
        json!({ "stream": "people", "filter": { "name": "x" } }),
        json!({ "stream": "people", "filter": { "hired": { "is_null": true } } }),
        json!({ "stream": "people", "filter": { "lead.name": "x" } }),
        json!({ "stream": "people", "filter": { "desk": { "eq": { "field": "boss" } }, "bio": { "contains": "x" } } }),
    ] {
        assert!(plan(&view, refused.clone()).is_err(), "{refused}");
    }
}

#[test]
fn what_is_computed_from_a_masked_field_does_not_exist() {
    let masked = view("people.name=token people.pay=redact");
    let stream = people(&masked);
    for hidden in ["label", "badge", "twice", "of_boss"] {
        assert!(stream.field(hidden).is_none(), "{hidden}");
    }
    assert!(stream.measure("payroll").is_none() && stream.measure("doubled").is_none());
    assert!(stream.measure("bosses").is_some());
    // A field computed from a masked computed field is hidden too.
    let computed = view("people.label=redact");
    let stream = people(&computed);
    assert!(stream.field("label").unwrap().is_masked());
    assert!(stream.field("badge").is_none() && stream.field("of_boss").is_some());
    assert!(fields(people(&view(""))).contains(&"badge"));
}

#[test]
fn a_relation_over_masked_fields_is_followed_from_token_to_token_alone() {
    for (masks, followed) in [
        ("", true),
        ("people.email=token mails.sender=token", true),
        ("people.email=token", false),
        ("mails.sender=token", false),
        ("people.email=redact mails.sender=redact", false),
        ("people.email=last4 mails.sender=last4", false),
    ] {
        let view = view(masks);
        assert_eq!(
            people(&view).relation("letters").is_some(),
            followed,
            "{masks}"
        );
        let mails = view.holders("mails")[0].1;
        assert_eq!(mails.relation("from").is_some(), followed, "{masks}");
    }
}

#[test]
fn a_token_may_be_counted_and_grouped_by_and_nothing_else_may() {
    let view = view("people.email=token people.pay=bucket:10 people.desk=redact");
    let stream = people(&view);
    let words = |name: &str| -> Vec<&str> {
        stream
            .field(name)
            .unwrap()
            .aggregates()
            .map(AggregateOp::as_str)
            .collect()
    };
    assert_eq!(words("email"), ["count", "count_distinct", "group_by"]);
    assert!(words("pay").is_empty() && words("desk").is_empty());
    let email = stream.field("email").unwrap();
    assert!(email.can_filter() && !email.can_sort() && email.one_of().is_empty());
    assert!(!stream.field("pay").unwrap().can_filter());
}

#[test]
fn a_capability_that_writes_or_collides_with_a_masked_field_is_withheld() {
    let tools = |view: &View| -> Vec<String> {
        let connection = view.connection("staff").unwrap();
        connection
            .capabilities
            .iter()
            .map(|it| it.tool().to_owned())
            .collect()
    };
    assert_eq!(tools(&view("")).len(), 3);
    let masked = view("people.pay=redact");
    assert_eq!(tools(&masked).len(), 2);
    assert_eq!(masked.withheld()[0].reason, "`pay` is masked");
    // `desk` is unique together with `name`: a collision would reveal an equal name.
    let masked = view("people.name=redact");
    assert_eq!(tools(&masked).len(), 1);
    assert!(
        masked.withheld()[1]
            .reason
            .contains("a written field and `name`, which is masked"),
        "{:?}",
        masked.withheld()
    );
}

#[test]
fn a_required_mask_holds_for_everyone_and_a_grant_made_before_it() {
    let required = STAFF.replace(
        "email = { datatype = \"string\", ",
        "email = { datatype = \"string\", mask = \"token\", ",
    );
    let local = View::new(&active_datasets(&required), &Package::local());
    // Without a mask key there are no tokens, and the field is redacted.
    assert_eq!(
        people(&local).field("email").unwrap().mask(),
        Some(Mask::Redact)
    );
    for (given, effective) in [
        ("", "token"),
        ("people.email=last4", "token"),
        ("people.email=redact", "redact"),
        ("people.email=token:project", "token"),
    ] {
        let view = later(&required, given);
        let mask = people(&view).field("email").unwrap().mask().unwrap();
        assert_eq!(mask.to_string(), effective, "{given}");
    }
}

#[test]
fn a_later_mapping_cannot_show_a_masked_field_by_another_key_or_datatype() {
    let keyed = STAFF.replacen("key = [\"id\"]", "key = [\"email\"]", 1);
    let computed = "of_boss = { datatype = \"string\", compute = \"lead.name\" }\n";
    let keyed = keyed.replace(computed, "");
    let view = later(&keyed, "people.email=redact");
    assert!(view.holders("people").is_empty());
    assert!(
        view.withheld()
            .iter()
            .any(|it| it.reason == "`email` is in its key, and is masked")
    );
    let retyped = STAFF.replace(
        "hired = { datatype = \"datetime\" }",
        "hired = { datatype = \"string\" }",
    );
    let retyped = retyped.replace("event_time = \"hired\"\n", "");
    let view = later(&retyped, "people.hired=year");
    assert_eq!(
        people(&view).field("hired").unwrap().mask(),
        Some(Mask::Redact)
    );
}

#[test]
fn a_row_is_masked_where_its_plan_says_and_joined_on_as_it_is() {
    let view =
        view("people.name=redact people.email=token mails.sender=token people.pay=bucket:100");
    let given =
        json!({ "stream": "people", "fields": ["name", "email", "pay"], "expand": ["letters"] });
    let read = plan(&view, given).unwrap();
    assert!(read.rows().is_masked());
    let mut row = vec![Value::Null; read.rows().read().width()];
    let Read::Rows(rows) = read.rows().read() else {
        panic!("it reads rows")
    };
    for (value, column) in row.iter_mut().zip(rows.columns.iter()) {
        *value = match column.label() {
            "id" => Value::Integer(7),
            "email" => Value::Text("ada@example.org".into()),
            "pay" => Value::Decimal("150.5".into()),
            "hired" => Value::Null,
            other => panic!("{other} is read"),
        };
    }
    read.rows().mask(&mut row);
    let page = read.page(&[row]);
    let record = &page.records()[0];
    assert_eq!(record.value("id"), Some(&Value::Integer(7)));
    assert_eq!(
        record.value("name"),
        Some(&Value::Text("[redacted]".into()))
    );
    assert_eq!(record.value("pay"), Some(&Value::Text("[100,200)".into())));
    let Some(Value::Text(token)) = record.value("email") else {
        panic!("a token is a text")
    };
    assert!(token.starts_with("tok_") && !token.contains("ada"));
    // The relation is followed by the unmasked value, and a filter by token finds it.
    let joined = read.expansions()[0].plan(page.records()).unwrap();
    assert!(format!("{:?}", joined.read()).contains("ada@example.org"));
    let given = json!({ "stream": "people", "filter": { "email": token.as_str() } });
    let found = plan(&view, given).unwrap();
    assert!(format!("{:?}", found.rows().read()).contains("ada@example.org"));
    assert!(!format!("{:?}", found.rows()).contains("tok_"));
}
