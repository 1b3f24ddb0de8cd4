//! Setters shared by the list entries of all primitives.

/// Gives a primitive with `listing` and `visibility` the named setters, and `visible`.
macro_rules! listing_setters {
    ($type:ident { $($(#[$doc:meta])+ $method:ident => $field:ident;)+ }) => {
        impl $type {
            $(
                $(#[$doc])+
                #[must_use]
                pub fn $method(mut self, text: impl Into<String>) -> Self {
                    let text: String = text.into();
                    std::sync::Arc::make_mut(&mut self.listing).$field = Some(text.into());
                    self
                }
            )+

            /// Restricts who may see and use it.
            #[must_use]
            pub fn visible(mut self, visibility: $crate::Visibility) -> Self {
                self.visibility = visibility;
                self
            }

            /// Whether a client's list would stay the same if `other` replaced this one.
            pub(crate) fn lists_like(&self, other: &Self) -> bool {
                self.visibility.same(&other.visibility)
                    && (std::sync::Arc::ptr_eq(&self.listing, &other.listing)
                        || self.listing == other.listing)
            }
        }
    };
}

pub(crate) use listing_setters;
