//! What tests share: a clock that stands still, a fixture per store, PostgreSQL databases and servers of their own,
//! certificates, and an endpoint that answers as it is told.

mod agent;
mod certificates;
mod clock;
mod endpoint;
mod faulty;
mod fixture;
mod git;
pub mod history;
pub mod http;
mod postgres;
pub mod questions;
mod standby;
mod swapped;

pub use agent::Agent;
pub use certificates::{Authority, Certificate};
pub use clock::ManualClock;
pub use endpoint::{Asked, FakeEmbeddings, FakeEndpoint, Mood, Reply};
pub use faulty::FaultyStore;
pub use fixture::{Fixture, fixtures};
pub use git::{git, has_git};
pub use postgres::TestDatabase;
pub use standby::Cluster;
pub use swapped::SwappedStore;
