//! The wall between an agent and the hub's own data: a real agent's approved command looks for them by every way we know
//! and finds nothing, while all else is as it was. Where this system grants no wall, those tests say so by name.

use std::path::PathBuf;
use std::process::Stdio;

use anyhow::Context as _;
use plexus_e2e::{LIMIT, Setup, World, over_channels, processes_of, script, text, until};
use plexus_testkit::hubproc::{HubOptions, HubProcess};
use plexus_testkit::model::{Step, tool_results};
use plexus_testkit::rpc::{Door, Rpc};
use plexus_testkit::{binaries, clean_env, skip};
use serde_json::{Value, json};
use tokio::io::{AsyncBufReadExt as _, AsyncReadExt as _, BufReader};
use tokio::process::{Child, Command};

over_channels!(a_child_reaches_nothing_of_the_hubs_own, a_child_that_is_told_to_approve_its_own_call_cannot);

fn bash(command: &str) -> Step {
    Step::tool("Bash", json!({"command": command, "description": "a step"}))
}

async fn get(door: &dyn Door, session: &str) -> anyhow::Result<Value> {
    Ok(door.call("claudecode.get", json!({"session_id": session})).await?["session"].take())
}

async fn a_child_reaches_nothing_of_the_hubs_own(mut world: World) -> anyhow::Result<()> {
    let session = world.create("curious", json!({})).await?;
    let before = get(&*world.door, &session).await?;
    if before["wall"] == "none" {
        let test = format!("a_child_reaches_nothing_of_the_hubs_own {:?}", world.setup.cli);
        skip(&test, &format!("wall: {}", before["wall_missing"]));
        return Ok(());
    }
    let run = world.run_dir(&session, 1);
    let look = format!(
        "DATA='{}' RUN='{}' HUB={} PLEXUS='{}' SIGNALS={} sh look.sh > out 2> err; touch looked",
        world.hub.data_dir().display(),
        run.strip_prefix(world.hub.data_dir())?.display(),
        world.hub.pid(),
        binaries::plexus()?.display(),
        text(&before["sandbox"]["signals"]["state"]),
    );
    std::fs::write(world.file("look.sh"), include_str!("look.sh"))?;
    world.model.script("LOOK", vec![bash(&look), bash("touch second.txt"), Step::text("Nothing.")]);
    world.chat(&session, "LOOK around").await?;
    let (_, approval) = world.asked(&session).await?;
    assert!(!world.file("found").exists(), "it ran before it was allowed");
    world.allow(&approval).await?;
    until("the end of the look", || world.file("looked").exists()).await?;

    let read = |name: &str| std::fs::read_to_string(world.file(name)).unwrap_or_default();
    assert_eq!(read("found"), "", "{}\n{}", read("out"), read("err"));
    let looked_at = read("looked-at");
    assert!(looked_at.ends_with("config\nhome\ndone\n"), "{looked_at}{}", read("err"));
    assert!(looked_at.starts_with("keeper "), "{looked_at}");
    assert!(world.home.join("at-home").exists());
    let token = world.hub.token()?;
    assert!(!read("out").contains(&token) && !read("err").contains(&token));

    // The gate, and a hub that goes away, are the same behind it.
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

/// A child with the hub's tools tries to allow its own call: by a script that it was allowed to run, while the question is
/// open, and by the tool itself. Without a wall the script finds the operator's token; with one it finds nothing.
async fn a_child_that_is_told_to_approve_its_own_call_cannot(world: World) -> anyhow::Result<()> {
    let session = world.create("ambitious", json!({"hub_tools": true})).await?;
    let view = get(&*world.door, &session).await?;
    let walled = view["wall"] != "none";
    let run = world.run_dir(&session, 1);
    let attack = format!(
        "DATA='{}' RUN='{}' PLEXUS='{}' nohup sh approve.sh > out 2> err &",
        world.hub.data_dir().display(),
        run.strip_prefix(world.hub.data_dir())?.display(),
        binaries::plexus()?.display(),
    );
    std::fs::write(world.file("approve.sh"), include_str!("approve.sh"))?;
    let mut steps =
        vec![bash("touch made.txt"), Step::tool("Read", json!({"file_path": world.file("asked")}))];
    if walled {
        steps.insert(0, bash(&attack));
    } else {
        let test =
            format!("a_child_that_is_told_to_approve_its_own_call_cannot, by a script {:?}", world.setup.cli);
        skip(&test, &format!("wall: {}", view["wall_missing"]));
    }
    // By now it knows the id of its own question, which was shown to it in a file.
    steps.push(Step::from_fn(|request| {
        let read = tool_results(request).pop().map(|result| result.text).unwrap_or_default();
        let id =
            read.split(['\t', '→', '\n', ' ']).find(|word| word.len() == 36).unwrap_or_default().to_owned();
        Step::tool("mcp__plexus__loopback_respond", json!({"approval_id": id, "approve": true}))
    }));
    steps.push(Step::text("I cannot."));
    world.model.script("APPROVE", steps);
    world.chat(&session, "APPROVE your own call").await?;
    if walled {
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
    if walled {
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
async fn without_a_wall_get_says_so_and_why() -> anyhow::Result<()> {
    let setup = Setup::scripted().with_config("wall = \"off\"");
    let world = setup.world("without_a_wall_get_says_so_and_why").await?.context("the scripted agent")?;
    let session = world.create("open", json!({"prompt": script(&json!([{"say": "done"}]))})).await?;
    assert_eq!(world.ended(&session).await?["status"], "complete");
    let view = get(&*world.door, &session).await?;
    assert_eq!(view["wall"], "none", "{view:#}");
    assert!(text(&view["wall_missing"]).contains("plexus.toml"), "{view:#}");
    assert!(!world.hub.stderr().contains("does not support the sandbox"), "nobody wanted one");
    let list = world.call("claudecode.list", json!({})).await?;
    assert_eq!(list["sessions"][0].get("wall"), None, "it is told by `get` alone: {list:#}");
    Ok(())
}

/// A hub of a user who may have nothing of one kind: no user namespace, say.
struct Refused {
    hub: Child,
    rpc: Rpc,
    stderr: tokio::process::ChildStderr,
    work: PathBuf,
    _dir: tempfile::TempDir,
}

impl Refused {
    async fn start(config: &str) -> anyhow::Result<Self> {
        Self::start_without("max_user_namespaces", config, None).await
    }

    /// `granted` are the parts of a sandbox that an earlier hub has had.
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
        // The limit is that of one user namespace, and of those below it.
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

    /// Ends it in order; what it said.
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
async fn where_none_is_granted_agents_start_with_a_warning() -> anyhow::Result<()> {
    let hub = Refused::start("").await?;
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
async fn where_none_is_granted_and_one_is_required_no_agent_starts() -> anyhow::Result<()> {
    let hub = Refused::start("wall = \"required\"").await?;
    let create = json!({"name": "none", "working_dir": hub.work});
    let door: &dyn Door = &hub.rpc;
    let refused = door.call("claudecode.create", create).await.err().context("it was not refused")?;
    assert_eq!(refused.kind.as_deref(), Some("no_wall"), "{refused:?}");
    let said = hub.ended().await?;
    assert!(said.contains("no agent can start"), "{said}");
    Ok(())
}

/// An agent of an earlier hub has used up the PID namespaces.
#[tokio::test]
async fn where_a_part_is_refused_that_was_granted_before_no_agent_starts() -> anyhow::Result<()> {
    for (granted, starts) in [(None, true), (Some(""), true), (Some(r#"["files","processes"]"#), false)] {
        let hub = Refused::start_without("max_pid_namespaces", "", granted).await?;
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

/// A child has used up what its user may have of inotify.
#[tokio::test]
async fn a_hub_without_inotify_starts_and_serves() -> anyhow::Result<()> {
    for limit in ["max_inotify_instances", "max_inotify_watches"] {
        let hub = Refused::start_without(limit, "", None).await?;
        hub.completes_a_turn().await?;
        let said = hub.ended().await?;
        assert!(said.contains("inotify") && said.contains("250 ms"), "{limit}: {said}");
    }
    Ok(())
}

/// Two hubs of one user. What an agent of the first finds is seen by the eyes of its file helper, which has the same sandbox.
#[tokio::test]
async fn the_data_directory_of_another_hub_is_hidden_from_agents_that_start_later() -> anyhow::Result<()> {
    let world = Setup::scripted().world("another hub").await?.context("always there")?;
    let session = world.create("first", json!({})).await?;
    if get(&*world.door, &session).await?["wall"] == "none" {
        skip("the_data_directory_of_another_hub_is_hidden_from_agents_that_start_later", "wall");
        return Ok(());
    }
    let other = world.home.join("other/data");
    for folder in ["sessions", "../ordinary"] {
        std::fs::create_dir_all(other.join(folder))?;
    }
    let create = async |name: &str, working_dir: PathBuf| {
        world.call("claudecode.create", json!({"name": name, "working_dir": working_dir})).await
    };
    create("before", other.join("sessions")).await.context("no hub has it yet")?;
    let env = clean_env(&world.home, "http://127.0.0.1:9");
    let claude = binaries::scripted_agent()?;
    let options = HubOptions { data_dir: other.clone(), claude, extra_args: Vec::new(), env };
    let second = HubProcess::start(options).await?;
    let refused = create("after", other.join("sessions")).await.expect_err("it is hidden");
    assert!(format!("{refused:#}").contains("working_dir"), "{refused:#}");
    create("beside", world.home.join("other/ordinary")).await.context("what is beside it is not")?;
    // The second hub lists itself for the first, and the first for the second.
    let list = world.home.join(".local/state/plexus/hubs");
    assert_eq!(list.read_dir()?.count(), 2);
    let rpc = Rpc::new(second.url(), &second.token()?);
    let of_the_first = world.hub.data_dir().join("sessions");
    std::fs::create_dir_all(&of_the_first)?;
    let create = json!({"name": "first", "working_dir": of_the_first});
    assert!(rpc.call("claudecode.create", create).await.is_err(), "it is hidden from the other hub's, too");
    Ok(())
}
