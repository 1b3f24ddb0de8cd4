//! The file as written: every key optional, unknown keys refused.

use serde::Deserialize;

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct RawSettings {
    pub(super) project: Project,
    pub(super) serve: Serve,
    pub(super) auth: Auth,
    pub(super) limits: Limits,
    pub(super) search: Search,
    pub(super) live: Live,
    pub(super) drift: Drift,
    pub(super) audit: Audit,
    pub(super) telemetry: Telemetry,
    pub(super) console: Console,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Audit {
    pub(super) required: Option<bool>,
    pub(super) sync: Option<bool>,
    pub(super) keep_days: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Telemetry {
    pub(super) listen: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Project {
    pub(super) name: Option<String>,
    pub(super) env: Option<String>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Serve {
    pub(super) http: Option<String>,
    pub(super) url: Option<String>,
    pub(super) hosts: Vec<String>,
    pub(super) origins: Vec<String>,
    pub(super) anonymous: Option<bool>,
    pub(super) tokens: Option<bool>,
    pub(super) scopes: Option<Vec<String>>,
    pub(super) tls: Option<Tls>,
    pub(super) tls_proxy: Option<bool>,
    pub(super) dataset_tools: Option<usize>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Console {
    pub(super) http: Option<String>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Tls {
    pub(super) cert: String,
    pub(super) key: String,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Auth {
    pub(super) jwt: Option<Jwt>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Jwt {
    pub(super) issuer: String,
    pub(super) audience: Option<String>,
    pub(super) jwks_url: Option<String>,
    pub(super) algorithms: Option<Vec<String>>,
    #[serde(default)]
    pub(super) packages: Vec<JwtPackage>,
}

#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct JwtPackage {
    pub(super) claim: Option<String>,
    pub(super) contains: Option<String>,
    pub(super) grants: Vec<String>,
    pub(super) scopes: Option<Vec<String>>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Limits {
    pub(super) calls_per_minute: Option<u32>,
    pub(super) burst: Option<u32>,
    pub(super) concurrent: Option<u32>,
    pub(super) streams: Option<u32>,
    pub(super) source_sessions: Option<u32>,
    pub(super) source_wait_ms: Option<u32>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
#[expect(clippy::struct_field_names, reason = "spelled as in the file")]
pub(super) struct Search {
    pub(super) refresh_seconds: Option<u64>,
    pub(super) rebuild_seconds: Option<u64>,
    pub(super) rebuild_tracked_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Drift {
    pub(super) every_seconds: Option<u64>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(super) struct Live {
    pub(super) enabled: Option<bool>,
    pub(super) interval_ms: Option<u64>,
    pub(super) max_records: Option<u32>,
    pub(super) subscriptions: Option<u32>,
}
