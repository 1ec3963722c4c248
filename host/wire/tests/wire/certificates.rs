//! The authority and its files.

use std::fs;
use std::os::unix::fs::PermissionsExt;

use slackline_wire::{Authority, Identity, Usage, WireError, write_private};
use x509_parser::pem::parse_x509_pem;

#[test]
fn an_authority_goes_through_files_and_issues_on() {
    let folder = tempfile::tempdir().expect("folder");
    let made = Authority::new("slackline of ümlaut").expect("authority");
    let key = folder.path().join("ca.key");
    write_private(&key, &made.key_pem()).expect("write");
    assert_eq!(fs::metadata(&key).expect("there").permissions().mode() & 0o777, 0o600);

    let read = Authority::from_pem(made.certificate_pem(), &fs::read_to_string(&key).expect("read")).expect("load");
    let issued = read.issue("w1", &["localhost".into(), "::1".into()], Usage::Both).expect("issue");
    let (_, leaf) = parse_x509_pem(issued.certificate_pem.as_bytes()).expect("pem");
    let leaf = leaf.parse_x509().expect("leaf");
    let (_, root) = parse_x509_pem(made.certificate_pem().as_bytes()).expect("pem");
    let root = root.parse_x509().expect("root");
    assert_eq!(leaf.issuer(), root.subject());
    assert_eq!(leaf.subject().to_string(), "CN=w1");
    assert!(root.is_ca() && !leaf.is_ca());
    let days = |validity: &x509_parser::certificate::Validity| {
        (validity.not_after.timestamp() - validity.not_before.timestamp()) / 86_400
    };
    assert_eq!((days(root.validity()), days(leaf.validity())), (3650, 730));
    let uses = leaf.extended_key_usage().expect("one").expect("there").value;
    assert!(uses.server_auth && uses.client_auth && !uses.any);
}

#[test]
fn a_key_is_never_overwritten() {
    let folder = tempfile::tempdir().expect("folder");
    let path = folder.path().join("key");
    write_private(&path, "first").expect("write");
    let error = write_private(&path, "second").expect_err("is there");
    assert!(matches!(&error, WireError::File { path: at, .. } if *at == path), "{error:?}");
    assert!(error.to_string().contains("never overwritten"), "{error}");
    assert_eq!(fs::read_to_string(&path).expect("read"), "first");
}

#[test]
fn an_authority_of_two_halves_is_refused() {
    let (a, b) = (Authority::new("a").expect("a"), Authority::new("b").expect("b"));
    let leaf = a.issue("w", &["localhost".into()], Usage::Server).expect("issue");
    for (certificate, key, words) in [
        (a.certificate_pem(), b.key_pem(), "do not belong together"),
        (&leaf.certificate_pem, leaf.key_pem.clone(), "may not issue"),
        ("", a.key_pem(), "not the PEM certificate"),
        (a.certificate_pem(), String::new(), "not a PEM private key"),
    ] {
        let error = Authority::from_pem(certificate, &key).map(drop).expect_err(words);
        assert!(error.to_string().contains(words), "{words:?} in {error}");
    }
}

#[test]
fn names_that_no_certificate_can_have_are_refused() {
    let ours = Authority::new("ours").expect("authority");
    for (name, hosts) in [("", vec!["localhost"]), ("a\nb", vec!["localhost"]), ("w", vec!["a b"]), ("w", vec![])] {
        let hosts: Vec<String> = hosts.into_iter().map(Into::into).collect();
        assert!(ours.issue(name, &hosts, Usage::Server).is_err(), "{name:?} {hosts:?}");
    }
    ours.issue("w", &[], Usage::Client).expect("nobody connects to a client");
}

#[test]
fn an_identity_names_the_file_that_is_wrong() {
    let folder = tempfile::tempdir().expect("folder");
    let file = |name: &str, text: &str| {
        let path = folder.path().join(name);
        fs::write(&path, text).expect("write");
        path
    };
    let ours = Authority::new("ours").expect("authority");
    let issue = || ours.issue("w", &["localhost".into()], Usage::Both).expect("issue");
    let (one, other) = (issue(), issue());
    let (certificate, key) = (file("cert.pem", &one.certificate_pem), file("key.pem", &one.key_pem));
    let identity = Identity::read(&certificate, &key).expect("sound");
    assert!(!format!("{identity:?}").contains("PRIVATE"), "{identity:?}");

    let wrong = file("other.pem", &other.key_pem);
    let text = file("text.pem", "hello");
    let broken = file("broken.pem", "-----BEGIN CERTIFICATE-----\n!!!\n-----END CERTIFICATE-----\n");
    let missing = folder.path().join("missing.pem");
    for (certificate, key, blamed, words) in [
        (&certificate, &wrong, &wrong, "does not belong"),
        (&certificate, &text, &text, "no usable PEM private key"),
        (&text, &key, &text, "no PEM certificate"),
        (&broken, &key, &broken, "not a PEM certificate"),
        (&missing, &key, &missing, "No such file"),
        (&certificate, &missing, &missing, "No such file"),
    ] {
        let error = Identity::read(certificate, key).map(drop).expect_err(words);
        assert!(matches!(&error, WireError::File { path, .. } if path == blamed), "{error:?}");
        assert!(error.to_string().contains(words), "{words:?} in {error}");
    }
}
