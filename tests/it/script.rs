//! Scripts: one operation a line goes through the public face of the journal and of `control`, over a scripted broker,
//! and the text that all of them print is compared whole. Only this runner calls the API.
//!
//! ```text
//! broker orders id=A 0:0..520 1:250..400(380)   what the broker says from now on; (380) is the readable end
//! broker orders no-id 0:0..520 | broker orders missing | broker orders error | broker orders id=A 0:?
//! flap orders id=A 0:0..480                     the same for one look only; several are looked at one by one
//! cluster X | times orders/0=50 orders/1=end | kafka orders/0=40 | readable orders/0 100..200 | readable none
//! meanwhile g orders/0 500..505                 a commit that arrives right after the next look
//! no-broker
//! start g owner=a topics=orders,^pat [new=latest] [head=fail] [tail=..] [hole=..] [isolation=..] [dry]
//! look g owner=a topics=orders [undoubted=3]    a running consumer's own look at all that the group has
//! commit g orders/0 500..542 orders/0-99 0..1 [epoch=3] [key=k] [time=..] [id=orders:A] [earliest=orders/0:4]
//! tasks g orders/0 8x25 [looks=10]              8 threads commit 25 ranges of 10 each, out of order
//! seal | reopen (dropped, not closed) | close (and opened again)
//! positions g [@3 | @batch=2] | lag g | epoch g | history g | entries g | losses g | groups
//! mark g name | hold g why | release g | retire g [orders] | acknowledge 3
//! plan g before 7 [clamp] [leave] [unchecked] [hold] [scope=orders:0,1]
//! execute g before 7 | execute last             the newest plan's own request, with its id
//! clock +1h | clock -2h | clock 2026-11-30T10:00:00Z | read-time 2026-11-30T10:00:00
//! ```
//!
//! A word that holds blanks is a JSON string. What is refused is told, and must leave the journal as it was; what is
//! reopened must hold what it held.

pub mod broker;
mod show;
pub mod words;

use std::ops::ControlFlow;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;

use tidelog::commit::Commit;
use tidelog::control::{self, Control, Limits, StartRequest};
use tidelog::entry::{Body, Entry};
use tidelog::journal::{Clock, Durability, Journal, Options, Order};
use tidelog::offset::{BatchNumber, Epoch, Group, Isolation, Seq, Timestamp};
use tidelog::positions::{GroupState, State};
use tidelog::reconcile::Policy;
use tidelog::rollback::Plan;
use tidelog::wire::{self, PositionsAnswer};

use self::broker::ScriptedBroker;
use self::words::Words;

/// Where a script's clock begins.
const BEGIN: &str = "2026-11-30T09:00:00Z";

/// Runs `script`, and compares all that it prints with `expected`. Indentation and empty lines do not count.
#[track_caller]
pub fn check(script: &str, expected: &str) {
    let mut world = World::new();
    let mut said: Vec<(String, &str)> = Vec::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        let text = world.run(line);
        said.extend(text.lines().map(|text| (text.trim().to_owned(), line)));
    }
    let expected: Vec<&str> = expected.lines().map(str::trim).filter(|line| !line.is_empty()).collect();
    let differs = (0..said.len().max(expected.len()))
        .find(|at| said.get(*at).map(|s| s.0.as_str()) != expected.get(*at).copied());
    if let Some(at) = differs {
        let whole: String = said.iter().map(|(text, _)| format!("        {text}\n")).collect();
        let wanted = expected.get(at).unwrap_or(&"(nothing)");
        let (got, by) = said.get(at).map_or(("(nothing)", "the end"), |(text, line)| (text, line));
        panic!("line {} is another one, by: {by}\nwanted {wanted}\nsaid   {got}\nall that it said:\n{whole}", at + 1);
    }
}

/// What an operation says, or why it was refused.
type Said = Result<String, String>;

struct World {
    dir: tempfile::TempDir,
    millis: Arc<AtomicI64>,
    broker: Arc<ScriptedBroker>,
    control: Option<Control>,
    planned: Option<Plan>,
}

impl World {
    fn new() -> World {
        let dir = tempfile::tempdir().expect("a temporary directory");
        let begin: Timestamp = BEGIN.parse().expect("a time");
        let broker = Arc::new(ScriptedBroker::default());
        let mut world =
            World { dir, millis: Arc::new(AtomicI64::new(begin.millis())), broker, control: None, planned: None };
        world.open();
        world
    }

