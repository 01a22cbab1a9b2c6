//! The little language of the tests: a script makes a state, looks and a policy, and prints what is decided.
//!
//! ```text
//! had t#2                            an earlier incarnation of t, by its id
//! have t#1 0@100 1@50[10,20)         positions, with open holes; `C` alone is the group's cluster
//! retire t
//! commit t/0 50..60                  under the present epoch
//! look C t#1 0=0..400 1=? u missing  the cluster, topics with `#id`, `?` for what failed, `-` for no cluster id
//! holes t/0[10,20)=12                its first readable record, or `none`, or `?`
//! firsts t/0=30                      what the broker answered for a new group
//! policy tail=latest new_group=fail accept=D
//! start B t ^u.*                     prints; what is decided is appended, and must decide to nothing a second time
//! unchecked t                        a start by A without a broker
//! run t/0 t/1 : t ^u.*               the same for a running consumer
//! ```

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;

use crate::broker::{Look, PartitionLook, Seen, TopicLook, TopicSelector};
use crate::commit::{self, Checked, Commit};
use crate::entry::{Body, Correction, Draft, Entry, Hole, Move, TopicChange};
use crate::offset::{Group, Offset, OffsetRange, Seq, Timestamp, TopicId, TopicName, TopicPartition};
use crate::positions::State;
use crate::reconcile::{
    Decision, Finding, Holes, LookedInto, Observed, Occasion, Policy, Question, Starter, decide, unchecked,
};

/// Runs `script` and compares what it prints, line by line, blanks around them aside.
pub fn check(script: &str, expected: &str) {
    let mut world = World::default();
    let mut printed = String::new();
    for line in script.lines().map(str::trim).filter(|line| !line.is_empty()) {
        world.run(line, &mut printed);
    }
    let lines = |text: &str| text.lines().map(|l| l.trim().to_owned()).filter(|l| !l.is_empty()).collect::<Vec<_>>();
    assert_eq!(lines(&printed).join("\n"), lines(expected).join("\n"), "\n{script}");
}

pub fn group() -> Group {
    Group::new("default", "g").unwrap()
}

pub fn topic(name: &str) -> TopicName {
    TopicName::new(name).unwrap()
}

pub fn offset(text: &str) -> Offset {
    text.parse().unwrap()
}

/// `t/0`.
pub fn at(text: &str) -> TopicPartition {
    let (name, number) = text.split_once('/').unwrap();
    TopicPartition::new(topic(name), number.parse().unwrap())
}

pub fn id(text: &str) -> TopicId {
    let mut bytes = [0; 16];
    bytes[15] = text.parse().unwrap();
    TopicId::from_bytes(bytes).unwrap()
}

fn seen<T>(text: &str, known: impl Fn(&str) -> T) -> Seen<T> {
    match text {
        "?" => Seen::Failed("timed out".to_owned()),
        "-" | "none" => Seen::Absent,
        text => Seen::Known(known(text)),
    }
}

/// `t#1`, `t`.
fn named(text: &str) -> (TopicName, Seen<TopicId>) {
    let (name, its) = text.split_once('#').unwrap_or((text, "-"));
    (topic(name), seen(its, id))
}

/// `C t#1 0=0..400 1=? u missing v ?`, `0=0..17/10` with a readable end; `nolist` for a list of topics that failed.
pub fn look(text: &str) -> Look {
    let mut words = text.split_whitespace();
    let cluster_id = seen(words.next().unwrap(), str::to_owned);
    let mut look = Look {
        taken_at: Timestamp::default(),
        brokers: "b:9092".to_owned(),
        cluster_id,
        topics: BTreeMap::new(),
        listing: Seen::Known(()),
    };
    let mut name = None;
    for word in words {
        let partitions = |look: &mut Look, of: Seen<BTreeMap<u32, PartitionLook>>| {
            look.topics.get_mut(name.as_ref().unwrap()).unwrap().partitions = of;
        };
        match word.split_once('=') {
            Some((number, ends)) => {
                let topic = look.topics.get_mut(name.as_ref().unwrap()).unwrap();
                let Seen::Known(known) = &mut topic.partitions else { panic!("{word}") };
                known.insert(number.parse().unwrap(), partition(ends));
            }
            None if word == "nolist" => look.listing = Seen::Failed("timed out".to_owned()),
            None if word == "missing" => partitions(&mut look, Seen::Absent),
            None if word == "?" => partitions(&mut look, Seen::Failed("timed out".to_owned())),
            None => {
                let (new, id) = named(word);
                look.topics.insert(new.clone(), TopicLook { id, partitions: Seen::Known(BTreeMap::new()) });
                name = Some(new);
            }
        }
    }
    look
}

