//! What tests share: a clock that stands still, a fixture per store, a PostgreSQL database of their own,
//! and an endpoint that answers as it is told.

mod agent;
mod clock;
mod endpoint;
mod faulty;
mod fixture;
mod git;
pub mod history;
pub mod http;
mod postgres;
pub mod questions;
mod swapped;

pub use agent::Agent;
pub use clock::ManualClock;
pub use endpoint::{Asked, FakeEmbeddings, FakeEndpoint, Mood, Reply};
pub use faulty::FaultyStore;
pub use fixture::{Fixture, fixtures};
pub use git::{git, has_git};
pub use postgres::TestDatabase;
pub use swapped::SwappedStore;
