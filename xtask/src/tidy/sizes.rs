//! Limits the length of files: a long file is the first sign that it holds more than one idea.

use super::{code_lines, is_test_file};
use crate::finding::Finding;

/// Lines from which a file gets a warning, and the maximum.
struct Limit {
    warn: usize,
    fail: usize,
}

const CODE: Limit = Limit {
    warn: 500,
    fail: 800,
};
/// Tests repeat themselves on purpose.
const TESTS: Limit = Limit {
    warn: 800,
    fail: 1200,
};
/// An inline test module longer than this hides the code above it.
const INLINE_TESTS: usize = 150;

/// Reports a file over its limits.
pub(super) fn too_long(file: &str, text: &str) -> Vec<Finding> {
    let all = text.lines().count();
    if is_test_file(file) {
        return over(file, all, &TESTS).into_iter().collect();
    }
    let code = code_lines(text);
    let mut findings: Vec<Finding> = over(file, code, &CODE).into_iter().collect();
    if all - code > INLINE_TESTS {
        findings.push(Finding::warning(
            file,
            code + 1,
            format!("{} lines of inline tests, over {INLINE_TESTS}", all - code),
            "move them to `tests.rs` beside the module",
        ));
    }
    findings
}

fn over(file: &str, lines: usize, limit: &Limit) -> Option<Finding> {
    let hint = "split the file by idea";
    if lines > limit.fail {
        let message = format!("{lines} lines, over {}", limit.fail);
        return Some(Finding::failure(file, limit.fail + 1, message, hint));
    }
    (lines > limit.warn).then(|| {
        let message = format!("{lines} lines, over {}", limit.warn);
        Finding::warning(file, limit.warn + 1, message, hint)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const NONE: [bool; 0] = [];

    fn failures(file: &str, lines: usize) -> Vec<bool> {
        let text = "x\n".repeat(lines);
        too_long(file, &text)
            .iter()
            .map(Finding::is_failure)
            .collect()
    }

    #[test]
    fn code_warns_past_500_lines_and_fails_past_800() {
        assert_eq!(failures("crates/a/src/lib.rs", 500), NONE);
        assert_eq!(failures("crates/a/src/lib.rs", 501), [false]);
        assert_eq!(failures("crates/a/src/lib.rs", 801), [true]);
    }

    #[test]
    fn tests_have_their_own_limit() {
        assert_eq!(failures("crates/a/tests/it.rs", 800), NONE);
        assert_eq!(failures("crates/a/tests/it.rs", 1201), [true]);
    }

    #[test]
    fn inline_tests_do_not_count_as_code_but_may_not_grow_long() {
        let tests = "x\n".repeat(300);
        let text = format!(
            "{}#[cfg(test)]\nmod tests {{\n{tests}}}\n",
            "x\n".repeat(490)
        );
        let found = too_long("crates/a/src/lib.rs", &text);
        let found: Vec<&str> = found.iter().map(Finding::message).collect();
        assert_eq!(found, ["303 lines of inline tests, over 150"]);
    }
}
