//! A limit on everything a caller can send, each with the reason for its size.

/// Longest key in bytes: longer than any path on common file systems plus a symbol, short enough to index.
pub const KEY_BYTES: usize = 1_024;
/// Longest type, role, derivation or status name in bytes: these are words, not text.
pub const NAME_BYTES: usize = 128;
/// Longest title in bytes: one paragraph; longer text belongs in properties.
pub const TITLE_BYTES: usize = 4_096;
/// Most labels on one fact, and the longest one: labels are for filtering.
pub const LABELS: usize = 256;
pub const LABEL_BYTES: usize = 256;
/// Largest properties (and evidence) of one version as canonical JSON: larger payloads belong in a document.
pub const PROPERTIES_BYTES: usize = 1 << 20;
/// Deepest nesting of properties: far above real data, far below any stack.
pub const JSON_DEPTH: usize = 64;
/// Most writes in one batch; version ids have 24 bits for the index in a transaction.
pub const BATCH_WRITES: usize = 4_000_000;
/// Longest branch, release or tag name in bytes.
pub const REF_NAME_BYTES: usize = 256;
/// Most branches in one lineage: each read consults every ancestor.
pub const LINEAGE_DEPTH: usize = 32;
/// A string longer than this is hashed in a change summary.
pub const SUMMARY_STRING_CHARS: usize = 256;
/// Other JSON longer than this is hashed in a change summary.
pub const SUMMARY_JSON_BYTES: usize = 2_048;
/// A change summary longer than this keeps its paths and counts only.
pub const SUMMARY_BYTES: usize = 16 * 1024;
