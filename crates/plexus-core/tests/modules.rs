//! The modules of the core form no import cycle. So a module can be read, tested and changed together with the modules that it imports,
//! without the others.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::{fs, io};

/// The imports of each top-level module.
type Graph = BTreeMap<String, BTreeSet<String>>;

#[test]
fn the_modules_of_the_core_form_no_import_cycle() -> io::Result<()> {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("src");
    let graph = read_graph(&source)?;
    assert!(graph.len() > 30, "the modules were found: {:?}", graph.keys());
    assert!(graph["activations"].contains("hub") && graph["hub"].contains("session"), "imports were found");
    let cycle = find_cycle(&graph);
    assert_eq!(cycle, None, "these modules import each other; move the shared part to a module below both");
    Ok(())
}

#[test]
fn a_cycle_is_found() {
    let graph = |edges: &[(&str, &[&str])]| -> Graph {
        let owned = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
        edges.iter().map(|(from, to)| ((*from).to_owned(), owned(to))).collect()
    };
    assert_eq!(find_cycle(&graph(&[("a", &["b", "c"]), ("b", &["c"]), ("c", &[])])), None);
    let cycle = find_cycle(&graph(&[("a", &["b"]), ("b", &["c"]), ("c", &["b"]), ("d", &[])]));
    assert_eq!(cycle, Some(vec!["b".to_owned(), "c".to_owned()]));
}

#[test]
fn imports_are_read_from_paths_and_groups_and_not_from_comments_or_tests() {
    let exported = BTreeMap::from([("Settings".to_owned(), "settings".to_owned())]);
    let text = "//! See crate::comment.\nuse crate::access::{self, Needs};\nuse crate::{Settings, book::Book};\n\
                fn f() { crate::clock::now(); }\n#[cfg(test)]\nmod tests { use crate::test_only; }\n";
    let found: Vec<String> = imports(text, &exported).into_iter().collect();
    assert_eq!(found, ["access", "book", "clock", "settings"]);
}

fn read_graph(source: &Path) -> io::Result<Graph> {
    let root = fs::read_to_string(source.join("lib.rs"))?;
    let modules: BTreeSet<String> = root
        .lines()
        .filter_map(|line| line.strip_prefix("pub ").unwrap_or(line).strip_prefix("mod "))
        .map(|rest| rest.trim_end_matches(';').to_owned())
        .collect();
    // `pub use module::{A, B}` exports names: `crate::A` is an import of the module.
    let mut exported = BTreeMap::new();
    for (_, statement) in root.split(';').filter_map(|statement| statement.rsplit_once("pub use ")) {
        let Some((module, names)) = statement.split_once("::") else { continue };
        exported.extend(words(names).into_iter().map(|name| (name, module.to_owned())));
    }
    let mut graph = Graph::new();
    for module in &modules {
        let mut texts = Vec::new();
        read_module(&source.join(format!("{module}.rs")), &mut texts)?;
        read_module(&source.join(module), &mut texts)?;
        let imported = texts.iter().flat_map(|text| imports(text, &exported));
        let imported = imported.filter(|name| modules.contains(name) && name != module).collect();
        graph.insert(module.clone(), imported);
    }
    Ok(graph)
}

/// The source of a file, or of all files below a directory; files of tests are left out.
fn read_module(path: &Path, texts: &mut Vec<String>) -> io::Result<()> {
    if path.file_name().is_some_and(|name| name == "tests" || name == "tests.rs" || name == "test_support.rs")
    {
        return Ok(());
    }
    if path.is_dir() {
        for entry in fs::read_dir(path)? {
            read_module(&entry?.path(), texts)?;
        }
    } else if path.is_file() {
        texts.push(fs::read_to_string(path)?);
    }
    Ok(())
}

/// The names that follow `crate::`, with exported names resolved to their modules.
fn imports(text: &str, exported: &BTreeMap<String, String>) -> BTreeSet<String> {
    let code = text.split("#[cfg(test)]\nmod tests {").next().unwrap_or_default();
    let code = code.lines().map(|line| line.split("//").next().unwrap_or_default());
    let code = code.collect::<Vec<_>>().join("\n");
    let mut found = BTreeSet::new();
    for after in code.split("crate::").skip(1) {
        let names: Vec<String> = match after.strip_prefix('{') {
            Some(group) => {
                let group = group.split('}').next().unwrap_or_default();
                group.split(',').filter_map(|path| words(path).into_iter().next()).collect()
            }
            None => words(after).into_iter().take(1).collect(),
        };
        found.extend(names.into_iter().map(|name| exported.get(&name).cloned().unwrap_or(name)));
    }
    found
}

fn words(text: &str) -> Vec<String> {
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    text.split(|c| !is_word(c)).filter(|word| !word.is_empty()).map(str::to_owned).collect()
}

/// Some modules that import each other in a circle.
fn find_cycle(graph: &Graph) -> Option<Vec<String>> {
    let mut left = graph.clone();
    // A module without an import among those left is in no cycle, and neither is one that none of them imports.
    loop {
        let names: BTreeSet<String> = left.keys().cloned().collect();
        let imported: BTreeSet<String> = left.values().flatten().cloned().collect();
        left.retain(|name, imports| !imports.is_disjoint(&names) && imported.contains(name));
        if left.len() == names.len() {
            return (!left.is_empty()).then(|| left.into_keys().collect());
        }
    }
}
