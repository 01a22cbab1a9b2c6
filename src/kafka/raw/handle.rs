//! A client of librdkafka.

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char, c_int};
use std::panic::catch_unwind;
use std::ptr::{self, NonNull};
use std::sync::mpsc;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use rdkafka_sys as sys;

use crate::kafka::config::{ClientConfig, ClientError};

/// How long dropping a client may hold up the thread that drops it; librdkafka goes on by itself after that.
const DESTROY_WAIT: Duration = Duration::from_secs(3);
/// How long a trouble of the same facility is not told again, but for those who ask for details.
const TOLD_AGAIN: Duration = Duration::from_secs(5);

/// A client. All of librdkafka's functions on it may be called from any thread.
pub(in crate::kafka) struct Handle(NonNull<sys::rd_kafka_t>, Arc<Trouble>);

/// What went wrong last with a connection, as librdkafka's log tells it: a request that waits for one only times out.
type Trouble = Mutex<Option<String>>;

// SAFETY: librdkafka's clients are thread-safe by their documentation.
unsafe impl Send for Handle {}
unsafe impl Sync for Handle {}

impl Handle {
    /// A client of the consumer kind, which asks as well as it reads.
    pub(in crate::kafka) fn new(config: &ClientConfig, own: &[(&str, &str)]) -> Result<Handle, ClientError> {
        let failed = |why: String| ClientError { brokers: config.brokers().to_owned(), property: None, why };
        config.check()?;
        // SAFETY: makes a new object, ours until `rd_kafka_new` takes it.
        let conf = unsafe { sys::rd_kafka_conf_new() };
        let mut background_callbacks = false;
        for (name, value) in config.properties(own) {
            if let Err(why) = set(conf, name, value) {
                // SAFETY: not used afterwards.
                unsafe { sys::rd_kafka_conf_destroy(conf) };
                return Err(ClientError { property: Some(name.to_owned()), ..failed(why) });
            }
            background_callbacks |= value.eq_ignore_ascii_case("OAUTHBEARER");
        }
        let mut text = [0; 512];
        let trouble = Arc::new(Trouble::default());
        let opaque = Arc::into_raw(Arc::clone(&trouble));
        // SAFETY: `conf` belongs to librdkafka if and only if it returns a client; the log's share of `trouble` is given
        // back once there is no client that logs.
        let client = unsafe {
            sys::rd_kafka_conf_set_log_cb(conf, Some(log));
            sys::rd_kafka_conf_set_opaque(conf, opaque.cast_mut().cast());
            let kind = sys::rd_kafka_type_t::RD_KAFKA_CONSUMER;
            let client = sys::rd_kafka_new(kind, conf, text.as_mut_ptr(), text.len());
            NonNull::new(client).ok_or_else(|| {
                sys::rd_kafka_conf_destroy(conf);
                drop(Arc::from_raw(opaque));
            })
        };
        let handle = client.map(|client| Handle(client, trouble)).map_err(|()| failed(shown(&text)))?;
        if background_callbacks {
            // SAFETY: a live client; tokens are then refreshed on librdkafka's own thread.
            let enabled = unsafe { sys::rd_kafka_sasl_background_callbacks_enable(handle.as_ptr()) };
            super::Code::check_object(enabled).map_err(|code| failed(code.to_string()))?;
        }
        Ok(handle)
    }

    /// For librdkafka's functions; valid as long as the handle.
    pub(super) fn as_ptr(&self) -> *mut sys::rd_kafka_t {
        self.0.as_ptr()
    }