fn partition(ends: &str) -> PartitionLook {
    let (ends, readable) = ends.split_once('/').map_or((ends, None), |(ends, end)| (ends, Some(end)));
    let (earliest, latest) = ends.split_once("..").unwrap_or((ends, ends));
    let latest_seen = seen(latest, offset);
    let readable_end = readable.map_or(latest_seen.clone(), |end| seen(end, offset));
    PartitionLook { earliest: seen(earliest, offset), latest: latest_seen, readable_end }
}

/// `[10,20)`.
fn range(text: &str) -> (Offset, Offset) {
    let (from, until) = text.trim_matches(['[', ')']).split_once(',').unwrap();
    (offset(from), offset(until))
}

pub fn selectors<'a>(words: impl Iterator<Item = &'a str>) -> Vec<TopicSelector> {
    words.map(|word| word.parse().unwrap()).collect()
}

pub fn policy(words: &str) -> Policy {
    let mut policy = Policy::default();
    for word in words.split_whitespace() {
        let (what, value) = word.split_once('=').unwrap();
        match what {
            "head" => policy.reset.head = value.parse().unwrap(),
            "tail" => policy.reset.tail = value.parse().unwrap(),
            "recreated" => policy.reset.recreated = value.parse().unwrap(),
            "missing" => policy.reset.missing = value.parse().unwrap(),
            "hole" => policy.reset.hole = value.parse().unwrap(),
            "accept" => policy.accept_cluster = Some(value.to_owned()),
            "new_group" if value.starts_with('{') => policy.new_group = serde_json::from_str(value).unwrap(),
            "new_group" => policy.new_group = value.parse().unwrap(),
            _ => panic!("{word}"),
        }
    }
    policy
}

#[derive(Default)]
pub struct World {
    pub state: State,
    looks: Vec<Observed>,
    holes: Option<Vec<LookedInto>>,
    firsts: BTreeMap<TopicPartition, Seen<Offset>>,
    policy: Policy,
}

impl World {
    fn run(&mut self, line: &str, out: &mut String) {
        let (verb, rest) = line.split_once(' ').unwrap_or((line, ""));
        let words = || rest.split_whitespace();
        match verb {
            "had" | "have" => self.have(words().collect()),
            "retire" => {
                let body = Body::Retired { topic: (rest != "group").then(|| topic(rest)), actor: "op".to_owned() };
                self.append_body(body);
            }
            "commit" => self.commit(rest),
            "look" => {
                let positions = self.state.groups.get(&group()).map(|g| g.positions.clone()).unwrap_or_default();
                self.looks.push(Observed { look: look(rest), positions });
            }
            "holes" => self.holes = Some(words().map(looked).collect()),
            "firsts" => {
                let pairs = words().map(|word| word.split_once('=').unwrap());
                self.firsts = pairs.map(|(partition, value)| (at(partition), seen(value, offset))).collect();
            }
            "policy" => self.policy = policy(rest),
            "start" => {
                let (owner, topics) = rest.split_once(' ').unwrap_or((rest, ""));
                let topics = selectors(topics.split_whitespace());
                self.settle(&topics, Occasion::Start(Starter { owner, isolation: None, kafka_group: None }), out);
            }
            "unchecked" => {
                let topics = selectors(words());
                let state = self.state.groups.get(&group());
                match unchecked(
                    &group(),
                    state,
                    &topics,
                    &self.policy,
                    Starter { owner: "A", isolation: None, kafka_group: None },
                ) {
                    Ok(decision) => {
                        print(&decision, out);
                        let Decision::Decided(decided) = decision else { return };
                        decided.drafts.into_iter().for_each(|draft| self.append(draft));
                    }
                    Err(error) => writeln!(out, "{error}").unwrap(),
                }
            }
            "run" => {
                let (assigned, topics) = rest.split_once(':').unwrap();
                let assigned: BTreeSet<_> = assigned.split_whitespace().map(at).collect();
                let undoubted = self.looks.first().map(|observed| observed.positions.batch);
                let topics = selectors(topics.split_whitespace());
                self.settle(&topics, Occasion::Running { assigned: &assigned, undoubted }, out);
            }
            _ => panic!("{line}"),
        }
    }