    fn open(&mut self) {
        let millis = Arc::clone(&self.millis);
        let clock: Clock = Arc::new(move || Timestamp::from_millis(millis.load(Ordering::Relaxed)));
        let mut options = Options::new(Arc::clone(&clock));
        (options.create, options.durability) = (true, Durability::Process);
        let journal = Journal::open(&self.dir.path().join("journal"), options).expect("the journal opens");
        let limits = Limits { deadline: Duration::from_millis(250), second_look: Duration::ZERO };
        self.control =
            Some(Control { journal, broker: Some(self.broker.clone()), limits, clock, mirror: Default::default() });
    }

    fn control(&self) -> &Control {
        self.control.as_ref().expect("it is open between operations")
    }

    fn journal(&self) -> &Journal {
        &self.control().journal
    }

    fn state(&self) -> State {
        self.journal().with_state(State::clone)
    }

    fn group(&self, group: &Group) -> Result<GroupState, String> {
        self.journal().group(group).ok_or_else(|| format!("no group {group}"))
    }

    fn run(&mut self, line: &str) -> String {
        let words = Words::split(line);
        let before = self.state();
        let commits_meanwhile = self.broker.has_commits();
        match self.op(&words) {
            Ok(text) => text,
            Err(why) => {
                assert!(commits_meanwhile || self.state() == before, "refused, but the journal changed: {line}");
                format!("refused: {why}")
            }
        }
    }

    fn op(&mut self, words: &Words) -> Said {
        match words.first() {
            "broker" => self.broker.say(words),
            "flap" => self.broker.say_once(words),
            "cluster" => self.broker.cluster(words.text(1)),
            "times" => self.broker.times(words),
            "kafka" => self.broker.kafka(words),
            "members" => self.broker.members(words),
            "refuses" => self.broker.refuses(words),
            "readable" => self.broker.readable(words),
            "meanwhile" => {
                let (journal, commit) = (self.journal().clone(), self.commit(words)?);
                self.broker.after_next_look(move || drop(journal.commit(commit).expect("a commit meanwhile")));
            }
            "no-broker" => self.control.as_mut().expect("open").broker = None,
            "start" => return self.start(words),
            "look" => return self.look(words),
            "commit" => return self.journal().commit(self.commit(words)?).map(|r| show::receipt(&r)).map_err(text),
            "tasks" => return self.tasks(words),
            "seal" => self.journal().seal().expect("a seal"),
            "reopen" | "close" => self.reopen(words.first() == "close"),
            "positions" => return self.positions(words),
            "lag" => return self.lag(words),
            "epoch" => return Ok(show::epoch(&self.group(&words.group()?)?)),
            "history" => return self.history(&words.group()?),
            "entries" => return self.entries(words),
            "losses" => return Ok(show::losses(&wire::losses(&self.group(&words.group()?)?))),
            "groups" => return Ok(self.state().groups.keys().map(|group| format!("{:?}\n", group.group())).collect()),
            "mark" => return told(control::mark(self.control(), &words.group()?, words.text(2), "ann")),
            "hold" => return told(control::hold(self.control(), &words.group()?, "ann", words.text(2))),
            "release" => return told(control::release(self.control(), &words.group()?, "ann")),
            "retire" => {
                let topic = words.get(2).map(|name| name.parse().expect("a topic"));
                return told(control::retire(self.control(), &words.group()?, topic.as_ref(), "ann"));
            }
            "acknowledge" => {
                return told(control::acknowledge(self.control(), words.text(1).parse().expect("a seq"), "ann"));
            }
            "plan" => {
                let plan = control::plan(self.control(), words.plan_request()?).map_err(text)?;
                let said = show::plan(&plan);
                self.planned = Some(plan);
                return Ok(said);
            }
            "execute" => return self.execute(words),
            "clock" => {
                let now = self.millis.load(Ordering::Relaxed);
                self.millis.store(words::moved(now, words.text(1)), Ordering::Relaxed);
            }
            "read-time" => {
                return words.text(1).parse::<Timestamp>().map(|t| format!("{} {t}", t.millis())).map_err(text);
            }
            other => panic!("no operation {other}"),
        }
        Ok(String::new())
    }

