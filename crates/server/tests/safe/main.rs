//! A server on the network: no caller sees the data of another, and none keeps the server from serving the others.
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
mod replaced;
mod repository;
mod requests;
mod seals;
mod sensitive;
mod shares;
mod surface;
mod tenants;
mod tools;
mod trees;
