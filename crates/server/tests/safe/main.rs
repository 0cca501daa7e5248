//! A server that others reach: nobody sees what is not theirs, and nobody keeps it from serving the rest.
#![allow(clippy::unwrap_used)]

mod agents;
mod bulk;
mod clock;
mod debugging;
mod events;
mod files;
mod foreign;
mod hostile;
mod house;
mod reads;
mod ready;
mod refused;
mod repository;
mod requests;
mod seals;
mod sensitive;
mod shares;
mod surface;
mod tenants;
mod tools;
mod trees;