    fn start_request(&self, words: &Words) -> Result<StartRequest, String> {
        let mut policy = Policy::default();
        let mut isolation = None;
        for (name, value) in words.options() {
            match name {
                "new" if value.contains('/') => policy.new_group = words::given_offsets(value),
                "new" => policy.new_group = value.parse().map_err(text)?,
                "head" => policy.reset.head = value.parse().map_err(text)?,
                "tail" => policy.reset.tail = value.parse().map_err(text)?,
                "recreated" => policy.reset.recreated = value.parse().map_err(text)?,
                "missing" => policy.reset.missing = value.parse().map_err(text)?,
                "hole" => policy.reset.hole = value.parse().map_err(text)?,
                "cluster" => policy.accept_cluster = Some(value.to_owned()),
                "isolation" if value == "uncommitted" => isolation = Some(Isolation::ReadUncommitted),
                "isolation" => isolation = Some(Isolation::ReadCommitted),
                "owner" | "topics" | "undoubted" => {}
                other => panic!("no option {other}"),
            }
        }
        let topics = words.option("topics").into_iter().flat_map(|topics| topics.split(','));
        Ok(StartRequest {
            group: words.group()?,
            topics: topics.map(|topic| topic.parse().map_err(text)).collect::<Result<_, _>>()?,
            owner: words.option("owner").unwrap_or("a").to_owned(),
            policy,
            isolation,
            kafka_group: None,
            dry_run: words.flag("dry"),
        })
    }

    fn start(&self, words: &Words) -> Said {
        let started = control::start(self.control(), self.start_request(words)?);
        started.map(|started| show::started(&started)).map_err(text)
    }

    fn look(&self, words: &Words) -> Said {
        let request = self.start_request(words)?;
        let assigned = self.group(&request.group)?.positions.iter().map(|(at, _, _)| at).collect();
        let undoubted = words.option("undoubted").map(|batch| batch.parse().expect("a batch"));
        let looked = control::look_while_running(self.control(), &request, &assigned, undoubted);
        looked.map(|looked| show::looked(&looked)).map_err(text)
    }

    fn commit(&self, words: &Words) -> Result<Commit, String> {
        let group = words.group()?;
        let epoch = match words.option("epoch") {
            Some(epoch) => epoch.parse().map_err(text)?,
            None => self.journal().group(&group).map_or(Epoch::ZERO.next(), |group| group.epoch),
        };
        let time = match words.option("time") {
            Some(time) => time.parse().map_err(text)?,
            None => (self.control().clock)(),
        };
        let mut commit = Commit::new(group, epoch, time, words.ranges()?).map_err(text)?;
        if let Some(key) = words.option("key") {
            commit = commit.with_key(key).map_err(text)?;
        }
        if let Some((topic, id)) = words.option("id").and_then(|id| id.split_once(':')) {
            commit = commit.with_topic_id(topic.parse().map_err(text)?, words::topic_id(id));
        }
        if let Some((at, earliest)) = words.option("earliest").and_then(|earliest| earliest.split_once(':')) {
            commit = commit.with_earliest(words::at(at), earliest.parse().map_err(text)?);
        }
        Ok(commit)
    }

    /// Threads that commit ranges of 10 offsets from the position on, none of them in order, while looks are taken.
    fn tasks(&self, words: &Words) -> Said {
        let (group, at) = (words.group()?, words::at(words.text(2)));
        let (threads, each) = words.text(3).split_once('x').expect("8x25");
        let (threads, each): (u64, u64) = (threads.parse().expect("a number"), each.parse().expect("a number"));
        let looks: usize = words.option("looks").map_or(0, |looks| looks.parse().expect("a number"));
        let state = self.group(&group)?;
        let begin = state.positions.get(&at.topic, at.partition).expect("a position").position;
        let epoch = state.epoch;
        std::thread::scope(|scope| {
            for thread in 0..threads {
                let (group, at) = (&group, &at);
                scope.spawn(move || {
                    for index in (0..each).rev() {
                        let from = begin.plus((index * threads + thread) * 10);
                        let range = words::range(at, from, from.plus(10)).expect("a legal range");
                        let time = Timestamp::from_millis(from.get());
                        let commit = Commit::new(group.clone(), epoch, time, vec![range]).expect("a legal commit");
                        self.journal().commit(commit).expect("a commit");
                    }
                });
            }
            let request =
                self.start_request(&Words::split(&format!("look {} owner=a topics={}", group.group(), at.topic)))?;
            for _ in 0..looks {
                let looked = control::look_while_running(self.control(), &request, &[at.clone()].into(), None);
                let looked = looked.map_err(text)?;
                assert!(looked.positions.is_empty() && looked.findings.is_empty(), "{looked:?}");
            }
            Ok::<(), String>(())
        })?;
        let after = self.group(&group)?;
        let batches = after.positions.batch.since(state.positions.batch);
        Ok(format!("{batches} batches, {looks} looks, epoch {} -> {}", epoch, after.epoch))
    }

