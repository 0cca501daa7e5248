//! The arithmetic of the forward pass, in plain Rust and for several sets of instructions, with bit-identical results.
//!
//! Matrices are multiplied in integers (8-bit activations by 8-bit weights, summed in 32 bits), so the order does not
//! matter. All else is plain code that is also compiled for each set: the compiler never fuses or reorders float
//! operations, so only speed differs.

mod float;
mod integer;

use std::sync::OnceLock;

use super::weights::LinearLayer;

/// The number of outputs whose weights are stored together in a panel.
pub const PANEL: usize = 16;

/// The number of inputs whose weights are stored together in a panel, for each output.
pub const GROUP: usize = 4;

/// The largest activation: 1,536 products with weights up to 127 still fit in 32 bits.
const LARGEST: f32 = 255.0;

/// Which instructions to use. Only [`InstructionSet::best`] returns more than plain ones, after detecting support.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct InstructionSet(Kind);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Plain,
    #[cfg(target_arch = "x86_64")]
    Avx2,
    /// AVX2 with products of 8-bit integers.
    #[cfg(target_arch = "x86_64")]
    AvxVnni,
    #[cfg(target_arch = "x86_64")]
    Avx512,
    #[cfg(target_arch = "aarch64")]
    Neon,
}

/// Rows of activations as integers: a value is `low + integer * scale` of its row.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Activations {
    values: Vec<u8>,
    scales: Vec<f32>,
    lows: Vec<f32>,
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
            #[cfg(target_arch = "x86_64")]
            #[target_feature(enable = "avx512f,avx512bw,avx512dq,avx512vl")]
            fn with_avx512($($argument: $type),*) {
                float::$name($($argument),*)
            }
            match self.0 {
                Kind::Plain => float::$name($($argument),*),
                // SAFETY: an `InstructionSet` of these kinds is only created where AVX2 was detected.
                #[cfg(target_arch = "x86_64")]
                #[allow(unsafe_code)]
                Kind::Avx2 | Kind::AvxVnni => unsafe { with_avx2($($argument),*) },
                // SAFETY: an `InstructionSet` of this kind is only created where these features were detected.
                #[cfg(target_arch = "x86_64")]
                #[allow(unsafe_code)]
                Kind::Avx512 => unsafe { with_avx512($($argument),*) },
                // NEON is part of what everything is compiled for.
                #[cfg(target_arch = "aarch64")]
                Kind::Neon => float::$name($($argument),*),
            }
        }
    };
}

impl InstructionSet {
    /// The fastest instructions that this processor supports.
    pub fn best() -> InstructionSet {
        static BEST: OnceLock<InstructionSet> = OnceLock::new();
        *BEST.get_or_init(|| InstructionSet::all().pop().unwrap_or(InstructionSet::plain()))
    }

    /// All sets of instructions that this processor supports, the fastest last.
    pub fn all() -> Vec<InstructionSet> {
        let mut all = vec![InstructionSet::plain()];
        #[cfg(target_arch = "x86_64")]
        {
            use std::arch::is_x86_feature_detected as has;
            let avx2 = has!("avx2");
            let avx512 = has!("avx512f") && has!("avx512bw") && has!("avx512dq") && has!("avx512vl");
            let kinds = [
                (Kind::Avx2, avx2),
                (Kind::AvxVnni, avx2 && has!("avxvnni")),
                (Kind::Avx512, avx512 && has!("avx512vnni")),
            ];
            all.extend(kinds.into_iter().filter(|(_, supported)| *supported).map(|(kind, _)| InstructionSet(kind)));
        }
        #[cfg(target_arch = "aarch64")]
        all.push(InstructionSet(Kind::Neon));
        all
    }

    /// A short name, for people.
    pub fn name(self) -> &'static str {
        match self.0 {
            Kind::Plain => "plain",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx2 => "AVX2",
            #[cfg(target_arch = "x86_64")]
            Kind::AvxVnni => "AVX-VNNI",
            #[cfg(target_arch = "x86_64")]
            Kind::Avx512 => "AVX-512",
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => "NEON",
        }
    }

    /// Instructions that every processor supports.
    pub fn plain() -> InstructionSet {
        InstructionSet(Kind::Plain)
    }

    dispatched! {
        /// Quantises every row of `width` to integers with its own scale and lowest value.
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
        let Activations { values, scales, lows } = from;
        assert_eq!(values.len(), scales.len() * layer.inputs, "rows have another width than the layer");
        assert_eq!(lows.len(), scales.len(), "each row has a scale and a lowest value");
        assert_eq!(to.len(), scales.len() * layer.outputs, "the result has another shape");
        match self.0 {
            Kind::Plain => integer::linear_plain(from, layer, to),
            // SAFETY: an `InstructionSet` of this kind is only created where AVX2 was detected.
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            Kind::Avx2 => unsafe { integer::x86::linear_avx2(from, layer, to) },
            // SAFETY: an `InstructionSet` of this kind is only created where AVX2 and AVX-VNNI were detected.
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            Kind::AvxVnni => unsafe { integer::x86::linear_avx_vnni(from, layer, to) },
            // SAFETY: an `InstructionSet` of this kind is only created where all its features were detected.
            #[cfg(target_arch = "x86_64")]
            #[allow(unsafe_code)]
            Kind::Avx512 => unsafe { integer::x86::linear_avx512(from, layer, to) },
            #[cfg(target_arch = "aarch64")]
            Kind::Neon => integer::neon::linear_neon(from, layer, to),
        }
    }
}

#[cfg(test)]
mod tests;
