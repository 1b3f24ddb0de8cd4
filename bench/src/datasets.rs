//! Measures the cost of one dataset beside many live ones: CPU time to connect it, memory to hold
//! it.
//!
//! The deployment is the product's own, in this process, over one SQLite file, without clients. A
//! project of many datasets is created first, in an in-memory folder if the system has one.

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;
use std::time::Duration;

use anyhow::{Context as _, Result, bail, ensure};
use tokio::runtime::Runtime;
use wayleave_ledger::{NewSource, RatifyRequest};
use wayleave_model::mapping::SourceKind;
use wayleave_model::ratify::Draft;
use wayleave_project::Project;
use wayleave_project::source::EnvironmentVariables;
use wayleave_server::Deployment;

use crate::process::own_cpu;

/// Number of times the dataset is connected and disconnected.
const TIMES: u32 = 100;
/// Largest allowed CPU time of connecting a dataset.
const AIM: Duration = Duration::from_millis(50);
/// Folder of an in-memory file system.
const IN_MEMORY: &str = "/dev/shm";

/// Creates the project, measures, and fails if the aim is missed.
pub(crate) fn measure(many: usize) -> Result<ExitCode> {
    let folder = if Path::new(IN_MEMORY).is_dir() {
        tempfile::tempdir_in(IN_MEMORY)?
    } else {
        tempfile::tempdir()?
    };
    let runtime = Runtime::new()?;
    writeln!(std::io::stderr(), "creating {many} datasets")?;
    // Exclude the memory of a deployment without datasets.
    let empty = tempfile::tempdir_in(folder.path())?;
    let first = runtime.block_on(opened(&runtime.block_on(made(empty.path(), 0))?))?;
    let project = runtime.block_on(made(folder.path(), many))?;
    let before = resident()?;
    let opening = own_cpu()?;
    let deployment = runtime.block_on(opened(&project))?;
    let opened = own_cpu()?.saturating_sub(opening);
    let held = resident()?.saturating_sub(before);
    let (connecting, disconnecting) = runtime.block_on(turns(&deployment))?;
    runtime.block_on(deployment.close());
    runtime.block_on(first.close());
    let each = u64::try_from(many)?.max(1);
    write!(
        std::io::stdout(),
        "| {many} datasets live | |\n| --- | --- |\n\
         | memory per dataset | {:.1} KiB |\n\
         | CPU time of opening, per dataset | {:.2} ms |\n\
         | CPU time of connecting one more | {:.2} ms |\n\
         | CPU time of disconnecting it | {:.2} ms |\n\
         | aim: connecting | below {} ms |\n",
        kib(held) / kib(each * 1024),
        milliseconds(opened) / kib(each * 1024),
        milliseconds(connecting),
        milliseconds(disconnecting),
        AIM.as_millis(),
    )?;
    Ok(if connecting < AIM {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    })
}

#[expect(
    clippy::cast_precision_loss,
    reason = "figures are printed with a few digits"
)]
fn kib(bytes: u64) -> f64 {
    bytes as f64 / 1024.0
}

fn milliseconds(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}

async fn opened(project: &Project) -> Result<Deployment> {
    let store = project.folder().join("store.db");
    let store = store.to_string_lossy().into_owned();
    let environment = BTreeMap::from([("STORE_DSN".to_owned(), store)]);
    Ok(Deployment::open(project, EnvironmentVariables::with(environment)).await?)
}

/// Connects and disconnects the inactive dataset in turn. Returns the mean CPU time of each.
async fn turns(deployment: &Deployment) -> Result<(Duration, Duration)> {
    let datasets = deployment.datasets();
    let (mut on, mut off) = (Duration::ZERO, Duration::ZERO);
    for turn in 0..TIMES {
        // By different callers, because the rate of changes is limited for each.
        let who = format!("bench-{turn}");
        let began = own_cpu()?;
        let connected = datasets.connect("the-last", &who).await;
        on += own_cpu()?.saturating_sub(began);
        match connected {
            Ok(connected) => ensure!(!connected.was_active, "it was live before"),
            Err(refused) => bail!("not connected: {}", refused.message),
        }
        let began = own_cpu()?;
        let disconnected = datasets.disconnect("the-last", &who).await;
        off += own_cpu()?.saturating_sub(began);
        if let Err(refused) = disconnected {
            bail!("not disconnected: {}", refused.message);
        }
    }
    Ok((on / TIMES, off / TIMES))
}

/// Creates a project of `many` live datasets, and one that is only ratified.
async fn made(folder: &Path, many: usize) -> Result<Project> {
    let tables = "CREATE TABLE people (id INTEGER PRIMARY KEY, name TEXT, born TEXT, city TEXT);
        CREATE TABLE visits (id INTEGER PRIMARY KEY, person INTEGER, at TEXT, cost TEXT);
        INSERT INTO people VALUES (1, 'Ana', '1980-02-03', 'Ulm');";
    let store = folder.join("store.db");
    #[expect(clippy::disallowed_methods, reason = "a store of our own is made")]
    rusqlite::Connection::open(&store)?.execute_batch(tables)?;
    let project = Project::create(folder, "")?;
    let governance = project.governance();
    let source = NewSource {
        name: "store".to_owned(),
        kind: SourceKind::Sqlite,
        env: "STORE_DSN".to_owned(),
    };
    governance.add_source(source, "bench").await?;
    let names = (0..many).map(|number| format!("dataset-{number:04}"));
    for name in names.chain(["the-last".to_owned()]) {
        let draft = Draft::new(mapping(&name).into_bytes());
        let proposed = draft.propose(None).context("a mapping does not check")?;
        let freeze = RatifyRequest {
            proposed,
            replaces: None,
            who: "bench".to_owned(),
            note: String::new(),
        };
        let ratified = governance.ratify(freeze).await?;
        if name != "the-last" {
            governance.activate(&ratified, "bench").await?;
        }
    }
    Ok(project)
}

/// A mapping of two streams whose types no other dataset has.
fn mapping(name: &str) -> String {
    let class = name.replace('-', "_");
    format!(
        "[dataset]\nname = \"{name}\"\ntitle = \"People and visits of {name}\"\n\
         kind = \"sqlite\"\n\n\
         [[connections]]\nid = \"{name}\"\nsource = \"store\"\n\n\
         [streams.people]\ntype = \"Person_{class}\"\nkey = [\"id\"]\ntitle = \"name\"\n\
         description = \"Everyone who came.\"\n\n\
         [streams.people.fields]\nid = {{ datatype = \"integer\" }}\n\
         name = {{ datatype = \"string\" }}\nborn = {{ datatype = \"date\" }}\n\
         city = {{ datatype = \"string\" }}\n\n\
         [streams.visits]\ntype = \"Visit_{class}\"\nkey = [\"id\"]\nevent_time = \"at\"\n\n\
         [streams.visits.fields]\nid = {{ datatype = \"integer\" }}\n\
         person = {{ datatype = \"integer\" }}\nat = {{ datatype = \"datetime\" }}\n\
         cost = {{ datatype = \"decimal\" }}\n\n\
         [streams.visits.relations.visitor]\nto = \"people\"\non = {{ person = \"id\" }}\n"
    )
}

/// Resident memory of this process.
fn resident() -> Result<u64> {
    let text = std::fs::read_to_string("/proc/self/status")?;
    let line = text
        .lines()
        .find_map(|line| line.strip_prefix("VmRSS:"))
        .context("resident memory")?;
    let kib: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kib * 1024)
}
