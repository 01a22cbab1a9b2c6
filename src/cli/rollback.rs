//! `tidelog rollback`

pub(super) mod show;
mod target;

use std::io::{BufRead, IsTerminal, Write};

use clap::Args;

use self::target::TargetArgs;
use crate::cli::args::{GroupArg, JournalArg, NestedFormat, NestedOutputArg};
use crate::cli::exit::Failure;
use crate::cli::kafka::KafkaArgs;
use crate::cli::opening;
use crate::cli::output::Out;
use crate::control::{self, Control, ExecuteError, Executed};
use crate::offset::Group;
use crate::rollback::{Plan, PlanRequest, Scope};
use crate::wire::{ExecutedAnswer, PlanAnswer, RollbackBody};

const EXAMPLE: &str = "\
Examples:
  tidelog rollback loader -b kafka:9092 --to-batch 41 --before      print the plan, change nothing
  tidelog rollback loader -b kafka:9092 --to-batch 41 --before \\
      --execute --reason \"sink lost a day\"                          show it, ask, do it
  tidelog rollback loader -b kafka:9092 --to-commit-time 2026-11-30T09:00:00Z -o json > plan.json
  tidelog rollback loader -b kafka:9092 --plan plan.json --execute --reason \"sink lost a day\"
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
    journal: JournalArg,
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
    #[command(flatten)]
    kafka: KafkaArgs,
}

/// The plan that is to be executed.
enum Agreed {
    /// Whatever the plan is, without a question.
    Any,
    /// The one with this id.
    Id(String),
    /// The one that a person at the terminal says yes to.
    Asked,
}

impl Rollback {
    pub(super) fn run(self, out: &mut Out) -> Result<(), Failure> {
        let group = self.group.group()?;
        let (request, agreed) = self.request(&group)?;
        let journal = opening::existing(&self.journal.journal)?;
        let broker = if self.unchecked { None } else { self.kafka.broker()? };
        let control = opening::control(journal.clone(), broker);
        let shown = Shown { out, group: &group, target: request.to.to_string(), format: self.output.output };
        let done = match self.reason.filter(|_| self.execute) {
            None => shown.plan(&control, request),
            Some(reason) => shown.execute(&control, request, agreed, &opening::actor(self.actor), &reason),
        };
        drop(control);
        // What was executed is durable already; what closing tidies up is nothing that this command was asked for.
        opening::close(journal);
        done
    }

    /// What is asked for, and what has been agreed to.
    fn request(&self, group: &Group) -> Result<(PlanRequest, Agreed), Failure> {
        if let Some(file) = self.plan.as_deref().filter(|plan| std::path::Path::new(plan).is_file()) {
            let flags = self.target.is_given() || !self.topic.is_empty();
            if flags || self.allow_clamp || self.leave_unmovable || self.unchecked {
                let why = "holds target, scope and what may happen; give none of these as flags";
                return Err(Failure::Usage(format!("--plan {file}: the file {why}")));
            }
            let (body, id) = read_plan(file, group)?;
            return Ok((body.request(group.clone())?, Agreed::Id(id)));
        }
        let request = PlanRequest {
            scope: self.topic.clone(),
            allow_clamp: self.allow_clamp,
            leave_unmovable: self.leave_unmovable,
            unchecked: self.unchecked,
            ..PlanRequest::new(group.clone(), self.target.target()?)
        };
        let agreed = match &self.plan {
            Some(id) if id.starts_with("p-") => Agreed::Id(id.clone()),
            Some(other) => {
                return Err(Failure::Usage(format!("--plan {other}: neither a plan's id (p-...) nor a file")));
            }
            None if self.yes => Agreed::Any,
            None if !self.execute || std::io::stdin().is_terminal() && std::io::stderr().is_terminal() => Agreed::Asked,
            None => {
                let why = "without a terminal to ask on, --execute wants --plan or --yes";
                return Err(Failure::Usage(why.to_owned()));
            }
        };
        Ok((request, agreed))
    }
}

/// Reads what `-o json` printed.
fn read_plan(file: &str, group: &Group) -> Result<(RollbackBody, String), Failure> {
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
    match plan.execute.plan.clone() {
        Some(id) => Ok((plan.execute, id)),
        None => Err(Failure::Usage(format!("--plan {file}: holds no plan's id"))),
    }
}

/// Where plans and receipts are written.
struct Shown<'a> {
    out: &'a mut Out,
    group: &'a Group,
    /// The target in words; a plan to be executed may have it as offsets.
    target: String,
    format: NestedFormat,
}

impl Shown<'_> {
    /// Prints the plan; a plan that can't be executed is a refusal.
    fn plan(mut self, control: &Control, request: PlanRequest) -> Result<(), Failure> {
        let plan = control::plan(control, request)?;
        self.print(&plan)?;
        if !plan.executable() {
            return Err(not_executable(&plan));
        }
        if !plan.nothing_to_do {
            self.out.flush()?;
            tracing::info!("nothing has changed; --execute --reason TEXT does it");
        }
        Ok(())
    }

    /// Executes what was agreed to.
    fn execute(
        mut self,
        control: &Control,
        request: PlanRequest,
        agreed: Agreed,
        actor: &str,
        reason: &str,
    ) -> Result<(), Failure> {
        let (request, id) = match agreed {
            Agreed::Id(id) => (request, id),
            Agreed::Any | Agreed::Asked => {
                let ask = matches!(agreed, Agreed::Asked);
                let plan = control::plan(control, request)?;
                if self.format == NestedFormat::Table || !plan.executable() {
                    self.print(&plan)?;
                }
                if !plan.executable() {
                    return Err(not_executable(&plan));
                }
                if ask && !plan.nothing_to_do {
                    if self.format == NestedFormat::Json {
                        tracing::info!("{}", show::sentence(self.group, &self.target, &plan));
                    }
                    self.out.flush()?;
                    confirm()?;
                }
                (plan.execute, plan.id)
            }
        };
        match control::execute(control, request, Some(&id), actor, reason) {
            Ok(executed) => self.print_executed(&executed),
            Err(ExecuteError::Refused(plan)) => {
                self.print(&plan)?;
                Err(not_executable(&plan))
            }
            Err(error) => {
                if let ExecuteError::Outdated(plan) = &error {
                    self.print(plan)?;
                }
                Err(error.into())
            }
        }
    }

    fn print(&mut self, plan: &Plan) -> Result<(), Failure> {
        match self.format {
            NestedFormat::Json => self.out.json(&PlanAnswer::new(self.group, plan)),
            NestedFormat::Table => show::plan(self.out, self.group, &self.target, plan),
        }
    }

    fn print_executed(&mut self, executed: &Executed) -> Result<(), Failure> {
        match self.format {
            NestedFormat::Json => self.out.json(&ExecutedAnswer::from(executed)),
            NestedFormat::Table => show::executed(self.out, self.group, executed),
        }
    }
}

fn not_executable(plan: &Plan) -> Failure {
    Failure::Refused(format!("the plan can't be executed:\n{}", plan.why_not()))
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
