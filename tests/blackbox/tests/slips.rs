//! Slips that a newcomer makes in the first hour: each is met by a message that says what to do, before time is spent.

use slackline_blackbox::{digits_job, done, lines, misfit_job, refused, said, say};

#[test]
fn resuming_a_folder_that_is_not_there_is_refused_and_makes_none() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "honest", 0);
    refused(
        &say(dir.path(), &format!("run {job} --state typo --resume")),
        6,
        &["no state folder typo", "leave --resume"],
    );
    assert!(!dir.path().join("typo").exists());
}

#[test]
fn a_state_folder_without_a_cut_stands_in_nobodys_way() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "trap", 0);
    assert!(!say(dir.path(), &format!("run {job} --state s")).status.success());
    let job = misfit_job(dir.path(), "honest", 0);
    assert_eq!(done(&said(dir.path(), &format!("run {job} --json --state s")))["clocks"], 6);
}

#[test]
fn a_report_that_could_not_be_written_is_refused_before_training() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "honest", 0);
    for page in ["no/such/out.html", "."] {
        refused(&say(dir.path(), &format!("run {job} --state s --report {page}")), 2, &["--report", page]);
    }
    assert!(!dir.path().join("s").exists());
}

#[test]
fn a_parameter_by_its_initials_is_recognised() {
    let dir = tempfile::tempdir().unwrap();
    let job = digits_job(dir.path(), "[clock]\nmax = 2\n");
    refused(&say(dir.path(), &format!("run {job} --set lr=0.1")), 2, &["did you mean `learning_rate`"]);
}

#[test]
fn a_run_says_where_its_model_is_and_a_finished_one_that_nothing_was_left() {
    let dir = tempfile::tempdir().unwrap();
    let job = misfit_job(dir.path(), "honest", 0);
    let notices = |words: &str| -> Vec<String> {
        let lines = lines(&said(dir.path(), &format!("run {job} --json --state s {words}")));
        lines.iter().filter_map(|l| l["message"].as_str().map(str::to_owned)).collect()
    };
    assert!(notices("").iter().any(|n| n == "the model is in s"));
    assert!(notices("--resume").iter().any(|n| n.starts_with("6 clocks of 6 were done before")));
}

#[test]
fn predictions_are_made_with_what_the_model_was_trained_with() {
    let dir = tempfile::tempdir().unwrap();
    let job = digits_job(dir.path(), "[clock]\nmax = 20\n");
    said(dir.path(), &format!("run {job} --json --state s"));
    std::fs::copy(
        slackline_blackbox::root().join("examples/digits/data/digits.test.scaled.libsvm"),
        dir.path().join("new.libsvm"),
    )
    .unwrap();
    let predict = |to: &str| {
        said(dir.path(), &format!("predict {job} --state s --input new.libsvm --output {to}"));
        std::fs::read(dir.path().join(to)).unwrap()
    };
    let before = predict("a.csv");
    let text = std::fs::read_to_string(dir.path().join(&job)).unwrap();
    std::fs::write(dir.path().join(&job), text.replace("l2 = 0.001", "l2 = 0.5\noptimizer = \"sgd\"")).unwrap();
    assert_eq!(predict("b.csv"), before);
}
