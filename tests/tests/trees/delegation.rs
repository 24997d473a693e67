//! What a session can grant to the sessions it creates: no more than it has itself.

use std::os::unix::fs::symlink;

use plexus_e2e::{World, script, text};
use plexus_testkit::rpc::{Door, Rpc};
use serde_json::{Value, json};

use super::scripted;

/// Creates a session with the hub's tools and these settings. Returns a client with its token.
async fn creator(world: &World, name: &str, more: Value) -> anyhow::Result<Rpc> {
    let mut params = json!({"hub_tools": true, "prompt": script(&json!([{"say": "here"}]))});
    for (field, value) in more.as_object().into_iter().flatten() {
        params[field] = value.clone();
    }
    let id = world.create(name, params).await?;
    world.ended(&id).await?;
    Ok(Rpc::new(world.hub.url(), &world.token_of(&id)?))
}

/// One attempt: the parameters, and the field that must be refused, if any.
struct Attempt(Value, Option<&'static str>);

async fn try_all(world: &World, door: &dyn Door, who: &str, attempts: Vec<Attempt>) -> anyhow::Result<()> {
    for (n, Attempt(more, refused)) in attempts.into_iter().enumerate() {
        let mut params = json!({"name": format!("{who}-{n}"), "working_dir": world.work});
        for (field, value) in more.as_object().into_iter().flatten() {
            params[field] = value.clone();
        }
        match (door.call("claudecode.create", params).await, refused) {
            (Ok(_), None) => {}
            (Err(error), Some(field)) => {
                assert_eq!(error.kind.as_deref(), Some("forbidden"), "{who} {more}: {error}");
                assert_eq!(error.data["field"], field, "{who} {more}: {error}");
            }
            (Ok(made), Some(field)) => panic!("{who} {more}: not refused for `{field}`: {made}"),
            (Err(error), None) => panic!("{who} {more}: {error}"),
        }
    }
    Ok(())
}

#[tokio::test]
async fn a_session_grants_no_more_than_it_has() -> anyhow::Result<()> {
    let world = scripted("session_env = [\"MY_FLAG\"]").await?;
    let work = &world.work;
    let home = &world.home;
    for dir in ["inside/deeper", "beside"] {
        std::fs::create_dir_all(world.file(dir))?;
    }
    symlink(world.file("inside/deeper"), world.file("link-inside"))?;
    symlink(home, world.file("inside/link-outside"))?;
    let inside = world.file("inside");
    let at = |dir: &str| json!({"working_dir": work.join(dir)});

    let plain = creator(&world, "plain", json!({"working_dir": inside})).await?;
    let free = |name: &str| json!({"working_dir": inside, "env": {name: "x"}});
    let mode = |mode: &str| json!({"working_dir": inside, "permission_mode": mode});
    let policy = |policy: &str| json!({"working_dir": inside, "policy": policy});
    let attempts = vec![
        Attempt(at("inside"), None),
        Attempt(at("inside/deeper"), None),
        Attempt(at("link-inside"), None),
        Attempt(at("inside/../inside/deeper"), None),
        Attempt(at("."), Some("working_dir")),
        Attempt(at("beside"), Some("working_dir")),
        Attempt(at("inside/.."), Some("working_dir")),
        Attempt(at("inside/link-outside"), Some("working_dir")),
        Attempt(json!({"working_dir": home}), Some("working_dir")),
        Attempt(free("LC_ALL"), None),
        Attempt(free("TZ"), None),
        Attempt(free("MY_FLAG"), None),
        Attempt(free("PATH"), Some("env")),
        Attempt(free("LD_PRELOAD"), Some("env")),
        Attempt(free("NODE_OPTIONS"), Some("env")),
        Attempt(free("ANTHROPIC_BASE_URL"), Some("env")),
        Attempt(free("HTTPS_PROXY"), Some("env")),
        Attempt(free("PLEXUS_TOKEN"), Some("env")),
        Attempt(free("my_flag"), Some("env")),
        Attempt(mode("plan"), None),
        Attempt(mode("default"), None),
        Attempt(mode("acceptEdits"), Some("permission_mode")),
        Attempt(policy("ask_all"), None),
        Attempt(policy("approvals"), None),
        Attempt(policy("allow_all"), Some("policy")),
        Attempt(json!({"working_dir": inside, "loopback_enabled": false}), Some("loopback_enabled")),
        Attempt(json!({"working_dir": inside, "loopback_enabled": true}), None),
        Attempt(
            json!({"working_dir": inside, "isolation": {"type": "worktree", "setup": "true"}}),
            Some("isolation.setup"),
        ),
    ];
    try_all(&world, &plain, "plain", attempts).await?;

    // A session that has more can grant more, and the operator can grant anything.
    let editor = creator(&world, "editor", json!({"permission_mode": "acceptEdits"})).await?;
    try_all(&world, &editor, "editor", vec![Attempt(mode("acceptEdits"), None), Attempt(at("beside"), None)])
        .await?;
    let anything =
        json!({"working_dir": home, "permission_mode": "acceptEdits", "env": {"NODE_OPTIONS": ""}});
    try_all(&world, &*world.door, "operator", vec![Attempt(anything, None)]).await
}

#[tokio::test]
async fn settings_that_a_session_leaves_out_are_inherited_and_not_looser() -> anyhow::Result<()> {
    let world = scripted("").await?;
    let strict = creator(&world, "strict", json!({"policy": "ask_all", "permission_mode": "plan"})).await?;
    let attempts = vec![
        Attempt(json!({"permission_mode": "default"}), Some("permission_mode")),
        Attempt(json!({"policy": "own_course"}), Some("policy")),
        Attempt(json!({"policy": "approvals"}), Some("policy")),
    ];
    try_all(&world, &strict, "strict", attempts).await?;
    let made = strict.call("claudecode.create", json!({"name": "child", "working_dir": world.work})).await?;
    let child = text(&made["id"]);
    let shown = world.call("claudecode.get", json!({"session_id": child})).await?["session"].clone();
    assert_eq!((&shown["policy"], &shown["permission_mode"]), (&json!("ask_all"), &json!("plan")));

    // The session cannot loosen the mode later either. Its ancestors can.
    let loosen = json!({"session_id": child, "mode": "acceptEdits"});
    let refusal = strict.call("claudecode.set_permission_mode", loosen.clone()).await;
    let refusal = refusal.err().map(|error| (error.data["type"].clone(), error.data["field"].clone()));
    assert_eq!(refusal, Some((json!("forbidden"), json!("mode"))));
    world.call("claudecode.set_permission_mode", loosen).await?;
    Ok(())
}

#[tokio::test]
async fn a_session_in_plan_mode_cannot_let_a_child_leave_plan_mode() -> anyhow::Result<()> {
    let world = scripted("").await?;
    let planner = creator(&world, "planner", json!({"permission_mode": "plan"})).await?;
    let plan = json!({"tool": "ExitPlanMode", "input": {"plan": "Do it."}});
    let prompt = script(&json!([plan, {"say": "done"}]));
    let made = json!({"name": "child", "working_dir": world.work, "prompt": prompt});
    let child = text(&planner.call("claudecode.create", made).await?["id"]);
    let (_, asked) = world.asked(&child).await?;
    for answer in [json!({}), json!({"mode": "acceptEdits"})] {
        let mut answer = answer;
        answer["approval_id"] = asked["id"].clone();
        answer["approve"] = json!(true);
        let refusal = planner.call("loopback.respond", answer).await.err().map(|error| error.data);
        let refusal = refusal.unwrap_or_default();
        assert_eq!((&refusal["type"], &refusal["field"]), (&json!("forbidden"), &json!("mode")));
    }
    world.allow(&asked).await?;
    assert_eq!(world.ended(&child).await?["status"], "complete");
    Ok(())
}

#[tokio::test]
async fn the_mode_in_an_answer_is_no_looser_than_that_of_the_answering_session() -> anyhow::Result<()> {
    let world = scripted("").await?;
    let lead = creator(&world, "lead", json!({"approve_scope": ["*"]})).await?;
    let prompt = script(&json!([{"tool": "Bash", "input": {"command": "true"}}, {"say": "done"}]));
    let made = json!({"name": "child", "working_dir": world.work, "prompt": prompt});
    let child = text(&lead.call("claudecode.create", made).await?["id"]);
    let (_, asked) = world.asked(&child).await?;
    let answer = |mode: &str| json!({"approval_id": asked["id"], "approve": true, "mode": mode});
    let refusal = lead.call("loopback.respond", answer("acceptEdits")).await.err().map(|error| error.data);
    let refusal = refusal.unwrap_or_default();
    assert_eq!((&refusal["type"], &refusal["field"]), (&json!("forbidden"), &json!("mode")));
    world.call("loopback.respond", answer("acceptEdits")).await?;
    assert_eq!(world.ended(&child).await?["status"], "complete");
    let shown = world.call("claudecode.get", json!({"session_id": child})).await?;
    assert_eq!(shown["session"]["permission_mode"], "acceptEdits");
    Ok(())
}

#[tokio::test]
async fn a_worktree_copies_nothing_from_outside_its_creators_directory() -> anyhow::Result<()> {
    let world = scripted("").await?;
    for dir in ["mine", "private"] {
        std::fs::create_dir(world.file(dir))?;
        std::fs::write(world.file(dir).join("notes.txt"), "tracked")?;
    }
    let repo = git2::Repository::init(&world.work)?;
    let mut index = repo.index()?;
    index.add_all(["."], git2::IndexAddOption::DEFAULT, None)?;
    let tree = repo.find_tree(index.write_tree()?)?;
    let who = git2::Signature::now("Somebody", "somebody@example.invalid")?;
    repo.commit(Some("HEAD"), &who, &who, "first", &tree, &[])?;
    for dir in ["mine", "private"] {
        std::fs::write(world.file(dir).join(".env"), "untracked")?;
    }
    let mine = world.file("mine");
    let door = creator(&world, "creator", json!({"working_dir": mine})).await?;
    let create = |name: &str, copy: &str| {
        let isolation = json!({"type": "worktree", "copy": [copy]});
        let params = json!({"name": name, "working_dir": mine, "isolation": isolation});
        door.call("claudecode.create", params)
    };
    let refusal = create("taker", "private/.env").await.err().map(|error| error.message);
    assert!(refusal.as_deref().is_some_and(|why| why.contains("private/.env")), "{refusal:?}");
    let made = create("keeper", "mine/.env").await?;
    let shown = world.call("claudecode.get", json!({"session_id": made["id"]})).await?["session"].clone();
    let dir = text(&shown["working_dir"]);
    assert_eq!(std::fs::read_to_string(std::path::Path::new(&dir).join(".env"))?, "untracked");
    Ok(())
}
