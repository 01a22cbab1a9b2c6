//! `tidelog rollback`

pub(super) mod show;
mod target;

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;

use self::target::TargetArgs;
use crate::cli::args::{GroupArg, NestedFormat, NestedOutputArg, words_of};
use crate::cli::exit::Failure;
use crate::cli::kafka::KafkaArgs;
use crate::cli::opening;
use crate::cli::output::Out;
use crate::cli::seat::{Answer, Ask, Needs, PlaceArgs, Problem, Seat, in_flags};
use crate::message::{NAMED, few};
use crate::offset::{Group, Seq};
use crate::rollback::{PlanRequest, Scope};
use crate::wire::{
    EntriesAnswer, ExecuteBody, ExecutedAnswer, KafkaAnswer, KafkaBody, KafkaWord, PlanAnswer, RollbackBody,
};

const EXAMPLE: &str = "\
Examples:
  tidelog rollback loader -b kafka:9092 --to-batch 41 --before      print the plan, change nothing
  tidelog rollback loader -b kafka:9092 --to-batch 41 --before \\
      --execute --reason \"sink lost a day\"                          show it, ask, do it
  tidelog rollback loader -b kafka:9092 --to-commit-time 2026-11-30T09:00:00Z -o json > plan.json
  tidelog rollback loader -b kafka:9092 --plan plan.json --execute --reason \"sink lost a day\"
  tidelog rollback loader -b kafka:9092 --to-batch 41 --export > offsets.csv     for kafka-consumer-groups
  tidelog rollback loader -b kafka:9092 --from-file offsets.csv
  tidelog rollback loader -b kafka:9092 --undo --execute --yes --reason \"wrong day\"

A rollback is one more entry of the journal: nothing is overwritten, and --undo takes it back. A running consumer is \
fenced and goes on from the new positions by itself.";

/// Take a group back to where it was, or to where you want it: prints the plan, --execute does it
#[derive(Debug, Args)]
#[command(after_help = EXAMPLE)]
pub struct Rollback {
    #[command(flatten)]
    group: GroupArg,
    #[command(flatten)]
    place: PlaceArgs,
    #[command(flatten)]
    output: NestedOutputArg,
    #[command(flatten)]
    target: TargetArgs,
    /// Only this topic, or some of its partitions; repeatable [default: the whole group]
    #[arg(short, long, value_name = "TOPIC[:0,1,2]", help_heading = "Target")]
    topic: Vec<Scope>,
    /// Where the target is no longer, or not yet, in the log, go to the log's start or end
    #[arg(long, help_heading = "What may happen")]
    allow_clamp: bool,
    /// Leave partitions where they are that can't be moved, and move the others
    #[arg(long, help_heading = "What may happen")]
    leave_unmovable: bool,
    /// Ask no broker; the next start looks
    #[arg(long, help_heading = "What may happen")]
    unchecked: bool,
    /// Set Kafka's committed offsets too, wait for that and read them back; refused while the Kafka group has live members
    #[arg(long, help_heading = "What may happen")]
    kafka: bool,
    /// Keep the group stopped afterwards, until `tidelog release`
    #[arg(long, help_heading = "What may happen")]
    hold: bool,
    /// Print the plan as kafka-consumer-groups takes it: topic,partition,offset, where each partition would go
    #[arg(
        long,
        conflicts_with_all = ["execute", "reason", "actor", "plan", "yes", "output"],
        help_heading = "Execution"
    )]
    export: bool,
    /// Do it; on a terminal the plan is shown first, and asked about
    #[arg(long, requires = "reason", help_heading = "Execution")]
    execute: bool,
    /// Why, for those who read the history
    #[arg(long, requires = "execute", value_name = "TEXT", help_heading = "Execution")]
    reason: Option<String>,
    /// Who does this [default: the login name]
    #[arg(long, requires = "execute", value_name = "NAME", help_heading = "Execution")]
    actor: Option<String>,
    /// Do what this plan said or nothing: its id, or the file that -o json printed (which holds the target too)
    #[arg(long, requires = "execute", conflicts_with = "yes", value_name = "ID|FILE", help_heading = "Execution")]
    plan: Option<String>,
    /// Ask nothing
    #[arg(short, long, requires = "execute", help_heading = "Execution")]
    yes: bool,
    /// Set Kafka's committed offsets for a rollback again, by the seq of its entry; nothing else is done
    #[arg(
        long,
        conflicts_with_all = [
            "target", "before", "after", "topic", "allow_clamp", "leave_unmovable", "unchecked", "kafka", "hold",
            "export", "execute", "reason", "actor", "plan", "yes"
        ],
        value_name = "SEQ",
        help_heading = "Execution"
    )]
    repeat_kafka: Option<Seq>,
    #[command(flatten)]
    client: KafkaArgs,
}

