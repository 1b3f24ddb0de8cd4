//! The demo's data: a small harbour, the same on every machine.
//!
//! Vessels call at berths, unload cargo, and are inspected. There is enough data to filter, group
//! and search, and a column that no agent should see.

use std::fmt::Write as _;

/// The mapping that a person would write for it.
pub(super) const MAPPING: &str = include_str!("harbour.toml");

/// The addition that the demo's agent proposes: the tides, which are in the database but not in the
/// mapping.
const TIDES: &str = include_str!("tides.toml");

/// The mapping that waits in the demo's inbox.
pub(super) fn proposed() -> String {
    format!("{MAPPING}\n{TIDES}")
}

const SCHEMA: &str = include_str!("harbour.sql");

const BERTHS: [(&str, &str, i64, &str, bool); 8] = [
    ("B01", "North Quay", 310, "14.5", true),
    ("B02", "North Quay", 290, "14.5", true),
    ("B03", "North Quay", 240, "12.0", false),
    ("B04", "Oil Jetty", 330, "16.2", false),
    ("B05", "Oil Jetty", 280, "15.0", false),
    ("B06", "Ferry Dock", 180, "8.4", false),
    ("B07", "Grain Pier", 260, "13.1", true),
    ("B08", "Old Basin", 120, "6.0", false),
];

const PILOTS: [&str; 6] = [
    "Ada Lind",
    "Bo Castellan",
    "Chidi Okafor",
    "Dagny Holm",
    "Emre Aksoy",
    "Fern Whitlock",
];

const FIRST: [&str; 12] = [
    "Northern", "Amber", "Silent", "Iron", "Coral", "Winter", "Golden", "Salt", "Quiet", "Bold",
    "Green", "Long",
];
const SECOND: [&str; 10] = [
    "Heron", "Meridian", "Tide", "Anchor", "Petrel", "Harvest", "Lantern", "Compass", "Gale",
    "Reef",
];
const FLAGS: [&str; 9] = ["PA", "LR", "MH", "NO", "DK", "SG", "GR", "NL", "PT"];
const KINDS: [(&str, &[&str], &[&str]); 5] = [
    (
        "container",
        &["B01", "B02"],
        &[
            "machinery",
            "textiles",
            "electronics",
            "furniture",
            "coffee",
        ],
    ),
    (
        "tanker",
        &["B04", "B05"],
        &["crude oil", "diesel", "methanol", "vegetable oil"],
    ),
    (
        "bulk",
        &["B03", "B07"],
        &["wheat", "barley", "iron ore", "fertiliser", "soya"],
    ),
    ("ferry", &["B06"], &["vehicles", "parcels"]),
    ("tug", &["B08"], &["stores"]),
];
const FINDINGS: [&str; 8] = [
    "Lifeboat release gear was tested and found in order.",
    "Corrosion on the aft ballast tank vents; repair before the next call.",
    "Oil record book not kept up to date for the last two transfers.",
    "Fire dampers in the engine room do not close fully.",
    "Crew rest hours were checked against the log and agree.",
    "Charts for the eastern approach are one edition behind.",
    "Emergency generator started at the first attempt.",
    "Cargo of methanol was declared late; the agent was reminded of the 48 hour rule.",
];

/// A deterministic pseudo-random generator (xorshift). Not shared with the conformance suite: the
/// product does not build test code.
struct Xorshift(u64);

impl Xorshift {
    #[expect(clippy::expect_used, reason = "a remainder is below its divisor")]
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 % (end.max(1) as u64)).expect("below `end`")
    }

    fn pick<T: Copy>(&mut self, from: &[T]) -> T {
        let at = self.below(from.len());
        nth(from, at)
    }
}

/// The entry of a list at an index, modulo its length.
#[expect(clippy::expect_used, reason = "no list of the demo is empty")]
fn nth<T: Copy>(from: &[T], at: usize) -> T {
    *from.iter().cycle().nth(at).expect("a list with entries")
}

/// The whole database as one script.
pub(super) fn script() -> String {
    let mut sql = format!("{SCHEMA}\nBEGIN;\n");
    let mut rng = Xorshift(0x005E_ED0F_4A7B_0047);
    for (id, quay, length, depth, crane) in BERTHS {
        insert(
            &mut sql,
            "berths",
            &format!("'{id}', '{quay}', {length}, {depth}, {}", u8::from(crane)),
        );
    }
    for n in 0..120_usize {
        let (kind, base) = if n % 2 == 0 {
            ("high", 310)
        } else {
            ("low", 40)
        };
        let height = base + (n * 37) % 90;
        insert(
            &mut sql,
            "tides",
            &format!(
                "{}, '{}', '{kind}', {}.{:02}",
                n + 1,
                moment(n * 6),
                height / 100,
                height % 100
            ),
        );
    }
    for (n, name) in (1..).zip(PILOTS) {
        let hash = format!(
            "{:016x}{:016x}",
            rng.below(usize::MAX),
            rng.below(usize::MAX)
        );
        let licence = format!("PL-{:04}", 1000 + rng.below(9000));
        insert(
            &mut sql,
            "pilots",
            &format!("{n}, '{name}', '{licence}', '{hash}'"),
        );
    }
    let fleet = vessels(&mut sql, &mut rng);
    calls(&mut sql, &mut rng, &fleet);
    sql.push_str("COMMIT;\n");
    sql
}

