//! A snapshot of one kind of primitive: ordered, persistent, cheap to clone.
//!
//! A set also caches each view of it, so that a thousand callers with one view cost one filter and
//! one serialization.

use std::{
    collections::HashMap,
    hash::{DefaultHasher, Hash as _, Hasher as _},
    sync::{Arc, Mutex, PoisonError},
};

use bytes::Bytes;
use rpds::RedBlackTreeMapSync;
use serde::Serialize;

use crate::{Caller, Prompt, Resource, ResourceTemplate, Tool, Visibility};

/// The properties of a primitive that a set needs.
pub(crate) trait Primitive: Clone {
    /// Its entry in a client's list.
    type Listing: Clone + PartialEq + Serialize;
    fn key(&self) -> &str;
    fn listing(&self) -> &Arc<Self::Listing>;
    fn visibility(&self) -> &Visibility;
    fn lists_like(&self, other: &Self) -> bool;
}

macro_rules! primitive {
    ($type:ident, $key:ident) => {
        impl Primitive for $type {
            type Listing = crate::sdk::model::$type;
            fn key(&self) -> &str {
                self.$key()
            }
            fn listing(&self) -> &Arc<Self::Listing> {
                &self.listing
            }
            fn visibility(&self) -> &Visibility {
                &self.visibility
            }
            fn lists_like(&self, other: &Self) -> bool {
                $type::lists_like(self, other)
            }
        }
    };
}

primitive!(Tool, name);
primitive!(Resource, uri);
primitive!(ResourceTemplate, uri_template);
primitive!(Prompt, name);

/// The effect of adding or removing a primitive on the lists clients see.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Effect {
    /// Nothing changed.
    None,
    /// The handler changed, the list entry did not.
    Quiet,
    /// The list changed.
    Listed,
}

#[derive(Clone)]
struct Entry<T> {
    item: Arc<T>,
    /// The revision at which the entry last changed.
    stamp: u64,
}

#[derive(Clone)]
pub(crate) struct PrimitiveSet<T> {
    entries: RedBlackTreeMapSync<Arc<str>, Entry<T>>,
    views: Arc<Views>,
}

impl<T> Default for PrimitiveSet<T> {
    fn default() -> Self {
        Self {
            entries: RedBlackTreeMapSync::new_sync(),
            views: Arc::default(),
        }
    }
}

/// The cached list of one view.
#[derive(Clone)]
struct View {
    fingerprint: u64,
    json: Option<Bytes>,
}

#[derive(Default)]
struct Views(Mutex<HashMap<Arc<str>, View>>);

impl Views {
    /// Maximum number of cached views. Embedders name them, perhaps one per caller, and memory must
    /// stay bounded.
    const MAX_VIEWS: usize = 256;

    fn get(&self, name: &str) -> Option<View> {
        self.0
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .get(name)
            .cloned()
    }

    fn put(&self, name: &str, view: View) {
        let mut views = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if views.len() >= Self::MAX_VIEWS {
            views.clear();
        }
        views.insert(name.into(), view);
    }
}

impl<T: Primitive> PrimitiveSet<T> {
    pub(crate) fn put(&mut self, item: T, revision: u64) -> Effect {
        let before = self.entries.get(item.key());
        let (effect, stamp) = match before {
            Some(entry) if entry.item.lists_like(&item) => (Effect::Quiet, entry.stamp),
            // The entry is the same, perhaps for other callers: one that sees it before and after
            // sees no change.
            Some(entry) if entry.item.listing() == item.listing() => (Effect::Listed, entry.stamp),
            _ => (Effect::Listed, revision),
        };
        self.entries.insert_mut(
            item.key().into(),
            Entry {
                item: Arc::new(item),
                stamp,
            },
        );
        self.after(effect)
    }

    pub(crate) fn remove(&mut self, key: &str) -> Effect {
        let effect = if self.entries.remove_mut(key) {
            Effect::Listed
        } else {
            Effect::None
        };
        self.after(effect)
    }

    fn after(&mut self, effect: Effect) -> Effect {
        if effect == Effect::Listed {
            self.views = Arc::default();
        }
        effect
    }

    pub(crate) fn get(&self, key: &str) -> Option<&Arc<T>> {
        self.entries.get(key).map(|entry| &entry.item)
    }

    /// All primitives in list order, regardless of visibility.
    pub(crate) fn iter(&self) -> impl Iterator<Item = &Arc<T>> {
        self.entries.values().map(|entry| &entry.item)
    }

    /// The primitives `caller` may see after the key `after`, in list order.
    pub(crate) fn visible<'s>(
        &'s self,
        caller: &'s Caller,
        after: Option<&'s str>,
    ) -> impl Iterator<Item = &'s Arc<T>> {
        use std::ops::Bound;
        let from = after.map_or(Bound::Unbounded, Bound::Excluded);
        self.entries
            .range::<str, (Bound<&str>, Bound<&str>)>((from, Bound::Unbounded))
            .map(|(_, entry)| &entry.item)
            .filter(|item| item.visibility().allows(caller))
    }

    /// A number that changes when the list that `caller` sees changes.
    pub(crate) fn fingerprint(&self, caller: &Caller) -> u64 {
        if let Some(view) = caller.view().and_then(|name| self.views.get(name)) {
            return view.fingerprint;
        }
        let mut hasher = DefaultHasher::new();
        for (key, entry) in &self.entries {
            if entry.item.visibility().allows(caller) {
                (key, entry.stamp).hash(&mut hasher);
            }
        }
        let fingerprint = hasher.finish();
        if let Some(name) = caller.view() {
            self.views.put(
                name,
                View {
                    fingerprint,
                    json: None,
                },
            );
        }
        fingerprint
    }

    /// The whole list `caller` sees as a JSON array, serialized once per view; `None` when the
    /// caller has no view to share or sees more than `most` entries.
    pub(crate) fn cached_json(&self, caller: &Caller, most: usize) -> Option<Bytes> {
        let name = caller.view()?;
        if let Some(View {
            json: Some(json), ..
        }) = self.views.get(name)
        {
            return Some(json);
        }
        let listings: Vec<&T::Listing> = self
            .visible(caller, None)
            .take(most.saturating_add(1))
            .map(|item| item.listing().as_ref())
            .collect();
        if listings.len() > most {
            return None;
        }
        let json = Bytes::from(serde_json::to_vec(&listings).ok()?);
        let fingerprint = self.fingerprint(caller);
        self.views.put(
            name,
            View {
                fingerprint,
                json: Some(json.clone()),
            },
        );
        Some(json)
    }
}