/// The plan that is to be executed.
enum Agreed {
    /// Whatever the plan is, without a question.
    Any,
    /// The one whose id was given.
    Given,
    /// The one that a person at the terminal says yes to.
    Asked,
}

impl Rollback {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        if let Some(seq) = self.repeat_kafka {
            return self.repeat_kafka(out, &group, seq);
        }
        let (body, agreed) = self.body(&group)?;
        let target = body.to.clone().target()?.to_string();
        let needs = Needs { kafka: Some(&self.client), unchecked: body.unchecked, ..Needs::default() };
        let seat = Seat::take(&self.place, &needs)?;
        let steps = Steps { out, group: &group, target, format: self.output.output, seat: &seat };
        match self.reason.filter(|_| self.execute) {
            None if self.export => steps.export(&body),
            None => steps.plan(&body),
            Some(reason) => steps.execute(body, agreed, opening::actor(self.actor), reason),
        }
    }

    /// Sets Kafka's committed offsets for the rollback that entry `seq` of this group is.
    fn repeat_kafka(&self, out: &mut Out, group: &Group, seq: Seq) -> Result<(), Failure> {
        let needs = Needs { kafka: Some(&self.client), must_look: true, ..Needs::default() };
        let seat = Seat::take(&self.place, &needs)?;
        let entry = Ask::of(group, "/entries").with("order", Some("asc"));
        let entry = entry.with("cursor", Some(seq.previous())).with("limit", Some(1));
        let newest: EntriesAnswer = seat.ask(entry)?.read()?;
        if newest.entries.first().is_none_or(|entry| entry.seq != seq) {
            return Err(Failure::Usage(format!("--repeat-kafka {seq}: no entry of group {group}")));
        }
        let answer = seat.ask(Ask::get(&format!("/v1/rollbacks/{seq}/kafka")).post(&KafkaBody {})?)?;
        let set: KafkaAnswer = answer.read()?;
        match self.output.output {
            NestedFormat::Json => answer.print(out)?,
            NestedFormat::Table => show::kafka(out, &set)?,
        }
        kafka_done(out, group, &set)
    }

    /// What is asked for, and what has been agreed to.
    fn body(&self, group: &Group) -> Result<(RollbackBody, Agreed), Failure> {
        if let Some(file) = self.plan.as_deref().filter(|plan| std::path::Path::new(plan).is_file()) {
            let flags = self.target.is_given() || !self.topic.is_empty();
            if flags || self.allow_clamp || self.leave_unmovable || self.unchecked || self.hold || self.kafka {
                let why = "holds target, scope and what may happen; give none of these as flags";
                return Err(Failure::Usage(format!("--plan {file}: the file {why}")));
            }
            return Ok((read_plan(file, group)?, Agreed::Given));
        }
        if let Some(other) = self.plan.as_deref().filter(|plan| !plan.starts_with("p-")) {
            return Err(Failure::Usage(format!(
                "--plan {other}: neither a plan's id (p-...) nor a file that is there"
            )));
        }
        let request = PlanRequest {
            scope: self.topic.clone(),
            allow_clamp: self.allow_clamp,
            leave_unmovable: self.leave_unmovable,
            unchecked: self.unchecked,
            hold: self.hold,
            kafka: self.kafka,
            ..PlanRequest::new(group.clone(), self.target.target(group)?)
        };
        let agreed = match &self.plan {
            Some(_) => Agreed::Given,
            None if self.yes => Agreed::Any,
            None if !self.execute || std::io::stdin().is_terminal() && std::io::stderr().is_terminal() => Agreed::Asked,
            None => {
                let why = "without a terminal to ask on, --execute wants --plan or --yes";
                return Err(Failure::Usage(why.to_owned()));
            }
        };
        Ok((RollbackBody::new(&request, self.plan.clone()), agreed))
    }
}

