//! The memory of a process.

use anyhow::Context as _;

/// The resident memory in bytes: `VmRSS` in `/proc/PID/status`.
pub(crate) fn resident(pid: u32) -> anyhow::Result<f64> {
    let path = format!("/proc/{pid}/status");
    let status = std::fs::read_to_string(&path).with_context(|| path.clone())?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    let kib = line.and_then(|line| line.trim().strip_suffix(" kB")).and_then(|kib| kib.parse::<f64>().ok());
    Ok(kib.with_context(|| format!("{path} has no VmRSS"))? * 1024.0)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_has_memory() -> anyhow::Result<()> {
        assert!(resident(std::process::id())? > 100_000.0);
        Ok(())
    }
}
