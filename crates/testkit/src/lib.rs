//! What tests share: a manual clock, a fixture per store, private PostgreSQL databases and servers, certificates, and
//! fake HTTP endpoints.

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
