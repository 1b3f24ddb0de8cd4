//! The ontology: a closed vocabulary of types for mappings.
//!
//! It knows types, and nothing about tables. A relation with an unmapped end is left to the
//! structural rules, so that one mistake is one problem.

use crate::definitions::{Key, Presence, Section, Shape};
use crate::mapping::{Mapping, Relation, Spanned, Stream};
use crate::names::NameKind;
use crate::nearest::nearest;
use crate::parse::{self, Entry};
use crate::problem::{Problem, ProblemCode, quoted};

/// A closed vocabulary: `ontology.toml`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Ontology {
    /// The classes streams may have as `type`.
    pub entity_types: Vec<EntityType>,
    /// The types relations may have.
    pub relation_types: Vec<RelationType>,
}

/// One of `[[entity_types]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EntityType {
    /// Its name.
    pub name: Spanned<String>,
    /// What it means.
    pub description: Option<Spanned<String>>,
}

/// One of `[[relation_types]]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RelationType {
    /// Its name.
    pub name: Spanned<String>,
    /// The entity type it starts at.
    pub domain: Spanned<String>,
    /// The entity type it leads to.
    pub range: Spanned<String>,
    /// What it means.
    pub description: Option<Spanned<String>>,
}

pub(crate) static ONTOLOGY: Section = Section {
    header: "",
    about: "",
    keys: &[
        Key {
            name: "entity_types",
            shape: Shape::Tables(&ENTITY_TYPE),
            presence: Presence::Required,
            about: "The classes a stream may have as `type`.",
        },
        Key {
            name: "relation_types",
            shape: Shape::Tables(&RELATION_TYPE),
            presence: Presence::Default("no relation is allowed"),
            about: "The types a relation may have.",
        },
    ],
};

pub(crate) static ENTITY_TYPE: Section = Section {
    header: "[[entity_types]]",
    about: "A class of the knowledge graph.",
    keys: &[
        Key {
            name: "name",
            shape: Shape::Name(NameKind::Type),
            presence: Presence::Required,
            about: "Its name.",
        },
        Key {
            name: "description",
            shape: Shape::Prose,
            presence: Presence::Optional,
            about: "What it means.",
        },
    ],
};

pub(crate) static RELATION_TYPE: Section = Section {
    header: "[[relation_types]]",
    about: "A type of edge, and the classes it joins.",
    keys: &[
        Key {
            name: "name",
            shape: Shape::Name(NameKind::Type),
            presence: Presence::Required,
            about: "Its name.",
        },
        Key {
            name: "domain",
            shape: Shape::Name(NameKind::Type),
            presence: Presence::Required,
            about: "The entity type it starts at.",
        },
        Key {
            name: "range",
            shape: Shape::Name(NameKind::Type),
            presence: Presence::Required,
            about: "The entity type it leads to.",
        },
        Key {
            name: "description",
            shape: Shape::Prose,
            presence: Presence::Optional,
            about: "What it means.",
        },
    ],
};

/// Parses an ontology from the bytes of its document, or reports every problem with it.
pub fn parse(bytes: &[u8]) -> Result<Ontology, Vec<Problem>> {
    let (source, table) = parse::shapes(bytes, &ONTOLOGY)?;
    let root = Entry::root(table.get_ref());
    let ontology = Ontology {
        entity_types: root
            .tables("entity_types")
            .iter()
            .filter_map(entity_type)
            .collect(),
        relation_types: root
            .tables("relation_types")
            .iter()
            .filter_map(relation_type)
            .collect(),
    };
    let problems = ontology.problems();
    if problems.is_empty() {
        Ok(ontology)
    } else {
        Err(parse::finish(problems, source))
    }
}

fn entity_type(entry: &Entry<'_, '_>) -> Option<EntityType> {
    Some(EntityType {
        name: entry.text("name")?,
        description: entry.text("description"),
    })
}

fn relation_type(entry: &Entry<'_, '_>) -> Option<RelationType> {
    Some(RelationType {
        name: entry.text("name")?,
        domain: entry.text("domain")?,
        range: entry.text("range")?,
        description: entry.text("description"),
    })
}

impl Ontology {
    /// The entity type of that name.
    pub fn entity_type(&self, name: &str) -> Option<&EntityType> {
        self.entity_types.iter().find(|entity| entity.name == name)
    }

