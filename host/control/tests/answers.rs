//! What users are told: by name, number, tag and digest, and when they ask for what cannot be.

use slackline_control::*;
use slackline_core::TenantId;

struct Cluster {
    control: Control,
    asked: u32,
}

fn me() -> TenantId {
    TenantId::local()
}

fn digest(n: u8) -> String {
    format!("blake3:{}", format!("{n:02x}").repeat(32))
}

fn push(name: &str, n: u8, tag: Option<&str>, move_tag: bool) -> Request {
    Request::PushPlugin { name: name.into(), tag: tag.map(Into::into), move_tag, digest: digest(n), bytes: 10 }
}

fn submission(name: &str, workers: u32) -> Request {
    let (plugin, digest) = ("p".to_owned(), digest(1));
    let toml = String::new();
    let name = name.to_owned();
    Request::Submit(Submission { name, toml, plugin, digest, revision: 1, workers, max_clocks: None, datasets: vec![] })
}

impl Cluster {
    fn new() -> Self {
        Self { control: Control::default(), asked: 0 }
    }

    fn ask(&mut self, request: Request) -> Result<Answer, Refusal> {
        self.asked += 1;
        let decision = self.control.decide(&me(), &format!("r{}", self.asked), &request, 1)?;
        decision.changes.iter().for_each(|c| self.control.apply(c));
        Ok(decision.answer)
    }

    fn pushed(&mut self, request: Request) -> Pushed {
        match self.ask(request) {
            Ok(Answer::Pushed(pushed)) => pushed,
            other => panic!("{other:?}"),
        }
    }

    fn number(&self, name: &str) -> Result<u32, String> {
        let name: PluginName = name.parse().map_err(|e: Refusal| e.message)?;
        self.control.plugin(&me(), &name).map(|r| r.number).map_err(|e| e.message)
    }

    fn with_process(slots: u32) -> Self {
        let mut cluster = Self::new();
        let process =
            Process { name: "h".into(), roles: vec!["worker".into()], slots, joined: 0, version: String::new() };
        cluster.control.join(process).unwrap();
        cluster
    }

    fn run_queue(&mut self) -> Vec<String> {
        let starts = self.control.place();
        for (tenant, start) in &starts {
            let change = self.control.started(tenant, start, 2);
            self.control.apply(&change);
        }
        starts.into_iter().map(|(_, s)| s.job).collect()
    }

    fn end(&mut self, job: &str, outcome: Outcome) {
        let attempt = self.control.job(&me(), job).unwrap().attempt;
        let change = self.control.observe((&me(), job), attempt, outcome, 3).unwrap();
        self.control.apply(&change);
    }

    fn act(&mut self, job: &str, action: Action) -> Result<JobState, Refusal> {
        self.ask(Request::Act { job: job.into(), action })?;
        self.control.find_job(&me(), job).map(|r| r.state)
    }
}

#[test]
fn revisions_count_up_and_the_same_bytes_are_one() {
    let mut c = Cluster::new();
    assert_eq!(c.pushed(push("p", 1, None, false)).revision.number, 1);
    assert_eq!(c.pushed(push("p", 2, Some("stable"), false)).revision.number, 2);
    let again = c.pushed(push("p", 1, None, false));
    assert!(again.known && again.revision.number == 1);
    assert_eq!((c.number("p"), c.number("p@1"), c.number("p@stable")), (Ok(2), Ok(1), Ok(2)));
    assert_eq!(c.number(&digest(1)), Ok(1));
    for (wrong, says) in [("q", "no plugin"), ("p@9", "no revision 9"), ("p@x", "no tag"), ("p@0", "no revision")] {
        assert!(c.number(wrong).unwrap_err().contains(says), "{wrong}");
    }
}

#[test]
fn a_tag_moves_only_when_that_is_asked_for() {
    let mut c = Cluster::new();
    c.pushed(push("p", 1, Some("stable"), false));
    let refusal = c.ask(push("p", 2, Some("stable"), false)).unwrap_err();
    assert!(refusal.kind == RefusalKind::Conflict && refusal.hint.unwrap().contains("--move-tag"));
    assert_eq!(c.number("p"), Ok(1), "nothing was pushed");
    assert!(c.pushed(push("p", 2, Some("stable"), true)).tag_moved);
    assert_eq!(c.number("p@stable"), Ok(2));
}

#[test]
fn numbers_of_deleted_revisions_are_not_given_again() {
    let mut c = Cluster::new();
    c.pushed(push("p", 1, None, false));
    c.pushed(push("p", 2, None, false));
    c.ask(Request::DeletePlugin { plugin: "p".into() }).unwrap();
    assert!(c.number("p").is_err());
    assert_eq!(c.pushed(push("p", 3, None, false)).revision.number, 3);
}

