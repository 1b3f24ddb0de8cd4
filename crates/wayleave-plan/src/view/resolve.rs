//! Computes the view of a package on the active datasets.

use std::sync::Arc;

use serde_json::{Map, Value as Json};
use wayleave_model::grant::{self, Claims};
use wayleave_model::mapping::{Connection, Mapping, Relation, Stream};
use wayleave_model::ratify::Ratified;

use super::masks::{self, Masks};
use super::{ConnectionView, FieldView, MeasureView, StreamView, View, WithheldPart};
use crate::active_datasets::ActiveDatasets;
use crate::filter;
use crate::mask::MaskKey;
use crate::package::{FieldScope, Grant, Grants, Package, RelationScope, StreamGrant, StreamScope};
use crate::plan::{Predicate, Target};
use crate::scope::{is_computable, is_measurable, reads_only_whole_streams};
use crate::write::CapabilityView;

/// The grant id of the local package.
const LOCAL: &str = "local";

pub(super) fn view(active: &ActiveDatasets, package: &Package, key: Option<&MaskKey>) -> View {
    let mut view = View {
        subject: package.subject.clone(),
        epoch: package.epoch,
        connections: Vec::new(),
        by_stream: std::collections::BTreeMap::new(),
        withheld: Vec::new(),
    };
    for mapping in active.datasets() {
        for index in 0..mapping.connections.len() {
            let withheld = &mut view.withheld;
            let connection = connection(active, mapping, index, package, key, withheld);
            if let Some(connection) = connection {
                view.connections.push(connection);
            }
        }
    }
    for (index, connection) in view.connections.iter().enumerate() {
        for (stream, seen) in connection.streams.iter().enumerate() {
            view.by_stream
                .entry(seen.name().to_owned())
                .or_default()
                .push((index, stream));
        }
    }
    view
}

impl Package {
    /// Whether a view of this package shows any of the wanted streams of a dataset, in any of its
    /// connections. Decides what is shown of a dataset without building a view, such as whether its
    /// tool is listed.
    pub fn sees(&self, mapping: &Mapping, wanted: impl Fn(&Stream) -> bool) -> bool {
        let Grants::Only(grants) = &self.grants else {
            return !mapping.connections.is_empty() && mapping.streams.iter().any(|it| wanted(it));
        };
        let ids = mapping.connections.iter().map(|it| it.id.as_str());
        let granted = ids.filter_map(|id| grants.get(id));
        let mut ours = granted.filter(|grant| *mapping.dataset.name == grant.dataset);
        ours.any(|grant| {
            let mut streams = mapping.streams.iter();
            streams.any(|stream| wanted(stream) && grant.shows(stream))
        })
    }
}

impl Grant {
    fn shows(&self, stream: &Stream) -> bool {
        match &self.streams {
            StreamScope::All => true,
            StreamScope::Only(only) => {
                let granted = only.get(stream.name.as_str());
                let is_masked = |it: &StreamGrant| {
                    let mut key = stream.key.iter();
                    key.any(|name| it.masks.contains_key(name.as_str()))
                };
                granted.is_some_and(|it| !is_masked(it) && rows(stream, Some(it)).is_ok())
            }
        }
    }
}

fn connection(
    active: &ActiveDatasets,
    mapping: &Arc<Ratified<Mapping>>,
    index: usize,
    package: &Package,
    key: Option<&MaskKey>,
    withheld: &mut Vec<WithheldPart>,
) -> Option<ConnectionView> {
    let connection = mapping.connections.get(index)?;
    let grant: Option<&Grant> = match &package.grants {
        Grants::Everything => None,
        Grants::Only(grants) => {
            let grant = grants.get(connection.id.as_str());
            Some(grant.filter(|grant| *mapping.dataset.name == grant.dataset)?)
        }
    };
    let grant_id = grant.map_or(LOCAL, |grant| &grant.id);
    let mut streams: Vec<StreamView> = Vec::new();
    for stream in &mapping.streams {
        let granted = match grant.map(|grant| &grant.streams) {
            None | Some(StreamScope::All) => None,
            Some(StreamScope::Only(only)) => match only.get(stream.name.as_str()) {
                Some(granted) => Some(granted),
                None => continue,
            },
        };
        let masks = Masks::new(stream, granted, grant_id, key);
        let suspended = active.suspended().contains(&connection.id, &stream.name);
        match stream_view(mapping, connection, (stream, suspended), granted, &masks) {
            Ok(view) => streams.push(view),
            Err(reason) => withheld.push(WithheldPart {
                connection_id: connection.id.value.clone(),
                stream: stream.name.value.clone(),
                reason,
            }),
        }
    }
    retain_followable_relations(&mut streams);
    retain_visible_computed(&mut streams);
    set_searched_fields(&mut streams);
    let capabilities = capabilities(mapping, connection, grant, &streams, withheld);
    Some(ConnectionView {
        capabilities,
        grant_id: grant_id.to_owned(),
        connector_key: mapping.dataset.name.value.clone(),
        connection_id: connection.id.value.clone(),
        label: connection.display_label().to_owned(),
        mapping: Arc::clone(mapping),
        streams,
    })
    .filter(|connection| !connection.streams.is_empty())
}

