//! `slackline plugin push, list, show, pull, delete`: a cluster's registry.

use super::{ClusterArgs, answer, refused, to_send, whole, words};
use crate::atomic::AtomicFile;
use crate::commands::output::{print, table};
use crate::failure::{Exit, Failure};
use crate::serve::wire;
use clap::Args;
use serde_json::{Value, json};
use slackline_wire::tonic::Status;
use slackline_wire::v1::push_part::Part;
use slackline_wire::{Client, chunks, upload, v1};
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Examples for the help of `push`.
pub const PUSH: &str = "\
Examples:
  slackline plugin push target/component/my_plugin.wasm --name mine
  slackline plugin push my_plugin.wasm --name mine --tag stable --move-tag

The cluster checks, compiles and tries it before it counts. The same bytes again are the same revision.";
/// Examples for the help of `list`.
pub const LIST: &str = "Examples:\n  slackline plugin list\n  slackline plugin list --json | jq .name";
/// Examples for the help of `show`.
pub const SHOW: &str =
    "Examples:\n  slackline plugin show mine\n  slackline plugin show mine@stable --json | jq .manifest";
/// Examples for the help of `pull`.
pub const PULL: &str = "Examples:\n  slackline plugin pull mine@3 --to mine.wasm";
/// Examples for the help of `delete`.
pub const DELETE: &str = "\
Examples:
  slackline plugin delete mine@3                 one revision
  slackline plugin delete mine                   all of them

What a job that is not done uses stays; numbers of deleted revisions are not given again.";

