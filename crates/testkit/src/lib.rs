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
pub mod random_queries;
mod standby;
mod swapped;

pub use agent::Agent;
pub use certificates::{Authority, Certificate};
pub use clock::ManualClock;
pub use endpoint::{FakeBehavior, FakeEmbeddings, FakeEndpoint, FakeReply, ReceivedRequest};
pub use faulty::FaultyStore;
pub use fixture::{Fixture, fixtures};
pub use git::{git, has_git};
pub use postgres::TestDatabase;
pub use standby::Cluster;
pub use swapped::SwappedStore;
