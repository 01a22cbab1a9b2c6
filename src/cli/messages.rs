//! Messages on standard error: what is said, and how it looks.

use std::ffi::OsString;
use std::fmt;
use std::io;
use std::process::ExitCode;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::EnvFilter;
use tracing_subscriber::fmt::format::{FormatEvent, FormatFields, Writer};
use tracing_subscriber::fmt::{FmtContext, FormattedFields};
use tracing_subscriber::registry::LookupSpan;

use crate::cli::args::{Common, LogFormat};
use crate::cli::progress;

/// Sends what this program and its libraries have to say to standard error. RUST_LOG, where it is set, decides what;
/// else the flags do.
pub fn set_up(common: &Common) {
    let chosen = match (common.quiet, common.verbose) {
        (true, _) => "error,librdkafka=off",
        (false, 0) => "warn,tidelog=info",
        (false, 1) => "info,tidelog=debug",
        (false, _) => "trace",
    };
    let filter = match std::env::var("RUST_LOG") {
        Ok(wanted) if !wanted.is_empty() => EnvFilter::builder().parse_lossy(wanted),
        _ => EnvFilter::new(chosen),
    };
    progress::allow(!common.quiet && common.log_format == LogFormat::Text);
    let color = common.color.applies_to(&io::stderr());
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(|| progress::Stderr).with_ansi(color);
    // A message that can't be written is no reason to stop the work, let alone to panic.
    let builder = builder.log_internal_errors(false);
    let set = match common.log_format {
        LogFormat::Json => builder.json().flatten_event(true).try_init(),
        LogFormat::Text => builder.event_format(Plain).try_init(),
    };
    // A second call, from a test, keeps what the first one set.
    drop(set);
}

/// Tells what is wrong with the arguments, or what they ask for: help, or the version. Where messages are to be JSON, as
/// far as these arguments tell, this is one too.
pub fn usage(error: &clap::Error) -> ExitCode {
    let words: Vec<_> = std::env::args_os().collect();
    let is_json = |pair: &[OsString]| pair[0] == "--log-format" && pair[1] == "json";
    if error.use_stderr() && (words.iter().any(|word| word == "--log-format=json") || words.windows(2).any(is_json)) {
        let builder = tracing_subscriber::fmt().with_writer(io::stderr).log_internal_errors(false);
        drop(builder.json().flatten_event(true).try_init());
        let text = error.render().to_string();
        tracing::error!("{}", text.trim_end().trim_start_matches("error: "));
    } else {
        // Nobody who could be told otherwise.
        let _ = error.print();
    }
    ExitCode::from(u8::try_from(error.exit_code()).unwrap_or(2))
}

/// `warning: text field=value`, as compilers and clap do it: a terminal's user needs no date and no module.
struct Plain;

impl<S, N> FormatEvent<S, N> for Plain
where
    S: Subscriber + for<'a> LookupSpan<'a>,
    N: for<'a> FormatFields<'a> + 'static,
{
    fn format_event(&self, context: &FmtContext<'_, S, N>, mut out: Writer<'_>, event: &Event<'_>) -> fmt::Result {
        let (word, color) = match *event.metadata().level() {
            Level::ERROR => ("error: ", "\x1b[1;31m"),
            Level::WARN => ("warning: ", "\x1b[1;33m"),
            Level::INFO => ("", ""),
            Level::DEBUG => ("debug: ", "\x1b[2m"),
            Level::TRACE => ("trace: ", "\x1b[2m"),
        };
        if out.has_ansi_escapes() && !word.is_empty() {
            write!(out, "{color}{word}\x1b[0m")?;
        } else {
            out.write_str(word)?;
        }
        for span in context.event_scope().into_iter().flat_map(|scope| scope.from_root()) {
            let extensions = span.extensions();
            if let Some(fields) = extensions.get::<FormattedFields<N>>().filter(|fields| !fields.is_empty()) {
                write!(out, "[{fields}] ")?;
            }
        }
        context.field_format().format_fields(out.by_ref(), event)?;
        writeln!(out)
    }
}