/// Flags of `slackline plugin push`.
#[derive(Args, Clone, Debug)]
pub struct PushArgs {
    /// The component
    #[arg(value_name = "FILE.wasm")]
    pub file: PathBuf,
    /// What jobs will call it
    #[arg(long, value_name = "NAME")]
    pub name: String,
    /// Let this tag point to it: jobs may say NAME@TAG
    #[arg(long, value_name = "TAG")]
    pub tag: Option<String>,
    /// …also when the tag points to another revision now
    #[arg(long, requires = "tag")]
    pub move_tag: bool,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Uploads a component.
pub fn push(args: &PushArgs) -> Result<Exit, Failure> {
    let reply = args.cluster.with(async |client| {
        let tag = args.tag.clone().map(|tag| (tag, args.move_tag));
        send(&client, &args.file, &args.name, tag, args.cluster.id()).await
    })?;
    let revision = whole(reply.revision)?;
    if args.json {
        let mut object = to_json(&revision);
        object["known"] = json!(reply.known);
        object["tag_moved"] = json!(reply.tag_moved);
        return print(&format!("{object}\n"));
    }
    let mut said = format!("{}@{}  {}", revision.plugin, revision.number, revision.digest);
    if reply.known {
        said += "\nthese bytes were there already; nothing was pushed";
    }
    if let (true, Some(tag)) = (reply.tag_moved, &args.tag) {
        said += &format!("\n{}@{tag} points to it", revision.plugin);
    }
    print(&format!("{said}\n"))
}

/// Uploads the component at `path`.
pub async fn send(
    client: &Client,
    path: &Path,
    name: &str,
    tag: Option<(String, bool)>,
    request_id: String,
) -> Result<v1::PushReply, Failure> {
    let (bytes, digest, file) = to_send(path)?;
    let move_tag = tag.as_ref().is_some_and(|(_, moves)| *moves);
    let tag = tag.map(|(tag, _)| tag);
    let header = v1::PushHeader { request_id, name: name.to_owned(), tag, move_tag, bytes, digest };
    let header = v1::PushPart { part: Some(Part::Header(header)) };
    let (parts, sent) = upload(header, chunks(file, bytes), |chunk| v1::PushPart { part: Some(Part::Chunk(chunk)) });
    let called = client.patient().plugins().push(parts).await;
    match sent.fault() {
        Some(fault) => Err(wire(fault)),
        None => answer(client, called).map_err(|f| match f.exit {
            Exit::Usage => Failure { exit: Exit::Refused, ..f },
            _ => f,
        }),
    }
}

/// Flags of `slackline plugin list`.
#[derive(Args, Clone, Debug)]
pub struct ListArgs {
    /// Print one JSON object a line on standard output
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Lists the registry.
pub fn list(args: &ListArgs) -> Result<Exit, Failure> {
    let reply =
        args.cluster.with(async |client| answer(&client, client.plugins().list(v1::ListPluginsRequest {}).await))?;
    if args.json {
        return print(&reply.revisions.iter().map(|r| format!("{}\n", to_json(r))).collect::<String>());
    }
    if reply.revisions.is_empty() {
        return print("no plugins were pushed; bundled ones need no push\n");
    }
    let mut rows = vec![words::headings(&["PLUGIN", "DIGEST", "BYTES", "TAGS", "PUSHED"])];
    rows.extend(reply.revisions.iter().map(|r| {
        let name = format!("{}@{}", r.plugin, r.number);
        vec![name, words::short(&r.digest), r.bytes.to_string(), r.tags.join(", "), words::ago(r.pushed_at)]
    }));
    let mut out = String::new();
    table(&mut out, &rows);
    print(&out)
}

/// Flags of `slackline plugin show`.
#[derive(Args, Clone, Debug)]
pub struct ShowArgs {
    /// NAME, NAME@REVISION, NAME@TAG or blake3:DIGEST
    #[arg(value_name = "PLUGIN")]
    pub plugin: String,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Shows a revision.
pub fn show(args: &ShowArgs) -> Result<Exit, Failure> {
    let plugin = args.plugin.clone();
    let reply = args
        .cluster
        .with(async |client| answer(&client, client.plugins().show(v1::ShowPluginRequest { plugin }).await))?;
    let revision = whole(reply.revision)?;
    let said: Value = serde_json::from_str(&reply.inspection_json).unwrap_or_default();
    if args.json {
        let mut object = to_json(&revision);
        for key in ["world", "imports", "exports", "manifest"] {
            object[key] = said[key].clone();
        }
        object["jobs"] = json!(reply.jobs);
        return print(&format!("{object}\n"));
    }
    let list = |value: &Value| {
        let words = value.as_array().into_iter().flatten().filter_map(Value::as_str);
        words.collect::<Vec<_>>().join(", ")
    };
    let mut rows = vec![
        vec!["plugin".to_owned(), format!("{}@{}", revision.plugin, revision.number)],
        vec!["summary".to_owned(), said["manifest"]["summary"].as_str().unwrap_or_default().to_owned()],
        vec!["digest".to_owned(), revision.digest.clone()],
        vec!["bytes".to_owned(), revision.bytes.to_string()],
        vec!["tags".to_owned(), revision.tags.join(", ")],
        vec!["pushed".to_owned(), words::ago(revision.pushed_at)],
        vec!["world".to_owned(), said["world"].as_str().unwrap_or_default().to_owned()],
        vec!["imports".to_owned(), list(&said["imports"])],
        vec!["jobs".to_owned(), reply.jobs.join(", ")],
    ];
    rows.retain(|row| row.get(1).is_some_and(|v| !v.is_empty()));
    let mut out = String::new();
    table(&mut out, &rows);
    print(&out)
}

/// Flags of `slackline plugin pull`.
#[derive(Args, Clone, Debug)]
pub struct PullArgs {
    /// NAME, NAME@REVISION, NAME@TAG or blake3:DIGEST
    #[arg(value_name = "PLUGIN")]
    pub plugin: String,
    /// Where it goes
    #[arg(long, value_name = "FILE.wasm")]
    pub to: PathBuf,
    /// Print one JSON object on standard output
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Downloads a component, whole and verified or not at all.
pub fn pull(args: &PullArgs) -> Result<Exit, Failure> {
    let (digest, bytes) = args.cluster.with(async |client| {
        let plugin = args.plugin.clone();
        let shown = client.plugins().show(v1::ShowPluginRequest { plugin: plugin.clone() }).await;
        let revision = whole(answer(&client, shown)?.revision)?;
        // By digest: a name may mean something else by now.
        let pulled = client.patient().plugins().pull(v1::PullPluginRequest { plugin: revision.digest.clone() }).await;
        let mut stream = answer(&client, pulled)?;
        let unwritten = |e: std::io::Error| Failure::unwritten(&args.to, &e);
        let mut file = AtomicFile::create(&args.to).map_err(unwritten)?;
        let mut hasher = blake3::Hasher::new();
        while let Some(chunk) = stream.message().await.map_err(|s: Status| refused(&client, &s))? {
            hasher.update(&chunk.data);
            file.write_all(&chunk.data).map_err(unwritten)?;
        }
        if format!("blake3:{}", hasher.finalize().to_hex()) != revision.digest {
            return Err(Failure::new(Exit::Network, "what came has another digest; pull it again"));
        }
        file.commit().map_err(unwritten)?;
        Ok((revision.digest, hasher.count()))
    })?;
    if args.json {
        return print(&format!("{}\n", json!({"digest": digest, "bytes": bytes, "to": args.to})));
    }
    print(&format!("{}: {bytes} bytes, {digest}\n", args.to.display()))
}

/// Flags of `slackline plugin delete`.
#[derive(Args, Clone, Debug)]
pub struct DeleteArgs {
    /// NAME for all its revisions, NAME@REVISION, NAME@TAG or blake3:DIGEST for one
    #[arg(value_name = "PLUGIN")]
    pub plugin: String,
    /// Print one JSON object a line on standard output
    #[arg(long)]
    pub json: bool,
    /// Which cluster
    #[command(flatten)]
    pub cluster: ClusterArgs,
}

/// Takes revisions out of the registry.
pub fn delete(args: &DeleteArgs) -> Result<Exit, Failure> {
    let (request_id, plugin) = (args.cluster.id(), args.plugin.clone());
    let reply = args.cluster.with(async |client| {
        answer(&client, client.plugins().delete(v1::DeletePluginRequest { request_id, plugin }).await)
    })?;
    let line = |r: &v1::Revision| match args.json {
        true => format!("{}\n", to_json(r)),
        false => format!("deleted {}@{}  {}\n", r.plugin, r.number, r.digest),
    };
    print(&reply.removed.iter().map(line).collect::<String>())
}

fn to_json(r: &v1::Revision) -> Value {
    json!({"name": r.plugin, "revision": r.number, "digest": r.digest, "bytes": r.bytes, "tags": r.tags,
           "pushed_at": r.pushed_at})
}
