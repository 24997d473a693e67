//! The sandbox between an agent and the hub's data: an allowed command of a real agent looks for the hub's files in every way we know and
//! finds nothing. Everything else works as usual. If the system supports no sandbox, these tests report that they were skipped.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::Context as _;
use plexus_e2e::{LIMIT, Setup, World, over, processes_of, script, text, until};
use plexus_testkit::hub_process::{HubOptions, HubProcess};
use plexus_testkit::model::{Step, tool_results};
use plexus_testkit::rpc::{Door, Rpc};
use plexus_testkit::{binaries, clean_env, skip};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

over!(channels: a_child_finds_no_file_of_the_hub, a_child_cannot_approve_its_own_call);

fn bash(command: &str) -> Step {
    Step::tool("Bash", json!({"command": command, "description": "a step"}))
}

async fn get(door: &dyn Door, session: &str) -> anyhow::Result<Value> {
    Ok(door.call("claudecode.get", json!({"session_id": session})).await?["session"].take())
}

async fn a_child_finds_no_file_of_the_hub(mut world: World) -> anyhow::Result<()> {
    let session = world.create("curious", json!({})).await?;
    let before = get(&*world.door, &session).await?;
    if before["wall"] == "none" {
        let test = format!("a_child_finds_no_file_of_the_hub {:?}", world.setup.cli);
        skip(&test, &format!("sandbox: {}", before["wall_missing"]));
        return Ok(());
    }
    let run = world.run_dir(&session, 1);
    let look = format!(
        "DATA='{}' RUN='{}' HUB={} PLEXUS='{}' SIGNALS={} sh find_hub_files.sh > out 2> err; touch looked",
        world.hub.data_dir().display(),
        run.strip_prefix(world.hub.data_dir())?.display(),
        world.hub.pid(),
        binaries::plexus()?.display(),
        text(&before["sandbox"]["signals"]["state"]),
    );
    std::fs::write(world.file("find_hub_files.sh"), include_str!("attack_scripts/find_hub_files.sh"))?;
    world.model.script("LOOK", vec![bash(&look), bash("touch second.txt"), Step::text("Nothing.")]);
    world.chat(&session, "LOOK around").await?;
    let (_, approval) = world.asked(&session).await?;
    assert!(!world.file("found").exists(), "it ran before it was allowed");
    world.allow(&approval).await?;
    until("the script to finish", || world.file("looked").exists()).await?;

    let read = |name: &str| std::fs::read_to_string(world.file(name)).unwrap_or_default();
    assert_eq!(read("found"), "", "{}\n{}", read("out"), read("err"));
    let looked_at = read("looked-at");
    assert!(looked_at.ends_with("config\nhome\ndone\n"), "{looked_at}{}", read("err"));
    assert!(looked_at.starts_with("keeper "), "{looked_at}");
    assert!(world.home.join("at-home").exists());
    let token = world.hub.token()?;
    assert!(!read("out").contains(&token) && !read("err").contains(&token));

    // The gate and a restart of the hub work in the sandbox, too.
    let (_, approval) = world.asked(&session).await?;
    assert!(!world.file("second.txt").exists());
    world.hub.kill9().await?;
    world.hub.restart().await?;
    assert_eq!(get(&*world.door, &session).await?["wall"], "namespaces");
    world.allow(&approval).await?;
    let poll = world.ended(&session).await?;
    assert_eq!(poll["status"], "complete", "{poll:#}");
    assert!(world.file("second.txt").exists());

    assert!(!processes_of(&session).is_empty());
    world.call("claudecode.stop", json!({"session_id": session})).await?;
    assert_eq!(processes_of(&session), Vec::<u32>::new());
    Ok(())
}