/// The capabilities of a connection that a grant includes, with everything they need. There are
/// none without a grant: the local package is read-only.
fn capabilities(
    mapping: &Arc<Ratified<Mapping>>,
    connection: &Connection,
    grant: Option<&Grant>,
    streams: &[StreamView],
    withheld: &mut Vec<WithheldPart>,
) -> Vec<CapabilityView> {
    let mut included = Vec::new();
    for (index, capability) in mapping.capabilities.iter().enumerate() {
        let is_granted = grant.is_some_and(|it| it.capabilities.contains(capability.name.as_str()));
        let here = mapping.connection_of(capability);
        if !is_granted || here.is_none_or(|it| it.id != connection.id) {
            continue;
        }
        match CapabilityView::new(mapping, index, streams) {
            Ok(view) => included.push(view),
            Err(reason) => withheld.push(WithheldPart {
                connection_id: connection.id.value.clone(),
                stream: capability.name.value.clone(),
                reason,
            }),
        }
    }
    included
}

/// Builds the view of a stream, or returns the reason to withhold it.
fn stream_view(
    mapping: &Arc<Ratified<Mapping>>,
    connection: &Connection,
    (stream, is_suspended): (&Arc<Stream>, bool),
    granted: Option<&StreamGrant>,
    masks: &Masks,
) -> Result<StreamView, String> {
    masks.check_key_unmasked(stream)?;
    let key = stream.key.iter().map(|name| mapped(stream, name));
    let deleted = stream.deleted.as_ref().map(|name| mapped(stream, name));
    Ok(StreamView {
        mapping: Arc::clone(mapping),
        mapped: Arc::clone(stream),
        rows: Arc::new(rows(stream, granted)?),
        key: key.collect::<Result<_, _>>()?,
        deleted: deleted.transpose()?,
        fields: fields(mapping, stream, granted, masks),
        masked: Arc::new(masks.names()),
        relations: relations(stream, granted),
        searched: Arc::default(),
        measures: MeasureView::all_of(mapping, stream).collect(),
        target: Arc::new(Target {
            suspended: is_suspended.then(|| stream.name.as_str().into()),
            ..target(mapping, connection, stream)
        }),
        whole: Arc::default(),
    })
}

fn target(mapping: &Ratified<Mapping>, connection: &Connection, stream: &Stream) -> Target {
    let schema = mapping.dataset.schema.as_ref();
    Target {
        connection_id: connection.id.value.clone(),
        source: connection.source.value.clone(),
        kind: mapping.dataset.kind.value,
        schema: schema.map(|schema| schema.value.clone()),
        table: stream.table.value.clone(),
        mapping: mapping.digest(),
        suspended: None,
    }
}

fn fields(
    mapping: &Ratified<Mapping>,
    stream: &Stream,
    granted: Option<&StreamGrant>,
    masks: &Masks,
) -> Arc<[FieldView]> {
    FieldView::all_of(mapping, stream)
        .filter(|field| match granted.map(|granted| &granted.fields) {
            None | Some(FieldScope::All) => true,
            Some(FieldScope::Only(only)) => only.contains(field.name()),
        })
        .map(|field| masks.apply(field))
        .collect()
}

/// The field of that name. Ratified mappings always have it; if it is missing, the stream is
/// withheld, because records without their key or mark of deletion would be wrong.
fn mapped(stream: &Stream, name: &str) -> Result<FieldView, String> {
    let mut fields = FieldView::all(stream);
    let found = fields.find(|field| field.name() == name);
    found.ok_or_else(|| format!("`{name}` is not one of its fields"))
}

/// Checks that the key is granted, because records are shown with it. If a later mapping made
/// another field the key, the stream is withheld: the grant does not include that field.
fn check_key_granted(stream: &Stream, granted: Option<&StreamGrant>) -> Result<(), String> {
    let Some(FieldScope::Only(only)) = granted.map(|granted| &granted.fields) else {
        return Ok(());
    };
    let mut key = stream.key.iter();
    match key.find(|name| !only.contains(name.as_str())) {
        None => Ok(()),
        Some(name) => Err(format!("`{name}` is in its key, and is not granted")),
    }
}

