//! The registry of operations.

use std::collections::BTreeMap;

use super::{MetaOperation, MetaOperationError, OperationId};

/// The operations, by name.
#[derive(Debug, Clone, Default)]
pub struct MetaRegistry {
    operations: BTreeMap<OperationId, MetaOperation>,
}

impl MetaRegistry {
    /// The registry of the built-in operations.
    pub fn built_in() -> Result<Self, MetaOperationError> {
        let mut registry = Self::default();
        for operation in super::operations()? {
            registry.register(operation, |_| false)?;
        }
        Ok(registry)
    }

    /// Adds an operation. `is_runtime` says whether a runtime tool has that name.
    pub fn register(
        &mut self,
        operation: MetaOperation,
        is_runtime: impl FnOnce(&str) -> bool,
    ) -> Result<(), MetaOperationError> {
        let id = operation.id().clone();
        if self.operations.contains_key(&id) {
            return Err(MetaOperationError::Twice { id: id.to_string() });
        }
        let tool = id.tool();
        if is_runtime(&tool) {
            return Err(MetaOperationError::Runtime { tool });
        }
        self.operations.insert(id, operation);
        Ok(())
    }

    /// Removes an operation, and returns it if it was there.
    pub fn withdraw(&mut self, id: &OperationId) -> Option<MetaOperation> {
        self.operations.remove(id)
    }

    /// The operation of that name.
    pub fn get(&self, id: &OperationId) -> Option<&MetaOperation> {
        self.operations.get(id)
    }

    /// Every operation, by name.
    pub fn iter(&self) -> impl Iterator<Item = &MetaOperation> {
        self.operations.values()
    }
}

#[cfg(test)]
mod tests {
    use wayleave_model::grant::Scope;

    use super::*;
    use crate::meta::sources;

    fn operation(id: &str) -> Result<MetaOperation, MetaOperationError> {
        MetaOperation::new(id, Scope::Dev, "", sources::ping)
    }

    #[test]
    fn a_name_with_an_underscore_is_refused_at_registration() {
        for id in [
            "wayleave.meta.gen_mapping",
            "wayleave.meta.gen.new_shape",
            "wayleave.meta.",
            "wayleave.meta.a.b.c",
            "wayleave.meta.A",
            "meta.ping",
            "",
        ] {
            assert!(operation(id).is_err(), "{id}");
        }
    }

    #[test]
    fn every_tool_name_maps_back_to_its_operation() {
        let registry = MetaRegistry::built_in().unwrap();
        assert_eq!(registry.iter().count(), 11);
        for operation in registry.iter() {
            let id = operation.id();
            assert_eq!(OperationId::from_tool(&id.tool()).as_ref(), Some(id));
        }
        assert_eq!(OperationId::from_tool("schema"), None);
    }

    #[test]
    fn an_operation_in_both_registries_is_refused() {
        let mut registry = MetaRegistry::default();
        let runtime = |tool: &str| tool == "wayleave_meta_ping";
        let refused = registry.register(operation("wayleave.meta.ping").unwrap(), runtime);
        assert!(matches!(refused, Err(MetaOperationError::Runtime { .. })));
        let first = operation("wayleave.meta.ping").unwrap();
        registry.register(first, |_| false).unwrap();
        let again = registry.register(operation("wayleave.meta.ping").unwrap(), |_| false);
        assert!(matches!(again, Err(MetaOperationError::Twice { .. })));
    }
}