/// Reads what `-o json` printed.
fn read_plan(file: &str, group: &Group) -> Result<RollbackBody, Failure> {
    #[derive(serde::Deserialize)]
    struct PlanFile {
        group: String,
        app: String,
        execute: RollbackBody,
    }
    let text = std::fs::read_to_string(file).map_err(|source| Failure::File { path: file.into(), source })?;
    let plan: PlanFile = serde_json::from_str(&text)
        .map_err(|error| Failure::Usage(format!("--plan {file}: not a plan that -o json printed: {error}")))?;
    if (plan.app.as_str(), plan.group.as_str()) != (group.app(), group.group()) {
        let of = format!("group {} of app {}, not of {group}", plan.group, plan.app);
        return Err(Failure::Usage(format!("--plan {file}: a plan of {of}")));
    }
    match plan.execute.plan {
        Some(_) => Ok(plan.execute),
        None => Err(Failure::Usage(format!("--plan {file}: holds no plan's id"))),
    }
}

/// Asks for plans and their execution, and prints what comes.
struct Steps<'a> {
    out: &'a mut Out,
    group: &'a Group,
    /// The target in words; a plan to be executed may have it as offsets.
    target: String,
    format: NestedFormat,
    seat: &'a Seat,
}

impl Steps<'_> {
    /// Prints the plan; a plan that can't be executed is a refusal.
    fn plan(mut self, body: &RollbackBody) -> Result<(), Failure> {
        let (answer, plan) = self.ask_plan(body)?;
        self.print(&answer, &plan)?;
        if !plan.executable {
            return Err(not_executable(&plan));
        }
        if !plan.nothing_to_do {
            self.out.flush()?;
            tracing::info!("nothing has changed; --execute --reason TEXT does it");
        }
        Ok(())
    }

    /// Prints the plan as CSV and nothing else; nothing at all where it can't be executed.
    fn export(self, body: &RollbackBody) -> Result<(), Failure> {
        let (_, plan) = self.ask_plan(body)?;
        if !plan.executable {
            return Err(not_executable(&plan));
        }
        show::csv(self.out, &plan)
    }

    /// Executes what was agreed to.
    fn execute(mut self, body: RollbackBody, agreed: Agreed, actor: String, reason: String) -> Result<(), Failure> {
        let body = match agreed {
            Agreed::Given => body,
            Agreed::Any => self.show(&body)?.execute,
            Agreed::Asked => {
                let plan = self.show(&body)?;
                if !show::leaves_all(&plan) {
                    if self.format == NestedFormat::Json {
                        tracing::info!("{}", show::sentence(self.group, &self.target, &plan));
                    }
                    self.out.flush()?;
                    confirm()?;
                }
                plan.execute
            }
        };
        let hold = body.hold;
        let ask = Ask::of(self.group, "/rollback").post(&ExecuteBody::new(body, actor, reason))?;
        let answer = match self.seat.ask(ask) {
            Ok(answer) => answer,
            Err(Failure::Problem(problem)) => return Err(self.explain(problem)?),
            Err(failure) => return Err(failure),
        };
        let executed: ExecutedAnswer = answer.read()?;
        match self.format {
            NestedFormat::Json => answer.print(self.out)?,
            NestedFormat::Table => show::executed(self.out, self.group, &executed, hold)?,
        }
        match &executed.kafka {
            Some(set) => kafka_done(self.out, self.group, set),
            None => Ok(()),
        }
    }

    fn ask_plan(&self, body: &RollbackBody) -> Result<(Answer, PlanAnswer), Failure> {
        let answer = self.seat.ask(Ask::of(self.group, "/rollback/plan").post(body)?)?;
        let plan = answer.read()?;
        Ok((answer, plan))
    }

    /// The plan that is about to be executed, shown to a person; a program is shown it only if it can't be.
    fn show(&mut self, body: &RollbackBody) -> Result<PlanAnswer, Failure> {
        let (answer, plan) = self.ask_plan(body)?;
        if self.format == NestedFormat::Table || !plan.executable {
            self.print(&answer, &plan)?;
        }
        if plan.executable { Ok(plan) } else { Err(not_executable(&plan)) }
    }

    /// Shows the plan that a problem carries, where it is about one.
    fn explain(&mut self, problem: Box<Problem>) -> Result<Failure, Failure> {
        let Some((answer, plan)) = problem.read::<PlanAnswer>("plan") else { return Ok(Failure::Problem(problem)) };
        match self.format {
            NestedFormat::Json => self.out.json(answer)?,
            NestedFormat::Table => show::plan(self.out, self.group, &self.target, &plan)?,
        }
        Ok(if plan.executable { Failure::Problem(problem) } else { not_executable(&plan) })
    }

    fn print(&mut self, answer: &Answer, plan: &PlanAnswer) -> Result<(), Failure> {
        match self.format {
            NestedFormat::Json => answer.print(self.out),
            NestedFormat::Table => show::plan(self.out, self.group, &self.target, plan),
        }
    }
}