#[test]
fn what_a_job_needs_cannot_be_deleted() {
    let mut c = Cluster::with_process(2);
    c.pushed(push("p", 1, None, false));
    c.ask(submission("j", 1)).unwrap();
    let refusal = c.ask(Request::DeletePlugin { plugin: "p@1".into() }).unwrap_err();
    assert!(refusal.message.contains("used by job j-1"), "{refusal}");
    c.run_queue();
    c.end("j-1", Outcome::Done(None));
    assert!(c.ask(Request::DeletePlugin { plugin: "p@1".into() }).is_ok());
    assert!(c.control.needs_blob(&digest(1)), "predictions by the finished job need it");
    c.ask(Request::Act { job: "j-1".into(), action: Action::Delete }).unwrap();
    assert!(!c.control.needs_blob(&digest(1)));
}

#[test]
fn a_job_is_found_by_id_and_by_name_while_that_says_which() {
    let mut c = Cluster::with_process(1);
    c.ask(submission("j", 1)).unwrap();
    c.ask(submission("j", 1)).unwrap();
    let refusal = c.control.find_job(&me(), "j").unwrap_err();
    assert!(refusal.hint.unwrap().contains("j-1, j-2"));
    assert_eq!(c.run_queue(), ["j-1"]);
    c.end("j-1", Outcome::Done(None));
    assert_eq!(c.control.find_job(&me(), "j").unwrap().id, "j-2", "the other is over");
    assert!(c.control.find_job(&me(), "k").unwrap_err().message.contains("no job \"k\""));
}

#[test]
fn a_wide_job_finds_room_though_narrow_ones_keep_coming() {
    let mut c = Cluster::with_process(2);
    c.ask(submission("narrow", 1)).unwrap();
    c.ask(submission("wide", 2)).unwrap();
    c.ask(submission("late", 1)).unwrap();
    assert_eq!(c.run_queue(), ["narrow-1"]);
    c.end("narrow-1", Outcome::Done(None));
    assert_eq!(c.run_queue(), ["wide-2"]);
    // One that can never run does not hold up the rest.
    c.ask(submission("giant", 9)).unwrap();
    c.end("wide-2", Outcome::Done(None));
    assert_eq!(c.run_queue(), ["late-3"]);
    let giant = c.control.find_job(&me(), "giant").unwrap();
    assert!(c.control.waits_for(giant).unwrap().contains("needs 9 worker slots"));
}

#[test]
fn pausing_stopping_and_going_on() {
    let mut c = Cluster::with_process(2);
    c.ask(submission("j", 1)).unwrap();
    c.run_queue();
    assert_eq!(c.act("j", Action::Pause), Ok(JobState::Ending));
    assert_eq!(c.act("j", Action::Pause), Ok(JobState::Ending), "asked twice is asked once");
    assert!(c.act("j", Action::Resume).is_err() && c.act("j", Action::Delete).is_err());
    c.end("j-1", Outcome::Interrupted);
    assert_eq!(c.control.find_job(&me(), "j").unwrap().state, JobState::Paused);
    assert!(c.run_queue().is_empty());
    assert_eq!(c.act("j", Action::Resume), Ok(JobState::Queued));
    assert_eq!(c.run_queue(), ["j-1"]);
    assert_eq!(c.act("j", Action::Stop), Ok(JobState::Ending));
    c.end("j-1", Outcome::Lost("signal 9".into()));
    assert_eq!(c.control.find_job(&me(), "j").unwrap().state, JobState::Stopped, "it was to stop, and it has");
}

#[test]
fn a_job_that_is_lost_again_and_again_without_a_clock_fails() {
    let mut c = Cluster::with_process(2);
    c.ask(submission("j", 1)).unwrap();
    let lose = |c: &mut Cluster| {
        assert_eq!(c.run_queue(), ["j-1"]);
        c.end("j-1", Outcome::Lost("signal 9".into()));
    };
    lose(&mut c);
    c.run_queue();
    c.control.progress((&me(), "j-1"), 2, 1, &Default::default());
    c.end("j-1", Outcome::Lost("signal 9".into()));
    lose(&mut c);
    lose(&mut c);
    let job = c.control.find_job(&me(), "j").unwrap();
    assert_eq!((job.state, job.attempt), (JobState::Failed, 4));
    assert!(job.reason.contains("3 times in a row"), "{}", job.reason);
}

#[test]
fn a_process_that_stops_in_good_order_leaves_its_jobs_to_go_on() {
    let mut c = Cluster::with_process(2);
    c.ask(submission("j", 1)).unwrap();
    c.run_queue();
    c.end("j-1", Outcome::Interrupted);
    assert_eq!(c.control.find_job(&me(), "j").unwrap().state, JobState::Queued);
}

#[test]
fn tenants_do_not_see_each_other() {
    let mut c = Cluster::with_process(2);
    c.pushed(push("p", 1, None, false));
    c.ask(submission("j", 1)).unwrap();
    let other = TenantId::new("other");
    assert!(c.control.find_job(&other, "j-1").is_err() && c.control.jobs_of(&other).is_empty());
    assert!(c.control.plugin(&other, &"p".parse().unwrap()).is_err());
    // The same request id means nothing to another tenant.
    assert!(c.control.decide(&other, "r1", &submission("k", 1), 1).is_ok());
}