    fn settle(&mut self, topics: &[TopicSelector], occasion: Occasion<'_>, out: &mut String) {
        let holes = self.holes.clone().map_or(Holes::NotLooked, Holes::Looked);
        let decision = self.decide(topics, occasion, &holes);
        print(&decision, out);
        if let Decision::Decided(decided) = decision {
            for draft in decided.drafts {
                self.append(draft);
            }
            let Decision::Decided(again) = self.decide(topics, occasion, &holes) else { panic!("not decided again") };
            assert_eq!(again.drafts, [], "a second time nothing is found");
            assert_eq!(again.epoch, decided.epoch);
        }
    }

    fn decide(&self, topics: &[TopicSelector], occasion: Occasion<'_>, holes: &Holes) -> Decision {
        let group = group();
        decide(&Question {
            group: &group,
            state: self.state.groups.get(&group),
            topics,
            observed: self.looks.last().unwrap(),
            earlier: self.looks.iter().rev().nth(1),
            holes,
            firsts: &self.firsts,
            policy: &self.policy,
            occasion,
        })
    }

    fn append_body(&mut self, body: Body) {
        let epoch = self.state.groups.get(&group()).map(|g| g.epoch).unwrap_or_default();
        self.append(Draft { group: Some(group()), epoch, body });
    }

    pub fn append(&mut self, draft: Draft) {
        let Draft { group, epoch, body } = draft;
        let now = Timestamp::default();
        let entry = Entry { seq: self.state.seq.next(), recorded_at: now, machine_clock: now, group, epoch, body };
        self.state.apply(&entry);
    }

    /// The group is A's, at epoch 1.
    fn have(&mut self, words: Vec<&str>) {
        if self.state.groups.is_empty() {
            let body = Body::Started { owner: "A".to_owned(), isolation: Default::default(), kafka_group: None };
            self.append(Draft { group: Some(group()), epoch: "1".parse().unwrap(), body });
        }
        let mut correction = Correction::default();
        for word in words {
            if word.chars().all(|c| c.is_ascii_uppercase()) {
                correction.cluster_id = Some(word.to_owned());
            } else if let Some((number, position)) = word.split_once('@') {
                let (position, holes) = position.split_at(position.find('[').unwrap_or(position.len()));
                let change: &TopicChange = correction.topics.last().unwrap();
                let holes = holes.split_inclusive(')').map(range);
                let seq = Seq::ZERO;
                correction.moves.push(Move {
                    topic: change.topic.clone(),
                    partition: number.parse().unwrap(),
                    topic_id: change.topic_id,
                    old: None,
                    new: Some(offset(position)),
                    holes: holes.map(|(from_offset, until_offset)| Hole { from_offset, until_offset, seq }).collect(),
                    replaying_until: None,
                });
            } else {
                let (topic, id) = named(word);
                let known = &self.state.groups[&group()].positions.topics;
                let new_incarnation = known.contains_key(&topic);
                correction.topics.push(TopicChange { topic, topic_id: id.known().copied(), new_incarnation });
            }
        }
        self.append_body(Body::Reconciled { findings: Vec::new(), correction });
    }

