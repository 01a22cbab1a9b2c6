//! A group with its whole history in memory, and a broker that says what it is told: scripts in, text out.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::sync::Arc;

use crate::broker::{Look, PartitionLook, Seen, TopicLook};
use crate::commit::{self, Checked, Commit};
use crate::entry::{Body, Correction, Draft, Entry, Loss, Move, RolledBack, TopicChange};
use crate::offset::{Group, Offset, OffsetRange, Seq, Timestamp, TopicId, TopicName, TopicPartition};
use crate::positions::{GroupState, Positions, State};
use crate::rollback::{
    Decided, Edge, Looked, Meaning, Moment, Order, Plan, PlanRequest, Refused, Target, decide, plan,
};

/// The journal of one group `g`, and what the broker says.
pub struct World {
    /// After each seq; the first is the empty state.
    pub states: Vec<State>,
    pub entries: Vec<Entry>,
    pub look: Option<Look>,
    pub times: BTreeMap<TopicPartition, Seen<Offset>>,
    pub planned: Option<Plan>,
}

pub fn group() -> Group {
    Group::new("default", "g").unwrap()
}

pub fn at(text: &str) -> TopicPartition {
    let (topic, partition) = text.split_once('/').unwrap();
    TopicPartition::new(TopicName::new(topic).unwrap(), partition.parse().unwrap())
}

pub fn topic_id(text: &str) -> TopicId {
    TopicId::from_bytes([text.as_bytes()[0]; 16]).unwrap()
}

fn offset(text: &str) -> Offset {
    text.parse().unwrap()
}

impl World {
    pub fn new() -> Self {
        World { states: vec![State::default()], entries: Vec::new(), look: None, times: BTreeMap::new(), planned: None }
    }

    pub fn state(&self) -> &State {
        self.states.last().unwrap()
    }

    pub fn group(&self) -> &GroupState {
        &self.state().groups[&group()]
    }

    pub fn positions(&self) -> &Positions {
        &self.group().positions
    }

    pub fn append(&mut self, draft: Draft) -> &Entry {
        let mut state = self.state().clone();
        let seq = state.seq.next();
        // One entry a second, from a round number on.
        let recorded_at = Timestamp::from_millis(1_000_000_000_000 + seq.get() * 1_000);
        let Draft { group, epoch, body } = draft;
        let entry = Entry { seq, recorded_at, machine_clock: recorded_at, group, epoch, body };
        state.apply(&entry);
        self.states.push(state);
        self.entries.push(entry);
        self.entries.last().unwrap()
    }

    fn change(&mut self, body: Body, raise: bool) {
        let epoch = self.state().groups.get(&group()).map(|group| group.epoch).unwrap_or_default();
        let epoch = if raise { epoch.next() } else { epoch };
        self.append(Draft { group: Some(group()), epoch, body });
    }

    fn correct(&mut self, topics: Vec<TopicChange>, places: &[&str], raise: bool) {
        let moves = places.iter().map(|place| {
            let (place, new) = place.split_once('=').unwrap();
            let TopicPartition { topic, partition } = at(place);
            let (new, holes) = (Some(offset(new)), Vec::new());
            Move { topic, partition, topic_id: None, old: None, new, holes, replaying_until: None }
        });
        let correction = Correction { topics, moves: moves.collect(), ..Correction::default() };
        self.change(Body::Reconciled { findings: Vec::new(), correction }, raise);
    }

    pub fn commit(&mut self, ranges: &[&str]) {
        let ranges = ranges.iter().map(|text| {
            let (place, range) = text.split_once(':').unwrap();
            let (from, until) = range.split_once("..").unwrap();
            let TopicPartition { topic, partition } = at(place);
            OffsetRange::new(topic, partition, offset(from), offset(until)).unwrap()
        });
        let time = Timestamp::from_millis(self.state().seq.get());
        let commit = Commit::new(group(), self.group().epoch, time, ranges.collect()).unwrap();
        match commit::check(self.state(), &commit).unwrap() {
            Checked::Append(draft) => drop(self.append(draft)),
            Checked::Repeat(_) => panic!("no script repeats a commit"),
        }
    }

