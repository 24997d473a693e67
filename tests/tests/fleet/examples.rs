//! The example files of docs/fleet.md: they can be read, and Plexus accepts their command lines.

use std::path::Path;
use std::process::Command;

use anyhow::{Context as _, ensure};
use plexus_e2e::mcp_tools::McpTools;
use plexus_testkit::binaries;
use serde_json::{Value, json};

/// The documents of an example file.
fn documents(tools: &McpTools, file: &str) -> anyhow::Result<Vec<Value>> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/examples/fleet").join(file);
    let documents =
        tools.yaml(&std::fs::read_to_string(&path).with_context(|| path.display().to_string())?)?;
    documents.as_array().cloned().context("documents")
}

/// Fails if `plexus` does not accept these arguments. A flag that does not exist is an error even with `--help`.
fn accepts(args: &Value) -> anyhow::Result<()> {
    let args: Vec<&str> = args.as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    ensure!(!args.is_empty(), "no arguments");
    let mut plexus = Command::new(binaries::plexus()?);
    let output = plexus.args(&args).arg("--help").env_clear().output()?;
    ensure!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    Ok(())
}

#[test]
fn the_compose_file_starts_two_hubs_with_the_same_database() -> anyhow::Result<()> {
    let Some(tools) = McpTools::require("the_compose_file_starts_two_hubs_with_the_same_database") else {
        return Ok(());
    };
    assert!(accepts(&json!(["serve", "--no-such-flag"])).is_err());
    let compose = &documents(&tools, "compose.yaml")?[0];
    let volumes = compose["volumes"].as_object().context("volumes")?;
    for host in ["one", "two"] {
        let service = &compose["services"][host];
        accepts(&service["command"])?;
        assert_eq!((&service["command"][1], &service["command"][2]), (&json!("--host"), &json!(host)));
        assert_eq!(service["environment"], compose["services"]["one"]["environment"]);
        let mounted = service["volumes"].as_array().into_iter().flatten().filter_map(Value::as_str);
        for volume in mounted.map(|mount| mount.split(':').next().unwrap_or_default()) {
            assert!(volumes.contains_key(volume), "{host}: {volume}");
        }
    }
    let url = compose["services"]["one"]["environment"]["PLEXUS_STORE"].as_str().context("an address")?;
    plexus_store::PostgresAddress::parse(&url.replace("${STORE_PASSWORD}", "0123"))?;
    Ok(())
}

#[test]
fn the_kubernetes_example_starts_a_hub_on_each_node() -> anyhow::Result<()> {
    let Some(tools) = McpTools::require("the_kubernetes_example_starts_a_hub_on_each_node") else {
        return Ok(());
    };
    let documents = documents(&tools, "kubernetes.yaml")?;
    let kind = |kind: &str| documents.iter().find(|document| document["kind"] == kind).context("a document");
    let pod = &kind("DaemonSet")?["spec"]["template"]["spec"];
    let hub = &pod["containers"][0];
    accepts(&hub["args"])?;
    let probe: Vec<Value> =
        hub["readinessProbe"]["exec"]["command"].as_array().cloned().context("a probe")?;
    assert_eq!(probe[0], "plexus");
    accepts(&json!(probe[1..]))?;
    let declared: Vec<&Value> =
        pod["volumes"].as_array().into_iter().flatten().map(|volume| &volume["name"]).collect();
    for mount in hub["volumeMounts"].as_array().into_iter().flatten() {
        assert!(declared.contains(&&mount["name"]), "{mount}");
    }
    let secret = &kind("Secret")?["stringData"];
    for variable in hub["env"].as_array().into_iter().flatten() {
        if let Some(key) = variable["valueFrom"]["secretKeyRef"]["key"].as_str() {
            assert!(secret[key].is_string(), "{variable}");
        }
    }
    plexus_store::PostgresAddress::parse(secret["store"].as_str().context("an address")?)?;
    Ok(())
}
