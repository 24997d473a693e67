//! The keeper alone, for the tests of this crate: `keep keep DIR [MILLISECONDS]`. It works as `plexus keep DIR`, with an optional time limit
//! for the release, because a test cannot wait for 30 s.

use std::path::Path;
use std::time::Duration;

use plexus_agent::{Limits, keep_within};

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let (dir, go) = match args.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["keep", dir] => (dir, None),
        ["keep", dir, go] => (dir, Some(Duration::from_millis(go.parse()?))),
        _ => return Err("usage: keep keep DIR [MILLISECONDS]".into()),
    };
    let limits = Limits::default();
    Ok(keep_within(Path::new(dir), Limits { go: go.unwrap_or(limits.go), ..limits })?)
}
