//! What names may look like. They end up in file names, URLs, metrics and tables, so they are plain.

use crate::refusal::Refusal;

const MAX_NAME: usize = 64;

/// Refuses what is no name of a plugin, dataset, job or process. `what` is for the message.
pub fn check_name(what: &str, name: &str) -> Result<(), Refusal> {
    let plain = |c: char| c.is_ascii_alphanumeric() || "-_.".contains(c);
    let good =
        name.len() <= MAX_NAME && name.starts_with(|c: char| c.is_ascii_alphanumeric()) && name.chars().all(plain);
    if good {
        return Ok(());
    }
    let shown: String = name.chars().take(MAX_NAME).collect();
    Err(Refusal::invalid(format!("{shown:?} is no name for a {what}")).hint(format!(
        "a name has 1 to {MAX_NAME} letters, digits, `-`, `_` or `.`, and begins with a letter or digit"
    )))
}

/// Refuses what is no tag: a name, but not a number, since `name@3` is revision 3.
pub fn check_tag(tag: &str) -> Result<(), Refusal> {
    check_name("tag", tag)?;
    if tag.chars().all(|c| c.is_ascii_digit()) {
        return Err(Refusal::invalid(format!("tag {tag:?} is a number")).hint(format!("`@{tag}` means revision {tag}")));
    }
    Ok(())
}

/// Whether `digest` is `blake3:` and 64 lower-case hex digits.
pub fn valid_digest(digest: &str) -> bool {
    let hex = |c: char| c.is_ascii_digit() || ('a'..='f').contains(&c);
    digest.strip_prefix("blake3:").is_some_and(|rest| rest.len() == 64 && rest.chars().all(hex))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn plain_names_pass_and_others_are_named_in_the_refusal() {
        for good in ["a", "lda", "my-plugin_2.1", "0", &"x".repeat(64)] {
            assert!(check_name("plugin", good).is_ok(), "{good}");
        }
        for bad in ["", "-a", ".", "..", "a/b", "a b", "é", "a@1", &"x".repeat(65), "a\n", "\0"] {
            assert!(check_name("plugin", bad).unwrap_err().message.contains("no name for a plugin"), "{bad:?}");
        }
        assert!(check_tag("stable").is_ok() && check_tag("v2").is_ok());
        assert!(check_tag("2").is_err());
    }

    #[test]
    fn digests_are_blake3_in_lower_case_hex() {
        assert!(valid_digest(&format!("blake3:{}", "0a".repeat(32))));
        for bad in ["", "blake3:", &"0a".repeat(32), &format!("blake3:{}", "0A".repeat(32)), "blake3:00"] {
            assert!(!valid_digest(bad), "{bad}");
        }
    }

    proptest! {
        #[test]
        fn no_name_that_passes_can_leave_a_folder(name in ".{0,80}") {
            if check_name("plugin", &name).is_ok() {
                prop_assert!(std::path::Path::new(&name).components().count() == 1 && name != "..");
            }
        }
    }
}
