//! Which settings a running server applies at once, and which settings an edit changed.
//!
//! [`SettingKey::ALL`] is the one list: the log, `doctor` and the reference follow it.

use std::fmt::Debug;

use wayleave_model::grant::Scope;

use super::{Issuer, Settings};

/// When a changed setting takes effect.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TakesEffect {
    /// In a running server, for the calls that begin afterwards.
    AtOnce,
    /// When the server is started again.
    OnRestart,
}

impl TakesEffect {
    /// Its spelling in the reference.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::AtOnce => "at once",
            Self::OnRestart => "on restart",
        }
    }
}

/// One setting.
#[derive(Debug, Clone, Copy)]
pub struct SettingKey {
    /// Its name in the file.
    pub name: &'static str,
    /// When a change of it takes effect.
    pub effect: TakesEffect,
    value: fn(&Settings) -> String,
}

/// A setting that differs between two files. No setting holds a secret.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingChange {
    /// Its name.
    pub name: &'static str,
    /// When the change takes effect.
    pub effect: TakesEffect,
    /// The old value.
    pub old: String,
    /// The new value.
    pub new: String,
}

const fn at_once(name: &'static str, value: fn(&Settings) -> String) -> SettingKey {
    SettingKey {
        name,
        effect: TakesEffect::AtOnce,
        value,
    }
}

const fn on_restart(name: &'static str, value: fn(&Settings) -> String) -> SettingKey {
    SettingKey {
        name,
        effect: TakesEffect::OnRestart,
        value,
    }
}

impl SettingKey {
    /// Every setting, in the order of the reference.
    pub const ALL: &'static [Self] = &[
        on_restart("project.name", |it| shown(&it.name)),
        at_once("project.env", |it| shown(&it.env)),
        on_restart("serve.http", |it| it.http.to_string()),
        on_restart("serve.url", |it| optional(it.url.as_ref())),
        on_restart("serve.hosts", |it| shown(&it.hosts)),
        on_restart("serve.origins", |it| shown(&it.origins)),
        on_restart("serve.anonymous", |it| shown(&it.anonymous)),
        on_restart("serve.tokens", |it| shown(&it.tokens)),
        at_once("serve.scopes", |it| {
            let names: Vec<_> = it.scopes.iter().map(Scope::as_str).collect();
            names.join(", ")
        }),
        on_restart("serve.tls.cert", |it| {
            optional(it.tls.as_ref().map(|it| it.cert.display()))
        }),
        on_restart("serve.tls.key", |it| {
            optional(it.tls.as_ref().map(|it| it.key.display()))
        }),
        on_restart("serve.tls_proxy", |it| shown(&it.tls_proxy)),
        at_once("serve.dataset_tools", |it| shown(&it.dataset_tools)),
        on_restart("console.http", |it| optional(it.console)),
        on_restart("auth.jwt.issuer", |it| {
            of_issuer(it, |jwt| jwt.issuer.clone())
        }),
        on_restart("auth.jwt.audience", |it| {
            of_issuer(it, |jwt| jwt.audience.clone())
        }),
        on_restart("auth.jwt.jwks_url", |it| {
            of_issuer(it, |jwt| optional(jwt.jwks_url.as_ref()))
        }),
        on_restart("auth.jwt.algorithms", |it| {
            of_issuer(it, |jwt| shown(&jwt.algorithms))
        }),
        on_restart("auth.jwt.packages.claim", |it| {
            of_issuer(it, |jwt| each(jwt, |rule| shown(&rule.wanted)))
        }),
        on_restart("auth.jwt.packages.contains", |it| {
            of_issuer(it, |jwt| each(jwt, |rule| shown(&rule.wanted)))
        }),
        on_restart("auth.jwt.packages.grants", |it| {
            of_issuer(it, |jwt| each(jwt, |rule| rule.grants.join(" ")))
        }),
        on_restart("auth.jwt.packages.scopes", |it| {
            of_issuer(it, |jwt| each(jwt, |rule| shown(&rule.scopes)))
        }),
        at_once("limits.calls_per_minute", |it| {
            shown(&it.limits.calls_per_minute)
        }),
        at_once("limits.burst", |it| shown(&it.limits.burst)),
        at_once("limits.concurrent", |it| shown(&it.limits.concurrent)),
        at_once("limits.streams", |it| shown(&it.limits.streams)),
        at_once("limits.source_sessions", |it| {
            shown(&it.limits.source_sessions)
        }),
        at_once("limits.source_wait_ms", |it| {
            it.limits.source_wait.as_millis().to_string()
        }),
        at_once("search.refresh_seconds", |it| {
            it.search.refresh.as_secs().to_string()
        }),
        at_once("search.rebuild_seconds", |it| {
            it.search.rebuild.as_secs().to_string()
        }),
        at_once("search.rebuild_tracked_seconds", |it| {
            it.search.rebuild_tracked.as_secs().to_string()
        }),
        on_restart("live.enabled", |it| shown(&it.live.enabled)),
        at_once("live.interval_ms", |it| {
            it.live.interval.as_millis().to_string()
        }),
        at_once("live.max_records", |it| shown(&it.live.max_records)),
        at_once("live.subscriptions", |it| shown(&it.live.subscriptions)),
        at_once("drift.every_seconds", |it| {
            let every = it.drift.every;
            every.map_or(0, |it| it.as_secs()).to_string()
        }),
        on_restart("audit.required", |it| shown(&it.audit.required)),
        on_restart("audit.sync", |it| shown(&it.audit.sync)),
        on_restart("audit.keep_days", |it| {
            optional(it.audit.keep.map(|it| it.as_secs() / 86_400))
        }),
        on_restart("telemetry.listen", |it| optional(it.telemetry)),
    ];
}

