//! Checks programs in an argument: scripts of sed and awk that only print and change text, and plain SQL.

/// Whether a sed script prints, deletes and substitutes, and neither runs nor opens anything.
pub(super) fn is_plain_sed(script: &str) -> bool {
    let mut sed = Sed { rest: script };
    sed.commands().is_some()
}

/// The rest of a sed script.
struct Sed<'s> {
    rest: &'s str,
}

impl Sed<'_> {
    fn commands(&mut self) -> Option<()> {
        loop {
            self.rest = self.rest.trim_start_matches([' ', '\t', ';', '\n']);
            if self.rest.is_empty() {
                return Some(());
            }
            self.addresses()?;
            self.rest = self.rest.trim_start_matches([' ', '\t', '!']);
            let command = self.take()?;
            match command {
                '{' => continue,
                'p' | 'd' | 'D' | 'P' | 'n' | 'N' | 'g' | 'G' | 'h' | 'H' | 'x' | '=' | '}' => {}
                'q' | 'Q' | 'l' => self.rest = self.rest.trim_start_matches(|c: char| c.is_ascii_digit()),
                's' | 'y' => {
                    let mark = self.take().filter(|mark| "/|,#:@!%_~+".contains(*mark))?;
                    self.section(mark)?;
                    self.section(mark)?;
                    if command == 's' {
                        let flag =
                            |c: char| matches!(c, 'g' | 'p' | 'i' | 'I' | 'm' | 'M') || c.is_ascii_digit();
                        self.rest = self.rest.trim_start_matches(flag);
                    }
                }
                _ => return None,
            }
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if !self.rest.is_empty() && !self.rest.starts_with([';', '\n', '}']) {
                return None;
            }
        }
    }

    fn addresses(&mut self) -> Option<()> {
        if self.address()? {
            self.rest = self.rest.trim_start_matches([' ', '\t']);
            if let Some(rest) = self.rest.strip_prefix(',') {
                self.rest = rest.trim_start_matches([' ', '\t']);
                return self.address()?.then_some(());
            }
        }
        Some(())
    }

    /// Parses an address, if one starts here.
    fn address(&mut self) -> Option<bool> {
        match self.rest.chars().next() {
            Some('$') => self.rest = &self.rest[1..],
            Some('/') => {
                self.take();
                self.section('/')?;
                self.rest = self.rest.trim_start_matches(['I', 'M']);
            }
            Some(c) if c.is_ascii_digit() || matches!(c, '+' | '~') => {
                self.rest =
                    self.rest.trim_start_matches(|c: char| c.is_ascii_digit() || matches!(c, '+' | '~'));
            }
            _ => return Some(false),
        }
        Some(true)
    }

    fn take(&mut self) -> Option<char> {
        let mut chars = self.rest.chars();
        let next = chars.next()?;
        self.rest = chars.as_str();
        Some(next)
    }

    /// Parses up to and including the delimiter. Versions of sed disagree about a delimiter in brackets or after a
    /// backslash, so both are rejected.
    fn section(&mut self, mark: char) -> Option<()> {
        let mut in_brackets = false;
        loop {
            match self.take()? {
                '\n' => return None,
                '\\' => {
                    // All versions treat `\/` in a pattern between slashes alike.
                    let escaped = self.take()?;
                    if escaped == '\n' || escaped == mark && (mark != '/' || in_brackets) {
                        return None;
                    }
                }
                c if c == mark => return if in_brackets { None } else { Some(()) },
                '[' => in_brackets = true,
                ']' => in_brackets = false,
                _ => {}
            }
        }
    }
}

/// Whether an awk program prints only to its output. Running or opening anything requires one of a few words, or an
/// operator after `print`.
pub(super) fn is_plain_awk(program: &str) -> bool {
    if ["system", "getline", "@", "\\\n", "\r"].iter().any(|risk| program.contains(risk)) {
        return false;
    }
    let from = program.find("print").unwrap_or(program.len());
    !program[from..].contains(['|', '>'])
}

/// Whether a statement for sqlite3 reads and changes only its own database.
pub(super) fn is_plain_sql(statement: &str) -> bool {
    let small = statement.to_ascii_lowercase();
    if let Some(command) = small.trim_start().strip_prefix('.') {
        let name = command.split_whitespace().next().unwrap_or_default();
        let harmless =
            ["tables", "schema", "indexes", "databases", "headers", "mode", "dbinfo", "fullschema"];
        return harmless.contains(&name) && !small.contains('\n');
    }
    let risks = [
        "attach",
        "edit",
        "fts3_tokenizer",
        "load_extension",
        "readfile",
        "temp_store_directory",
        "vacuum",
        "virtual",
        "writefile",
    ];
    let mut names = small.split(|c: char| !(c.is_alphanumeric() || c == '_'));
    // At the start of a line, `.shell` is a command again.
    let commands = small.split(['\n', '\r']).any(|line| line.trim_start().starts_with('.'));
    !commands && !names.any(|name| risks.contains(&name))
}

