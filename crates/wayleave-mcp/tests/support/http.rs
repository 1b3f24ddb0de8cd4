//! A client over HTTP, in either era.
