//! Health, readiness and metrics over plain HTTP, for load balancers and Prometheus. It shows no data and changes nothing.

use crate::serve::coordinator::Coordinator;
use axum::Router;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use prometheus::{Encoder, GaugeVec, IntGauge, IntGaugeVec, Opts, Registry, TextEncoder};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use tokio::net::TcpListener;

/// Whether users are served.
pub type Ready = Arc<AtomicBool>;

/// Serves until `shutdown`.
pub async fn serve(
    listener: TcpListener,
    coordinator: Arc<Coordinator>,
    ready: Ready,
    shutdown: impl Future<Output = ()> + Send + 'static,
) -> std::io::Result<()> {
    let router = Router::new()
        .route("/health", get(|| async { "ok\n" }))
        .route("/ready", get(readiness))
        .route("/metrics", get(metrics))
        .with_state((coordinator, ready));
    axum::serve(listener, router).with_graceful_shutdown(shutdown).await
}

async fn readiness(State((_, ready)): State<(Arc<Coordinator>, Ready)>) -> Response {
    match ready.load(Ordering::SeqCst) {
        true => (StatusCode::OK, "ready\n").into_response(),
        false => (StatusCode::SERVICE_UNAVAILABLE, "not ready\n").into_response(),
    }
}

async fn metrics(State((coordinator, _)): State<(Arc<Coordinator>, Ready)>) -> Response {
    match tokio::task::spawn_blocking(move || render(&coordinator)).await {
        Ok(Ok(text)) => ([(header::CONTENT_TYPE, "text/plain; version=0.0.4")], text).into_response(),
        Ok(Err(e)) => (StatusCode::INTERNAL_SERVER_ERROR, e.to_string()).into_response(),
        Err(e) => (StatusCode::INTERNAL_SERVER_ERROR, e.to_string()).into_response(),
    }
}

/// Made anew for each scrape out of the state, so that a job that is gone leaves no series behind.
fn render(coordinator: &Coordinator) -> prometheus::Result<Vec<u8>> {
    let registry = Registry::new();
    let by_job = |name: &str, help: &str, more: &[&str]| -> prometheus::Result<IntGaugeVec> {
        let labels: Vec<&str> = ["tenant", "job"].iter().chain(more).copied().collect();
        let gauge = IntGaugeVec::new(Opts::new(name, help), &labels)?;
        registry.register(Box::new(gauge.clone()))?;
        Ok(gauge)
    };
    let clock = by_job("slackline_job_clock", "Clocks that every worker of the job has ended.", &[])?;
    let state = by_job("slackline_job_state", "1 for the state that the job is in.", &["state"])?;
    let workers = by_job("slackline_job_workers", "Worker slots that the job needs.", &[])?;
    let attempts = by_job("slackline_job_attempts", "Times that a process was started for the job.", &[])?;
    let values =
        GaugeVec::new(Opts::new("slackline_job_metric", "The plugin's newest metrics."), &["tenant", "job", "metric"])?;
    registry.register(Box::new(values.clone()))?;
    let single = |name: &str, help: &str, value: u64| -> prometheus::Result<()> {
        let gauge = IntGauge::new(name, help)?;
        gauge.set(i64::try_from(value).unwrap_or(i64::MAX));
        registry.register(Box::new(gauge))
    };
    let name = &coordinator.config.name;
    let used = coordinator.with(|control| {
        for (tenant, job) in control.jobs() {
            let labels = [tenant.as_str(), &job.id];
            clock.with_label_values(&labels).set(i64::from(job.clock));
            workers.with_label_values(&labels).set(i64::from(job.submission.workers));
            attempts.with_label_values(&labels).set(i64::from(job.attempt));
            state.with_label_values(&[tenant.as_str(), &job.id, &job.state.to_string()]).set(1);
            for (metric, value) in &job.metrics {
                values.with_label_values(&[tenant.as_str(), job.id.as_str(), metric.as_str()]).set(*value);
            }
        }
        control.used(name)
    });
    single("slackline_slots", "Worker slots of this host process.", u64::from(coordinator.config.slots))?;
    single("slackline_slots_used", "Worker slots that are taken.", u64::from(used))?;
    single("slackline_uptime_seconds", "Seconds since this host process began.", coordinator.uptime())?;
    let mut text = Vec::new();
    TextEncoder::new().encode(&registry.gather(), &mut text)?;
    Ok(text)
}
