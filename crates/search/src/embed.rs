//! From texts to vectors: what every embedding model offers.
