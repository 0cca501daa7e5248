//! Telemetry for operators: metrics ([`metrics`]) and log events ([`log`]). Neither contains anything of requests or
//! responses except counts, names of types, and codes.

pub mod dependencies;
pub mod events;
pub mod gauges;
pub mod log;
pub mod measure;
pub mod metrics;

pub use metrics::metrics;
