//! The faults of a chaos run with several hubs, drawn from its seed. The plan depends on nothing else, so a seed repeats the order of the faults.

use std::fmt;
use std::time::Duration;

use fastrand::Rng;

use super::link::Direction;

/// A clock that is wrong by this many seconds.
const CLOCKS: [i64; 4] = [0, 0, 90, -90];
/// One fault in this many happens together with another one.
const TOGETHER_ONE_IN: u8 = 3;

/// What is done to hubs, links or the database.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// A hub is killed with SIGKILL, and started again with a clock that is wrong by this many seconds.
    KillHub(usize, Duration, i64),
    /// A hub is stopped with SIGSTOP for this time, and continues.
    StopHub(usize, Duration),
    /// All processes of the database are killed with SIGKILL, and it is started again.
    KillDatabase(Duration),
    /// The database is killed, and a standby with all its commits takes over.
    Promote,
    /// The link of a hub is cut for this time.
    Cut(usize, Duration),
    /// The link of a hub swallows the bytes of a direction for this time.
    Deaf(usize, Direction, Duration),
    /// The link of a hub is slow by the first time for the second.
    Slow(usize, Duration, Duration),
}

impl Fault {
    /// The hub that it is about; `None` if it is about the database.
    fn hub(self) -> Option<usize> {
        match self {
            Self::KillHub(hub, ..)
            | Self::StopHub(hub, _)
            | Self::Cut(hub, _)
            | Self::Deaf(hub, ..)
            | Self::Slow(hub, ..) => Some(hub),
            Self::KillDatabase(_) | Self::Promote => None,
        }
    }

    /// The name of its kind.
    pub(super) fn kind(self) -> &'static str {
        match self {
            Self::KillHub(..) => "kills of a hub",
            Self::StopHub(..) => "stops of a hub",
            Self::KillDatabase(_) => "kills of the database",
            Self::Promote => "promotions of a standby",
            Self::Cut(..) => "cuts",
            Self::Deaf(..) => "deaf links",
            Self::Slow(..) => "slow links",
        }
    }
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::KillHub(hub, away, clock) => write!(f, "kill hub {hub} for {away:?}, clock {clock:+} s"),
            Self::StopHub(hub, time) => write!(f, "stop hub {hub} for {time:?}"),
            Self::KillDatabase(away) => write!(f, "kill the database for {away:?}"),
            Self::Promote => write!(f, "promote a standby"),
            Self::Cut(hub, time) => write!(f, "cut the link of hub {hub} for {time:?}"),
            Self::Deaf(hub, direction, time) => write!(f, "hub {hub} deaf {direction:?} for {time:?}"),
            Self::Slow(hub, by, time) => write!(f, "hub {hub} slow by {by:?} for {time:?}"),
        }
    }
}

/// How many faults there are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Faults {
    /// This many, of random kinds.
    Random(u32),
    /// One of each kind, in a random order.
    EachOnce,
}

/// The faults, in order. Those of a group happen together.
pub fn plan(seed: u64, faults: Faults, hubs: usize) -> Vec<Vec<Fault>> {
    let mut rng = Rng::with_seed(seed);
    match faults {
        Faults::Random(count) => {
            let drawn = (0..count).map(|_| random(&mut rng, hubs)).collect();
            some_together(&mut rng, drawn)
        }
        Faults::EachOnce => each_once(&mut rng, hubs),
    }
}

fn some_together(rng: &mut Rng, mut left: Vec<Fault>) -> Vec<Vec<Fault>> {
    left.reverse();
    let mut groups = Vec::new();
    while let Some(first) = left.pop() {
        let mut group = vec![first];
        // Two faults of one hub, or of the database, do not make sense together.
        if let Some(second) = left.last().copied()
            && first.hub() != second.hub()
            && rng.u8(0..TOGETHER_ONE_IN) == 0
        {
            left.pop();
            group.push(second);
        }
        groups.push(group);
    }
    groups
}

fn millis(rng: &mut Rng, range: std::ops::Range<u64>) -> Duration {
    Duration::from_millis(rng.u64(range))
}

fn direction(rng: &mut Rng) -> Direction {
    if rng.bool() { Direction::ToServer } else { Direction::ToHub }
}

fn random(rng: &mut Rng, hubs: usize) -> Fault {
    let hub = rng.usize(..hubs);
    match rng.u8(0..100) {
        0..35 => {
            let away = if rng.u8(0..4) > 0 { millis(rng, 0..600) } else { millis(rng, 600..4000) };
            Fault::KillHub(hub, away, CLOCKS[rng.usize(..CLOCKS.len())])
        }
        35..50 => Fault::Cut(hub, millis(rng, 0..2500)),
        50..68 => {
            // Longer than a hub waits for an answer, or shorter.
            let time = if rng.u8(0..12) == 0 { Duration::from_secs(33) } else { millis(rng, 200..4000) };
            Fault::Deaf(hub, direction(rng), time)
        }
        68..78 => Fault::Slow(hub, millis(rng, 5..150), millis(rng, 500..3000)),
        78..90 => Fault::KillDatabase(millis(rng, 0..1500)),
        90..95 => Fault::StopHub(hub, millis(rng, 11_000..13_000)),
        _ => Fault::Promote,
    }
}

/// The longest fault happens together with others, so that the run is short.
fn each_once(rng: &mut Rng, hubs: usize) -> Vec<Vec<Fault>> {
    let first = rng.usize(..hubs);
    let [one, two, three] = [0, 1, 2].map(|next| (first + next) % hubs);
    let time = Duration::from_millis;
    let mut groups = vec![
        vec![
            Fault::StopHub(one, time(10_500)),
            Fault::KillDatabase(time(200)),
            Fault::Deaf(two, Direction::ToServer, time(1500)),
            Fault::Cut(three, time(300)),
        ],
        vec![Fault::KillHub(two, Duration::ZERO, 90), Fault::Slow(three, time(50), time(1000))],
        vec![Fault::KillHub(three, time(500), -90), Fault::Deaf(one, Direction::ToHub, time(1500))],
        vec![Fault::Promote],
    ];
    rng.shuffle(&mut groups);
    groups
}
