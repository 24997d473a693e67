//! Benchmarks: ratios in one run.

fn main() {}