    /// `broker t A 0:0..520 1:?`, `broker t missing`, `broker t silent`; `-` is no id.
    fn broker(&mut self, words: &[&str]) {
        let look = self.look.get_or_insert_with(|| Look {
            taken_at: Timestamp::default(),
            brokers: "b:9092".to_owned(),
            cluster_id: Seen::Absent,
            topics: BTreeMap::new(),
            listing: Seen::Known(()),
        });
        let failed = || Seen::Failed("timed out".to_owned());
        let (id, partitions) = match words[1] {
            "missing" => (Seen::Absent, Seen::Absent),
            "silent" => (failed(), Seen::Failed("timed out".to_owned())),
            id => {
                let partitions = words[2..].iter().map(|text| {
                    let (number, log) = text.split_once(':').unwrap();
                    let ends = log.split_once("..").map(|(from, until)| (offset(from), offset(until)));
                    let seen = |end: Option<Offset>| end.map_or(Seen::Failed("no leader".to_owned()), Seen::Known);
                    let (earliest, latest) = (seen(ends.map(|ends| ends.0)), seen(ends.map(|ends| ends.1)));
                    let readable_end = latest.clone();
                    (number.parse().unwrap(), PartitionLook { earliest, latest, readable_end })
                });
                (if id == "-" { Seen::Absent } else { Seen::Known(topic_id(id)) }, Seen::Known(partitions.collect()))
            }
        };
        look.topics.insert(TopicName::new(words[0]).unwrap(), TopicLook { id, partitions });
    }

    pub fn looked(&self, request: &PlanRequest) -> Option<Looked> {
        let look = self.look.clone().filter(|_| !request.unchecked)?;
        Some(Looked { look, before: self.positions().clone() })
    }

    fn as_of(&self, seq: usize, again: Vec<OffsetRange>) -> Meaning {
        let state = &self.states[seq];
        let positions = Arc::new(state.groups[&group()].positions.clone());
        let moment = Moment { seq: state.seq, batch: positions.batch, recorded_at: state.recorded_at };
        Meaning::AsOf { moment, positions, again }
    }

    /// Reads the history as the control layer does, only simpler.
    pub fn meaning(&self, target: &Target) -> Meaning {
        let index = |seq: Seq| usize::try_from(seq.as_u64()).unwrap();
        match target {
            Target::Batch { batch, edge } => {
                let found = self.entries.iter().find_map(|entry| match &entry.body {
                    Body::Batch(body) if body.batch == *batch => Some((index(entry.seq), body.ranges.clone())),
                    _ => None,
                });
                let (seq, ranges) = found.expect("a batch of the script");
                match edge {
                    Edge::After => self.as_of(seq, Vec::new()),
                    Edge::Before => self.as_of(seq - 1, ranges),
                }
            }
            Target::Seq(seq) => self.as_of(index(*seq), Vec::new()),
            Target::Undo => {
                let of = self.group().last_move.expect("a move of the script");
                let moved = |seq: Seq| match &self.entries[index(seq) - 1].body {
                    Body::RolledBack(RolledBack { correction, undoes, .. }) => (correction.moves.clone(), *undoes),
                    _ => panic!("a move is a rolled_back"),
                };
                let before = Arc::new(self.states[index(of) - 1].groups[&group()].positions.clone());
                let (moves, mut undoes) = moved(of);
                let mut first = moves.clone();
                while let Some(seq) = undoes {
                    (first, undoes) = moved(seq);
                }
                Meaning::Undo { of, moves, before, first }
            }
            Target::Earliest => Meaning::Earliest,
            Target::Latest => Meaning::Latest,
            Target::Offset(offset) => Meaning::Offset(*offset),
            Target::Shift(shift) => Meaning::Shift(*shift),
            Target::Offsets(offsets) => Meaning::Offsets(offsets.clone()),
            Target::RecordTime(_) | Target::Duration(_) => Meaning::RecordTime(self.times.clone()),
            Target::CommitTime(_) => Meaning::Present,
            Target::Mark(_) => panic!("marks are the control layer's"),
        }
    }

