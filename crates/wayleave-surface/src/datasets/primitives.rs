//! The MCP primitives of the live datasets: tools, resources, templates, prompts, completions.
//!
//! Going from one set of datasets to the next is one batch of changes, hence one notice per kind,
//! and the batch holds only what changed. The caller's package alone decides who sees what.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use wayleave_mcp::{
    Batch, Caller, CompletionRef, Decision, SchemaError, TemplateError, Visibility,
};
use wayleave_model::grant::Scope;
use wayleave_model::mapping::Mapping;
use wayleave_model::ratify::Ratified;
use wayleave_plan::active_datasets::ActiveDatasets;
use wayleave_plan::package::{Grants, Package};

use crate::access::{self, Access};
use crate::live::ChangeFeedOptions;
use crate::resources::{self, BuiltIn};
use crate::service::ReadService;
use crate::write::WriteService;
use crate::{completions, prompts};

type ActiveMapping = Arc<Ratified<Mapping>>;

/// Why a primitive of our own cannot be registered. This is a bug.
#[derive(Debug, thiserror::Error)]
pub enum RegistrationError {
    /// A tool's schema is invalid.
    #[error(transparent)]
    Tool(#[from] SchemaError),
    /// A template's text is invalid.
    #[error(transparent)]
    Template(#[from] TemplateError),
}

/// Datasets that have a type, by name.
type TypeHolders = BTreeMap<String, ActiveMapping>;

/// The primitives registered now.
pub struct DatasetPrimitives {
    service: ReadService,
    /// How subscriptions work, where clients can subscribe.
    live: Option<ChangeFeedOptions>,
    /// Carries out capabilities, where the deployment writes.
    writes: Option<WriteService>,
    /// Maximum number of live datasets with a tool of their own. If more are live, none is shown:
    /// `workup` takes the dataset's name.
    max_own_tools: Arc<AtomicUsize>,
    datasets: BTreeMap<String, ActiveMapping>,
    types: BTreeMap<String, TypeHolders>,
}

impl DatasetPrimitives {
    /// No primitives yet.
    pub fn new(service: &ReadService) -> Self {
        Self {
            service: service.clone(),
            live: None,
            writes: None,
            max_own_tools: Arc::new(AtomicUsize::new(usize::MAX)),
            datasets: BTreeMap::new(),
            types: BTreeMap::new(),
        }
    }

    /// Lets clients subscribe to types and records.
    #[must_use]
    pub fn with_live(mut self, live: Option<ChangeFeedOptions>) -> Self {
        self.live = live;
        self
    }

    /// Offers capabilities as tools.
    #[must_use]
    pub fn with_writes(mut self, writes: WriteService) -> Self {
        self.writes = Some(writes);
        self
    }

    /// Shows the datasets' own tools only while at most `most` are live, unless a caller's access
    /// overrides it.
    #[must_use]
    pub fn with_own_tools(self, most: usize) -> Self {
        self.max_own_tools.store(most, Ordering::Relaxed);
        self
    }

    /// The changes from the current primitives to those of these datasets.
    pub fn change(&mut self, active: &ActiveDatasets) -> Result<Batch, RegistrationError> {
        let (gone, come) = self.difference(active);
        if gone.is_empty() && come.is_empty() {
            return Ok(Batch::new());
        }
        let touched = gone.iter().chain(&come).flat_map(types_of);
        let touched: BTreeSet<String> = touched.collect();
        let mut batch = Batch::new();
        for mapping in &gone {
            self.remove_dataset(mapping);
            if !come
                .iter()
                .any(|it| it.dataset.name == mapping.dataset.name)
            {
                batch = batch.remove_tool(mapping.dataset.workup_tool());
            }
            for capability in &mapping.capabilities {
                batch = batch.remove_tool(capability.tool_name(&mapping.dataset));
            }
        }
        for mapping in &come {
            self.add_dataset(mapping);
            if let Some(writes) = &self.writes {
                let tools = writes.tools(mapping)?.into_iter();
                batch = tools.fold(batch, Batch::add_tool);
            }
        }
        for mapping in &come {
            batch = batch.add_tool(self.workup(mapping)?);
        }
        for name in &touched {
            batch = self.with_type(batch, name, self.types.get(name))?;
        }
        self.with_common(batch)
    }

    fn difference(&self, active: &ActiveDatasets) -> (Vec<ActiveMapping>, Vec<ActiveMapping>) {
        let same = |one: &ActiveMapping, other: &ActiveMapping| Arc::ptr_eq(one, other);
        let now: BTreeMap<&str, &ActiveMapping> = active
            .datasets()
            .iter()
            .map(|it| (it.dataset.name.as_str(), it))
            .collect();
        let kept = |it: &&ActiveMapping| {
            let other = now.get(it.dataset.name.as_str());
            other.is_some_and(|other| same(it, other))
        };
        let gone = self.datasets.values().filter(|it| !kept(it)).cloned();
        let known = |it: &&&ActiveMapping| {
            let other = self.datasets.get(it.dataset.name.as_str());
            other.is_some_and(|other| same(it, other))
        };
        let come = now
            .values()
            .filter(|it| !known(it))
            .map(|it| ActiveMapping::clone(it));
        (gone.collect(), come.collect())
    }

    fn add_dataset(&mut self, mapping: &ActiveMapping) {
        let name = &mapping.dataset.name.value;
        for of_type in types_of(mapping) {
            let holders = self.types.entry(of_type).or_default();
            holders.insert(name.clone(), Arc::clone(mapping));
        }
        self.datasets.insert(name.clone(), Arc::clone(mapping));
    }

    fn remove_dataset(&mut self, mapping: &ActiveMapping) {
        for name in types_of(mapping) {
            if let Some(holders) = self.types.get_mut(&name) {
                holders.remove(mapping.dataset.name.as_str());
                if holders.is_empty() {
                    self.types.remove(&name);
                }
            }
        }
        self.datasets.remove(mapping.dataset.name.as_str());
    }

    /// The dataset's own tool, for builders, while few enough are live. A builder without a grant in
    /// the dataset does not learn that the tool exists.
    fn workup(&self, mapping: &ActiveMapping) -> Result<wayleave_mcp::Tool, SchemaError> {
        let tool = crate::workup::tool_for(&self.service, &mapping.dataset)?;
        let (own, service) = (Arc::clone(mapping), self.service.clone());
        let max_own_tools = Arc::clone(&self.max_own_tools);
        let builder = access::requires(Scope::Builder, mapping.dataset.workup_tool());
        Ok(tool.visible(Visibility::rule(move |caller| {
            let access = Access::from_caller(caller);
            let most = access.max_own_tools;
            let most = most.unwrap_or_else(|| max_own_tools.load(Ordering::Relaxed));
            if service.live_datasets() <= most && sees_dataset(&access.package, &own) {
                builder.decide(caller)
            } else {
                Decision::Hide
            }
        })))
    }

    fn with_type(
        &self,
        batch: Batch,
        name: &str,
        holders: Option<&TypeHolders>,
    ) -> Result<Batch, RegistrationError> {
        let Some(holders) = holders else {
            let batch = batch.remove_resource(resources::type_uri(name));
            let templates = resources::templates_of(name).into_iter();
            return Ok(templates.fold(batch, |batch, template| {
                batch
                    .remove_completion(CompletionRef::template(&template))
                    .remove_template(template)
            }));
        };
        let (holders, of_type) = (holders.clone(), name.to_owned());
        let who = Visibility::when(move |caller| {
            reader(caller, |package| {
                let mut holders = holders.values();
                holders.any(|it| package.sees(it, |stream| *stream.type_name == of_type))
            })
        });
        let templates = resources::type_templates(&self.service, name, &who, self.live)?;
        let first_page = resources::type_resource(&self.service, name, who, self.live);
        let batch = batch.add_resource(first_page);
        let batch = templates.into_iter().fold(batch, Batch::add_template);
        let completions = completions::for_type(&self.service, name);
        Ok(completions.into_iter().fold(batch, Batch::add_completion))
    }

    /// Adds the items that all datasets share: present while any dataset is, for every caller who
    /// sees one.
    fn with_common(&self, mut batch: Batch) -> Result<Batch, RegistrationError> {
        if self.datasets.is_empty() {
            for name in completions::PROMPTS {
                batch = batch
                    .remove_prompt(name)
                    .remove_completion(CompletionRef::prompt(name));
            }
            for built_in in BuiltIn::ALL {
                batch = batch.remove_resource(built_in.uri());
            }
            return Ok(batch
                .remove_template(resources::PAGE)
                .remove_completion(CompletionRef::template(resources::PAGE)));
        }
        let live: BTreeMap<String, ActiveMapping> = self
            .datasets
            .values()
            .flat_map(|it| it.connections.iter().map(move |c| (c.id.value.clone(), it)))
            .map(|(id, it)| (id, Arc::clone(it)))
            .collect();
        let any = Visibility::when(move |caller| reader(caller, |it| sees_any(it, &live)));
        let service = &self.service;
        for name in completions::PROMPTS {
            batch = batch.add_completion(completions::for_prompt(service, name));
        }
        for built_in in BuiltIn::ALL {
            batch = batch.add_resource(built_in.resource(service, any.clone()));
        }
        Ok(batch
            .add_prompt(prompts::explore(service, any.clone()))
            .add_prompt(prompts::workup(service, for_builders(any.clone())))
            .add_template(resources::pages(service, any)?)
            .add_completion(completions::for_pages(service)))
    }
}

/// Whether a caller may read at all, and its package shows something.
fn reader(caller: &Caller, shows: impl FnOnce(&Package) -> bool) -> bool {
    let access = Access::from_caller(caller);
    access.scopes.contains(Scope::Runtime) && shows(&access.package)
}

fn for_builders(who: Visibility) -> Visibility {
    let builder = access::requires(Scope::Builder, prompts::WORKUP);
    Visibility::rule(move |caller| match who.decide(caller) {
        Decision::Allow => builder.decide(caller),
        other => other,
    })
}

fn types_of(mapping: &ActiveMapping) -> BTreeSet<String> {
    let types = mapping.streams.iter().map(|it| it.type_name.value.clone());
    types.collect()
}

/// Whether a package shows any part of a dataset.
fn sees_dataset(package: &Package, mapping: &ActiveMapping) -> bool {
    package.sees(mapping, |_| true)
}

fn sees_any(package: &Package, live: &BTreeMap<String, ActiveMapping>) -> bool {
    let Grants::Only(grants) = &package.grants else {
        return true;
    };
    let mut connections = grants.keys();
    connections.any(|id| live.get(id).is_some_and(|it| sees_dataset(package, it)))
}
