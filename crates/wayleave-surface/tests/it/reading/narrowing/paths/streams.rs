//! A web of streams with relations in every direction, computed fields and measures.

/// A computed field. In its expression the record's own fields are in braces, because a twin may
/// have other names for them.
pub struct ComputedField {
    pub name: &'static str,
    pub datatype: &'static str,
    pub expression: &'static str,
    /// The stored fields of the record that the expression uses.
    pub own: &'static [&'static str],
    /// The stored fields of related records that it uses.
    pub paths: &'static [&'static str],
}

/// A measure, and the fields that its expression uses.
pub struct Measure {
    pub name: &'static str,
    pub expression: &'static str,
    pub fields: &'static [&'static str],
}

/// A relation from a column to a field of another stream.
pub struct Relation {
    pub name: &'static str,
    pub to: &'static str,
    pub column: &'static str,
    pub field: &'static str,
}

pub struct Stream {
    pub name: &'static str,
    pub roles: &'static [(&'static str, &'static str)],
    pub search: &'static [&'static str],
    pub fields: &'static [(&'static str, &'static str)],
    pub computed: &'static [ComputedField],
    pub measures: &'static [Measure],
    pub relations: &'static [Relation],
    pub rows: usize,
}

const fn relation(
    name: &'static str,
    to: &'static str,
    column: &'static str,
    field: &'static str,
) -> Relation {
    Relation {
        name,
        to,
        column,
        field,
    }
}

static ZONES: Stream = Stream {
    name: "zones",
    roles: &[("title", "name")],
    search: &["name"],
    fields: &[
        ("id", "integer"),
        ("name", "string"),
        ("level", "integer"),
        ("city", "string"),
    ],
    computed: &[],
    measures: &[],
    relations: &[
        relation("teams", "teams", "id", "area"),
        relation("topics", "notes", "id", "subject"),
    ],
    rows: 5,
};

static TEAMS: Stream = Stream {
    name: "teams",
    roles: &[("title", "name")],
    search: &[],
    fields: &[
        ("id", "integer"),
        ("name", "string"),
        ("area", "integer"),
        ("head", "integer"),
        ("level", "integer"),
        ("city", "string"),
    ],
    computed: &[
        ComputedField {
            name: "zone_name",
            datatype: "string",
            expression: "coalesce(zone.name, 'nowhere')",
            own: &[],
            paths: &["zone.name"],
        },
        ComputedField {
            name: "rank",
            datatype: "integer",
            expression: "{level} * 10 + coalesce(chief.level, 0)",
            own: &["level"],
            paths: &["chief.level"],
        },
    ],
    measures: &[Measure {
        name: "ranks",
        expression: "sum(rank)",
        fields: &["rank"],
    }],
    relations: &[
        relation("zone", "zones", "area", "id"),
        relation("chief", "people", "head", "id"),
        relation("members", "people", "id", "team"),
    ],
    rows: 8,
};

static PEOPLE: Stream = Stream {
    name: "people",
    roles: &[
        ("title", "label"),
        ("event_time", "hired_at"),
        ("deleted", "gone"),
    ],
    search: &["name", "label", "crew_name"],
    fields: &[
        ("id", "integer"),
        ("name", "string"),
        ("badge", "integer"),
        ("team", "integer"),
        ("boss", "integer"),
        ("pay", "decimal"),
        ("level", "integer"),
        ("city", "string"),
        ("hired_at", "datetime"),
        ("gone", "boolean"),
    ],
    computed: &[
        ComputedField {
            name: "label",
            datatype: "string",
            expression: "{name} || '/' || {city}",
            own: &["name", "city"],
            paths: &[],
        },
        ComputedField {
            name: "crew_name",
            datatype: "string",
            expression: "crew.name",
            own: &[],
            paths: &["crew.name"],
        },
        ComputedField {
            name: "wealth",
            datatype: "decimal",
            expression: "{pay} * ({level} + 1)",
            own: &["pay", "level"],
            paths: &[],
        },
        ComputedField {
            name: "above",
            datatype: "boolean",
            expression: "{pay} > manager.pay",
            own: &["pay"],
            paths: &["manager.pay"],
        },
    ],
    measures: &[
        Measure {
            name: "payroll",
            expression: "sum(pay)",
            fields: &["pay"],
        },
        Measure {
            name: "mean_wealth",
            expression: "sum(wealth) / count()",
            fields: &["wealth"],
        },
        Measure {
            name: "crews",
            expression: "count_distinct(crew.id)",
            fields: &["crew.id"],
        },
        Measure {
            name: "crew_names",
            expression: "count_distinct(crew_name)",
            fields: &["crew_name"],
        },
        Measure {
            name: "raised",
            expression: "count(if(above, id, null)) * 1.5 + max(crew.zone.level)",
            fields: &["above", "id", "crew.zone.level"],
        },
    ],
    relations: &[
        relation("crew", "teams", "team", "id"),
        relation("manager", "people", "boss", "id"),
        relation("reports", "people", "id", "boss"),
        relation("letters", "notes", "id", "author"),
    ],
    rows: 30,
};

static NOTES: Stream = Stream {
    name: "notes",
    roles: &[("event_time", "sent_on")],
    search: &["body", "writer_zone"],
    fields: &[
        ("id", "integer"),
        ("author", "integer"),
        ("card", "integer"),
        ("subject", "integer"),
        ("body", "string"),
        ("level", "integer"),
        ("city", "string"),
        ("sent_on", "date"),
    ],
    computed: &[
        ComputedField {
            name: "writer_zone",
            datatype: "string",
            expression: "writer.crew.zone.name",
            own: &[],
            paths: &["writer.crew.zone.name"],
        },
        ComputedField {
            name: "writer_rank",
            datatype: "integer",
            expression: "writer.crew.rank",
            own: &[],
            paths: &["writer.crew.level", "writer.crew.chief.level"],
        },
    ],
    measures: &[Measure {
        name: "reach",
        expression: "sum(writer.level) + sum(holder.level)",
        fields: &["writer.level", "holder.level"],
    }],
    relations: &[
        relation("writer", "people", "author", "id"),
        relation("holder", "people", "card", "badge"),
        // Joined by a column that is not a field.
        relation("topic", "zones", "topic_ref", "id"),
    ],
    rows: 40,
};

pub static STREAMS: [&Stream; 4] = [&ZONES, &TEAMS, &PEOPLE, &NOTES];

pub const CITIES: [&str; 4] = ["Oslo", "Rome", "Bonn", "Cork"];
pub const WORDS: [&str; 5] = ["amber", "birch", "cedar", "dune", "ember"];

pub fn stream(name: &str) -> &'static Stream {
    STREAMS.iter().find(|it| it.name == name).unwrap()
}

impl Stream {
    pub fn relation(&self, name: &str) -> Option<&'static Relation> {
        // Streams are static, and so are their relations.
        let all = STREAMS.iter().find(|it| it.name == self.name)?;
        all.relations.iter().find(|it| it.name == name)
    }

    /// Every field, with its datatype.
    pub fn all_fields(&self) -> impl Iterator<Item = (&'static str, &'static str)> {
        let computed = self.computed.iter().map(|it| (it.name, it.datatype));
        self.fields.iter().copied().chain(computed)
    }
}

impl Relation {
    pub fn is_to_one(&self) -> bool {
        matches!(self.field, "id" | "badge")
    }
}