/// Whether a plain statement for sqlite3 writes nothing. The database may be any file, and a missing one is created.
pub(super) fn only_reads_sql(statement: &str) -> bool {
    let small = statement.to_ascii_lowercase();
    if small.trim_start().starts_with('.') {
        return true;
    }
    let names: Vec<&str> =
        small.split(|c: char| !(c.is_alphanumeric() || c == '_')).filter(|name| !name.is_empty()).collect();
    let writes = ["alter", "analyze", "create", "delete", "drop", "insert", "into", "reindex", "update"];
    let shows = [
        "collation_list",
        "compile_options",
        "database_list",
        "foreign_key_list",
        "index_info",
        "index_list",
        "index_xinfo",
        "integrity_check",
        "quick_check",
        "table_info",
        "table_list",
        "table_xinfo",
    ];
    let plain_pragma = |at: usize| names.get(at + 1).is_some_and(|name| shows.contains(name));
    !names.iter().any(|name| writes.contains(name))
        && (0..names.len()).filter(|at| names[*at] == "pragma").all(plain_pragma)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sed_script_that_prints_or_substitutes_is_plain() {
        for script in [
            "p",
            "1,5p",
            "5p",
            "$p",
            "$!d",
            "10,$p",
            "/foo/p",
            "/a/,/b/p",
            "s/a/b/",
            "s/a/b/g",
            "s|a|b|gp",
            "1d;$d",
            "/^$/d",
            "s/^ *//; s/ *$//",
            "1~2p",
            "/a/,+3p",
            "10q",
            "/x/{p;q}",
            "/x/{s/a/b/;p;}",
            "y/abc/ABC/",
            "=",
            "s/[a-z]*//",
            "s/\\/x/y/",
            "/foo/I,/bar/p",
            "5,10!d",
            "s/a\\.b/c/2",
            "N;P;D",
            "",
        ] {
            assert!(is_plain_sed(script), "{script}");
        }
    }

    #[test]
    fn a_sed_script_that_runs_or_opens_something_is_not() {
        for script in [
            "e",
            "1e id",
            "e id",
            "s/a/b/e",
            "s/a/b/ge",
            "s/a/b/w x",
            "w x",
            "1w x",
            "r x",
            "R x",
            "W x",
            "p;e id",
            "p\ne id",
            "/a/e",
            "{e id\n}",
            "/a/{p;e id\n}",
            "s/a/b/;e",
            "$e",
            "$!e id",
            "1,2e id",
            "s/[/]e/b/e",
            "s,a\\,b,c,",
            "F",
            "a x",
            "i\\\nx",
            "c x",
            "b x",
            "t x",
            ": x",
            "s/a/b/ w x",
            "y/a/b/e",
            "/a/Ie id",
            "s/a\nb/c/",
            "1!e id",
            "v",
            "z;e",
            "p}e id",
            "}e id",
            "1~2e",
            "+1e",
            "qe id",
            "q5e id",
            "l5e id",
            "#n\ne id",
            "s xaxbxe",
        ] {
            assert!(!is_plain_sed(script), "{script}");
        }
    }

    #[test]
    fn an_awk_program_is_plain_unless_it_runs_or_opens_something() {
        for program in [
            "{print $1}",
            "$3 > 5 {print}",
            "/a|b/",
            "NR==1",
            "END{print NR}",
            "a||b {print \"x\"}",
            "{s+=$1} END {print s}",
        ] {
            assert!(is_plain_awk(program), "{program}");
        }
        for program in [
            "{print > \"x\"}",
            "{print | \"sh\"}",
            "BEGIN{system(\"id\")}",
            "{\"id\" | getline}",
            "@load \"x\"",
            "{printf \"%s\", $1 >> \"x\"}",
            "{f=\"system\"; @f(\"id\")}",
            "{print \"a;b\" > \"x\"}",
            "BEGIN{print |& \"sh\"}",
        ] {
            assert!(!is_plain_awk(program), "{program}");
        }
    }

    #[test]
    fn a_writing_statement_is_distinguished_from_a_reading_one() {
        for statement in [
            "select replace(a, 'x', 'y'), updated_at from t",
            "with t as (select 1) select * from t",
            "explain query plan select 1",
            "pragma table_info(t)",
            ".schema",
        ] {
            assert!(only_reads_sql(statement), "{statement}");
        }
        for statement in [
            "create table t(a)",
            "INSERT INTO t values (1)",
            "replace into t values (1)",
            "select 1; drop table t",
            "with x as (select 1) delete from t",
            "pragma user_version(5)",
            "pragma journal_mode=wal",
            "pragma main.user_version=5",
            "update t set a=1",
        ] {
            assert!(!only_reads_sql(statement), "{statement}");
        }
    }

    #[test]
    fn a_statement_is_plain_unless_it_leaves_its_database() {
        for statement in [
            "select 1",
            "select credit, edited_at from t",
            ".tables",
            ".schema users",
            "insert into t values (1); select * from t",
        ] {
            assert!(is_plain_sql(statement), "{statement}");
        }
        for statement in [
            ".shell id",
            ".sh id",
            ".output q",
            ".tables\n.shell id",
            "select 1;\n.shell id",
            "select WriteFile('q', 'x')",
            "attach 'q' as q",
            "vacuum into 'q'",
            "select 1;\r\n.shell id",
            "select 1;\n\t.shell id",
            "select \"edit\"(1)",
            "create virtual table z using zipfile('q')",
        ] {
            assert!(!is_plain_sql(statement), "{statement}");
        }
    }
}
