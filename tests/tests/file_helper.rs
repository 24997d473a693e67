//! The file helper as the hub uses it: the real program in the sandbox of agents. If the system supports no sandbox, these tests
//! report that they were skipped.

use std::future::pending;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plexus_agent::{Inode, Sandbox, SandboxPart};
use plexus_files::{FileError, Helper, HelperError, ReadFile};
use plexus_testkit::{binaries, executable, skip};
use rustix::fs::{CWD, Mode, mkfifoat};

/// A data directory with a secret, and a working directory beside it.
struct Ground {
    dir: tempfile::TempDir,
    helper: Helper,
}

/// A sandbox that hides `dir`.
fn hiding(dir: PathBuf) -> Sandbox {
    Sandbox {
        inode: Inode::of(&dir).ok(),
        hide: dir,
        show: None,
        required: [SandboxPart::Files].into(),
        hubs: None,
    }
}

impl Ground {
    /// `None` if the system supports no sandbox.
    fn new(test: &str) -> anyhow::Result<Option<Self>> {
        let dir = tempfile::tempdir()?;
        let data = dir.path().join("data");
        std::fs::create_dir_all(data.join("sessions"))?;
        std::fs::create_dir(dir.path().join("work"))?;
        for file in ["operator.token", "sessions/one"] {
            std::fs::write(data.join(file), "SECRET")?;
        }
        if let Err(reason) = plexus_agent::try_hiding(&data) {
            skip(test, &format!("sandbox: {reason}"));
            return Ok(None);
        }
        Ok(Some(Self { helper: Helper::new(binaries::plexus()?, Some(hiding(data))), dir }))
    }

    fn data(&self, file: &str) -> PathBuf {
        self.dir.path().join("data").join(file)
    }

    fn work(&self, file: &str) -> PathBuf {
        self.dir.path().join("work").join(file)
    }

    async fn read(&self, path: &Path) -> Result<String, FileError> {
        let mut content = Vec::new();
        let verb = ReadFile { path: path.to_owned(), limit: 1000 };
        self.helper.call(verb, None, &mut content, pending()).await??;
        Ok(String::from_utf8_lossy(&content).into_owned())
    }
}

#[tokio::test]
async fn a_file_of_the_working_directory_is_read() -> anyhow::Result<()> {
    let Some(ground) = Ground::new("a_file_of_the_working_directory_is_read")? else { return Ok(()) };
    std::fs::write(ground.work("file"), "content")?;
    symlink("file", ground.work("link"))?;
    for name in ["file", "link"] {
        assert_eq!(ground.read(&ground.work(name)).await?, "content");
    }
    let mut content = Vec::new();
    let verb = ReadFile { path: ground.work("file"), limit: 3 };
    assert_eq!(ground.helper.call(verb, None, &mut content, pending()).await?, Ok(7));
    assert_eq!(content, b"con");
    Ok(())
}

#[tokio::test]
async fn the_helper_reads_no_path_into_the_data_directory() -> anyhow::Result<()> {
    let Some(ground) = Ground::new("the_helper_reads_no_path_into_the_data_directory")? else {
        return Ok(());
    };
    let this = std::process::id();
    symlink(ground.data(""), ground.work("data"))?;
    for (i, target) in [
        ground.data("operator.token"),
        ground.work("data/sessions/one"),
        format!("/proc/{this}/root{}", ground.data("operator.token").display()).into(),
        format!("/proc/self/root{}", ground.data("operator.token").display()).into(),
        format!("/proc/self/cwd{}", ground.data("operator.token").display()).into(),
        format!("/proc/{this}/cwd/Cargo.toml").into(),
    ]
    .into_iter()
    .enumerate()
    {
        let link = ground.work(&format!("link-{i}"));
        symlink(&target, &link)?;
        for path in [&target, &link] {
            let read = ground.read(path).await;
            assert!(
                matches!(read, Err(FileError::NotFound | FileError::Io(_))),
                "{}: {read:?}",
                path.display()
            );
        }
    }
    assert_eq!(std::fs::read_to_string(ground.data("operator.token"))?, "SECRET");
    Ok(())
}

/// A link to `/proc/self/fd` reaches neither the hub's log nor the descriptor of the answer.
#[tokio::test]
async fn a_helper_inherits_no_descriptor_of_the_hub() -> anyhow::Result<()> {
    let Some(ground) = Ground::new("a_helper_inherits_no_descriptor_of_the_hub")? else { return Ok(()) };
    // A descriptor without close-on-exec, which every child process inherits.
    let secret = std::fs::File::open(ground.data("operator.token"))?;
    rustix::io::fcntl_setfd(&secret, rustix::io::FdFlags::empty())?;
    for fd in 0..64 {
        let read = ground.read(Path::new(&format!("/proc/self/fd/{fd}"))).await;
        assert!(read.as_ref().is_err(), "{fd}: {read:?}");
    }
    Ok(())
}

#[tokio::test]
async fn the_helper_does_not_wait_for_a_fifo_or_a_device() -> anyhow::Result<()> {
    let Some(ground) = Ground::new("the_helper_does_not_wait_for_a_fifo_or_a_device")? else { return Ok(()) };
    mkfifoat(CWD, ground.work("fifo"), Mode::RUSR | Mode::WUSR)?;
    for path in [ground.work("fifo"), ground.work(""), "/dev/zero".into(), "/dev/tty".into()] {
        let read = tokio::time::timeout(Duration::from_secs(60), ground.read(&path)).await?;
        assert!(
            matches!(read, Err(FileError::NotRegular | FileError::Io(_))),
            "{}: {read:?}",
            path.display()
        );
    }
    Ok(())
}

#[tokio::test]
async fn without_a_required_sandbox_nothing_is_read() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    std::fs::write(dir.path().join("file"), "content")?;
    let read = |helper: Helper| {
        let verb = ReadFile { path: dir.path().join("file"), limit: 10 };
        async move { helper.call(verb, None, &mut Vec::new(), pending()).await }
    };
    // A missing directory cannot be hidden.
    let required = read(Helper::new(binaries::plexus()?, Some(hiding(dir.path().join("none"))))).await;
    assert!(matches!(required, Err(HelperError::NoSandbox(_))), "{required:?}");
    assert_eq!(read(Helper::new(binaries::plexus()?, None)).await, Ok(Ok(7)));
    let missing = read(Helper::new(dir.path().join("none"), None)).await;
    assert!(matches!(missing, Err(HelperError::Failed(_))), "{missing:?}");
    let silent = read(Helper::new("/bin/true".into(), None)).await;
    assert!(matches!(silent, Err(HelperError::Failed(_))), "{silent:?}");
    Ok(())
}

#[tokio::test]
async fn a_helper_that_hangs_is_killed_before_its_caller_continues() -> anyhow::Result<()> {
    let dir = tempfile::tempdir()?;
    let (program, pid_file) = (dir.path().join("hangs"), dir.path().join("pid"));
    executable::write(&program, &format!("#!/bin/sh\necho $$ > {}\nexec sleep 1000\n", pid_file.display()))?;
    let pid = || std::fs::read_to_string(&pid_file).ok()?.trim().parse::<u32>().ok();
    let started = async {
        let _ = plexus_e2e::until("its start", || pid().is_some()).await;
    };
    let verb = ReadFile { path: "/etc/hostname".into(), limit: 10 };
    let answer = Helper::new(program, None).call(verb, None, &mut Vec::new(), started).await;
    assert!(matches!(answer, Err(HelperError::TimedOut)), "{answer:?}");
    let pid = pid().expect("it has started");
    assert!(!plexus_e2e::is_alive(pid), "the helper has ended");
    Ok(())
}