    fn reopen(&mut self, clean: bool) {
        let (before, entries) = (self.state(), self.all_entries(None));
        let Control { journal, .. } = self.control.take().expect("open");
        match clean {
            true => journal.close().expect("a clean close"),
            false => drop(journal),
        }
        self.open();
        assert_eq!(self.state(), before, "the state after reopening");
        assert_eq!(self.all_entries(None), entries, "the history after reopening");
    }

    fn positions(&self, words: &Words) -> Said {
        let group = words.group()?;
        let seq = match words.get(2).and_then(|word| word.strip_prefix('@')) {
            None => return Ok(show::positions(&self.group(&group)?.positions)),
            Some(at) => match at.strip_prefix("batch=") {
                Some(batch) => {
                    let batch: BatchNumber = batch.parse().expect("a batch");
                    let entry = self.journal().batch(&group, batch).map_err(text)?;
                    entry.ok_or_else(|| format!("no batch {batch}"))?.seq
                }
                None => at.parse().expect("a seq"),
            },
        };
        let as_of = self.journal().positions_as_of(&group, seq).map_err(text)?;
        as_of.map(|as_of| show::positions(&as_of.positions)).ok_or_else(|| format!("nothing at seq {seq}"))
    }

    fn lag(&self, words: &Words) -> Said {
        let group = words.group()?;
        let state = self.group(&group)?;
        let look = self.broker.answer(state.positions.topics.keys().cloned());
        let (seq, batch, recorded_at) = (Seq::ZERO, state.positions.batch, Timestamp::default());
        let as_of = wire::AsOf { seq, batch, recorded_at, clock_uncertain: false };
        Ok(show::lag(&PositionsAnswer::present(&group, &state, as_of, Some(&look))))
    }

    fn all_entries(&self, group: Option<&Group>) -> Vec<Entry> {
        let mut entries = Vec::new();
        let visited = self.journal().visit_entries(group, Seq::ZERO, Order::Ascending, &mut |entry| {
            entries.push(entry);
            ControlFlow::Continue(())
        });
        visited.expect("a read");
        entries
    }

    fn history(&self, group: &Group) -> Said {
        self.group(group)?;
        let batches = self.all_entries(Some(group)).into_iter().filter(|entry| matches!(entry.body, Body::Batch(_)));
        Ok(batches.map(|entry| show::entry(&entry)).collect())
    }

    fn entries(&self, words: &Words) -> Said {
        let group = words.group()?;
        self.group(&group)?;
        let entry = match words.flag("times") {
            true => |entry: &Entry| format!("{} {}", entry.recorded_at, show::entry(entry)),
            false => show::entry,
        };
        Ok(self.all_entries(Some(&group)).iter().map(entry).collect())
    }

    fn execute(&self, words: &Words) -> Said {
        let (request, plan) = match words.text(1) {
            "last" => {
                let plan = self.planned.as_ref().expect("a plan before");
                (plan.execute.clone(), Some(plan.id.as_str()))
            }
            _ => (words.plan_request()?, None),
        };
        let executed = control::execute(self.control(), request, plan, "ann", "why");
        executed.map(|executed| show::executed(&executed)).map_err(text)
    }
}

fn told(entry: Result<Entry, control::SteerError>) -> Said {
    entry.map(|entry| show::entry(&entry)).map_err(text)
}

fn text(error: impl ToString) -> String {
    error.to_string()
}
