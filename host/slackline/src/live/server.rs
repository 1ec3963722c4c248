//! The run's end of the socket. Its threads touch nothing of the run but a channel, and each client has bounds on how many
//! there are, how long a line may be and how long one may take to say it.

use super::protocol::{self, MAX_LINE, Question, read_line};
use super::{SOCKET, Short};
use crate::engine::asks::{Answer, Ask};
use crate::failure::{Exit, Failure};
use crossbeam_channel::{Receiver, Sender, bounded};
use parking_lot::{Condvar, Mutex};
use std::fs::{self, DirBuilder, Permissions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant};

/// Clients at a time.
const MAX_CLIENTS: usize = 16;
/// How long a client may take over one question, or over taking an answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// How long the end of a run waits for answers that are on their way.
const LAST_WORDS: Duration = Duration::from_secs(1);
/// Where a socket is made before everyone can see it.
const NURSERY: &str = ".live.new";

/// A socket that is listened at. Dropped, it goes.
pub struct Server {
    path: PathBuf,
    shared: Arc<Shared>,
}

struct Shared {
    asks: Sender<Ask>,
    folder: Short,
    /// A lock, not atomics: the end waits for `answering` to fall.
    state: Mutex<Clients>,
    answered: Condvar,
}

#[derive(Default)]
struct Clients {
    connected: usize,
    /// Those who have asked and not been answered.
    answering: usize,
    closed: bool,
}

impl Server {
    /// Listens in the state folder `dir`, which this process has to itself: a socket that is there is a dead run's. Answers
    /// where questions come out.
    pub fn open(dir: &Path) -> std::io::Result<(Self, Receiver<Ask>)> {
        let (asks, inbox) = bounded(MAX_CLIENTS);
        let folder = Short::open(dir)?;
        let listener = bind(dir, &folder)?;
        let shared = Arc::new(Shared { asks, folder, state: Mutex::default(), answered: Condvar::new() });
        let server = Self { path: dir.join(SOCKET), shared: shared.clone() };
        std::thread::Builder::new().name("live".into()).spawn(move || shared.accept(&listener))?;
        Ok((server, inbox))
    }
}

/// Binds in a folder that only the owner can enter and moves the socket into place when its mode is right, so that it is
/// nobody else's at any moment.
fn bind(dir: &Path, folder: &Short) -> std::io::Result<UnixListener> {
    let nursery = dir.join(NURSERY);
    let _ = fs::remove_dir_all(&nursery);
    DirBuilder::new().mode(0o700).create(&nursery)?;
    let made = || {
        let listener = UnixListener::bind(folder.path(&format!("{NURSERY}/{SOCKET}")))?;
        let path = nursery.join(SOCKET);
        fs::set_permissions(&path, Permissions::from_mode(0o600))?;
        fs::rename(&path, dir.join(SOCKET))?;
        Ok(listener)
    };
    let listener = made();
    let _ = fs::remove_dir_all(&nursery);
    listener
}

impl Drop for Server {
    fn drop(&mut self) {
        let mut state = self.shared.state.lock();
        state.closed = true;
        let until = Instant::now() + LAST_WORDS;
        while state.answering > 0 && !self.shared.answered.wait_until(&mut state, until).timed_out() {}
        drop(state);
        // So that the thread sees that it is over; where it cannot be reached it goes with the process.
        let _ = UnixStream::connect(self.shared.folder.path(SOCKET));
        let _ = fs::remove_file(&self.path);
    }
}

impl Shared {
    fn accept(self: Arc<Self>, listener: &UnixListener) {
        loop {
            let accepted = listener.accept();
            let mut state = self.state.lock();
            if state.closed {
                return;
            }
            match accepted {
                Ok((client, _)) if state.connected >= MAX_CLIENTS => {
                    drop(state);
                    let _ = client.set_nonblocking(true);
                    let failure = Failure::new(Exit::State, format!("the run has {MAX_CLIENTS} clients already"));
                    let _ = (&client).write_all(&protocol::line(&Err(failure)));
                }
                Ok((client, _)) => {
                    state.connected += 1;
                    drop(state);
                    let shared = self.clone();
                    let thread = std::thread::Builder::new().name("live-client".into()).spawn(move || {
                        shared.serve(&client);
                        shared.state.lock().connected -= 1;
                    });
                    if thread.is_err() {
                        self.state.lock().connected -= 1;
                    }
                }
                // Too many open files, say: others may close theirs.
                Err(_) => {
                    drop(state);
                    std::thread::sleep(Duration::from_millis(50));
                }
            }
        }
    }