    /// The relation type of that name.
    pub fn relation_type(&self, name: &str) -> Option<&RelationType> {
        self.relation_types
            .iter()
            .find(|relation| relation.name == name)
    }

    /// Checks the ontology itself.
    fn problems(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        let entities: Vec<_> = self
            .entity_types
            .iter()
            .map(|entity| &entity.name)
            .collect();
        let relations: Vec<_> = self
            .relation_types
            .iter()
            .map(|relation| &relation.name)
            .collect();
        for names in [entities, relations] {
            for (at, name) in names.iter().enumerate() {
                if names.iter().take(at).any(|earlier| earlier == name) {
                    let message = format!("{} is declared twice", quoted(name));
                    problems.push(
                        Problem::new(ProblemCode::DuplicateName, message).at(name.span.clone()),
                    );
                }
            }
        }
        for relation in &self.relation_types {
            for end in [&relation.domain, &relation.range] {
                if self.entity_type(end).is_none() {
                    problems.push(self.undeclared(end));
                }
            }
        }
        problems
    }

    fn undeclared(&self, name: &Spanned<String>) -> Problem {
        let declared = self.entity_types.iter().map(|entity| entity.name.as_str());
        let message = format!("type {} is not in the ontology", quoted(name));
        let hint = hint(name, declared, "entity types");
        Problem::new(ProblemCode::UndeclaredType, message)
            .hint(hint)
            .at(name.span.clone())
    }

    /// Checks a mapping against this ontology.
    pub fn enforce(&self, mapping: &Mapping) -> Vec<Problem> {
        let mut problems = Vec::new();
        for stream in &mapping.streams {
            // A type that is not a valid name is already reported.
            let readable = NameKind::Type.accepts(&stream.type_name);
            if readable && self.entity_type(&stream.type_name).is_none() {
                let path = format!("streams.{}.type", stream.name);
                problems.push(self.undeclared(&stream.type_name).path(path));
            }
            for relation in &stream.relations {
                problems.extend(self.enforce_relation(mapping, stream, relation));
            }
        }
        problems
    }

    fn enforce_relation(
        &self,
        mapping: &Mapping,
        stream: &Stream,
        relation: &Relation,
    ) -> Vec<Problem> {
        let path = format!("streams.{}.relations.{}", stream.name, relation.name);
        let type_name = &relation.type_name;
        let Some(declared) = self.relation_type(type_name) else {
            let names = self
                .relation_types
                .iter()
                .map(|relation| relation.name.as_str());
            let message = format!("relation type {} is not in the ontology", quoted(type_name));
            let problem = Problem::new(ProblemCode::UndeclaredRelation, message)
                .hint(hint(type_name, names, "relation types"))
                .path(format!("{path}.type"))
                .at(type_name.span.clone());
            return vec![problem];
        };
        let broken = |code, end: &str, wanted: &str, stream: &Stream, span| {
            let message = format!(
                "relation type `{type_name}` expects {end} `{wanted}`, and stream `{}` is of type `{}`",
                stream.name, stream.type_name
            );
            Problem::new(code, message).path(path.as_str()).at(span)
        };
        let mut problems = Vec::new();
        if stream.type_name != declared.domain {
            let span = relation.name.span.clone();
            problems.push(broken(
                ProblemCode::DomainMismatch,
                "domain",
                &declared.domain,
                stream,
                span,
            ));
        }
        if let Some(target) = mapping.stream(&relation.to)
            && target.type_name != declared.range
        {
            let span = relation.to.span.clone();
            problems.push(broken(
                ProblemCode::RangeMismatch,
                "range",
                &declared.range,
                target,
                span,
            ));
        }
        problems
    }
}

fn hint<'a>(name: &str, declared: impl Iterator<Item = &'a str> + Clone, what: &str) -> String {
    if let Some(meant) = nearest(name, declared.clone()) {
        return format!("did you mean `{meant}`?");
    }
    let all: Vec<_> = declared.take(20).map(|name| format!("`{name}`")).collect();
    if all.is_empty() {
        format!("the ontology declares no {what}")
    } else {
        format!("the {what} are {}", all.join(", "))
    }
}
