//! The processor time that work takes on the whole machine: in the hub, its clients, keepers and agents. It limits how often the work can
//! be done per second.

use std::time::Duration;

use anyhow::Context as _;
use rustix::param::clock_ticks_per_second;

/// Measures the time that all cores work. The machine must do nothing else.
pub(crate) struct Stopwatch {
    started: Duration,
}

impl Stopwatch {
    pub(crate) fn start() -> anyhow::Result<Self> {
        Ok(Self { started: busy()? })
    }

    /// The milliseconds that each of `count` pieces of work took.
    pub(crate) fn ms_per(&self, count: usize) -> anyhow::Result<f64> {
        Ok(busy()?.saturating_sub(self.started).as_secs_f64() * 1000.0 / count.max(1) as f64)
    }
}

/// The time that all cores have worked since the machine started.
fn busy() -> anyhow::Result<Duration> {
    let text = std::fs::read_to_string("/proc/stat").context("/proc/stat")?;
    let ticks = busy_ticks(&text).context("/proc/stat has no line for all cores")?;
    Ok(Duration::from_secs_f64(ticks as f64 / clock_ticks_per_second() as f64))
}

/// The ticks of user, nice, system, interrupts and soft interrupts.
fn busy_ticks(stat: &str) -> Option<u64> {
    let all = stat.lines().find_map(|line| line.strip_prefix("cpu "))?;
    let ticks: Vec<u64> = all.split_whitespace().map_while(|field| field.parse().ok()).collect();
    let &[user, nice, system, _idle, _waiting_for_disk, interrupts, soft_interrupts, ..] = ticks.as_slice()
    else {
        return None;
    };
    Some(user + nice + system + interrupts + soft_interrupts)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn idle_time_and_waiting_for_the_disk_are_not_work() {
        assert_eq!(busy_ticks("cpu  1 20 300 4000 50000 6 7 8 9 10\ncpu0 1 1 1\n"), Some(334));
        assert_eq!(busy_ticks("intr 1"), None);
    }

    #[test]
    fn this_machine_works() -> anyhow::Result<()> {
        assert!(busy()? > Duration::ZERO);
        Ok(())
    }
}