    /// Answers a client until it goes, is too slow, or says something that is no line.
    fn serve(&self, client: &UnixStream) {
        let mut rest = Vec::new();
        let _ = client.set_write_timeout(Some(PATIENCE));
        loop {
            let line = match read_line(client, &mut rest, Some(Instant::now() + PATIENCE)) {
                Ok(Some(line)) => line,
                Ok(None) => return,
                Err(e) => {
                    let message = format!("no question came: {e}; a line of at most {MAX_LINE} bytes is waited for");
                    let _ = say(client, &Err(Failure::new(Exit::Usage, message)));
                    return;
                }
            };
            {
                let mut state = self.state.lock();
                if state.closed {
                    return;
                }
                state.answering += 1;
            }
            let said = say(client, &self.ask(&line));
            self.state.lock().answering -= 1;
            self.answered.notify_all();
            if said.is_err() {
                return;
            }
        }
    }

    fn ask(&self, line: &[u8]) -> Result<Answer, Failure> {
        let request = Question::parse(line)?.request()?;
        let over = || Failure::new(Exit::State, "the run has ended");
        let (answer, answered) = bounded(1);
        self.asks.send_timeout(Ask { request, answer }, PATIENCE).map_err(|_| over())?;
        // The run answers, or drops the question when it ends.
        answered.recv().map_err(|_| over())?
    }
}

fn say(mut client: &UnixStream, answer: &Result<Answer, Failure>) -> std::io::Result<()> {
    client.write_all(&protocol::line(answer))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::live::client::ask;
    use std::io::Read;

    /// A run that answers every question that it stops at clock 7.
    fn run(inbox: Receiver<Ask>) {
        std::thread::spawn(move || inbox.iter().for_each(|ask| drop(ask.answer.send(Ok(Answer::Stopping(7))))));
    }

    #[test]
    fn questions_are_answered_under_a_path_of_any_length_and_the_socket_goes_with_the_run() {
        let dir = tempfile::tempdir().unwrap();
        let deep = dir.path().join("long/".repeat(40));
        fs::create_dir_all(&deep).unwrap();
        fs::write(deep.join(SOCKET), "stale").unwrap();
        let (server, inbox) = Server::open(&deep).unwrap();
        run(inbox);
        assert_eq!(fs::metadata(deep.join(SOCKET)).unwrap().permissions().mode() & 0o777, 0o600);
        assert_eq!(ask(&deep, &Question::Stop {}).unwrap()["stops_at"], 7);
        drop(server);
        assert!(fs::read_dir(&deep).unwrap().next().is_none(), "nothing is left");
        assert_eq!(ask(&deep, &Question::Stop {}).unwrap_err().exit, Exit::State);
    }

    #[test]
    fn garbage_is_answered_and_a_crowd_turned_away_while_others_are_served() {
        let dir = tempfile::tempdir().unwrap();
        let (_server, inbox) = Server::open(dir.path()).unwrap();
        run(inbox);
        let connect = || UnixStream::connect(dir.path().join(SOCKET)).unwrap();
        let reply = |mut client: &UnixStream| {
            let mut rest = Vec::new();
            client.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
            let line = read_line(client, &mut rest, Some(Instant::now() + Duration::from_secs(20))).unwrap().unwrap();
            let mut end = [0; 1];
            (String::from_utf8(line).unwrap(), rest.is_empty() && matches!(client.read(&mut end), Ok(0)))
        };
        let mut garbage = connect();
        garbage.write_all(b"\x00\xff{\n").unwrap();
        let mut rest = Vec::new();
        let line = read_line(&garbage, &mut rest, None).unwrap().unwrap();
        assert!(String::from_utf8(line).unwrap().contains("no question"));
        let mut long = connect();
        // The server stops reading at the bound, so that the rest may find it gone.
        let _ = long.write_all(&vec![b'x'; 2 * MAX_LINE]);
        let crowd: Vec<_> = (0..2 * MAX_CLIENTS).map(|_| connect()).collect();
        let (turned, closed) = reply(crowd.last().unwrap());
        assert!(turned.contains("clients already") && closed, "{turned}");
        drop((garbage, long, crowd));
        // Whoever left makes room.
        let until = Instant::now() + Duration::from_secs(20);
        while ask(dir.path(), &Question::Show {}).is_err() {
            assert!(Instant::now() < until);
        }
    }
}
