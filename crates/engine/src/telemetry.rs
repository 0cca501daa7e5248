//! What is told to who watches: figures ([`metrics`]) and events ([`log`]). Neither holds anything of what was asked or
//! answered, but for counts, names of types and codes.

pub mod dependencies;
pub mod events;
pub mod gauges;
pub mod log;
pub mod measure;
pub mod metrics;

pub use metrics::metrics;
