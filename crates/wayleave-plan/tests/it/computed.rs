//! Paths, computed fields and measures under a grant: which are visible.

use serde_json::{Value as Json, json};
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::aggregate::AggregatePlan;
use wayleave_plan::query::QueryPlan;
use wayleave_plan::refusal::{Code, Refusal};
use wayleave_plan::request::{AggregateRequest, QueryRequest};
use wayleave_plan::view::{FieldView, StreamView, View};

use crate::fixture::{NOW, arguments, at, keys, package, ratified};

const STAFF: &str = r#"
[dataset]
name = "staff"
kind = "sqlite"
[[connections]]
id = "staff"
source = "main"
[streams.people]
type = "Person"
key = ["id"]
search = ["name", "crew_name"]
[streams.people.fields]
id = { datatype = "integer" }
name = { datatype = "string" }
boss = { datatype = "integer" }
team = { datatype = "integer" }
crew_name = { datatype = "string", compute = "crew.name" }
[streams.people.relations]
manager = { to = "people", on = { boss = "id" } }
reports = { to = "people", on = { id = "boss" } }
crew = { to = "teams", on = { team = "id" } }
[streams.people.measures]
crews = "count_distinct(crew_name)"
[streams.teams]
type = "Team"
key = ["id"]
[streams.teams.fields]
id = { datatype = "integer" }
name = { datatype = "string" }
level = { datatype = "integer" }
"#;

fn view(grants: &str) -> View {
    let active = ActiveDatasets::new(vec![ratified("staff", STAFF)]).unwrap();
    View::new(&active, &package(grants))
}

fn query(view: &View, given: Json) -> Result<QueryPlan, Refusal> {
    let keys = keys();
    QueryPlan::new(
        view,
        &QueryRequest::parse(&arguments(given))?,
        at(&keys, NOW),
    )
}

fn aggregate(view: &View, given: Json) -> Result<AggregatePlan, Refusal> {
    let keys = keys();
    AggregatePlan::new(
        view,
        &AggregateRequest::parse(&arguments(given))?,
        at(&keys, NOW),
    )
}

#[test]
fn a_path_has_at_most_four_hops_whatever_it_ends_in() {
    let view = view("staff");
    let along = |hops: usize, last: &str| format!("{}{last}", "manager.".repeat(hops));
    for (path, is_known) in [
        (along(4, "name"), true),
        (along(5, "name"), false),
        (along(60_000, "name"), false),
    ] {
        let plan = query(&view, json!({ "stream": "people", "fields": [path] }));
        assert_eq!(
            plan.err().map(|it| it.code),
            (!is_known).then_some(Code::UnknownField)
        );
    }
    for (relation, is_known) in [
        (along(3, "reports"), true),
        (along(4, "reports"), false),
        (along(60_000, "reports"), false),
    ] {
        let filter = json!({ relation: { "some": {} } });
        let plan = query(&view, json!({ "stream": "people", "filter": filter }));
        assert_eq!(
            plan.err().map(|it| it.code),
            (!is_known).then_some(Code::UnknownField)
        );
    }
    for (relation, is_known) in [
        (along(3, "manager"), true),
        (along(4, "manager"), false),
        (along(60_000, "manager"), false),
    ] {
        let given = json!({ "stream": "people", "metrics": ["count"], "group_by": [relation] });
        let code = aggregate(&view, given).err().map(|it| it.code);
        assert_eq!(code, (!is_known).then_some(Code::UnknownField));
    }
}

#[test]
fn a_measure_over_a_computed_field_that_leads_nowhere_is_not_there() {
    let all = "id,name,boss,team,crew_name";
    let measures = |view: &View| -> Vec<String> {
        let streams = view.connections().iter().flat_map(|it| &it.streams);
        let measures = streams.flat_map(StreamView::measures);
        measures.map(|it| it.name().to_owned()).collect()
    };
    let seen = view(&format!("staff/people[{all}] staff/teams[id,name]"));
    assert_eq!(measures(&seen), ["crews"]);
    for hidden in [
        format!("staff/people[{all}]"),
        format!("staff/people[{all}] staff/teams[id,level]"),
        "staff/people[id,name,boss,team] staff/teams".to_owned(),
    ] {
        let view = view(&hidden);
        assert!(measures(&view).is_empty(), "{hidden}");
        let given = |name: &str| json!({ "stream": "people", "metrics": [name] });
        let refused = aggregate(&view, given("crews")).unwrap_err();
        let missing = aggregate(&view, given("crowd")).unwrap_err();
        assert_eq!(refused.message.replace("crews", "crowd"), missing.message);
        assert_eq!(refused.allowed, missing.allowed);
    }
}

#[test]
fn a_field_along_a_relation_is_searched_where_every_record_on_the_way_is_seen() {
    for (grants, expected) in [
        ("staff", &["name", "crew_name"][..]),
        ("staff/people staff/teams", &["name", "crew_name"]),
        (
            r#"staff/people{"id":1} staff/teams"#,
            &["name", "crew_name"],
        ),
        (r#"staff/people staff/teams{"level":1}"#, &["name"]),
        ("staff/people staff/teams[id]", &["name"]),
        ("staff/people", &["name"]),
    ] {
        let view = view(grants);
        let (_, people) = view.holders("people")[0];
        let searched: Vec<&str> = people.search().map(FieldView::name).collect();
        assert_eq!(searched, expected, "{grants}");
    }
}
