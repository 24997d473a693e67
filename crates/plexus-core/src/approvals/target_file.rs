//! The current content of the file that a call will change, so that the approver sees a diff. The child chooses the
//! path, so the sandboxed helper reads the file. Agents do not get the content: otherwise an agent could read files
//! through the calls of its child, without a `Read` call of its own.

use std::path::{Path, PathBuf};

use plexus_protocol::loopback::TargetFile;
use plexus_protocol::{Approval, Object, Principal};

use crate::callers::access::Admitted;
use crate::processes::files::{FileError, Files};

/// The maximum size of a file that is shown, in bytes.
const MAX_BYTES: u64 = 1024 * 1024;

/// The file that this call will change; `None` if it changes none, or if the caller is an agent.
pub(crate) async fn target_file(files: &Files, caller: &Admitted, approval: &Approval) -> Option<TargetFile> {
    if !matches!(caller.principal, Principal::Operator | Principal::Token { .. }) {
        return None;
    }
    let target = target(&approval.tool_name, &approval.input, Path::new(&approval.cwd))?;
    let path = target.to_string_lossy().into_owned();
    let unavailable = |reason: String| TargetFile::Unavailable { path: path.clone(), reason };
    Some(match files.read(&target, MAX_BYTES).await {
        Ok(read) if read.truncated => unavailable(format!("it is larger than {MAX_BYTES} bytes")),
        Ok(read) => match String::from_utf8(read.content) {
            Ok(text) => TargetFile::Text { path, text },
            Err(_) => unavailable("it is not UTF-8 text".to_owned()),
        },
        Err(FileError::NotFound) => TargetFile::Missing { path },
        Err(error) => unavailable(error.to_string()),
    })
}

/// The path in the input of one of Claude Code's editing tools.
fn target(tool_name: &str, input: &Object, cwd: &Path) -> Option<PathBuf> {
    if !matches!(tool_name, "Edit" | "MultiEdit" | "Write") {
        return None;
    }
    let path = input.get("file_path")?.as_str()?;
    Some(cwd.join(path))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn the_path_of_an_editing_tool_is_found() {
        let input = |path: &str| json!({"file_path": path}).as_object().unwrap().clone();
        let found = |tool, path| target(tool, &input(path), Path::new("/work"));
        assert_eq!(found("Write", "/tmp/a"), Some("/tmp/a".into()));
        assert_eq!(found("Edit", "src/a"), Some("/work/src/a".into()));
        assert_eq!(found("Read", "/tmp/a"), None, "reading changes nothing");
        assert_eq!(target("Write", &Object::new(), Path::new("/work")), None);
    }
}
