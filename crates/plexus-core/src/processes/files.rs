//! The hub's access to files that children can write. A helper process in the children's sandbox (`plexus-files`)
//! performs every read, comparison, creation and deletion of such files. This module limits how many helpers run at a
//! time and sends them their requests.

use std::path::{Path, PathBuf};
use std::time::Duration;

use plexus_files::{Helper, HelperError, Kind, ReadFile, Verb};
use plexus_store::Slots;
use tokio::io::AsyncWrite;
use tokio_util::sync::CancellationToken;

use crate::processes::sandbox::SandboxSetup;

pub use plexus_files::{FileError, FileRead};

/// The maximum number of helpers of each kind at a time. A helper that an agent causes to hang holds its slot until it
/// is killed.
const MAX_HELPERS: usize = 6;
/// The number of them that callers other than the operator may use.
const MAX_SHARED_HELPERS: usize = 4;
/// How long the hub waits for a helper when it shuts down.
const CLOSE_WITHIN: Duration = Duration::from_secs(10);

/// Access to files that children can write.
#[derive(Debug)]
pub struct Files {
    helper: Helper,
    reads: Slots,
    comparisons: Slots,
    creations: Slots,
    closing: CancellationToken,
}

impl Files {
    /// Helpers in the same sandbox as the children. The hub cancels `closing` when it shuts down.
    pub(crate) fn new(program: PathBuf, sandbox: &SandboxSetup, closing: CancellationToken) -> Self {
        let slots = || Slots::new(MAX_HELPERS, MAX_SHARED_HELPERS);
        let helper = Helper::new(program, sandbox.around(None));
        Self { helper, reads: slots(), comparisons: slots(), creations: slots(), closing }
    }

    /// Reads at most `limit` bytes of a regular file. Links are followed as a child would follow them.
    ///
    /// # Errors
    /// When the file is missing, it is not a regular file, or the helper process fails.
    pub async fn read(&self, path: &Path, limit: u64) -> Result<FileRead, FileError> {
        let mut content = Vec::new();
        let verb = ReadFile { path: path.to_owned(), limit };
        let size = self.call(verb, None, &mut content).await??;
        Ok(FileRead { truncated: size > content.len() as u64, content, size })
    }

    /// Performs a verb in a helper process. The process has ended when this returns.
    pub(crate) async fn call<V: Verb>(
        &self,
        verb: V,
        input: Option<&Path>,
        body: &mut (impl AsyncWrite + Unpin),
    ) -> Result<V::Answer, HelperError> {
        let slots = match V::KIND {
            Kind::Read => &self.reads,
            Kind::Compare => &self.comparisons,
            Kind::Create => &self.creations,
        };
        let closed = async || {
            self.closing.cancelled().await;
            tokio::time::sleep(CLOSE_WITHIN).await;
        };
        let _slot = tokio::select! {
            slot = slots.take() => slot.map_err(|error| HelperError::Failed(error.to_string()))?,
            () = closed() => return Err(HelperError::TimedOut),
        };
        self.helper.call(verb, input, body, closed()).await
    }
}
