//! A server that others reach: nobody sees what is not theirs, and nobody keeps it from serving the rest.
#![allow(clippy::unwrap_used)]

mod agents;
mod bulk;
mod debugging;
mod events;
mod files;
mod hostile;
mod house;
mod ready;
mod refused;
mod requests;
mod sensitive;
mod shares;
mod surface;
mod tenants;
mod tools;