/// A child with the hub's tools tries to allow its own call, with an allowed script while the approval is open, and with the hub's
/// tool. Without a sandbox the script would find the operator's token.
/// For example, the home directory contains the data directory.
#[tokio::test]
async fn the_data_directory_inside_a_working_directory_appears_empty() -> anyhow::Result<()> {
    let world = Setup::scripted().world("an agent around the data directory").await?.context("a world")?;
    let data = world.hub.data_dir();
    let around = data.parent().context("a parent")?;
    let look = format!(
        "ls -A '{}' | grep -v sessions; cat '{}/operator.token'; touch made",
        data.display(),
        data.display()
    );
    let steps = json!([{"tool": "Bash", "id": "look", "input": {"command": look}}, {"say": "done"}]);
    let params = json!({"working_dir": around, "policy": "allow_all", "prompt": script(&steps)});
    if !world.hub.data_dir().join("sandboxed").exists() {
        let refused =
            world.refused("claudecode.create", json!({"name": "around", "working_dir": around})).await?;
        assert_eq!(refused.kind.as_deref(), Some("bad_working_dir"));
        skip("the_data_directory_inside_a_working_directory_appears_empty", "sandbox");
        return Ok(());
    }
    let session = world.create("around", params).await?;
    let ended = world.ended(&session).await?;
    assert_eq!(ended["status"], "complete", "{ended:#}");
    let result = plexus_e2e::events(&ended, "tool_result").pop().unwrap_or_default();
    assert!(!result.to_string().contains(&world.hub.token()?), "{result}");
    assert!(!result.to_string().contains("plexus.db"), "{result}");
    assert!(around.join("made").exists(), "it works in that directory");
    Ok(())
}

async fn a_child_cannot_approve_its_own_call(world: World) -> anyhow::Result<()> {
    let session = world.create("ambitious", json!({"hub_tools": true})).await?;
    let view = get(&*world.door, &session).await?;
    let sandboxed = view["wall"] != "none";
    let run = world.run_dir(&session, 1);
    let attack = format!(
        "DATA='{}' RUN='{}' PLEXUS='{}' nohup sh approve_own_call.sh > out 2> err &",
        world.hub.data_dir().display(),
        run.strip_prefix(world.hub.data_dir())?.display(),
        binaries::plexus()?.display(),
    );
    std::fs::write(world.file("approve_own_call.sh"), include_str!("attack_scripts/approve_own_call.sh"))?;
    let mut steps =
        vec![bash("touch made.txt"), Step::tool("Read", json!({"file_path": world.file("asked")}))];
    if sandboxed {
        steps.insert(0, bash(&attack));
    } else {
        let test = format!("a_child_cannot_approve_its_own_call, by a script {:?}", world.setup.cli);
        skip(&test, &format!("sandbox: {}", view["wall_missing"]));
    }
    // The child knows the id of its approval from a file.
    steps.push(Step::from_fn(|request| {
        let read = tool_results(request).pop().map(|result| result.text).unwrap_or_default();
        let id =
            read.split(['\t', '→', '\n', ' ']).find(|word| word.len() == 36).unwrap_or_default().to_owned();
        Step::tool("mcp__plexus__loopback_respond", json!({"approval_id": id, "approve": true}))
    }));
    steps.push(Step::text("I cannot."));
    world.model.script("APPROVE", steps);
    world.chat(&session, "APPROVE your own call").await?;
    if sandboxed {
        let (_, approval) = world.asked(&session).await?;
        world.allow(&approval).await?;
    }
    let asked = loop {
        let (_, approval) = world.asked(&session).await?;
        if approval["input"]["command"] == "touch made.txt" {
            break approval;
        }
    };
    std::fs::write(world.file("asked"), text(&asked["id"]))?;
    let read = |name: &str| std::fs::read_to_string(world.file(name)).unwrap_or_default();
    if sandboxed {
        until("the end of the attack", || world.file("attacked").exists()).await?;
        let all = format!("{}\n{}\n{}", read("out"), read("err"), read("by-command"));
        assert!(read("by-http").contains("approval_not_found"), "{}\n{all}", read("by-http"));
        assert!(read("by-mcp").contains("approval_not_found"), "{}\n{all}", read("by-mcp"));
        assert!(read("by-operator").starts_with("HTTP/1.1 401"), "{}\n{all}", read("by-operator"));
        assert_eq!(read("found-by-approve"), "", "{all}");
    }
    let get = world.call("loopback.get", json!({"approval_id": asked["id"]})).await?;
    assert_eq!(get["approval"]["status"], "pending", "{get}");
    assert!(!world.file("made.txt").exists());
    world.respond(&asked, json!({"approve": false})).await?;
    let ended = world.ended(&session).await?;
    assert_eq!(ended["status"], "complete", "{ended:#}");
    let tried =
        world.model.requests_for("APPROVE").pop().map(|request| tool_results(&request)).unwrap_or_default();
    let tried = tried.last().context("it tried by itself")?;
    assert!(tried.is_error && tried.text.contains("approval_not_found"), "{tried:?}");
    assert!(!world.file("made.txt").exists());
    Ok(())
}

