//! What tests share: a clock that stands still, a fixture per store, and a PostgreSQL database of their own.

mod clock;
mod faulty;
mod fixture;
pub mod history;
mod postgres;
pub mod questions;

pub use clock::ManualClock;
pub use faulty::FaultyStore;
pub use fixture::{Fixture, fixtures};
pub use postgres::TestDatabase;
