//! A reader of a journal sees every complete line once, whenever it was written.

#![expect(clippy::unwrap_used, reason = "a test fails by panicking")]

mod common;

use std::fs::File;
use std::io::Write;
use std::sync::mpsc;

use common::within;
use plexus_agent::{Entry, Journal, JournalWatch, MAX_LINE, RunDir};

fn run() -> (tempfile::TempDir, RunDir, File) {
    let home = tempfile::tempdir().unwrap();
    let dir = RunDir::new(home.path().join("1"));
    dir.create().unwrap();
    let file = File::options().append(true).open(dir.journal()).unwrap();
    (home, dir, file)
}

/// Waits for the next lines.
async fn next(journal: &mut Journal) -> Vec<(u64, u64)> {
    within("a line in the journal", async {
        loop {
            journal.changed().await;
            let entries = journal.read(1 << 20).unwrap();
            if !entries.is_empty() {
                return ranges(&entries);
            }
        }
    })
    .await
}

fn ranges(entries: &[Entry]) -> Vec<(u64, u64)> {
    entries.iter().map(|entry| (entry.start, entry.end)).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn growth_is_never_missed() {
    const ROUNDS: usize = 5_000;
    let (_home, dir, mut file) = run();
    let mut journal = Journal::open(&dir, 0, &JournalWatch::new().unwrap()).unwrap();
    // Each line is written at the moment when the reader has read the last one and starts to wait.
    let (told, heard) = mpsc::channel::<()>();
    let writer = std::thread::spawn(move || {
        for round in 0..ROUNDS {
            heard.recv().unwrap();
            let line = format!("{{\"type\":\"{round}\"}}\n");
            let (one, other) = line.split_at(round % line.len());
            file.write_all(one.as_bytes()).unwrap();
            file.write_all(other.as_bytes()).unwrap();
        }
    });
    let mut end = 0;
    for _ in 0..ROUNDS {
        assert!(journal.read(1 << 20).unwrap().is_empty());
        told.send(()).unwrap();
        let [(start, next)] = next(&mut journal).await[..] else { panic!("one line was written") };
        assert_eq!(start, end);
        end = next;
    }
    writer.join().unwrap();
    assert_eq!(end, std::fs::metadata(dir.journal()).unwrap().len());
}

#[tokio::test]
async fn a_cancelled_wait_loses_nothing() {
    let (_home, dir, mut file) = run();
    let mut journal = Journal::open(&dir, 0, &JournalWatch::new().unwrap()).unwrap();
    assert!(journal.read(1000).unwrap().is_empty());
    for _ in 0..100 {
        tokio::select! {
            biased;
            () = journal.changed() => panic!("nothing was written"),
            () = tokio::task::yield_now() => {}
        }
    }
    file.write_all(b"{}\n").unwrap();
    within("growth", journal.changed()).await;
    // The growth is reported again until the reader reads.
    within("growth", journal.changed()).await;
    assert_eq!(ranges(&journal.read(1000).unwrap()), [(0, 3)]);
}

#[tokio::test]
async fn an_incomplete_line_is_read_when_it_is_complete() {
    let (_home, dir, mut file) = run();
    let mut journal = Journal::open(&dir, 0, &JournalWatch::new().unwrap()).unwrap();
    file.write_all("{}\n{\"type\":\"\u{20ac}".as_bytes().split_last().unwrap().1).unwrap();
    assert_eq!(ranges(&journal.read(1000).unwrap()), [(0, 3)]);
    assert!(journal.read(1000).unwrap().is_empty());
    file.write_all(b"\xac\"}\n").unwrap();
    assert_eq!(next(&mut journal).await, [(3, 18)]);
}

#[tokio::test]
async fn reading_starts_at_the_given_offset() {
    let (_home, dir, mut file) = run();
    file.write_all(b"{}\n{ }\n{  }\n{   ").unwrap();
    let mut journal = Journal::open(&dir, 3, &JournalWatch::new().unwrap()).unwrap();
    assert_eq!(ranges(&journal.read(1000).unwrap()), [(3, 7), (7, 12)]);
}

#[tokio::test]
async fn lines_that_were_read_ahead_are_returned_once_and_in_order() {
    let (_home, dir, mut file) = run();
    file.write_all(b"{}\n{ }\n").unwrap();
    let mut journal = Journal::open(&dir, 0, &JournalWatch::new().unwrap()).unwrap();
    journal.read_ahead(1000);
    assert_eq!(journal.waiting().unwrap(), 7, "they are not returned yet");
    file.write_all(b"{  }\n").unwrap();
    journal.read_ahead(1000);
    assert_eq!(next(&mut journal).await, [(0, 3), (3, 7)], "available although the end was reached");
    assert_eq!(next(&mut journal).await, [(7, 12)]);
    assert_eq!(journal.waiting().unwrap(), 0);
}

#[tokio::test]
async fn a_read_returns_about_the_requested_size() {
    let (_home, dir, mut file) = run();
    let line = format!("{{\"text\":\"{}\"}}\n", "x".repeat(99_988));
    for _ in 0..20 {
        file.write_all(line.as_bytes()).unwrap();
    }
    let mut journal = Journal::open(&dir, 0, &JournalWatch::new().unwrap()).unwrap();
    let mut lines = 0;
    loop {
        within("the existing content", journal.changed()).await;
        let read = journal.read(200_000).unwrap().len();
        assert!((1..=3).contains(&read), "{read}");
        lines += read;
        if lines == 20 {
            break;
        }
    }
    assert!(journal.read(200_000).unwrap().is_empty());
}

#[tokio::test]
async fn a_line_over_the_limit_is_returned_as_a_range() {
    let (_home, dir, mut file) = run();
    let text = "x".repeat(MAX_LINE);
    let line = format!("{{\"type\":\"assistant\",\"text\":\"{text}\"}}\n");
    file.write_all(line.as_bytes()).unwrap();
    file.write_all(b"{}\n").unwrap();
    let mut journal = Journal::open(&dir, 0, &JournalWatch::new().unwrap()).unwrap();
    let length = line.len() as u64;
    let mut seen = Vec::new();
    while seen.len() < 2 {
        seen.extend(next(&mut journal).await);
    }
    assert_eq!(seen, [(0, length), (length, length + 3)]);
}

#[tokio::test]
async fn readers_of_one_journal_are_independent() {
    let (_home, dir, mut file) = run();
    let watch = JournalWatch::new().unwrap();
    let mut one = Journal::open(&dir, 0, &watch).unwrap();
    let mut other = Journal::open(&dir, 0, &watch).unwrap();
    assert!(one.read(1000).unwrap().is_empty());
    assert!(other.read(1000).unwrap().is_empty());
    file.write_all(b"{}\n").unwrap();
    assert_eq!(next(&mut one).await, [(0, 3)]);
    drop(one);
    assert_eq!(next(&mut other).await, [(0, 3)]);
    file.write_all(b"{}\n").unwrap();
    assert_eq!(next(&mut other).await, [(3, 6)]);
    drop(other);
    let mut third = Journal::open(&dir, 6, &watch).unwrap();
    assert!(third.read(1000).unwrap().is_empty());
    file.write_all(b"{}\n").unwrap();
    assert_eq!(next(&mut third).await, [(6, 9)]);
}
