use super::*;

#[test]
fn an_empty_file_is_all_defaults() {
    let settings = Settings::parse("").unwrap();
    assert_eq!(settings.http.to_string(), DEFAULT_HTTP);
    assert_eq!(
        (settings.env, settings.anonymous),
        (ProjectMode::Development, false)
    );
}

#[test]
fn unknown_keys_and_meaningless_values_are_refused_with_their_place() {
    let unknown = Settings::parse("[serve]\nhtpp = \"x\"")
        .unwrap_err()
        .to_string();
    assert!(
        unknown.contains("line 2") && unknown.contains("htpp"),
        "{unknown}"
    );
    let hint = |text| Settings::parse(text).unwrap_err().hint().unwrap();
    assert_eq!(hint("[serve]\nhtpp = \"x\""), "did you mean `http`?");
    assert_eq!(hint("[sevre]\nhttp = \"x\""), "did you mean `serve`?");
    assert!(hint("[serve]\nxyzzy = 1").contains("settings.md"));
    assert!(hint("[serve").contains("settings.md"));
    for (text, setting) in [
        ("[serve]\nhttp = \"everywhere\"", "serve.http"),
        ("[project]\nenv = \"staging\"", "project.env"),
    ] {
        let error = Settings::parse(text).unwrap_err().to_string();
        assert!(error.contains(setting), "{error}");
    }
}

#[test]
fn a_listener_beyond_loopback_asks_everyone_for_a_token() {
    let settings = |text| Settings::parse(text).unwrap();
    let world = "0.0.0.0:1".parse().unwrap();
    let plain = settings("");
    assert_eq!(
        plain.check_listener("127.0.0.1:1".parse().unwrap(), false),
        Ok(())
    );
    let open = Err(SettingsError::OpenToTheWorld);
    assert_eq!(plain.check_listener(world, false), open);
    let encrypted = settings("[serve]\ntls_proxy = true");
    assert_eq!(encrypted.check_listener(world, true), Ok(()));
    let anonymous = settings("[serve]\nanonymous = true");
    assert_eq!(anonymous.check_listener(world, true), open);
}

#[test]
fn a_listener_beyond_loopback_is_encrypted() {
    let clear = Err(SettingsError::ClearText);
    for (text, expected) in [
        ("", &clear),
        ("tls_proxy = false", &clear),
        ("url = \"http://localhost:7411/mcp\"", &clear),
        ("url = \"https://data.example.org/mcp\"", &Ok(())),
        ("tls_proxy = true", &Ok(())),
        ("[serve.tls]\ncert = \"a.pem\"\nkey = \"b.pem\"", &Ok(())),
    ] {
        let settings = Settings::parse(&format!("[serve]\n{text}")).unwrap();
        for world in ["0.0.0.0:1", "[::]:1", "192.0.2.7:1"] {
            let checked = settings.check_listener(world.parse().unwrap(), true);
            assert_eq!(&checked, expected, "{text}");
        }
        for here in ["127.0.0.1:1", "[::1]:1"] {
            let checked = settings.check_listener(here.parse().unwrap(), true);
            assert_eq!(checked, Ok(()), "{text}");
        }
    }
}

#[test]
fn whoever_needs_no_token_is_let_in_by_names_of_this_machine_alone() {
    let here = "127.0.0.1:1".parse().unwrap();
    for (names, fine) in [
        ("url = \"https://data.example.org/mcp\"", false),
        ("hosts = [\"localhost:7411\", \"data.example.org\"]", false),
        ("hosts = [\"*\"]", false),
        ("url = \"http://localhost:7411/mcp\"", true),
        ("hosts = [\"localhost:7411\", \"[::1]\"]", true),
    ] {
        let text = format!("[serve]\nanonymous = true\n{names}");
        let checked = Settings::parse(&text).unwrap().check_listener(here, true);
        assert_eq!(checked.is_ok(), fine, "{names}");
        let asked = text.replace("true", "false");
        let checked = Settings::parse(&asked).unwrap().check_listener(here, true);
        assert_eq!(checked, Ok(()), "{names}");
    }
}

#[test]
fn production_hides_what_is_for_authors_whatever_the_ceiling() {
    let all = "scopes = [\"runtime\", \"builder\", \"dev\"]";
    let scopes = |env: &str| {
        let text = format!("[project]\nenv = \"{env}\"\n[serve]\n{all}");
        Settings::parse(&text).unwrap().scopes
    };
    assert!(scopes("development").contains(Scope::Dev));
    assert!(!scopes("production").contains(Scope::Dev));
    assert!(!Settings::parse("").unwrap().scopes.contains(Scope::Dev));
}

const JWT: &str = "[auth.jwt]\nissuer = \"https://id.example.org\"\naudience = \"wayleave\"";

#[test]
fn an_issuer_needs_https_an_audience_a_package_and_real_signatures() {
    let package = "[[auth.jwt.packages]]\nclaim = \"groups\"\ncontains = \"support\"\n\
        grants = [\"g_1\"]";
    let whole = format!("{JWT}\n{package}");
    let issuer = Settings::parse(&whole).unwrap().jwt.unwrap();
    assert_eq!(issuer.packages.first().unwrap().scopes, Scopes::RUNTIME);
    assert!(!issuer.algorithms.is_empty());
    for (broken, names) in [
        (JWT.to_owned(), "auth.jwt.packages"),
        (whole.replace("https:", "http:"), "auth.jwt.issuer"),
        (
            whole.replace("audience = \"wayleave\"", ""),
            "auth.jwt.audience",
        ),
        (
            whole.replace("\ncontains = \"support\"", ""),
            "auth.jwt.packages",
        ),
        (
            format!("{JWT}\nalgorithms = [\"none\"]\n{package}"),
            "auth.jwt.algorithms",
        ),
        (
            format!("{JWT}\nalgorithms = [\"HS256\"]\n{package}"),
            "auth.jwt.algorithms",
        ),
        (
            format!("{JWT}\nalgorithms = []\n{package}"),
            "auth.jwt.algorithms",
        ),
        (
            format!("{JWT}\njwks_url = \"ftp://x/y\"\n{package}"),
            "auth.jwt.jwks_url",
        ),
    ] {
        let error = Settings::parse(&broken).unwrap_err().to_string();
        assert!(error.contains(names), "{error}");
    }
    let local = whole.replace("https://id.example.org", "http://127.0.0.1:8080");
    assert!(Settings::parse(&local).is_ok());
}

#[test]
fn a_limit_of_nothing_is_refused() {
    for limit in [
        "calls_per_minute",
        "burst",
        "concurrent",
        "streams",
        "source_sessions",
    ] {
        let error = Settings::parse(&format!("[limits]\n{limit} = 0")).unwrap_err();
        assert!(error.to_string().contains(limit), "{error}");
    }
    let limits = Settings::parse("[limits]\ncalls_per_minute = 60")
        .unwrap()
        .limits;
    assert_eq!((limits.calls_per_minute, limits.burst), (60, 10));
}