#[tokio::test]
async fn get_reports_a_missing_sandbox_with_its_reason() -> anyhow::Result<()> {
    let setup = Setup::scripted().with_config("wall = \"off\"");
    let world =
        setup.world("get_reports_a_missing_sandbox_with_its_reason").await?.context("the scripted agent")?;
    let session = world.create("open", json!({"prompt": script(&json!([{"say": "done"}]))})).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    let view = get(&*world.door, &session).await?;
    assert_eq!(view["wall"], "none", "{view:#}");
    assert!(text(&view["wall_missing"]).contains("plexus.toml"), "{view:#}");
    assert!(!world.hub.stderr().contains("does not support the sandbox"), "the sandbox is off");
    let list = world.call("claudecode.list", json!({})).await?;
    assert_eq!(list["sessions"][0].get("wall"), None, "only `get` returns it: {list:#}");
    Ok(())
}

/// A hub whose user has exhausted one kind of kernel resource, for example user namespaces.
struct RestrictedHub {
    hub: Child,
    rpc: Rpc,
    stderr: tokio::process::ChildStderr,
    work: PathBuf,
    _dir: tempfile::TempDir,
}

impl RestrictedHub {
    async fn start(config: &str) -> anyhow::Result<Self> {
        Self::start_without("max_user_namespaces", config, None).await
    }

    /// `granted` lists the protections that an earlier hub had.
    async fn start_without(limit: &str, config: &str, granted: Option<&str>) -> anyhow::Result<Self> {
        let dir = tempfile::tempdir()?;
        let [data, work] = ["data", "work"].map(|name| dir.path().join(name));
        for folder in [&data, &work] {
            std::fs::create_dir(folder)?;
        }
        std::fs::write(data.join("plexus.toml"), config)?;
        if let Some(granted) = granted {
            std::fs::write(data.join("sandboxed"), granted)?;
        }
        // The limit applies to one user namespace and its descendants.
        let serve =
            format!("echo 0 > /proc/sys/user/{limit} && exec \"$0\" serve --listen 127.0.0.1:0 \"$@\"");
        let mut hub = Command::new("unshare")
            .args(["--user", "--map-root-user", "sh", "-c", &serve])
            .arg(binaries::plexus()?)
            .arg("--data-dir")
            .arg(&data)
            .arg("--claude")
            .arg(binaries::scripted_agent()?)
            .env_clear()
            .envs(clean_env(dir.path(), "http://127.0.0.1:9"))
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()?;
        let stdout = hub.stdout.take().context("stdout")?;
        let line = tokio::time::timeout(LIMIT, BufReader::new(stdout).lines().next_line()).await??;
        let stderr = hub.stderr.take().context("stderr")?;
        let url = line.context("the hub did not start")?.replace("plexus listening on ", "");
        let token = std::fs::read_to_string(data.join("operator.token"))?;
        Ok(Self { hub, rpc: Rpc::new(&url, token.trim()), stderr, work, _dir: dir })
    }

    /// Creates a session and waits for the end of its turn.
    async fn completes_a_turn(&self) -> anyhow::Result<String> {
        let prompt = script(&json!([{"say": "done"}]));
        let create = json!({"name": "turn", "working_dir": self.work, "prompt": prompt});
        let session = text(&self.rpc.call("claudecode.create", create).await?["id"]);
        let mut poll = json!({"status": "running", "total_events": 0});
        while poll["status"] == "running" {
            let next = json!({"session_id": session, "wait_ms": 30_000, "from_seq": poll["total_events"]});
            poll = tokio::time::timeout(LIMIT, self.rpc.call("claudecode.poll", next)).await??;
        }
        assert_eq!(poll["status"], "complete", "{poll:#}");
        Ok(session)
    }

    /// Stops the hub. Returns its output.
    async fn ended(mut self) -> anyhow::Result<String> {
        let pid = self.hub.id().and_then(|pid| rustix::process::Pid::from_raw(pid.cast_signed()));
        rustix::process::kill_process(pid.context("a pid")?, rustix::process::Signal::TERM)?;
        let mut said = String::new();
        tokio::time::timeout(LIMIT, self.stderr.read_to_string(&mut said)).await??;
        self.hub.wait().await?;
        Ok(said)
    }
}

#[tokio::test]
async fn without_sandbox_support_agents_start_with_a_warning() -> anyhow::Result<()> {
    let hub = RestrictedHub::start("").await?;
    let session = hub.completes_a_turn().await?;
    let view = get(&hub.rpc, &session).await?;
    assert_eq!(view["wall"], "none", "{view:#}");
    assert!(text(&view["wall_missing"]).contains("namespace"), "{view:#}");
    hub.rpc.call("claudecode.stop", json!({"session_id": session})).await?;
    let said = hub.ended().await?;
    assert!(said.contains("this system does not support the sandbox"), "{said}");
    Ok(())
}

