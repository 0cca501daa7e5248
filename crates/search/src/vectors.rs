//! Vectors as bytes, and the nearest of them.
