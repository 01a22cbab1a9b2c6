//! What the operations of a script say.

use std::fmt::{Display, Write as _};

use tidelog::commit::Receipt;
use tidelog::control::{Executed, Looked, Started};
use tidelog::entry::{Body, Correction, Entry, Finding, Hole, Move, Note, NoteKind, RolledBack};
use tidelog::offset::Isolation;
use tidelog::positions::{GroupState, Positions};
use tidelog::reconcile::StartPosition;
use tidelog::rollback::Plan;
use tidelog::wire::{LossLine, PositionsAnswer};

fn or_dash(value: Option<impl Display>) -> String {
    value.map_or_else(|| "-".to_owned(), |value| value.to_string())
}

/// Many of a kind, shortened: a case of 100,000 partitions is not read line by line.
fn few(lines: impl Iterator<Item = String>) -> String {
    const SHOWN: usize = 8;
    let lines: Vec<String> = lines.collect();
    let mut text = lines.iter().take(SHOWN).cloned().collect::<String>();
    if lines.len() > SHOWN {
        let _ = writeln!(text, "and {} more", lines.len() - SHOWN);
    }
    text
}

pub fn started(started: &Started) -> String {
    let positions = few(started.positions.iter().map(start));
    let findings: String = started.findings.iter().map(finding).collect();
    format!("started epoch {} seq {}\n{positions}{findings}", started.epoch, started.seq)
}

pub fn looked(looked: &Looked) -> String {
    let positions = few(looked.positions.iter().map(start));
    let findings: String = looked.findings.iter().map(finding).collect();
    let unsettled: String = looked.unsettled.iter().map(|unsettled| format!("unsettled {unsettled}\n")).collect();
    format!("looked epoch {} seq {}\n{positions}{findings}{unsettled}", looked.epoch, looked.seq)
}

fn start(start: &StartPosition) -> String {
    let mut text = format!("{} from {} {}", start.at, start.offset, start.verdict.as_str());
    if let Some(end) = start.readable_end.filter(|end| Some(*end) != start.latest) {
        let _ = write!(text, " readable to {end}");
    }
    if let Some(until) = start.replaying_until {
        let _ = write!(text, " replaying to {until}");
    }
    text + "\n"
}

fn finding(finding: &Finding) -> String {
    let mut text = "found ".to_owned();
    match (&finding.topic, finding.partition) {
        (Some(topic), Some(partition)) => text += &format!("{topic}/{partition} "),
        (Some(topic), None) => text += &format!("{topic} "),
        (None, _) => {}
    }
    let Finding { verdict, position, earliest, latest, start, .. } = finding;
    let _ = write!(text, "{} {} -> {}", verdict.as_str(), or_dash(*position), or_dash(*start));
    let _ = write!(text, " in {}..{}", or_dash(*earliest), or_dash(*latest));
    if let Some(lost) = finding.loss {
        let _ = write!(text, " lost [{},{})", lost.from_offset, lost.until_offset);
    }
    if let Some(detail) = &finding.detail {
        let _ = write!(text, ": {detail}");
    }
    text + "\n"
}

pub fn receipt(receipt: &Receipt) -> String {
    let again = if receipt.repeated { " again" } else { "" };
    format!("batch {} seq {}{again}{}\n", receipt.batch, receipt.seq, notes(&receipt.notes))
}

fn notes(notes: &[Note]) -> String {
    let one = |note: &Note| {
        let kind = match note.note {
            NoteKind::Hole => "hole",
            NoteKind::Overlap => "overlap",
            NoteKind::Late => "late",
            NoteKind::First => "first",
        };
        format!(", {kind} {}/{} [{},{})", note.topic, note.partition, note.from_offset, note.until_offset)
    };
    match notes.len() {
        0..=8 => notes.iter().map(one).collect(),
        many => format!(", {many} notes"),
    }
}

fn holes(holes: &[Hole]) -> String {
    match holes.len() {
        0..=8 => holes.iter().map(|hole| format!(" hole [{},{})", hole.from_offset, hole.until_offset)).collect(),
        many => format!(" {many} holes"),
    }
}

pub fn positions(positions: &Positions) -> String {
    let lines = positions.iter().map(|(at, topic, partition)| {
        let mut text = format!("{at} {}{}", partition.position, holes(&partition.holes));
        if let Some(until) = partition.replaying_until {
            let _ = write!(text, " replaying to {until}");
        }
        if topic.retired {
            text.push_str(" retired");
        }
        text + "\n"
    });
    few(lines)
}

pub fn lag(answer: &PositionsAnswer) -> String {
    let line = |line: &tidelog::wire::Position| {
        let lag = line.lag.as_ref().map(|lag| lag.0);
        format!(
            "{}/{} at {} end {} lag {}\n",
            line.topic,
            line.partition,
            line.offset,
            or_dash(line.readable_end),
            or_dash(lag)
        )
    };
    answer.positions.iter().map(line).collect()
}

pub fn epoch(group: &GroupState) -> String {
    let owner = or_dash(group.owner.as_ref());
    let raised_by = group.raised_by.as_ref().map_or_else(String::new, |raised_by| {
        format!(" by {} {} seq {}", raised_by.kind, or_dash(raised_by.by.as_ref()), raised_by.seq)
    });
    let picked_up = group.picked_up.as_ref().filter(|picked_up| picked_up.epoch == group.epoch);
    let picked_up =
        picked_up.map_or("not picked up".to_owned(), |p| format!("picked up by {}", or_dash(p.owner.as_ref())));
    format!("epoch {}{raised_by}, owner {owner}, {picked_up}\n", group.epoch)
}

