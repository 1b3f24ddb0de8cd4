//! What a request's credential allows: its package and its scopes.
//!
//! Authentication attaches an [`Access`] to the [`Caller`], and tools read it there. A caller
//! without one may read nothing and do nothing.

use std::sync::{Arc, LazyLock};

use serde_json::json;
use wayleave_mcp::{Caller, Decision, RpcError, Visibility};
use wayleave_model::grant::{Scope, Scopes};
use wayleave_plan::package::{Grants, Package};

/// Error code: the credential is valid, but its scopes do not cover the call.
pub const SCOPE_DENIED: i32 = -32004;

/// What one credential allows.
#[derive(Debug, Clone)]
pub struct Access {
    /// The grants that its reads are subject to.
    pub package: Arc<Package>,
    /// Its scopes, within what the deployment allows.
    pub scopes: Scopes,
    /// Whether the request carried a token. A local client needs none to read.
    pub authenticated: bool,
    /// Maximum number of live datasets with a tool of their own, from the settings in force when
    /// the request was admitted; `None` for the deployment's value.
    pub max_own_tools: Option<usize>,
}

/// The access of a caller that nobody authenticated.
static NO_ACCESS: LazyLock<Access> = LazyLock::new(|| Access {
    package: Arc::new(Package {
        subject: "nobody".to_owned(),
        epoch: 0,
        grants: Grants::Only(Arc::default()),
    }),
    scopes: Scopes::NONE,
    authenticated: false,
    max_own_tools: None,
});

impl Access {
    /// The access of a local client without a token: reads every active dataset.
    pub fn local() -> Self {
        Self {
            package: Arc::new(Package::local()),
            scopes: Scopes::RUNTIME,
            authenticated: false,
            max_own_tools: None,
        }
    }

    /// The access of this caller's credential.
    pub fn from_caller(caller: &Caller) -> &Self {
        caller.get().unwrap_or(&NO_ACCESS)
    }
}

/// Restricts a tool to callers with this scope. Other callers are told why they may not call it:
/// that the tool exists is no secret.
pub fn requires(scope: Scope, tool: impl Into<Arc<str>>) -> Visibility {
    let tool = tool.into();
    Visibility::rule(move |caller| {
        let access = Access::from_caller(caller);
        if access.scopes.contains(scope) {
            Decision::Allow
        } else {
            Decision::Deny(denial(access, scope, &tool))
        }
    })
}

fn denial(access: &Access, scope: Scope, tool: &str) -> RpcError {
    let (code, why) = if access.authenticated {
        (SCOPE_DENIED, "scope denied")
    } else {
        (RpcError::UNAUTHENTICATED, "authentication required")
    };
    RpcError::new(code, format!("{why}: {tool} requires {scope}")).with_data(json!({
        "tool": tool,
        "required_scope": scope,
        "caller_scopes": access.scopes,
    }))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn decision(access: Option<Access>) -> Decision {
        let caller = Caller::new("someone");
        let caller = match access {
            Some(access) => caller.with_attachment(access),
            None => caller,
        };
        requires(Scope::Builder, "connect_dataset").decide(&caller)
    }

    fn code(decision: Decision) -> i32 {
        match decision {
            Decision::Deny(error) => error.code,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn without_a_token_one_is_asked_for_and_with_one_the_scope_is() {
        let token = Access {
            authenticated: true,
            ..Access::local()
        };
        assert_eq!(code(decision(None)), RpcError::UNAUTHENTICATED);
        assert_eq!(
            code(decision(Some(Access::local()))),
            RpcError::UNAUTHENTICATED
        );
        assert_eq!(code(decision(Some(token.clone()))), SCOPE_DENIED);
        let builder = Access {
            scopes: [Scope::Runtime, Scope::Builder].into_iter().collect(),
            ..token
        };
        assert_eq!(decision(Some(builder)), Decision::Allow);
    }

    #[test]
    fn a_denial_names_the_tool_what_it_needs_and_what_the_caller_has() {
        let token = Access {
            authenticated: true,
            ..Access::local()
        };
        let Decision::Deny(error) = decision(Some(token)) else {
            panic!("not denied");
        };
        assert_eq!(
            error.message,
            "scope denied: connect_dataset requires builder"
        );
        let data = json!({ "tool": "connect_dataset", "required_scope": "builder",
            "caller_scopes": ["runtime"] });
        assert_eq!(error.data, Some(data));
    }
}