fn not_executable(plan: &PlanAnswer) -> Failure {
    let why_not = few(plan.refusals.iter().map(|refusal| in_flags(&refusal.why)), NAMED, "\n");
    let why = format!("the plan can't be executed:\n{why_not}");
    if plan.members.is_empty() { Failure::Refused(why) } else { Failure::Conflict(why) }
}

/// Fails where Kafka does not hold what it should: the group has moved all the same.
fn kafka_done(out: &mut Out, group: &Group, set: &KafkaAnswer) -> Result<(), Failure> {
    let failed = set.partitions.iter().filter(|partition| partition.error.is_some()).count();
    let what = match set.state {
        KafkaWord::Done => return Ok(()),
        KafkaWord::Pending => "they are pending".to_owned(),
        KafkaWord::Failed => format!("they are not set for {failed} of {} partitions", set.partitions.len()),
    };
    out.flush()?;
    let again = match set.of {
        Some(seq) => format!("repeat with tidelog rollback {} --repeat-kafka {seq}", words_of(group)),
        None => "do the same again".to_owned(),
    };
    Err(Failure::Broken(format!(
        "group {group} is in the journal where it should be, but not Kafka's committed offsets: {what}; {again}"
    )))
}

/// Asks the person at the terminal; anything but a yes is a no.
fn confirm() -> Result<(), Failure> {
    let terminal = |source| Failure::System { what: "asking on the terminal", source };
    let mut stderr = std::io::stderr().lock();
    write!(stderr, "Do this? [y/N] ").and_then(|()| stderr.flush()).map_err(terminal)?;
    let mut answer = String::new();
    std::io::stdin().lock().read_line(&mut answer).map_err(terminal)?;
    match answer.trim().to_ascii_lowercase().as_str() {
        "y" | "yes" => Ok(()),
        _ => Err(Failure::Refused("declined; nothing has changed".to_owned())),
    }
}
