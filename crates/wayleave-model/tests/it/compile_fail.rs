//! Programs that must not compile: a `Ratified` can be made only through the digest.
//!
//! Each file has one mistake, because of two the compiler may report only the first.

use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;

#[test]
fn nothing_outside_ratify_can_make_a_ratified_mapping() {
    trybuild::TestCases::new().compile_fail("tests/compile_fail/*.rs");
}

/// Compiles only if the type does not implement the trait: otherwise `_` below would be ambiguous.
macro_rules! assert_not_implemented {
    ($type:ty: $($bound:tt)+) => {{
        trait Ambiguous<A> {
            fn item() {}
        }
        impl<T> Ambiguous<()> for T {}
        struct Implemented;
        impl<T: $($bound)+> Ambiguous<Implemented> for T {}
        <$type as Ambiguous<_>>::item();
    }};
}

#[test]
fn no_trait_makes_a_ratified_mapping_out_of_something_else() {
    assert_not_implemented!(Ratified<Mapping>: Default);
    assert_not_implemented!(Ratified<Mapping>: Clone);
    assert_not_implemented!(Ratified<Mapping>: serde::de::DeserializeOwned);
    assert_not_implemented!(Ratified<Mapping>: From<Mapping>);
    assert_not_implemented!(Ratified<Mapping>: std::str::FromStr);
    assert_not_implemented!(Ratified<Mapping>: std::ops::DerefMut);
    assert_not_implemented!(Ratified<Mapping>: AsMut<Mapping>);
}
