//! Detects names whose values should probably not be served.

use std::fmt;

use serde::Serialize;

/// Why a name looks secret.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Reason {
    /// A password, passphrase or PIN.
    Password,
    /// A token or another bearer credential.
    Token,
    /// A cryptographic key, salt or hash of a secret.
    Key,
    /// A card or bank account.
    Payment,
    /// A national identification number.
    Identity,
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Password => "looks like a password",
            Self::Token => "looks like a token or another login secret",
            Self::Key => "looks like a key, salt or hash",
            Self::Payment => "looks like a card or bank account number",
            Self::Identity => "looks like a government identity number",
        })
    }
}

/// Words that suffice on their own.
const WORDS: &[(Reason, &[&str])] = &[
    (
        Reason::Password,
        &[
            "password",
            "passwords",
            "passwd",
            "pwd",
            "pass",
            "passphrase",
            "passcode",
            "passwort",
            "kennwort",
            "wachtwoord",
            "contrasena",
            "contraseña",
            "senha",
            "pin",
        ],
    ),
    (
        Reason::Token,
        &[
            "token",
            "tokens",
            "secret",
            "secrets",
            "credential",
            "credentials",
            "bearer",
            "jwt",
            "otp",
            "totp",
            "mfa",
            "cookie",
        ],
    ),
    (
        Reason::Key,
        &["salt", "hash", "pepper", "keystore", "pem", "hmac"],
    ),
    (
        Reason::Payment,
        &[
            "iban", "cvv", "cvv2", "cvc", "cvc2", "ccnum", "ccv", "swift",
        ],
    ),
    (
        Reason::Identity,
        &["ssn", "nino", "pesel", "bsn", "cpf", "aadhaar", "passport"],
    ),
];

/// Pairs of neighbouring words.
const PAIRS: &[(Reason, &[(&str, &str)])] = &[
    (
        Reason::Token,
        &[
            ("session", "key"),
            ("session", "id"),
            ("recovery", "code"),
            ("recovery", "codes"),
            ("backup", "codes"),
            ("security", "answer"),
            ("secret", "answer"),
        ],
    ),
    (
        Reason::Key,
        &[
            ("api", "key"),
            ("private", "key"),
            ("access", "key"),
            ("encryption", "key"),
            ("signing", "key"),
            ("auth", "key"),
            ("master", "key"),
            ("ssh", "key"),
            ("secret", "key"),
            ("license", "key"),
        ],
    ),
    (
        Reason::Payment,
        &[
            ("card", "number"),
            ("card", "no"),
            ("card", "num"),
            ("credit", "card"),
            ("debit", "card"),
            ("cc", "number"),
            ("cc", "num"),
            ("security", "code"),
            ("bank", "account"),
            ("account", "number"),
            ("routing", "number"),
            ("sort", "code"),
        ],
    ),
    (
        Reason::Identity,
        &[
            ("social", "security"),
            ("national", "id"),
            ("national", "insurance"),
            ("tax", "id"),
            ("driver", "license"),
            ("drivers", "license"),
        ],
    ),
];

/// Stems long enough to be recognised inside a word without boundaries.
const STEMS: &[(Reason, &[&str])] = &[
    (Reason::Password, &["password", "passwd", "passphrase"]),
    (
        Reason::Token,
        &[
            "accesstoken",
            "refreshtoken",
            "authtoken",
            "clientsecret",
            "sessionid",
        ],
    ),
    (
        Reason::Key,
        &["apikey", "privatekey", "secretkey", "accesskey"],
    ),
    (
        Reason::Payment,
        &["creditcard", "cardnumber", "bankaccount", "accountnumber"],
    ),
    (Reason::Identity, &["socialsecurity"]),
];

/// First words that turn the rest into a yes-or-no question.
const QUESTIONS: &[&str] = &["is", "has", "needs", "requires", "must", "can", "should"];

/// Last words that turn the name into a fact about the secret.
const FACTS: &[&str] = &[
    "at",
    "on",
    "date",
    "time",
    "count",
    "counts",
    "length",
    "limit",
    "limits",
    "policy",
    "type",
    "kind",
    "status",
    "expired",
    "expires",
    "expiry",
    "enabled",
    "required",
    "changed",
    "attempts",
    "usage",
    "used",
    "budget",
    "version",
    "name",
    "color",
    "colour",
    "total",
    "algorithm",
];

/// Words that make a `hash`, `token`, `pin` or `pass` beside them harmless.
const HARMLESS: &[(&str, &[&str])] = &[
    (
        "hash",
        &[
            "file",
            "content",
            "commit",
            "git",
            "block",
            "tx",
            "transaction",
            "image",
            "row",
            "tree",
            "body",
            "blob",
            "etag",
            "schema",
            "geo",
            "tag",
            "object",
            "artifact",
            "source",
            "query",
        ],
    ),
    (
        "tokens",
        &[
            "max",
            "min",
            "input",
            "output",
            "prompt",
            "completion",
            "cached",
            "num",
            "llm",
        ],
    ),
    ("token", &["max", "min", "num", "start", "end", "index"]),
    (
        "pin",
        &["is", "map", "board", "order", "sort", "gpio", "drop"],
    ),
    (
        "pass",
        &[
            "boarding", "ski", "bus", "day", "season", "first", "second", "band", "test", "hall",
        ],
    ),
    (
        "salt",
        &[
            "content", "grams", "g", "mg", "per", "level", "water", "food",
        ],
    ),
    ("cookie", &["policy", "consent", "banner"]),
    ("secret", &["santa"]),
    ("pepper", &["black", "red", "bell"]),
];

