//! The systemd user unit of `plexus up --systemd`: prints or installs it. The user enables it with `systemctl`, because that
//! changes the user's session.

use std::path::{Path, PathBuf};

use crate::error::{ExpectedError, system};
use crate::output;
use crate::up::{UpArgs, serve_args};

/// Prints or installs the unit.
pub(crate) fn run(args: &UpArgs) -> Result<(), ExpectedError> {
    let program = std::env::current_exe().map_err(system)?;
    let path = std::env::var("PATH").unwrap_or_default();
    let unit = unit(&program, &args.data_dir.resolve()?, &serve_args(args)?, &path);
    if !args.install {
        output::print(unit.trim_end());
        return Ok(());
    }
    let file = place().ok_or_else(|| ExpectedError::Settings("no home directory was found".to_owned()))?;
    let written = || -> std::io::Result<()> {
        std::fs::create_dir_all(file.parent().unwrap_or(Path::new("/")))?;
        std::fs::write(&file, &unit)
    };
    written()
        .map_err(|error| ExpectedError::Settings(format!("cannot write {}: {error}", file.display())))?;
    output::print(&format!(
        "wrote {}; now: systemctl --user daemon-reload && systemctl --user enable --now plexus",
        file.display()
    ));
    Ok(())
}

fn place() -> Option<PathBuf> {
    Some(directories::BaseDirs::new()?.config_dir().join("systemd/user/plexus.service"))
}

/// `KillMode=process`: agents outlive their hub and wait at the gate for the next one.
fn unit(program: &Path, data_dir: &Path, serve_args: &[String], path: &str) -> String {
    let words: Vec<String> =
        [program.to_string_lossy(), "serve".into(), "--data-dir".into(), data_dir.to_string_lossy()]
            .into_iter()
            .chain(serve_args.iter().map(|word| word.into()))
            // `$` starts a variable in `ExecStart` only.
            .map(|word| quoted(&word).replace('$', "$$"))
            .collect();
    format!(
        "[Unit]\nDescription=Plexus: supervise many agents\n\n[Service]\nExecStart={}\nEnvironment={}\nKillMode=process\n\
         Restart=on-failure\n\n[Install]\nWantedBy=default.target\n",
        words.join(" "),
        quoted(&format!("PATH={path}")),
    )
}

/// Quotes a word for a unit file, in which `%`, quotes and backslashes are special.
fn quoted(word: &str) -> String {
    let word = word.replace('\\', "\\\\").replace('"', "\\\"").replace('%', "%%");
    format!("\"{word}\"")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_starts_this_program_and_does_not_stop_the_agents() {
        let unit = unit(Path::new("/opt/my plexus"), Path::new("/data/$x/100%"), &[], "/bin:/$y%");
        assert!(
            unit.contains("ExecStart=\"/opt/my plexus\" \"serve\" \"--data-dir\" \"/data/$$x/100%%\"\n"),
            "{unit}"
        );
        assert!(
            unit.contains("KillMode=process\n") && unit.contains("Environment=\"PATH=/bin:/$y%%\"\n"),
            "{unit}"
        );
    }

    #[test]
    fn a_launcher_with_arguments_is_one_word_of_the_unit() {
        let words = ["--claude".to_owned(), "[\"npx\",\"-y\",\"$x\"]".to_owned()];
        let unit = unit(Path::new("/p"), Path::new("/d"), &words, "/bin");
        assert!(unit.contains("\"--claude\" \"[\\\"npx\\\",\\\"-y\\\",\\\"$$x\\\"]\"\n"), "{unit}");
    }
}