impl Settings {
    /// The differences between these settings and later ones, in the order of the reference.
    pub fn changes(&self, later: &Self) -> Vec<SettingChange> {
        let change = |key: &SettingKey| {
            let (old, new) = ((key.value)(self), (key.value)(later));
            (old != new).then_some(SettingChange {
                name: key.name,
                effect: key.effect,
                old,
                new,
            })
        };
        SettingKey::ALL.iter().filter_map(change).collect()
    }

    /// These settings, with every value of `later` that a running server applies at once.
    #[must_use]
    pub fn with_immediate_changes_of(&self, later: &Self) -> Self {
        let running = self.clone();
        Self {
            env: later.env,
            scopes: later.scopes,
            dataset_tools: later.dataset_tools,
            limits: later.limits,
            search: later.search,
            live: super::ChangeFeedSettings {
                enabled: running.live.enabled,
                ..later.live
            },
            drift: later.drift,
            ..running
        }
    }
}

fn shown(value: &impl Debug) -> String {
    format!("{value:?}")
}

fn optional(value: Option<impl ToString>) -> String {
    value.map_or_else(|| "none".to_owned(), |it| it.to_string())
}

fn of_issuer(settings: &Settings, value: impl Fn(&Issuer) -> String) -> String {
    settings
        .jwt
        .as_ref()
        .map_or_else(|| "none".to_owned(), value)
}

fn each(issuer: &Issuer, value: impl Fn(&super::PackageRule) -> String) -> String {
    let values: Vec<String> = issuer.packages.iter().map(value).collect();
    values.join(", ")
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A value other than the default of every setting that can be written alone.
    const EDITED: [(&str, &str); 28] = [
        ("project.name", "name = \"other\""),
        ("project.env", "env = \"production\""),
        ("serve.http", "http = \"127.0.0.1:9\""),
        ("serve.url", "url = \"https://data.example.org/mcp\""),
        ("serve.hosts", "hosts = [\"x\"]"),
        ("serve.origins", "origins = [\"https://x\"]"),
        ("serve.anonymous", "anonymous = true"),
        ("serve.tokens", "tokens = true"),
        ("serve.scopes", "scopes = [\"runtime\"]"),
        ("serve.tls_proxy", "tls_proxy = true"),
        ("serve.dataset_tools", "dataset_tools = 1"),
        ("console.http", "http = \"127.0.0.1:9\""),
        ("limits.calls_per_minute", "calls_per_minute = 7000"),
        ("limits.burst", "burst = 7"),
        ("limits.concurrent", "concurrent = 7"),
        ("limits.streams", "streams = 7"),
        ("limits.source_sessions", "source_sessions = 7"),
        ("limits.source_wait_ms", "source_wait_ms = 7"),
        ("search.refresh_seconds", "refresh_seconds = 7"),
        ("search.rebuild_seconds", "rebuild_seconds = 7"),
        ("live.enabled", "enabled = false"),
        ("live.interval_ms", "interval_ms = 700"),
        ("live.max_records", "max_records = 7"),
        ("live.subscriptions", "subscriptions = 7"),
        ("drift.every_seconds", "every_seconds = 7"),
        ("audit.required", "required = false"),
        ("audit.keep_days", "keep_days = 7"),
        ("telemetry.listen", "listen = \"127.0.0.1:9\""),
    ];

    #[test]
    fn an_edit_is_told_and_taken_or_left_as_its_setting_says() {
        let before = Settings::parse("").unwrap();
        for (name, line) in EDITED {
            let section = name.split('.').next().unwrap();
            let after = Settings::parse(&format!("[{section}]\n{line}")).unwrap();
            let changes = before.changes(&after);
            let change = changes.iter().find(|it| it.name == name);
            let change = change.unwrap_or_else(|| panic!("{name} is not told"));
            assert_ne!(change.old, change.new);
            let in_force = before.with_immediate_changes_of(&after);
            let left = in_force.changes(&after);
            let is_left = left.iter().any(|it| it.name == name);
            assert_eq!(is_left, change.effect == TakesEffect::OnRestart, "{name}");
            // Only settings that take effect at once have changed.
            let taken: Vec<_> = before.changes(&in_force);
            assert!(taken.iter().all(|it| it.effect == TakesEffect::AtOnce));
        }
    }

    #[test]
    fn the_reference_says_when_each_setting_takes_effect() {
        let reference = include_str!("../../../../docs/reference/settings.md");
        for key in SettingKey::ALL {
            let row = format!("| `{}` |", key.name);
            let row = reference.lines().find(|line| line.starts_with(&row));
            let row = row.unwrap_or_else(|| panic!("{} is not in the reference", key.name));
            let effect = row.split(" | ").nth(2);
            assert_eq!(effect, Some(key.effect.as_str()), "{}", key.name);
        }
    }

    #[test]
    fn what_did_not_change_is_not_told() {
        let one = Settings::parse("[limits]\nburst = 7").unwrap();
        let same = Settings::parse("# a comment\n[limits]\nburst = 7\n").unwrap();
        assert_eq!(one.changes(&same), []);
    }
}