/// The granted relations, whether or not they can be followed.
fn relations(stream: &Stream, granted: Option<&StreamGrant>) -> Arc<[Arc<Relation>]> {
    let relations = stream.relations.iter();
    relations
        .filter(|relation| match granted.map(|it| &it.relations) {
            None | Some(RelationScope::All) => true,
            Some(RelationScope::Only(only)) => only.contains(relation.name.as_str()),
        })
        .cloned()
        .collect()
}

/// The typed row filter of a stream. A filter that does not fit the stream is never skipped: the
/// stream is withheld.
fn rows(stream: &Stream, granted: Option<&StreamGrant>) -> Result<Predicate, String> {
    check_key_granted(stream, granted)?;
    match granted.and_then(|granted| granted.rows.as_ref()) {
        None => Ok(Predicate::True),
        Some(Json::Object(filter)) => {
            if let Some(name) = unbound(filter) {
                return Err(format!("it needs the claim `{name}`, which is missing"));
            }
            filter::parse_row_filter(stream, filter).map_err(|refusal| refusal.to_string())
        }
        Some(_) => Err("a row filter is an object".to_owned()),
    }
}

/// The first unbound claim of a row filter. Such a filter would be refused anyway, because `claim`
/// is not an operator.
fn unbound(filter: &Map<String, Json>) -> Option<String> {
    let mut filter = filter.clone();
    grant::bind(&mut filter, &Claims::new())
}

/// Keeps the relations that can be followed.
fn retain_followable_relations(streams: &mut [StreamView]) {
    let usable: Vec<Arc<[Arc<Relation>]>> = streams
        .iter()
        .map(|ours| {
            let granted = ours.relations.iter();
            let followable = granted.filter(|relation| followable(ours, relation, streams));
            followable.cloned().collect()
        })
        .collect();
    for (stream, relations) in streams.iter_mut().zip(usable) {
        stream.relations = relations;
    }
}

/// Keeps the computed fields and measures whose paths are all visible. Measures come last, because
/// they may name computed fields that are not.
fn retain_visible_computed(streams: &mut [StreamView]) {
    let fields = streams.iter().map(|stream| {
        let seen = |field: &&FieldView| {
            let formula = field.formula();
            formula.is_none_or(|it| is_computable(streams, stream, it))
                && !masks::is_computed_from_masked(streams, field)
        };
        stream.fields.iter().filter(seen).cloned().collect()
    });
    let fields: Vec<Arc<[FieldView]>> = fields.collect();
    for (stream, fields) in streams.iter_mut().zip(fields) {
        stream.fields = fields;
    }
    let measures = streams.iter().map(|stream| {
        let seen = |measure: &&MeasureView| {
            let mut all = true;
            measure.written().for_each_leaf(&mut |leaf| {
                let over = leaf.over.as_ref();
                all &= over.is_none_or(|it| is_measurable(streams, stream, it));
            });
            all
        };
        stream.measures.iter().filter(seen).cloned().collect()
    });
    let measures: Vec<Arc<[MeasureView]>> = measures.collect();
    for (stream, measures) in streams.iter_mut().zip(measures) {
        stream.measures = measures;
    }
}

/// Keeps the searched fields whose indexed text is the same as what the caller sees. An index
/// contains the text of all records, so a field along a relation is searched only if the grant
/// shows every record on its path: scores and exclusions would reveal the others.
fn set_searched_fields(streams: &mut [StreamView]) {
    let searched = streams.iter().map(|stream| {
        let names = stream.mapped.search.iter();
        let fields = names.filter_map(|name| stream.field(name));
        let fields = fields.filter(|field| !field.is_masked());
        let same = |field: &&FieldView| {
            let formula = field.formula();
            formula.is_none_or(|it| reads_only_whole_streams(streams, stream, it))
        };
        fields.filter(same).cloned().collect()
    });
    let searched: Vec<Arc<[FieldView]>> = searched.collect();
    for (stream, searched) in streams.iter_mut().zip(searched) {
        stream.searched = searched;
    }
}

/// Whether a relation can be followed. That reveals which of our values equal which of theirs, so
/// both ends must be visible, plain or as tokens, which reveal the same. Our column may also be one
/// that the mapping joins on without making it a field.
fn followable(ours: &StreamView, relation: &Relation, streams: &[StreamView]) -> bool {
    let Some(theirs) = streams
        .iter()
        .find(|stream| stream.name() == relation.to.as_str())
    else {
        return false;
    };
    relation.on.iter().all(|join| {
        let mut mapped = FieldView::all(&ours.mapped);
        let field = mapped.find(|field| field.is_read_from(&join.column));
        let our_end = match &field {
            None => Some(None),
            Some(field) => ours.field(field.name()).map(FieldView::mask),
        };
        let their_end = theirs.field(&join.field).map(FieldView::mask);
        matches!((our_end, their_end), (Some(ours), Some(theirs)) if masks::may_join(ours, theirs))
    })
}
