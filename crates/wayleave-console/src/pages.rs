//! The pages, one file each.

mod activity;
mod connect;
mod dataset;
mod datasets;
mod decisions;
mod diff_table;
mod grant;
mod grant_new;
mod grants;
mod inbox;
pub(crate) mod login;
mod masks;
mod proposal;
mod ratified;
mod readers;
mod sample;
mod token;
mod trial;

use maud::html;

use crate::{
    page::NavSection,
    respond::{PageAnswer, SignedInRequest},
};

/// Dispatches a request to the page for its path.
pub(crate) async fn route(visit: &SignedInRequest<'_>, path: &str, is_post: bool) -> PageAnswer {
    let segments: Vec<&str> = path.split('/').filter(|it| !it.is_empty()).collect();
    match (segments.as_slice(), is_post) {
        ([], false) => PageAnswer::SeeOther("/inbox".to_owned()),
        (["inbox"], false) => inbox::show(visit).await,
        (["inbox", id], false) => proposal::show(visit, id).await,
        (["inbox", id, "text"], false) => proposal::text(visit, id),
        (["inbox", id, act], true) => proposal::act(visit, id, act).await,
        (["datasets"], false) => datasets::show(visit).await,
        (["datasets"], true) => datasets::compare(visit).await,
        (["datasets", name], false) => dataset::show(visit, name).await,
        (["datasets", name, act], true) => dataset::act(visit, name, act).await,
        (["grants"], false) => grants::show(visit).await,
        (["grants", "new"], false) => grant_new::show(visit, None).await,
        (["grants", "new"], true) => grant_new::create(visit).await,
        (["grants", id], false) => grant::show(visit, id).await,
        (["grants", id, act @ ("narrow" | "lost")], true) => {
            grant::narrow(visit, id, *act == "lost").await
        }
        (["grants", id, "revoke"], true) => grant::revoke(visit, id).await,
        (["tokens", "new"], false) => token::new(visit, None),
        (["tokens", "new"], true) => token::issue(visit).await,
        (["tokens", id], false) => token::show(visit, id, None),
        (["tokens", id, "revoke"], true) => token::revoke(visit, id).await,
        (["activity"], false) => activity::show(visit).await,
        (["activity", "verify"], true) => activity::verify(visit).await,
        (["activity", "prov"], false) => activity::prov(visit).await,
        (["activity", id], false) => activity::show_call(visit, id, false).await,
        (["activity", id, "prov"], false) => activity::show_call(visit, id, true).await,
        (["decisions"], false) => decisions::show(visit).await,
        (["try"], false) => trial::show(visit).await,
        (["connect"], false) => connect::show(visit),
        _ => PageAnswer::missing(NavSection::Outside, &html! { "There is no such page." }),
    }
}