    pub fn plan(&self, request: &PlanRequest) -> Plan {
        plan(request, self.group(), &self.meaning(&request.to), self.looked(request).as_ref())
    }

    /// Executes `planned` as it was given.
    pub fn execute(&mut self, planned: &Plan) -> Result<(Vec<Entry>, Decided), Refused> {
        let order = Order {
            request: planned.execute.clone(),
            plan: Some(planned.id.clone()),
            meaning: self.meaning(&planned.execute.to),
            looked: self.looked(&planned.execute),
            actor: "ann".to_owned(),
            reason: "test".to_owned(),
        };
        let (drafts, decided) = decide(self.state(), &order)?;
        Ok((drafts.into_iter().map(|draft| self.append(draft).clone()).collect(), decided))
    }

    /// Runs one line of a script; what it says.
    pub fn run(&mut self, line: &str) -> String {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[0] {
            "topic" => {
                let id = (words[2] != "-").then(|| topic_id(words[2]));
                let change =
                    TopicChange { topic: TopicName::new(words[1]).unwrap(), topic_id: id, new_incarnation: false };
                let first = self.entries.is_empty();
                self.correct(vec![change], &words[3..], first);
            }
            "recreated" => {
                let topic = TopicName::new(words[1]).unwrap();
                let id = Some(topic_id(words[2]));
                self.correct(vec![TopicChange { topic, topic_id: id, new_incarnation: true }], &words[3..], true);
            }
            "commit" => self.commit(&words[1..]),
            "retire" => {
                let topic = Some(TopicName::new(words[1]).unwrap());
                self.change(Body::Retired { topic, actor: "ann".to_owned() }, false);
            }
            "acknowledge" => {
                self.change(Body::LossAcknowledged { of: words[1].parse().unwrap(), actor: "ann".to_owned() }, false);
            }
            "broker" => self.broker(&words[1..]),
            "times" => {
                for word in &words[1..] {
                    let (place, time) = word.split_once('=').unwrap();
                    let seen = match time {
                        "end" => Seen::Absent,
                        "?" => Seen::Failed("timed out".to_owned()),
                        time => Seen::Known(offset(time)),
                    };
                    self.times.insert(at(place), seen);
                }
            }
            "plan" => {
                let planned = self.plan(&request(&words[1..]));
                let text = show_plan(&planned);
                self.planned = Some(planned);
                return text;
            }
            "execute" => {
                let planned = self.planned.clone().expect("a plan before");
                return match self.execute(&planned) {
                    Ok((entries, decided)) => show_executed(&entries, &decided),
                    Err(Refused::Outdated(plan)) => format!("outdated\n{}", show_plan(&plan)),
                    Err(refused) => format!("{refused}\n"),
                };
            }
            "positions" => return show_positions(self.positions()),
            other => panic!("no command {other}"),
        }
        String::new()
    }
}

