//! A server that others reach: nobody sees what is not theirs, and nobody keeps it from serving the rest.
#![allow(clippy::unwrap_used)]

mod bulk;
mod debugging;
mod events;
mod files;
mod hostile;
mod house;
mod requests;
mod sensitive;
mod surface;
mod tenants;