    /// The newest trouble with a connection that is not forgotten, if any: an address, and what it refused.
    pub(in crate::kafka) fn trouble(&self) -> Option<String> {
        self.1.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Forgets it: somebody answers.
    pub(in crate::kafka) fn forget_trouble(&self) {
        *self.1.lock().unwrap_or_else(PoisonError::into_inner) = None;
    }
}

impl Drop for Handle {
    /// Waits for librdkafka's threads, which has no bound of its own, at most [`DESTROY_WAIT`].
    fn drop(&mut self) {
        struct Doomed(NonNull<sys::rd_kafka_t>);
        // SAFETY: only moved to the thread that destroys it.
        unsafe impl Send for Doomed {}
        impl Doomed {
            fn destroy(self) {
                // SAFETY: the last owner; all that was made from it holds the `Arc` around the handle. It never joined a
                // group, so there is nothing to leave.
                unsafe {
                    let trouble: *const Trouble = sys::rd_kafka_opaque(self.0.as_ptr()).cast();
                    sys::rd_kafka_destroy_flags(self.0.as_ptr(), sys::RD_KAFKA_DESTROY_F_NO_CONSUMER_CLOSE);
                    // The log's share.
                    drop(Arc::from_raw(trouble));
                }
            }
        }
        let (done, wait) = mpsc::channel();
        let doomed = Mutex::new(Some(Doomed(self.0)));
        let destroy = move || {
            if let Some(doomed) = doomed.into_inner().ok().flatten() {
                doomed.destroy();
            }
            let _ = done.send(());
        };
        match std::thread::Builder::new().name("kafka-destroy".to_owned()).spawn(destroy) {
            Ok(_) if wait.recv_timeout(DESTROY_WAIT).is_ok() => {}
            Ok(_) => tracing::warn!("a Kafka client did not end within {DESTROY_WAIT:?}; it is left to itself"),
            Err(error) => tracing::warn!("a Kafka client is left open: no thread to end it: {error}"),
        }
    }
}

fn set(conf: *mut sys::rd_kafka_conf_t, name: &str, value: &str) -> Result<(), String> {
    let (Ok(name), Ok(value)) = (CString::new(name), CString::new(value)) else {
        return Err(format!("property {name}: holds a NUL"));
    };
    let mut text = [0; 512];
    // SAFETY: `conf` is live, the texts end in NUL, the buffer has the length that is given.
    let result = unsafe { sys::rd_kafka_conf_set(conf, name.as_ptr(), value.as_ptr(), text.as_mut_ptr(), text.len()) };
    match result {
        sys::rd_kafka_conf_res_t::RD_KAFKA_CONF_OK => Ok(()),
        _ => Err(shown(&text)),
    }
}

/// Whether librdkafka knows a property of this name, of a client or of a topic.
pub(in crate::kafka) fn is_property(name: &str) -> bool {
    let Ok(name) = CString::new(name) else { return false };
    // SAFETY: the object is ours, and not used afterwards; no value asks for the default.
    unsafe {
        let conf = sys::rd_kafka_conf_new();
        let set = sys::rd_kafka_conf_set(conf, name.as_ptr(), ptr::null(), ptr::null_mut(), 0);
        sys::rd_kafka_conf_destroy(conf);
        set != sys::rd_kafka_conf_res_t::RD_KAFKA_CONF_UNKNOWN
    }
}

/// The text in a buffer that librdkafka filled.
fn shown(text: &[c_char]) -> String {
    let bytes: Vec<u8> = text.iter().map(|c| *c as u8).take_while(|byte| *byte != 0).collect();
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Takes librdkafka's log lines, on its threads.
unsafe extern "C" fn log(client: *const sys::rd_kafka_t, level: c_int, facility: *const c_char, text: *const c_char) {
    // SAFETY: both are texts that live as long as the call.
    let (facility, text) = unsafe { (CStr::from_ptr(facility), CStr::from_ptr(text)) };
    // SAFETY: a client that logs is live, and so is its share of the trouble; without a client there is none.
    let trouble = unsafe { (!client.is_null()).then(|| sys::rd_kafka_opaque(client).cast::<Trouble>().as_ref()) };
    // A panic must not reach C.
    let _ = catch_unwind(|| {
        let (facility, text) = (facility.to_string_lossy(), text.to_string_lossy());
        if let (Some(Some(trouble)), "FAIL") = (trouble, &*facility) {
            // Without the thread's name in front, and how long it took behind.
            let said = text.split_once("]: ").map_or(&*text, |(_, said)| said);
            let said = said.rsplit_once(" (after ").map_or(said, |(said, _)| said);
            *trouble.lock().unwrap_or_else(PoisonError::into_inner) = Some(said.to_owned());
        }
        match level {
            // A broker that is gone is told ten times a second, in words that differ by a number.
            0..=4 if is_repeated(&facility) => tracing::debug!(target: "librdkafka", "{facility}: {text}"),
            0..=3 => tracing::error!(target: "librdkafka", "{facility}: {text}"),
            4 => tracing::warn!(target: "librdkafka", "{facility}: {text}"),
            5 | 6 => tracing::info!(target: "librdkafka", "{facility}: {text}"),
            _ => tracing::debug!(target: "librdkafka", "{facility}: {text}"),
        }
    });
}

/// Whether a line of this facility was told a moment ago. The callback has no place of its own to remember it in.
fn is_repeated(facility: &str) -> bool {
    static TOLD: Mutex<BTreeMap<String, Instant>> = Mutex::new(BTreeMap::new());
    let mut told = TOLD.lock().unwrap_or_else(PoisonError::into_inner);
    let now = Instant::now();
    match told.get(facility) {
        Some(last) if now.duration_since(*last) < TOLD_AGAIN => true,
        _ => {
            told.insert(facility.to_owned(), now);
            false
        }
    }
}