pub fn losses(losses: &[LossLine]) -> String {
    let line = |line: &LossLine| {
        format!(
            "{}/{} [{},{}) {} seq {}\n",
            line.topic, line.partition, line.from_offset, line.until_offset, line.cause, line.seq
        )
    };
    few(losses.iter().map(line))
}

pub fn entry(entry: &Entry) -> String {
    let mut text = format!("{} {}", entry.seq, entry.body.kind());
    match &entry.body {
        Body::Batch(batch) => {
            let _ = write!(text, " {}", batch.batch);
            match batch.ranges.len() {
                0..=8 => batch.ranges.iter().for_each(|range| text += &format!(" {range}")),
                many => text += &format!(" {many} ranges"),
            }
            if let Some(key) = &batch.key {
                let _ = write!(text, " key {key:?}");
            }
            text += &notes(&batch.notes);
        }
        Body::Started { owner, isolation, kafka_group: _ } => {
            let _ = write!(text, " by {owner}");
            if *isolation == Isolation::ReadUncommitted {
                text.push_str(" uncommitted");
            }
        }
        Body::Reconciled { correction, .. }
        | Body::PartitionsAdded { correction, .. }
        | Body::Imported { correction, .. } => {
            text += &self::correction(correction);
        }
        Body::RolledBack(RolledBack { target, undoes, correction, .. }) => {
            let _ = write!(text, " {target}{}", self::correction(correction));
            if let Some(undoes) = undoes {
                let _ = write!(text, ", undoes {undoes}");
            }
        }
        Body::KafkaResult { of, .. } => text += &format!(" of {of}"),
        Body::Held { reason, actor } => text += &format!(" by {actor}: {reason}"),
        Body::Released { actor } => text += &format!(" by {actor}"),
        Body::Retired { topic, actor } => text += &format!(" {} by {actor}", or_dash(topic.as_ref())),
        Body::Mark { name, actor } => text += &format!(" {name:?} by {actor}"),
        Body::LossAcknowledged { of, actor } => text += &format!(" {of} by {actor}"),
        Body::Pruned { through, .. } => text += &format!(" through {through}"),
    }
    let _ = writeln!(text, " (epoch {})", entry.epoch);
    text
}

fn correction(correction: &Correction) -> String {
    let mut text = String::new();
    for change in correction.topics.iter().filter(|change| change.new_incarnation) {
        let _ = write!(text, ", {} is another topic", change.topic);
    }
    if correction.moves.len() > 8 {
        let _ = write!(text, ", {} moves", correction.moves.len());
    } else {
        correction.moves.iter().for_each(|moved| text += &format!(",{}", self::moved(moved)));
    }
    for loss in &correction.losses {
        let (from, until) = (loss.from_offset, loss.until_offset);
        let _ = write!(text, ", lost {}/{} [{from},{until}) {}", loss.topic, loss.partition, loss.cause.as_str());
    }
    if let Some(id) = &correction.cluster_id {
        let _ = write!(text, ", cluster {id}");
    }
    text
}

fn moved(moved: &Move) -> String {
    let (old, new) = (or_dash(moved.old), or_dash(moved.new));
    let mut text = format!(" {}/{} {old} -> {new}{}", moved.topic, moved.partition, holes(&moved.holes));
    if let Some(until) = moved.replaying_until {
        let _ = write!(text, " replaying to {until}");
    }
    text
}

pub fn plan(plan: &Plan) -> String {
    let mut text = String::new();
    if let Some(moment) = plan.moment {
        let _ = writeln!(text, "to seq {} batch {} of {}", moment.seq, moment.batch, moment.recorded_at);
    }
    text += &few(plan.partitions.iter().map(|planned| {
        let mut text = format!("{} {} -> {}", planned.at, planned.position, or_dash(planned.target));
        if planned.target != Some(planned.start) {
            let _ = write!(text, " start {}", planned.start);
        }
        let _ = write!(text, " {}", planned.outcome.as_str());
        for (word, count) in [("replayed", planned.replayed), ("skipped", planned.skipped), ("lost", planned.lost)] {
            if count > 0 {
                let _ = write!(text, " {word} {count}");
            }
        }
        text + "\n"
    }));
    text += &few(plan.refusals.iter().map(|refusal| format!("not executable: {}\n", refusal.why)));
    for (is, line) in [(plan.nothing_to_do, "nothing to do"), (plan.clock_uncertain, "clock uncertain")] {
        if is {
            let _ = writeln!(text, "{line}");
        }
    }
    text
}

pub fn executed(executed: &Executed) -> String {
    let again = if executed.repeated { " again" } else { "" };
    let uncertain = if executed.clock_uncertain { ", clock uncertain" } else { "" };
    let Some(seq) = executed.seq else { return format!("nothing done, epoch {}{uncertain}\n", executed.epoch) };
    let moves: String = executed.moves.iter().map(|moved| format!("{}\n", self::moved(moved))).collect();
    format!("executed seq {seq} epoch {}{again}{uncertain}\n{moves}", executed.epoch)
}