/// Why values under this name look secret, if they do. Works on whole words, so `author`,
/// `hashtag`, `passenger` and `pinned` are not flagged.
pub fn looks_secret(name: &str) -> Option<Reason> {
    let words = words(name);
    let asks = words
        .first()
        .is_some_and(|word| QUESTIONS.contains(&word.as_str()));
    let tells = words.len() > 1
        && words
            .last()
            .is_some_and(|word| FACTS.contains(&word.as_str()));
    if asks || tells {
        return None;
    }
    by_pair(&words)
        .or_else(|| by_word(&words))
        .or_else(|| by_stem(&words))
}

fn by_word(words: &[String]) -> Option<Reason> {
    words.iter().find_map(|word| {
        let reason = lookup(WORDS, |listed| *listed == word)?;
        let harmless = HARMLESS
            .iter()
            .filter(|(secret, _)| secret == word)
            .any(|(_, beside)| words.iter().any(|other| beside.contains(&other.as_str())));
        if harmless { None } else { Some(reason) }
    })
}

fn by_pair(words: &[String]) -> Option<Reason> {
    words.windows(2).find_map(|pair| match pair {
        [first, second] => lookup(PAIRS, |(a, b)| a == first && b == second),
        _ => None,
    })
}

fn by_stem(words: &[String]) -> Option<Reason> {
    // `passwordless` means the absence of a password.
    words
        .iter()
        .filter(|word| !word.ends_with("less"))
        .find_map(|word| lookup(STEMS, |stem| word.contains(stem)))
}

fn lookup<T>(table: &[(Reason, &[T])], matches: impl Fn(&T) -> bool) -> Option<Reason> {
    table
        .iter()
        .find(|(_, entries)| entries.iter().any(&matches))
        .map(|(reason, _)| *reason)
}

/// The words of a name, lower-case: split at anything but letters and digits, and at a capital
/// after a small letter (`apiKey`), or before a small one (`SSNHash`).
fn words(name: &str) -> Vec<String> {
    let chars: Vec<char> = name.chars().collect();
    let mut words = Vec::new();
    let mut word = String::new();
    for (at, &c) in chars.iter().enumerate() {
        let before = at.checked_sub(1).and_then(|at| chars.get(at));
        let after = chars.get(at + 1);
        let camel = c.is_uppercase()
            && (before.is_some_and(|c| c.is_lowercase())
                || (before.is_some_and(|c| c.is_uppercase())
                    && after.is_some_and(|c| c.is_lowercase())));
        if camel || !c.is_alphanumeric() {
            words.push(std::mem::take(&mut word));
        }
        if c.is_alphanumeric() {
            word.extend(c.to_lowercase());
        }
    }
    words.push(word);
    words.retain(|word| !word.is_empty());
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn secret_names_are_flagged_with_their_reason() {
        for (name, reason) in [
            ("password", Reason::Password),
            ("user_password", Reason::Password),
            ("passwd", Reason::Password),
            ("PWD", Reason::Password),
            ("encryptedpassword", Reason::Password),
            ("password_hash", Reason::Password),
            ("pin", Reason::Password),
            ("card_pin", Reason::Password),
            ("contraseña", Reason::Password),
            ("secret", Reason::Token),
            ("clientSecret", Reason::Token),
            ("reset-token", Reason::Token),
            ("AccessToken", Reason::Token),
            ("api_key", Reason::Key),
            ("APIKey", Reason::Key),
            ("apikey", Reason::Key),
            ("private key", Reason::Key),
            ("salt", Reason::Key),
            ("hash", Reason::Key),
            ("hash_value", Reason::Key),
            ("card_number", Reason::Payment),
            ("creditCardNo", Reason::Payment),
            ("cvv", Reason::Payment),
            ("iban", Reason::Payment),
            ("ssn", Reason::Identity),
            ("SSNLast4", Reason::Identity),
            ("social_security_no", Reason::Identity),
            ("passport_no", Reason::Identity),
        ] {
            assert_eq!(looks_secret(name), Some(reason), "{name}");
        }
    }

    #[test]
    fn innocent_names_are_left_alone() {
        for name in [
            "author",
            "hashtag",
            "passenger",
            "tokenizer_name",
            "pinned",
            "compass",
            "opinion",
            "secretary",
            "assassin",
            "session",
            "commit_hash",
            "file_hash",
            "max_tokens",
            "password_changed_at",
            "has_password",
            "token_count",
            "boarding_pass",
            "keyboard",
            "monkey",
            "card",
            "account",
            "passwordless",
            "salted_caramel",
            "shipping",
            "cpu",
            "mission",
            "description",
            "",
            "_",
            "名前",
        ] {
            assert_eq!(looks_secret(name), None, "{name}");
        }
    }
}
