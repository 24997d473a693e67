//! Builds the web console from `ui/` if Node and npm are installed. If they are missing, or the build fails, the program is
//! built without the console, and its page says how to add it. Nothing is written outside `OUT_DIR`.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, io};

/// The files and folders in `ui/` that a build reads.
const SOURCES: [&str; 7] = [
    "index.html",
    "package.json",
    "package-lock.json",
    "public",
    "src",
    "svelte.config.js",
    "vite.config.ts",
];

/// The environment variable that disables the console if it is `off`.
const WANTED: &str = "PLEXUS_CONSOLE";

fn main() {
    let ui = var("CARGO_MANIFEST_DIR").join("../../ui");
    let out = var("OUT_DIR");
    println!("cargo::rerun-if-changed=build.rs");
    println!("cargo::rerun-if-env-changed={WANTED}");
    for source in SOURCES {
        println!("cargo::rerun-if-changed={}", ui.join(source).display());
    }
    let dist = out.join("dist");
    let made = if env::var_os(WANTED).is_some_and(|wanted| wanted == "off") {
        Err(format!("it was built with {WANTED}=off"))
    } else {
        build(&ui, &out.join("ui"), &dist)
    };
    let missing = made.err().unwrap_or_default();
    if !missing.is_empty() {
        println!("cargo::warning=building without the web console: {missing}");
        // Makes cargo run this script again with the next build: Node may be installed by then.
        println!("cargo::rerun-if-changed={}", out.join("never").display());
        // Deletes the incomplete output of a failed build.
        let emptied =
            fs::remove_dir_all(&dist).or_else(missing_is_fine).and_then(|()| fs::create_dir_all(&dist));
        if let Err(error) = emptied {
            println!("cargo::error={}: {error}", dist.display());
        }
    }
    println!("cargo::rustc-env=PLEXUS_CONSOLE_MISSING={}", missing.replace('\n', " "));
}

fn var(name: &str) -> PathBuf {
    // Cargo sets the variable. An empty path would fail where it is used.
    env::var_os(name).unwrap_or_default().into()
}

/// Builds from a copy, with the packages in the lock file. They are fetched again only if the lock file has changed.
fn build(ui: &Path, work: &Path, dist: &Path) -> Result<(), String> {
    let io = |error: io::Error| error.to_string();
    let node = run(Command::new("node").arg("--version"))?;
    if !is_new_enough(&node) {
        return Err(format!("node is {}; 20.19 or newer is needed", node.trim()));
    }
    fs::create_dir_all(work).map_err(io)?;
    for source in SOURCES {
        let to = work.join(source);
        if to.is_dir() {
            fs::remove_dir_all(&to).map_err(io)?;
        }
        copy(&ui.join(source), &to).map_err(|error| format!("ui/{source}: {error}"))?;
    }
    let lock = fs::read(ui.join("package-lock.json")).map_err(io)?;
    let fetched = work.join("fetched");
    if !fs::read(&fetched).is_ok_and(|before| before == lock) {
        let flags = "ci --omit=dev --ignore-scripts --no-audit --no-fund --prefer-offline --fetch-retries=1 --loglevel=error";
        run(Command::new("npm").args(flags.split(' ')).current_dir(work))?;
        fs::write(&fetched, lock).map_err(io)?;
    }
    let mut vite = Command::new("node");
    vite.args(["node_modules/vite/bin/vite.js", "build", "--emptyOutDir", "--outDir"]).arg(dist);
    run(vite.current_dir(work).env("NODE_ENV", "production")).map(drop)
}

/// Whether a version such as `v22.1.0` satisfies `engines` in `package.json`.
fn is_new_enough(version: &str) -> bool {
    let mut numbers =
        version.trim().trim_start_matches('v').split('.').map_while(|part| part.parse::<u32>().ok());
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (20, 19)
}

/// Runs a program and returns its stdout. If it fails, the error contains its stderr.
fn run(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.stdin(Stdio::null()).output().map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => format!("{name} is not installed"),
        _ => format!("{name} cannot be started: {error}"),
    })?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    let said = String::from_utf8_lossy(&output.stderr);
    let said =
        said.lines().filter(|line| !line.starts_with("npm warn")).take(20).collect::<Vec<_>>().join(" | ");
    Err(format!("{name} failed ({}): {said}", output.status))
}

fn copy(from: &Path, to: &Path) -> io::Result<()> {
    if from.is_dir() {
        fs::create_dir_all(to)?;
        for entry in fs::read_dir(from)? {
            let entry = entry?;
            copy(&entry.path(), &to.join(entry.file_name()))?;
        }
        return Ok(());
    }
    fs::copy(from, to).map(drop)
}

fn missing_is_fine(error: io::Error) -> io::Result<()> {
    if error.kind() == io::ErrorKind::NotFound { Ok(()) } else { Err(error) }
}
