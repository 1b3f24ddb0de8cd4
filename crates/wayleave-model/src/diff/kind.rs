//! Kinds of changes, and their risks.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::sensitive::Reason;

/// Declares the kinds and the list of all.
macro_rules! kinds {
    ($($variant:ident => $word:literal: $meaning:literal,)+) => {
        /// The kind of a change.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum ChangeKind {
            $(#[doc = $meaning] $variant,)+
        }

        impl ChangeKind {
            /// Every kind.
            pub const ALL: &'static [Self] = &[$(Self::$variant),+];

            /// The kind's word, in JSON.
            pub const fn as_str(self) -> &'static str {
                match self {
                    $(Self::$variant => $word,)+
                }
            }
        }
    };
}

kinds! {
    DatasetAdded => "dataset_added": "A dataset is ratified for the first time.",
    DatasetRenamed => "dataset_renamed": "The dataset goes by another name.",
    TitleChanged => "title_changed": "The dataset's title differs.",
    DescriptionChanged => "description_changed": "A description differs.",
    KindChanged => "kind_changed": "The dataset is read from another kind of store.",
    SchemaChanged => "schema_changed": "The dataset is read from another schema.",
    IriChanged => "iri_changed": "The base of predicate IRIs differs.",
    ConnectionAdded => "connection_added": "A connection is new.",
    ConnectionRemoved => "connection_removed": "A connection is gone.",
    ConnectionRelabelled => "connection_relabelled": "A connection's label differs.",
    ConnectionMoved => "connection_moved": "A connection reads another source.",
    StreamAdded => "stream_added": "A stream is new.",
    StreamRemoved => "stream_removed": "A stream is gone.",
    TypeChanged => "type_changed": "The type of a stream or relation differs.",
    TableChanged => "table_changed": "A stream reads another table.",
    KeyChanged => "key_changed": "Records are identified by other fields.",
    PartChanged => "part_changed": "The field used as `title`, `event_time`, `updated` or `deleted` differs.",
    SearchChanged => "search_changed": "Search reads other fields.",
    AnalyzerChanged => "analyzer_changed": "Search compares words in another language, or as written.",
    UniqueChanged => "unique_changed": "The sets of unique fields differ.",
    FieldAdded => "field_added": "A field is new.",
    FieldRemoved => "field_removed": "A field is gone.",
    ColumnChanged => "column_changed": "A field reads another column, or is computed from something else.",
    DatatypeChanged => "datatype_changed": "A field has another datatype, or holds many values, or one.",
    PredicateChanged => "predicate_changed": "A field has another predicate.",
    RequiredChanged => "required_changed": "A field becomes or stops being required.",
    GeneratedChanged => "generated_changed": "A field becomes or stops being filled in by the store.",
    ValuesWidened => "values_widened": "A field may have more values.",
    ValuesNarrowed => "values_narrowed": "A field may have fewer values.",
    PatternChanged => "pattern_changed": "A pattern differs.",
    BoundChanged => "bound_changed": "A bound on length or value differs.",
    UseChanged => "use_changed": "The allowed uses of a field in filters, sorts and aggregates differ.",
    MaskChanged => "mask_changed": "The mask that every grant must apply to a field differs.",
    RelationAdded => "relation_added": "A relation is new.",
    RelationRemoved => "relation_removed": "A relation is gone.",
    RelationChanged => "relation_changed": "A relation leads elsewhere, or joins on something else.",
    MeasureAdded => "measure_added": "A measure is new.",
    MeasureRemoved => "measure_removed": "A measure is gone.",
    MeasureChanged => "measure_changed": "A measure is computed from something else.",
    CapabilityAdded => "capability_added": "A capability is new.",
    CapabilityRemoved => "capability_removed": "A capability is gone.",
    CapabilityChanged => "capability_changed": "A capability writes something else, or elsewhere.",
    Reordered => "reordered": "Entries are the same in another order.",
}

impl fmt::Display for ChangeKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl Serialize for ChangeKind {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.as_str())
    }
}

/// A risk of a change that a human should consider.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Risk {
    /// The values under this name look secret.
    Secret {
        /// The name.
        name: String,
        /// Why they look secret.
        reason: Reason,
    },
    /// Agents may be granted a write that was not available before.
    Write,
    /// Less is checked than before.
    LostConstraint,
    /// Records come from somewhere else under the same name.
    Source,
    /// Record ids change: links, cursors and subscriptions break.
    Identity,
    /// Agents read this text.
    Prompt,
    /// Records marked as deleted are shown.
    DeletedShown,
    /// The values of an unmapped column can be inferred from the records it joins.
    HiddenJoin,
    /// Values that were masked may be shown.
    Unmasked,
}

impl Risk {
    /// The risk's word, in JSON.
    pub const fn as_str(&self) -> &'static str {
        match self {
            Self::Secret { .. } => "secret",
            Self::Write => "write",
            Self::LostConstraint => "lost_constraint",
            Self::Source => "source",
            Self::Identity => "identity",
            Self::Prompt => "prompt",
            Self::DeletedShown => "deleted_shown",
            Self::HiddenJoin => "hidden_join",
            Self::Unmasked => "unmasked",
        }
    }

    /// Whether any of these names looks secret.
    pub(super) fn secret<'a>(names: impl IntoIterator<Item = &'a str>) -> Option<Self> {
        names.into_iter().find_map(|name| {
            crate::sensitive::looks_secret(name).map(|reason| Self::Secret {
                name: name.to_owned(),
                reason,
            })
        })
    }
}

impl fmt::Display for Risk {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Secret { name, reason } => write!(f, "`{name}` {reason}"),
            Self::Write => f.write_str("a grant may let agents write this"),
            Self::LostConstraint => f.write_str("less is checked than before"),
            Self::Source => f.write_str("records come from somewhere else under the same name"),
            Self::Identity => {
                f.write_str("ids of records change, so links, cursors and subscriptions break")
            }
            Self::Prompt => f.write_str("agents read this text"),
            Self::DeletedShown => f.write_str("records marked as deleted are shown"),
            Self::HiddenJoin => {
                f.write_str("a column that is not shown can be learnt from the records it joins")
            }
            Self::Unmasked => f.write_str("what was masked may be shown"),
        }
    }
}

impl Serialize for Risk {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        use serde::ser::SerializeStruct;
        let mut out = serializer.serialize_struct("Risk", 2)?;
        out.serialize_field("risk", self.as_str())?;
        out.serialize_field("note", &self.to_string())?;
        out.end()
    }
}
