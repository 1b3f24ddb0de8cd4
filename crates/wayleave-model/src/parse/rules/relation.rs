//! Rules of a relation: both ends exist, and their values can be equal.

use super::{NameLookup, Rules};
use crate::mapping::{Field, Join, Relation, Stream};
use crate::problem::{Problem, ProblemCode, quoted};

impl<'m> Rules<'m> {
    pub(super) fn relation(&mut self, stream: &'m Stream, relation: &'m Relation) {
        let path = format!("streams.{}.relations.{}", stream.name, relation.name);
        let target = self.find_stream(&relation.to, &format!("{path}.to"));
        let path = format!("{path}.on");
        for join in &relation.on {
            let ours = self.our_end(stream, join, &path);
            let theirs = target.and_then(|target| self.their_end(target, join, &path));
            if let (Some(ours), Some(theirs)) = (ours, theirs)
                && ours.datatype.common_with(theirs.datatype.value).is_none()
            {
                let message = format!(
                    "`{}` ({}) can never equal `{}` ({}) of stream `{}`",
                    ours.name, ours.datatype, theirs.name, theirs.datatype, relation.to
                );
                let problem = Problem::new(ProblemCode::RelationDatatype, message)
                    .hint("join columns of the same datatype");
                self.report(&path, &join.column.span, problem);
            }
        }
    }

    /// The field that reads the column, if it is mapped.
    fn our_end(&mut self, stream: &'m Stream, join: &'m Join, path: &str) -> Option<&'m Field> {
        let column = &join.column;
        if let Some(field) = stream.field_of_column(column) {
            self.single(stream, field, path, &column.span);
            return Some(field);
        }
        if let NameLookup::Found(field) = self.field_called(stream, column)
            && let Some(read) = field.column()
        {
            let message = format!(
                "`on` takes a column of `{}`, and `{column}` is a field that reads column {}",
                stream.table,
                quoted(read)
            );
            let problem = Problem::new(ProblemCode::RelationColumn, message)
                .hint(format!("write {}", quoted(read)));
            self.report(path, &column.span, problem);
        }
        None
    }

    fn their_end(&mut self, target: &'m Stream, join: &'m Join, path: &str) -> Option<&'m Field> {
        let field = self.find_field(target, &join.field, path)?;
        self.single(target, field, path, &join.field.span);
        Some(field)
    }

    fn single(
        &mut self,
        stream: &Stream,
        field: &Field,
        path: &str,
        span: &std::ops::Range<usize>,
    ) {
        if field.compute().is_some() {
            let message = format!(
                "field `{}` of stream `{}` is computed, and cannot be joined on",
                field.name, stream.name
            );
            let problem = Problem::new(ProblemCode::UnfitField, message)
                .hint("join on fields that are stored");
            self.report(path, span, problem);
        } else if !field.is_scalar() {
            let many = if field.many.value { "many " } else { "" };
            let message = format!(
                "field `{}` of stream `{}` ({many}{}) cannot be joined on",
                field.name, stream.name, field.datatype
            );
            let problem = Problem::new(ProblemCode::UnfitField, message)
                .hint("join on fields that hold one value");
            self.report(path, span, problem);
        }
    }
}
