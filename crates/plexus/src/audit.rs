//! `plexus audit verify` and `export`: read the audit log directly from the database file, so that an auditor neither needs nor
//! trusts a hub. Other subcommands call the running hub.

use std::ffi::OsString;
use std::fs::File;
use std::io::{BufRead as _, BufReader};
use std::path::Path;

use plexus_protocol::audit::{AuditHead, VerifyResult};
use plexus_server::{DataDir, ServeError};
use plexus_store::AuditFile;

use crate::cli::{AuditVerb, ExportArgs, VerifyArgs};
use crate::error::{ExpectedError, system};
use crate::settings::DataDirArg;
use crate::{call, output};

/// Runs a subcommand of `audit`.
pub(crate) fn run(verb: AuditVerb) -> Result<(), ExpectedError> {
    match verb {
        AuditVerb::Verify(args) => verify(&args),
        AuditVerb::Export(args) => export(&args),
        AuditVerb::Call(words) => call::run(std::iter::once(OsString::from("audit")).chain(words).collect()),
    }
}

fn verify(args: &VerifyArgs) -> Result<(), ExpectedError> {
    let log = open(&args.data_dir)?;
    let found = match &args.head {
        Some(file) => log.verify(read_heads(file)?),
        None => log.verify([]),
    };
    let found = found.map_err(ServeError::from)?;
    output::print(&serde_json::to_string_pretty(&found).map_err(system)?);
    match found {
        VerifyResult::Ok { .. } => Ok(()),
        VerifyResult::Broken { number, why } => {
            Err(ExpectedError::Refused(format!("the audit log was changed: entry {number} {why}")))
        }
    }
}

fn export(args: &ExportArgs) -> Result<(), ExpectedError> {
    let exported = open(&args.data_dir)?.export(|line| output::write(&format!("{line}\n")));
    let exported = exported.map_err(ServeError::from)?;
    match exported {
        Ok(()) => Ok(()),
        Err(why) => Err(ExpectedError::Refused(why)),
    }
}

fn open(data_dir: &DataDirArg) -> Result<AuditFile, ExpectedError> {
    Ok(AuditFile::open(&DataDir::store_in(&data_dir.resolve()?)).map_err(ServeError::from)?)
}

/// The heads in a file, in the format of `head_file`. An invalid line is reported and skipped.
fn read_heads(path: &Path) -> Result<impl Iterator<Item = AuditHead>, ExpectedError> {
    let unreadable = |error| ExpectedError::Settings(format!("cannot read {}: {error}", path.display()));
    let file = BufReader::new(File::open(path).map_err(unreadable)?);
    let name = path.display().to_string();
    let lines = file.lines().enumerate();
    Ok(lines.filter_map(move |(index, line)| match line.map(|line| serde_json::from_str(&line)) {
        Ok(Ok(head)) => Some(head),
        _ => {
            output::say(&format!("plexus: warning: line {} of {name} is not a valid head", index + 1));
            None
        }
    }))
}
