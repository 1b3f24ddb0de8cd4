//! The settings that the guide recommends to operators.

use wayleave_model::grant::Scope;
use wayleave_project::Settings;

#[test]
fn the_settings_in_the_guide_are_settings() {
    let guide = include_str!("../../../../../docs/guide/serving-a-team.md");
    let blocks = guide.split("```toml\n").skip(1);
    let blocks: Vec<_> = blocks.filter_map(|it| it.split("```").next()).collect();
    assert!(blocks.len() >= 3);
    let settings = Settings::parse(&blocks.join("\n")).unwrap();
    let issuer = settings.jwt.as_ref().unwrap();
    assert_eq!(settings.url.as_ref().unwrap().as_str(), issuer.audience);
    assert!(issuer.packages[1].scopes.contains(Scope::Builder));
    assert!(settings.tls.is_some() && !settings.scopes.contains(Scope::Dev));
    let tokens_exist = true;
    assert!(settings.check_listener(settings.http, tokens_exist).is_ok());
}
