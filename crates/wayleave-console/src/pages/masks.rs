//! The masks of a grant for fields with personal data.

use std::collections::BTreeMap;

use maud::{Markup, html};
use wayleave_model::{
    mapping::{Field, Mapping, Stream},
    mask::{Mask, TokenScope},
    sensitive,
};
use wayleave_project::Explanation;

use crate::{form::FormFields, page::state, risk_notes, visible_text::code};

/// The selectable masks. Masks with a width are set on the command line.
const SELECTABLE_MASKS: [Mask; 4] = [
    Mask::Redact,
    Mask::Last4,
    Mask::Year,
    Mask::Token(TokenScope::Grant),
];

/// A note on the mask of a field, if it has one.
pub(super) fn note(mask: Option<Mask>) -> Markup {
    html! { @if let Some(mask) = mask { " " (state("on", &format!("shows {}", mask.words()))) } }
}

/// The mask selection for each field of a stream that may need one.
pub(super) fn choices(stream: &Stream, form: &FormFields) -> Markup {
    let fields: Vec<_> = stream.fields.iter().filter(|it| asks(stream, it)).collect();
    html! { @if !fields.is_empty() { div.row { @for field in fields {
        @let name = name(stream, field);
        @let chosen = form.get(&name);
        div.field {
            label for=(name) { "Show " (code(&field.name)) }
            select id=(name) name=(name) {
                option value="" { "as it is" }
                @for mask in SELECTABLE_MASKS { @if mask.fits(field.datatype.value) {
                    @let word = mask.to_string();
                    option value=(word) selected[word == chosen] { (mask.words()) }
                } }
            }
        }
    } } } }
}

/// The masks selected in a form.
pub(super) fn chosen(
    mapping: &Mapping,
    form: &FormFields,
) -> Result<BTreeMap<String, BTreeMap<String, Mask>>, Explanation> {
    let mut masks: BTreeMap<String, BTreeMap<String, Mask>> = BTreeMap::new();
    for stream in &mapping.streams {
        for field in stream.fields.iter().filter(|it| asks(stream, it)) {
            let is_granted = form
                .all("f")
                .any(|it| it.split_once('.') == Some((&stream.name, &field.name)));
            let word = form.get(&name(stream, field));
            if word.is_empty() || !is_granted {
                continue;
            }
            let mask = word.parse::<Mask>();
            let mask = mask.map_err(|error| Explanation::from_error(&error))?;
            let of_stream = masks.entry(stream.name.value.clone()).or_default();
            of_stream.insert(field.name.value.clone(), mask);
        }
    }
    Ok(masks)
}

/// Whether to offer a mask: the field looks like personal data or a secret, its mapping does not
/// mask it for everyone, and it does not identify a record.
fn asks(stream: &Stream, field: &Field) -> bool {
    let tells = risk_notes::personal(&field.name).is_some()
        || sensitive::looks_secret(&field.name).is_some();
    let is_key = stream.key.iter().any(|it| it.value == field.name.value);
    tells && !is_key && field.mask.is_none()
}

fn name(stream: &Stream, field: &Field) -> String {
    format!("mask.{}.{}", stream.name.value, field.name.value)
}