    fn commit(&mut self, text: &str) {
        let (partition, ends) = text.split_once(' ').unwrap();
        let (from, until) = ends.split_once("..").unwrap();
        let at = at(partition);
        let range = OffsetRange::new(at.topic, at.partition, offset(from), offset(until)).unwrap();
        let epoch = self.state.groups[&group()].epoch;
        let commit = Commit::new(group(), epoch, Timestamp::default(), vec![range]).unwrap();
        match commit::check(&self.state, &commit).unwrap() {
            Checked::Append(draft) => self.append(draft),
            Checked::Repeat(_) => panic!("{text} is a repeat"),
        }
    }
}

/// `t/0[10,20)=12`.
fn looked(text: &str) -> LookedInto {
    let (hole, first) = text.split_once('=').unwrap();
    let (partition, ends) = hole.split_at(hole.find('[').unwrap());
    let (at, (from, until)) = (at(partition), range(ends));
    let range = OffsetRange::new(at.topic, at.partition, from, until).unwrap();
    LookedInto { range, first_readable: seen(first, offset) }
}

/// What a decision says, a line a thing.
pub fn print(decision: &Decision, out: &mut String) {
    match decision {
        Decision::LookAgain { unsettled } => unsettled.iter().for_each(|u| writeln!(out, "again {u}").unwrap()),
        Decision::Refused { findings } => {
            writeln!(out, "refused").unwrap();
            findings.iter().for_each(|finding| print_finding(finding, out));
        }
        Decision::Decided(decided) => {
            writeln!(out, "epoch {}", decided.epoch).unwrap();
            for start in &decided.starts {
                writeln!(out, "{} {} {}", start.at, start.offset, start.verdict.as_str()).unwrap();
            }
            decided.findings.iter().for_each(|finding| print_finding(finding, out));
            for finding in &decided.refused {
                out.push_str("refused ");
                print_finding(finding, out);
            }
            decided.drafts.iter().for_each(|draft| print_body(&draft.body, out));
            decided.unsettled.iter().for_each(|u| writeln!(out, "unsettled {u}").unwrap());
        }
    }
}

fn print_finding(finding: &Finding, out: &mut String) {
    write!(out, "found {}", finding.verdict.as_str()).unwrap();
    let topic = finding.topic.iter().map(|topic| format!(" {topic}"));
    topic.chain(finding.partition.map(|number| format!("/{number}"))).for_each(|word| out.push_str(&word));
    let numbers = [("at", finding.position), ("start", finding.start)];
    numbers.iter().filter_map(|(word, n)| Some((word, (*n)?))).for_each(|(w, n)| write!(out, " {w} {n}").unwrap());
    if let Some(loss) = finding.loss {
        write!(out, " loss [{},{})", loss.from_offset, loss.until_offset).unwrap();
    }
    if let Some(detail) = &finding.detail {
        write!(out, " ({detail})").unwrap();
    }
    out.push('\n');
}

fn print_body(body: &Body, out: &mut String) {
    write!(out, "{}", body.kind()).unwrap();
    if let Body::Started { owner, .. } = body {
        write!(out, " {owner}").unwrap();
    }
    if let Some(correction) = body.correction() {
        if let Some(cluster) = &correction.cluster_id {
            write!(out, " cluster {cluster}").unwrap();
        }
        for change in &correction.topics {
            let id = change.topic_id.map_or(String::new(), |id| format!("#{}", id.as_bytes()[15]));
            write!(out, " {}{id}{}", change.topic, if change.new_incarnation { "!" } else { "" }).unwrap();
        }
        for m in &correction.moves {
            let side = |offset: Option<Offset>| offset.map_or("none".to_owned(), |offset| offset.to_string());
            write!(out, " {}/{} {}->{}", m.topic, m.partition, side(m.old), side(m.new)).unwrap();
            m.holes.iter().for_each(|h| write!(out, "[{},{})", h.from_offset, h.until_offset).unwrap());
        }
        for l in &correction.losses {
            let (topic, partition, cause) = (&l.topic, l.partition, l.cause.as_str());
            write!(out, " {cause} {topic}/{partition}[{},{})", l.from_offset, l.until_offset).unwrap();
        }
    }
    out.push('\n');
}
