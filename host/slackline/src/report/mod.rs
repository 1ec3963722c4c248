//! One self-contained HTML page about a run: no scripts, no fonts, nothing fetched. Charts are SVG drawn here.

mod bars;
mod chart;
mod html;
mod page;

use crate::atomic::AtomicFile;
use crate::events::Summary;
use std::io::Write;
use std::path::Path;

/// Writes the page for `summary` to `path`.
pub fn write(path: &Path, summary: &Summary) -> std::io::Result<()> {
    let mut file = AtomicFile::create(path)?;
    file.write_all(render(summary).as_bytes())?;
    file.commit()
}

/// The page for `summary`.
pub fn render(summary: &Summary) -> String {
    page::page(summary)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::events::*;
    use crate::report::html::well_formed;

    fn sample() -> Summary {
        let point = |clock: u32| HistoryPoint {
            clock,
            seconds: f64::from(clock) * 0.4,
            metrics: [
                ("log_likelihood_per_token".to_owned(), -9.0 + 2.0 * (1.0 - (-f64::from(clock) / 9.0).exp())),
                ("train_objective".to_owned(), 2000.0 * (-f64::from(clock) / 6.0).exp() + 0.1),
            ]
            .into_iter()
            .chain(clock.is_multiple_of(10).then(|| ("test_perplexity".to_owned(), 1500.0 - 8.0 * f64::from(clock))))
            .collect(),
        };
        Summary {
            job: "topics".into(),
            clocks: 60,
            seconds: 24.4,
            metrics: [("test_perplexity".to_owned(), 1041.5), ("log_likelihood_per_token".to_owned(), -7.02)].into(),
            staleness: [(0, 41_023), (1, 20_511), (2, 7_002), (3, 411)].into(),
            tables: [(
                "word_topic".to_owned(),
                TableSummary { dtype: "i32".into(), layout: "dense".into(), rows: 10_473, width: 20, bytes: 837_840 },
            )]
            .into(),
            plugin: PluginSummary { name: "lda".into(), digest: format!("blake3:{}", "5f".repeat(32)) },
            workers: (0..4)
                .map(|worker| WorkerTime {
                    worker,
                    compute: 15.0 + f64::from(worker),
                    gate: 4.0 - f64::from(worker),
                    host: 3.0,
                    apply: 1.5,
                })
                .collect(),
            traffic: Traffic {
                rows_read: 12_345_678,
                rows_updated: 9_876_543,
                rows_pulled: 400_000,
                bytes_pulled: 32_000_000,
                rows_pushed: 300_000,
                bytes_pushed: 24_000_000,
            },
            cuts: CutSummary {
                count: 6,
                newest: Some(60),
                bytes: 5 << 20,
                seconds: 0.31,
                clocks: (1..7).map(|c| c * 10).collect(),
            },
            peak_memory_bytes: 180 << 20,
            notices: vec!["2 documents were empty".into()],
            views: vec![ViewResult {
                title: "topics".into(),
                lines: vec![
                    ["oil", "gas", "crude", "barrels", "energy", "opec"].map(String::from).to_vec(),
                    ["bank", "rate", "dollar", "fed", "currency", "yen"].map(String::from).to_vec(),
                ],
            }],
            history: (0..60).map(point).collect(),
            config: vec![("job.name".into(), "topics".into()), ("params.topics".into(), "20".into())],
            ..Summary::default()
        }
    }

    #[test]
    fn the_page_holds_all_parts_and_fetches_nothing() {
        let page = render(&sample());
        for part in [
            "test_perplexity",
            "against clock",
            "against time",
            "How old reads were",
            "Where the time went",
            "wait at the gate",
            "12,345,678",
            "word_topic",
            &"5f".repeat(32),
            "params.topics",
            "crude",
            "2 documents were empty",
            "180.0 MiB",
        ] {
            assert!(page.contains(part), "no {part:?}");
        }
        for forbidden in ["<script", "http://", "https://", "url(", "@import", "<link", "NaN", "inf\""] {
            assert!(!page.contains(forbidden), "has {forbidden:?}");
        }
        well_formed(&page).unwrap();
    }

    #[test]
    fn text_from_outside_is_escaped_everywhere() {
        let evil = "<script>alert('x')</script>\"&";
        let summary = Summary {
            job: evil.into(),
            status: Status::Stopped,
            reason: Some(evil.into()),
            metrics: [(evil.to_owned(), 1.0)].into(),
            tables: [(evil.to_owned(), TableSummary { dtype: evil.into(), ..TableSummary::default() })].into(),
            plugin: PluginSummary { name: evil.into(), digest: evil.into() },
            notices: vec![evil.into()],
            views: vec![ViewResult { title: evil.into(), lines: vec![vec![evil.into()]] }],
            history: vec![HistoryPoint { metrics: [(evil.to_owned(), 1.0)].into(), ..HistoryPoint::default() }],
            config: vec![(evil.into(), evil.into())],
            ..Summary::default()
        };
        let page = render(&summary);
        assert!(!page.contains("<script") && !page.contains("'x'"));
        well_formed(&page).unwrap();
    }

    #[test]
    fn odd_runs_still_make_a_page() {
        let value = |v: f64| HistoryPoint { metrics: [("m".to_owned(), v)].into(), ..HistoryPoint::default() };
        for history in [
            vec![],
            vec![value(1.0)],
            vec![value(0.0), value(0.0)],
            vec![value(f64::NAN), value(1.0), value(f64::INFINITY)],
            vec![value(f64::MAX), value(f64::MIN)],
            vec![value(1e-300), value(1e300)],
        ] {
            let page = render(&Summary { history, workers: vec![WorkerTime::default()], ..Summary::default() });
            assert!(!page.contains("\"NaN") && !page.contains(" NaN") && !page.contains("inf "), "{page}");
            well_formed(&page).unwrap();
        }
    }

    #[test]
    fn the_file_is_the_page() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("report.html");
        write(&path, &sample()).unwrap();

        assert_eq!(std::fs::read_to_string(&path).unwrap(), render(&sample()));
    }
}
