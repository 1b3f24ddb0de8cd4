//! Pages of a list, in a stable order.
//!
//! A cursor names the last entry shown, so it survives additions and removals: the next page
//! begins after that name, whether or not it is still there.

use base64::{Engine as _, engine::general_purpose::URL_SAFE_NO_PAD};

use crate::{
    Caller, RpcError,
    primitive_set::{Primitive, PrimitiveSet},
};

/// The entries of one page, and where the next begins.
pub(crate) struct Page<L> {
    pub(crate) entries: Vec<L>,
    pub(crate) next_cursor: Option<String>,
}

/// One page of the part of `set` that `caller` sees. `list` distinguishes cursors of different
/// lists.
pub(crate) fn page<T: Primitive>(
    set: &PrimitiveSet<T>,
    list: &str,
    caller: &Caller,
    cursor: Option<&str>,
    size: usize,
) -> Result<Page<T::Listing>, RpcError> {
    let after = cursor
        .map(|cursor| decode_cursor(list, cursor))
        .transpose()?;
    let mut visible = set.visible(caller, after.as_deref());
    let items: Vec<_> = visible.by_ref().take(size).collect();
    let next_cursor = match (visible.next(), items.last()) {
        (Some(_), Some(shown)) => Some(encode_cursor(list, shown.key())),
        _ => None,
    };
    let entries = items
        .into_iter()
        .map(|item| T::Listing::clone(item.listing()))
        .collect();
    Ok(Page {
        entries,
        next_cursor,
    })
}

fn encode_cursor(list: &str, key: &str) -> String {
    URL_SAFE_NO_PAD.encode(format!("{list}\n{key}"))
}

fn decode_cursor(list: &str, cursor: &str) -> Result<String, RpcError> {
    let malformed = || RpcError::invalid_params(format!("malformed cursor for `{list}`"));
    let bytes = URL_SAFE_NO_PAD.decode(cursor).map_err(|_| malformed())?;
    let text = String::from_utf8(bytes).map_err(|_| malformed())?;
    match text.split_once('\n') {
        Some((for_list, key)) if for_list == list => Ok(key.to_owned()),
        Some((for_list @ ("tools" | "resources" | "templates" | "prompts"), _)) => Err(
            RpcError::invalid_params(format!("this cursor is for `{for_list}`, not for `{list}`")),
        ),
        _ => Err(malformed()),
    }
}