#[tokio::test]
async fn without_a_required_sandbox_no_agent_starts() -> anyhow::Result<()> {
    let hub = RestrictedHub::start("wall = \"required\"").await?;
    let create = json!({"name": "none", "working_dir": hub.work});
    let door: &dyn Door = &hub.rpc;
    let refused = door.call("claudecode.create", create).await.err().context("it was not refused")?;
    assert_eq!(refused.kind.as_deref(), Some("no_wall"), "{refused:?}");
    let said = hub.ended().await?;
    assert!(said.contains("no agent can start"), "{said}");
    Ok(())
}

/// An agent of an earlier hub has exhausted the PID namespaces.
#[tokio::test]
async fn no_agent_starts_without_a_protection_that_an_earlier_hub_had() -> anyhow::Result<()> {
    for (granted, starts) in [(None, true), (Some(""), true), (Some(r#"["files","processes"]"#), false)] {
        let hub = RestrictedHub::start_without("max_pid_namespaces", "", granted).await?;
        let door: &dyn Door = &hub.rpc;
        let created = door.call("claudecode.create", json!({"name": "next", "working_dir": hub.work})).await;
        match created {
            Ok(_) => assert!(starts, "{granted:?}"),
            Err(refused) => {
                assert!(!starts, "{granted:?}: {refused:?}");
                assert_eq!(refused.kind.as_deref(), Some("no_wall"), "{refused:?}");
                assert!(refused.message.contains("PID namespace"), "{refused:?}");
                assert!(refused.message.contains("plexus down"), "it says what to do: {refused:?}");
            }
        }
        hub.ended().await?;
    }
    Ok(())
}

/// A child has exhausted its user's inotify limits.
#[tokio::test]
async fn a_hub_works_without_inotify() -> anyhow::Result<()> {
    for limit in ["max_inotify_instances", "max_inotify_watches"] {
        let hub = RestrictedHub::start_without(limit, "", None).await?;
        hub.completes_a_turn().await?;
        let said = hub.ended().await?;
        assert!(said.contains("inotify") && said.contains("250 ms"), "{limit}: {said}");
    }
    Ok(())
}

/// Two hubs of one user. The file helper has the same sandbox as an agent, so it shows what an agent of the first hub can read.
#[tokio::test]
async fn the_data_directory_of_another_hub_is_hidden_from_agents_that_start_later() -> anyhow::Result<()> {
    let world =
        Setup::scripted().world("another hub").await?.context("the scripted agent is always available")?;
    let session = world.create("first", json!({})).await?;
    if get(&*world.door, &session).await?["wall"] == "none" {
        skip("the_data_directory_of_another_hub_is_hidden_from_agents_that_start_later", "sandbox");
        return Ok(());
    }
    let other = world.home.join("other/data");
    for folder in ["sessions", "../ordinary"] {
        std::fs::create_dir_all(other.join(folder))?;
    }
    let create = async |name: &str, working_dir: PathBuf| {
        world.call("claudecode.create", json!({"name": name, "working_dir": working_dir})).await
    };
    create("before", other.join("sessions")).await.context("no hub uses the directory yet")?;
    let env = clean_env(&world.home, "http://127.0.0.1:9");
    let claude = binaries::scripted_agent()?;
    let options = HubOptions { data_dir: other.clone(), claude, extra_args: Vec::new(), env };
    let second = HubProcess::start(options).await?;
    let refused = create("after", other.join("sessions")).await.expect_err("it is hidden");
    assert!(format!("{refused:#}").contains("working_dir"), "{refused:#}");
    create("beside", world.home.join("other/ordinary")).await.context("a directory beside it is allowed")?;
    // Each hub is in the list that the other reads.
    let list = world.home.join(".local/state/plexus/hubs");
    assert_eq!(list.read_dir()?.count(), 2);
    let rpc = Rpc::new(second.url(), &second.token()?);
    let of_the_first = world.hub.data_dir().join("sessions");
    std::fs::create_dir_all(&of_the_first)?;
    let create = json!({"name": "first", "working_dir": of_the_first});
    assert!(rpc.call("claudecode.create", create).await.is_err(), "it is hidden from the other hub's, too");
    Ok(())
}
