//! Whatever bytes come, decoders give a value or an error.

use proptest::prelude::*;
use prost::Message;
use slackline_wire::tonic::metadata::{BinaryMetadataValue, MetadataMap, MetadataValue};
use slackline_wire::tonic::{Code, Status};
use slackline_wire::v1::*;
use slackline_wire::{Authority, Identity, Refusal, WireError, client_config};

/// Decodes as `M`; what decodes means the same after another round.
fn round<M: Message + Default + PartialEq + std::fmt::Debug>(bytes: &[u8]) {
    if let Ok(message) = M::decode(bytes) {
        let again = M::decode(message.encode_to_vec().as_slice()).expect("what we encode");
        // NaN is not itself.
        assert_eq!(format!("{message:?}"), format!("{again:?}"));
    }
}

/// Field tags and lengths are likely, so that decoders are reached below the first byte.
fn bytes() -> impl Strategy<Value = Vec<u8>> {
    let likely = prop_oneof![4 => 0u8..0x90, 1 => any::<u8>()];
    prop_oneof![
        proptest::collection::vec(any::<u8>(), 0..600),
        proptest::collection::vec(likely, 0..600),
        // Nested and overlong on purpose.
        (any::<u8>(), 0usize..600).prop_map(|(byte, length)| vec![byte; length]),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, rng_seed: proptest::test_runner::RngSeed::Fixed(7), ..ProptestConfig::default() })]

    #[test]
    fn messages(bytes in bytes()) {
        round::<PushPart>(&bytes);
        round::<PushReply>(&bytes);
        round::<ListPluginsReply>(&bytes);
        round::<ShowPluginReply>(&bytes);
        round::<DeletePluginRequest>(&bytes);
        round::<PushDatasetPart>(&bytes);
        round::<ListDatasetsReply>(&bytes);
        round::<SubmitRequest>(&bytes);
        round::<ShowJobReply>(&bytes);
        round::<ListJobsReply>(&bytes);
        round::<JobEvent>(&bytes);
        round::<ControlJobRequest>(&bytes);
        round::<HistoryReply>(&bytes);
        round::<PredictPart>(&bytes);
        round::<PredictReply>(&bytes);
        round::<ListTablesReply>(&bytes);
        round::<GetRowsRequest>(&bytes);
        round::<GetRowsReply>(&bytes);
        round::<ExportRequest>(&bytes);
        round::<StatusReply>(&bytes);
        round::<ClusterEvent>(&bytes);
    }

    #[test]
    fn statuses(code in -2i32..40, message in any::<String>(), kind in "[ -~]{0,20}", hints in proptest::collection::vec(bytes(), 0..20)) {
        let mut metadata = MetadataMap::new();
        metadata.insert("slackline-kind", MetadataValue::try_from(kind).expect("ascii"));
        for hint in &hints {
            metadata.append_bin("slackline-hint-bin", BinaryMetadataValue::from_bytes(hint));
        }
        let status = Status::with_metadata(Code::from(code), message, metadata);
        let _ = WireError::of(&status).to_string();
        let once = Refusal::of(&status);
        prop_assert!(once.hints.len() <= 8 && once.message.len() <= 2048);
        let escape = once.message.contains('\x1b');
        prop_assert!(!escape);
        // What was cleaned once stays as it is.
        prop_assert_eq!(Refusal::of(&Status::from(once.clone())), once);
    }

    #[test]
    fn certificates(bytes in bytes(), text in any::<String>()) {
        let body = proptest_pem(&bytes);
        for text in [&text, &body] {
            let _ = Identity::from_pem(text, text);
            let _ = Authority::from_pem(text, text);
            let _ = client_config(text, None);
        }
    }
}

fn proptest_pem(bytes: &[u8]) -> String {
    const DIGITS: &[u8; 64] = b"ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    let body: String = bytes.iter().map(|byte| DIGITS[usize::from(byte & 63)] as char).collect();
    let body = &body[..body.len() / 4 * 4];
    format!(
        "-----BEGIN CERTIFICATE-----\n{body}\n-----END CERTIFICATE-----\n-----BEGIN PRIVATE KEY-----\n{body}\n-----END PRIVATE \
         KEY-----\n"
    )
}
