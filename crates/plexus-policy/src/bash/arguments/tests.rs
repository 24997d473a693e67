//! Tests the argument parser alone: which words a rule must name.

use crate::bash::hazards::{HazardKind, hazards};
use crate::bash::reader;

/// The words of a command that a rule must name, as text; `*` stands for all of them.
fn named(line: &str) -> Vec<String> {
    let script = reader::read(line, 0).expect("a line");
    let words = &script.parts[0].words;
    let mut positions: Vec<usize> = hazards(words).iter().map(|hazard| hazard.at).collect();
    positions.sort_unstable();
    positions.dedup();
    let shown = |at: &usize| match words.get(*at) {
        Some(word) => word.literal().unwrap_or("…").to_owned(),
        None => "*".to_owned(),
    };
    positions.iter().map(shown).collect()
}

#[test]
fn options_that_a_table_lists_are_harmless_in_every_way_of_writing_them() {
    for line in [
        "sort -n -r x",
        "sort -nr x",
        "sort -k2 x",
        "sort -k 2 -t, x",
        "sort --key=2 x",
        "sort --key 2 x",
        "sort -nrk2 x",
        "sort x -u",
        "sort -- -o x",
        "git log -5",
        "git --no-pager log --oneline",
        "git log --color",
        "git log --color=never",
        "go test -run Foo -count=1",
        "go test --run=Foo",
        "npm run test --silent -- --anything -x",
        "tar tzf x.tar",
        "rg --glob='*.rs' \"--regexp=$X\"",
        "git commit -m \"$X\"",
        "python3 x.py --any -thing",
        "cat --no-such-option $X",
    ] {
        assert_eq!(named(line), Vec::<String>::new(), "{line}");
    }
}

#[test]
fn every_other_option_has_to_be_named() {
    for (line, words) in [
        ("sort -o x", &["-o"][..]),
        ("sort -no x", &["-no"]),
        ("sort --output=x", &["--output=x"]),
        ("sort --outp x", &["--outp"]),
        ("sort --reverse=x", &["--reverse=x"]),
        ("sort --rev x", &["--rev"]),
        ("sort -k --output=x", &["--output=x"]),
        ("git --no-pager diff --output=x", &["--output=x"]),
        ("git log $X", &["…"]),
        ("git log \"$X\"", &["…"]),
        ("git log x*", &[]),
        ("git log *", &["…"]),
        ("npm run test ---silent", &["---silent"]),
        ("npm run test -silent", &["-silent"]),
        ("go test -coverprofile=x", &["-coverprofile=x"]),
        ("go test --coverprofile x", &["x"]),
        ("tar tIf e x", &["e"]),
        ("python3 -O -c x", &["-c"]),
        ("mytool -a b --c=d e", &["-a", "--c=d"]),
        ("mytool a -- -f", &[]),
        ("mytool \"$X\"", &["…"]),
        ("mytool x -", &[]),
    ] {
        let words: Vec<String> = words.iter().map(|word| (*word).to_owned()).collect();
        assert_eq!(named(line), words, "{line}");
    }
}

#[test]
fn words_after_an_unknown_option_are_not_trusted() {
    // `--what` may take `--` or the first operand as its value.
    assert_eq!(named("sort --what -- --output=x"), ["--what", "--", "--output=x"]);
    assert_eq!(named("sed --what p x"), ["--what", "p", "x"]);
    assert_eq!(named("git --what log x"), ["--what", "log"]);
    assert_eq!(named("uniq --what a"), ["--what", "a"]);
}

#[test]
fn operands_that_are_outputs_scripts_or_programs_have_to_be_named() {
    assert_eq!(named("uniq a"), Vec::<String>::new());
    assert_eq!(named("uniq -c a b"), ["b"]);
    assert_eq!(named("sed -l 5 '1e id' x"), ["1e id"]);
    assert_eq!(named("sed -n -e p -e '1e id' x"), ["1e id"]);
    assert_eq!(named("make all CC=x"), ["CC=x"]);
    assert_eq!(named("gcc @x"), ["@x"]);
    assert_eq!(named("git config a.b c"), ["c"]);
    assert_eq!(named("git frobnicate -x y"), ["frobnicate", "-x"]);
    assert_eq!(named("npx eslint --fix ."), ["eslint", "--fix"]);
    assert_eq!(named("python3 -m json.tool a b"), ["b"]);
    assert_eq!(named("uv run python -m pytest --junitxml=x"), ["python", "--junitxml=x"]);
    assert_eq!(named("python3 -mpytest -q"), ["*"]);
    assert_eq!(named("cargo test -- --logfile x"), ["--logfile"]);
    assert_eq!(named("sqlite3 x.db"), ["*"]);
}

#[test]
fn running_a_program_is_distinguished_from_writing() {
    let runs = |line: &str| {
        let script = reader::read(line, 0).expect("a line");
        hazards(&script.parts[0].words).iter().any(|hazard| hazard.kind == HazardKind::Runs)
    };
    for line in [
        "tar --to-command=rm -xf a",
        "tar --to-comm=rm -xf a",
        "git -c x=y log",
        "git bisect run rm",
        "sed 'e rm'",
    ] {
        assert!(runs(line), "{line}");
    }
    for line in ["sort -o x", "git diff --output=x", "mytool --x", "mytool $X", "uniq a b"] {
        assert!(!runs(line), "{line}");
    }
}
