//! The identity of a keeper, as the store keeps it and as the process layer uses it.

use plexus_agent::ProcessIdentity;
use plexus_store::RunProcess;

pub(crate) fn to_stored(identity: ProcessIdentity) -> RunProcess {
    let ProcessIdentity { pid, start_time, boot_id } = identity;
    RunProcess { pid, start_time, boot_id }
}

pub(crate) fn from_stored(process: RunProcess) -> ProcessIdentity {
    let RunProcess { pid, start_time, boot_id } = process;
    ProcessIdentity { pid, start_time, boot_id }
}
