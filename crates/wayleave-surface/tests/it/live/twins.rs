//! Random changes: every store reports the same ones, as predicted by a model of each caller's
//! view.

use std::collections::BTreeMap;

use wayleave_plan::package::Package;
use wayleave_store::conformance::SeededRng;

use super::{STORES, TABLE, feed, look, narrow, options, told, watch};

/// The ships by id: name, whether in Bergen, tons.
type Model = BTreeMap<usize, (usize, bool, usize)>;

/// The part of the model that a caller sees.
fn seen(model: &Model, is_narrow: bool) -> BTreeMap<usize, (usize, usize)> {
    let ships = model.iter().filter(|(_, ship)| !is_narrow || ship.1);
    ships
        .map(|(id, (name, port, tons))| {
            let rest = if is_narrow {
                0
            } else {
                tons * 2 + usize::from(*port)
            };
            (*id, (*name, rest))
        })
        .collect()
}

fn expected(before: &Model, after: &Model, is_narrow: bool) -> Vec<String> {
    let (before, after) = (seen(before, is_narrow), seen(after, is_narrow));
    let gone = before.keys().filter(|id| !after.contains_key(id));
    let mut told: Vec<String> = gone.map(|id| format!("deleted {id}")).collect();
    for (id, ship) in &after {
        match before.get(id) {
            None => told.push(format!("created {id}")),
            Some(other) if other != ship => told.push(format!("updated {id}")),
            Some(_) => {}
        }
    }
    told.sort();
    told
}

/// Changes the model, and returns the statement that makes the same change in a table.
fn change(model: &mut Model, rng: &mut SeededRng) -> String {
    let id = rng.below(400);
    if rng.below(4) == 0 {
        model.remove(&id);
        return format!("DELETE FROM ships WHERE id = {id};");
    }
    let ship = (rng.below(3), rng.below(2) == 0, rng.below(3));
    let port = if ship.1 { "Bergen" } else { "Oslo" };
    let (name, tons) = (ship.0, ship.2);
    if model.insert(id, ship).is_some() {
        format!(
            "UPDATE ships SET name = 'n{name}', port = '{port}', tons = {tons} WHERE id = {id};"
        )
    } else {
        format!("INSERT INTO ships VALUES ({id}, 'n{name}', '{port}', {tons}, 1);")
    }
}

#[tokio::test]
async fn every_store_tells_the_same_changes() {
    // Spread over 400 ships, so that most changes of a step concern different ones.
    const CHANGES_A_STEP: usize = 100;
    let steps = if wayleave_test::is_full() { 100 } else { 4 };
    let mut stores = Vec::new();
    for kind in STORES {
        let (database, feed) = feed(kind, TABLE, false, options()).await;
        let all = watch(&feed, Package::local(), "ships").await;
        let some = watch(&feed, narrow(), "ships").await;
        stores.push((kind, database, feed, all, some));
    }
    let (mut model, mut rng) = (Model::new(), SeededRng::new(17));
    let mut count = 0;
    for step in 0..steps {
        let before = model.clone();
        let sql: Vec<String> = (0..CHANGES_A_STEP)
            .map(|_| change(&mut model, &mut rng))
            .collect();
        for (kind, database, feed, all, some) in &mut stores {
            database.execute(&sql.concat()).await;
            look(feed, narrow()).await;
            look(feed, Package::local()).await;
            let told = [told(all), told(some)];
            let expected = [false, true].map(|is_narrow| expected(&before, &model, is_narrow));
            assert_eq!(told, expected, "{kind} step {step}: {sql:?}");
            count += told[0].len() + told[1].len();
        }
    }
    println!(
        "{} changes on each of {} stores, {count} notices",
        steps * CHANGES_A_STEP,
        STORES.len()
    );
}
