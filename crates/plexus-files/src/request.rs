//! The requests to a helper process. Each [`Verb`] has its own file below `verbs` and its own answer type. It may also
//! take and return a body of raw bytes.

use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::Duration;

use plexus_worktree::{Baseline, InitialState, WorktreeError};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use crate::verbs::append_line::AppendLine;
use crate::verbs::count_changes::CountChanges;
use crate::verbs::create_worktree::CreateWorktree;
use crate::verbs::diff_worktree::DiffWorktree;
use crate::verbs::find_losses::FindLosses;
use crate::verbs::find_pushable::FindPushable;
use crate::verbs::find_transcript::FindTranscript;
use crate::verbs::list_transcripts::ListTranscripts;
use crate::verbs::named_files::NamedFiles;
use crate::verbs::plan_worktree::PlanWorktree;
use crate::verbs::prepare_commit::PrepareCommit;
use crate::verbs::prepare_merge::PrepareMerge;
use crate::verbs::read_file::ReadFile;
use crate::verbs::read_project::ReadProject;
use crate::verbs::read_transcript::ReadTranscript;
use crate::verbs::read_user_config::ReadUserConfig;
use crate::verbs::recover_update::RecoverUpdate;
use crate::verbs::remove_worktree::RemoveWorktree;
use crate::verbs::resolve_dir::ResolveDir;
use crate::verbs::take_baseline::TakeBaseline;
use crate::verbs::update_branch::UpdateBranch;

/// One kind of file work.
pub trait Verb: Into<Request> {
    /// The result. It includes errors of the work itself.
    type Answer: Serialize + DeserializeOwned;

    /// The kind, which determines the limits on time and memory.
    const KIND: Kind;
    /// The largest body that the hub accepts as part of the answer, in bytes.
    const MAX_BODY: u64;

    /// Performs the verb, in the helper process.
    fn perform(self, input: Input) -> (Self::Answer, Output);
}

/// How much time and memory a verb may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Reads a few files.
    Read,
    /// Compares a whole worktree.
    Compare,
    /// Creates or deletes a worktree.
    Create,
}

impl Kind {
    /// The time after which the hub kills the helper.
    pub(crate) fn within(self) -> Duration {
        Duration::from_secs(match self {
            Self::Read => 10,
            Self::Compare => 30,
            Self::Create => 600,
        })
    }

    /// The memory that the helper may allocate, in bytes. A checkout holds whole files of the repository.
    pub(crate) fn memory(self) -> u64 {
        const MIB: u64 = 1024 * 1024;
        match self {
            Self::Read => 256 * MIB,
            Self::Compare => 1024 * MIB,
            Self::Create => 4096 * MIB,
        }
    }
}

/// The verbs, in the form in which the hub sends them.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// See [`AppendLine`].
    AppendLine(AppendLine),
    /// See [`CountChanges`].
    CountChanges(CountChanges),
    /// See [`DiffWorktree`].
    DiffWorktree(DiffWorktree),
    /// See [`FindTranscript`].
    FindTranscript(FindTranscript),
    /// See [`FindLosses`].
    FindLosses(FindLosses),
    /// See [`CreateWorktree`].
    CreateWorktree(CreateWorktree),
    /// See [`ListTranscripts`].
    ListTranscripts(ListTranscripts),
    /// See [`NamedFiles`].
    NamedFiles(NamedFiles),
    /// See [`PlanWorktree`].
    PlanWorktree(PlanWorktree),
    /// See [`PrepareCommit`].
    PrepareCommit(PrepareCommit),
    /// See [`PrepareMerge`].
    PrepareMerge(PrepareMerge),
    /// See [`UpdateBranch`].
    UpdateBranch(UpdateBranch),
    /// See [`RecoverUpdate`].
    RecoverUpdate(RecoverUpdate),
    /// See [`FindPushable`].
    FindPushable(FindPushable),
    /// See [`ReadFile`].
    ReadFile(ReadFile),
    /// See [`ReadProject`].
    ReadProject(ReadProject),
    /// See [`ReadTranscript`].
    ReadTranscript(ReadTranscript),
    /// See [`ReadUserConfig`].
    ReadUserConfig(ReadUserConfig),
    /// See [`RemoveWorktree`].
    RemoveWorktree(RemoveWorktree),
    /// See [`ResolveDir`].
    ResolveDir(ResolveDir),
    /// See [`TakeBaseline`].
    TakeBaseline(TakeBaseline),
}