fn insert(sql: &mut String, table: &str, values: &str) {
    // Writing to a string cannot fail.
    let _ = writeln!(sql, "INSERT INTO {table} VALUES ({values});");
}

/// Inserts the vessels, and returns the index of each one's kind, in order of id.
fn vessels(sql: &mut String, rng: &mut Xorshift) -> Vec<usize> {
    let mut fleet = Vec::new();
    for id in 1..=60_usize {
        let (first, second) = (nth(&FIRST, id - 1), nth(&SECOND, id - 1));
        let kind = rng.below(KINDS.len());
        let (name, ..) = nth(&KINDS, kind);
        let flag = rng.pick(&FLAGS);
        let length = 60 + rng.below(250);
        let values = format!(
            "{id}, 'IMO{}', '{first} {second}', '{flag}', '{name}', {}, {length}, {}, '2026-0{}-1{}T08:00:00Z'",
            9_100_000 + id * 4_517,
            1985 + rng.below(40),
            length * (20 + rng.below(200)),
            1 + rng.below(9),
            rng.below(10),
        );
        insert(sql, "vessels", &values);
        fleet.push(kind);
    }
    fleet
}

fn calls(sql: &mut String, rng: &mut Xorshift, fleet: &[usize]) {
    let (mut cargo, mut inspection) = (0_usize, 0_usize);
    for id in 1..=1_500_usize {
        let vessel = rng.below(fleet.len());
        let (_, berths, commodities) = nth(&KINDS, nth(fleet, vessel));
        let berth = rng.pick(berths);
        // Ten months of traffic, in order; the last few vessels are still alongside.
        let hour = id * 4 + rng.below(4);
        let arrived = moment(hour);
        let stay = 6 + rng.below(60);
        let (departed, status) = if id > 1_494 {
            ("NULL".to_owned(), "alongside")
        } else {
            (format!("'{}'", moment(hour + stay)), "departed")
        };
        let pilot = 1 + rng.below(PILOTS.len());
        let values = format!(
            "{id}, {}, '{berth}', {pilot}, '{arrived}', {departed}, '{status}', '{arrived}'",
            vessel + 1
        );
        insert(sql, "port_calls", &values);
        for _ in 0..=rng.below(3) {
            cargo += 1;
            let commodity = rng.pick(commodities);
            let hazardous = matches!(
                commodity,
                "crude oil" | "diesel" | "methanol" | "fertiliser"
            );
            let (tonnes, cents) = (10 + rng.below(40_000), rng.below(100));
            let value = tonnes * (20 + rng.below(900));
            let values = format!(
                "{cargo}, {id}, '{commodity}', {tonnes}.{cents:02}, {value}.00, {}",
                u8::from(hazardous)
            );
            insert(sql, "cargo", &values);
        }
        if rng.below(4) == 0 {
            inspection += 1;
            inspect(sql, rng, inspection, id, hour);
        }
    }
}

fn inspect(sql: &mut String, rng: &mut Xorshift, id: usize, call: usize, hour: usize) {
    let result = ["passed", "passed", "passed", "conditions", "detained"];
    let result = rng.pick(&result);
    let mut report = String::new();
    for _ in 0..=1 + rng.below(3) {
        let finding = rng.pick(&FINDINGS);
        if !report.contains(finding) {
            report.push_str(finding);
            report.push(' ');
        }
    }
    let values = format!(
        "{id}, {call}, '{}', '{result}', '{}'",
        moment(hour + 3),
        report.trim_end()
    );
    insert(sql, "inspections", &values);
}

/// The time `hour` hours after the start of 2026, as text.
fn moment(hour: usize) -> String {
    const DAYS: [usize; 12] = [31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31];
    let mut day = hour / 24;
    let mut month = 0;
    while let Some(length) = DAYS.get(month).filter(|length| day >= **length) {
        day -= length;
        month += 1;
    }
    format!(
        "2026-{:02}-{:02}T{:02}:00:00Z",
        month + 1,
        day + 1,
        hour % 24
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_data_is_the_same_every_time_and_dates_are_dates() {
        assert_eq!(script(), script());
        assert_eq!(moment(0), "2026-01-01T00:00:00Z");
        assert_eq!(moment(31 * 24 + 5), "2026-02-01T05:00:00Z");
        assert_eq!(moment(364 * 24 + 23), "2026-12-31T23:00:00Z");
    }

    #[test]
    fn the_mapping_has_no_problems() {
        let problems = wayleave_model::check::check(MAPPING.as_bytes(), None);
        assert!(problems.is_ok(), "{problems:#?}");
    }

    #[test]
    fn what_waits_in_the_inbox_has_no_problems_either() {
        let problems = wayleave_model::check::check(proposed().as_bytes(), None);
        assert!(problems.is_ok(), "{problems:#?}");
    }
}