/// `before 3 in t:0,1 allow_clamp`
pub fn request(words: &[&str]) -> PlanRequest {
    let word = |index: usize| words.get(index).copied().unwrap_or_default();
    let (to, used) = match word(0) {
        "before" => (Target::Batch { batch: word(1).parse().unwrap(), edge: Edge::Before }, 2),
        "after" => (Target::Batch { batch: word(1).parse().unwrap(), edge: Edge::After }, 2),
        "seq" => (Target::Seq(word(1).parse().unwrap()), 2),
        "undo" => (Target::Undo, 1),
        "earliest" => (Target::Earliest, 1),
        "latest" => (Target::Latest, 1),
        "offset" => (Target::Offset(offset(word(1))), 2),
        "shift" => (Target::Shift(word(1).parse().unwrap()), 2),
        "time" => (Target::RecordTime(Timestamp::default()), 1),
        "now" => (Target::CommitTime(Timestamp::from_millis(i64::MAX)), 1),
        "offsets" => {
            let list = word(1).split(',').map(|text| text.split_once('=').unwrap());
            (Target::Offsets(list.map(|(place, to)| (at(place), offset(to))).collect()), 2)
        }
        other => panic!("no target {other}"),
    };
    let mut request = PlanRequest::new(group(), to);
    let mut words = words[used..].iter();
    while let Some(word) = words.next() {
        match *word {
            "in" => request.scope.push(words.next().unwrap().parse().unwrap()),
            "allow_clamp" => request.allow_clamp = true,
            "leave_unmovable" => request.leave_unmovable = true,
            "unchecked" => request.unchecked = true,
            "hold" => request.hold = true,
            other => panic!("no flag {other}"),
        }
    }
    request
}

fn show_plan(plan: &Plan) -> String {
    let mut text = String::new();
    for planned in &plan.partitions {
        let target = planned.target.map_or("-".to_owned(), |target| target.to_string());
        let _ = write!(text, "{} {} -> {target}", planned.at, planned.position);
        if planned.target != Some(planned.start) {
            let _ = write!(text, " start {}", planned.start);
        }
        let _ = write!(text, " {}", planned.outcome.as_str());
        for (word, count) in [("replayed", planned.replayed), ("skipped", planned.skipped), ("lost", planned.lost)] {
            if count > 0 {
                let _ = write!(text, " {word} {count}");
            }
        }
        text.push('\n');
    }
    for refusal in &plan.refusals {
        let _ = writeln!(text, "refused: {}", refusal.why);
    }
    if plan.nothing_to_do {
        text.push_str("nothing to do\n");
    }
    text
}

fn show_executed(entries: &[Entry], decided: &Decided) -> String {
    let mut text = String::new();
    match decided {
        Decided::NothingToDo(_) => text.push_str("nothing done\n"),
        Decided::Repeated(seq) => drop(writeln!(text, "repeated: seq {seq}")),
        Decided::Moves => {}
    }
    for entry in entries {
        match &entry.body {
            Body::RolledBack(RolledBack { target, undoes, correction, .. }) => {
                let undoes = undoes.map(|seq| format!(", undoes {seq}")).unwrap_or_default();
                let _ = writeln!(text, "seq {} epoch {}: {target}{undoes}", entry.seq, entry.epoch);
                for Move { topic, partition, old, new, holes, replaying_until, .. } in &correction.moves {
                    let (old, new) = (old.unwrap(), new.unwrap());
                    let _ = write!(text, "{topic}/{partition} {old} -> {new}");
                    for hole in holes {
                        let _ = write!(text, " hole {}..{}", hole.from_offset, hole.until_offset);
                    }
                    if let Some(until) = replaying_until {
                        let _ = write!(text, " replaying until {until}");
                    }
                    text.push('\n');
                }
                for Loss { topic, partition, from_offset, until_offset, cause } in &correction.losses {
                    let _ = writeln!(text, "loss {topic}/{partition} {from_offset}..{until_offset} {}", cause.as_str());
                }
            }
            body => drop(writeln!(text, "seq {} epoch {}: {}", entry.seq, entry.epoch, body.kind())),
        }
    }
    text
}

pub fn show_positions(positions: &Positions) -> String {
    let mut text = String::new();
    for (at, _, partition) in positions.iter() {
        let _ = write!(text, "{at} {}", partition.position);
        for hole in &partition.holes {
            let _ = write!(text, " hole {}..{}", hole.from_offset, hole.until_offset);
        }
        if let Some(until) = partition.replaying_until {
            let _ = write!(text, " replaying until {until}");
        }
        text.push('\n');
    }
    text
}
