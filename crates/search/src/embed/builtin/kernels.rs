//! The arithmetic of the forward pass, in plain Rust and for AVX2, with bit-identical results.
//!
//! Matrices are multiplied in integers (16-bit activations by 8-bit weights, summed in 32 bits), so the order does not
//! matter. All else is plain code that is also compiled for AVX2: the compiler never fuses or reorders float
//! operations, so only speed differs.

mod float;
mod integer;

use super::weights::LinearLayer;

/// The number of outputs whose weights are stored together in a panel.
pub const PANEL: usize = 16;

/// The largest activation: 1,536 products with weights up to 127 still fit in 32 bits.
const LARGEST: f32 = 8191.0;

/// Which instructions to use. Only [`InstructionSet::best`] returns more than plain ones, after detecting support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionSet(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
}

/// Rows of activations as integers, each row with its scale.
#[derive(Default)]
pub struct Activations {
    values: Vec<i16>,
    scales: Vec<f32>,
}

/// Compiles a function of `float` for each level and calls the one for `self`.
macro_rules! dispatched {
    ($(#[$about:meta])* $name:ident($($argument:ident: $type:ty),*)) => {
        $(#[$about])*
        pub fn $name(self, $($argument: $type),*) {
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx2")]
            fn with_avx2($($argument: $type),*) {
                float::$name($($argument),*)
            }
            match self.0 {
                Kind::Plain => float::$name($($argument),*),
                // SAFETY: an `InstructionSet` of this kind is only created where AVX2 was detected.
                #[cfg(target_arch = "x86_64")]
                #[allow(unsafe_code)]
                Kind::Avx2 => unsafe { with_avx2($($argument),*) },
            }
        }
    };
}

impl InstructionSet {
    /// The fastest instructions that this processor supports.
    pub fn best() -> InstructionSet {
        #[cfg(target_arch = "x86_64")]
        if std::arch::is_x86_feature_detected!("avx2") {
            return InstructionSet(Kind::Avx2);
        }
        InstructionSet::plain()
    }

    /// Instructions that every processor supports.
    pub fn plain() -> InstructionSet {
        InstructionSet(Kind::Plain)
    }

    dispatched! {
        /// Quantises every row of `width` to integers with its own scale.
        quantise(rows: &[f32], width: usize, to: &mut Activations)
    }

    dispatched! {
        /// `x * P(X <= x)` for a normal X, in place.
        gelu(values: &mut [f32])
    }

    dispatched! {
        /// Adds `more` to `rows`, normalises every row to mean 0 and variance 1, then applies `gain` and `bias`.
        add_and_norm(rows: &mut [f32], more: &[f32], gain: &[f32], bias: &[f32])
    }

    dispatched! {
        /// All attention heads among the tokens of one text. Each row of `three` has query, key and value of a token.
        attend(three: &[f32], heads: usize, width: usize, to: &mut [f32], scratch: &mut Vec<f32>)
    }

    /// Applies a linear layer to every row of `from`.
    pub fn linear(self, from: &Activations, layer: &LinearLayer, to: &mut [f32]) {
        let Activations { values, scales } = from;
        assert_eq!(values.len(), scales.len() * layer.inputs, "rows have another width than the layer");
        assert_eq!(to.len(), scales.len() * layer.outputs, "the result has another shape");
        match self.0 {
            Kind::Plain => integer::linear_plain(values, scales, layer, to),
            // SAFETY: an `InstructionSet` of this kind is only created where AVX2 was detected.
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            Kind::Avx2 => unsafe { integer::linear_avx2(values, scales, layer, to) },
        }
    }
}

#[cfg(test)]
mod tests;