impl Request {
    /// Performs the verb and encodes its answer.
    pub(crate) fn perform(self, input: Input) -> io::Result<(Vec<u8>, Output)> {
        match self {
            Self::AppendLine(verb) => encoded(verb, input),
            Self::CountChanges(verb) => encoded(verb, input),
            Self::DiffWorktree(verb) => encoded(verb, input),
            Self::FindTranscript(verb) => encoded(verb, input),
            Self::FindLosses(verb) => encoded(verb, input),
            Self::CreateWorktree(verb) => encoded(verb, input),
            Self::ListTranscripts(verb) => encoded(verb, input),
            Self::NamedFiles(verb) => encoded(verb, input),
            Self::PlanWorktree(verb) => encoded(verb, input),
            Self::PrepareCommit(verb) => encoded(verb, input),
            Self::PrepareMerge(verb) => encoded(verb, input),
            Self::UpdateBranch(verb) => encoded(verb, input),
            Self::RecoverUpdate(verb) => encoded(verb, input),
            Self::FindPushable(verb) => encoded(verb, input),
            Self::ReadFile(verb) => encoded(verb, input),
            Self::ReadProject(verb) => encoded(verb, input),
            Self::ReadTranscript(verb) => encoded(verb, input),
            Self::ReadUserConfig(verb) => encoded(verb, input),
            Self::RemoveWorktree(verb) => encoded(verb, input),
            Self::ResolveDir(verb) => encoded(verb, input),
            Self::TakeBaseline(verb) => encoded(verb, input),
        }
    }

    pub(crate) fn kind(&self) -> Kind {
        match self {
            Self::AppendLine(_) => AppendLine::KIND,
            Self::CountChanges(_) => CountChanges::KIND,
            Self::DiffWorktree(_) => DiffWorktree::KIND,
            Self::FindTranscript(_) => FindTranscript::KIND,
            Self::FindLosses(_) => FindLosses::KIND,
            Self::CreateWorktree(_) => CreateWorktree::KIND,
            Self::ListTranscripts(_) => ListTranscripts::KIND,
            Self::NamedFiles(_) => NamedFiles::KIND,
            Self::PlanWorktree(_) => PlanWorktree::KIND,
            Self::PrepareCommit(_) => PrepareCommit::KIND,
            Self::PrepareMerge(_) => PrepareMerge::KIND,
            Self::UpdateBranch(_) => UpdateBranch::KIND,
            Self::RecoverUpdate(_) => RecoverUpdate::KIND,
            Self::FindPushable(_) => FindPushable::KIND,
            Self::ReadFile(_) => ReadFile::KIND,
            Self::ReadProject(_) => ReadProject::KIND,
            Self::ReadTranscript(_) => ReadTranscript::KIND,
            Self::ReadUserConfig(_) => ReadUserConfig::KIND,
            Self::RemoveWorktree(_) => RemoveWorktree::KIND,
            Self::ResolveDir(_) => ResolveDir::KIND,
            Self::TakeBaseline(_) => TakeBaseline::KIND,
        }
    }
}

fn encoded<V: Verb>(verb: V, input: Input) -> io::Result<(Vec<u8>, Output)> {
    let (answer, output) = verb.perform(input);
    Ok((serde_json::to_vec(&answer)?, output))
}

/// The body of a request: a file without a name in any directory.
#[derive(Debug, Default)]
pub struct Input(pub(crate) Option<PathBuf>);

impl Input {
    /// A path that opens the body, if the request has one.
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }

    /// The initial state of a worktree, if the body is its index.
    pub(crate) fn initial_state(self, baseline: Baseline) -> Result<InitialState, WorktreeError> {
        Ok(InitialState { index: self.0.ok_or(WorktreeError::NoRecord)?, baseline })
    }
}

/// The body of an answer.
#[derive(Default)]
pub struct Output {
    pub(crate) content: Option<Box<dyn Read>>,
    pub(crate) length: u64,
}

impl Output {
    /// `length` bytes from a reader.
    pub fn new(content: impl Read + 'static, length: u64) -> Self {
        Self { content: Some(Box::new(content)), length }
    }
}

impl From<Vec<u8>> for Output {
    fn from(content: Vec<u8>) -> Self {
        let length = content.len() as u64;
        Self::new(io::Cursor::new(content), length)
    }
}
