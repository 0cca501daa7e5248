//! The weights as stored in the binary: found by name, read in place; `models/README.md` describes the format.

use rustc_hash::FxHashMap;

const MAGIC: &[u8] = b"LUKASAW1";
const ALIGN: usize = 64;

pub struct ModelWeights {
    /// SHA-256 of everything after the header, as given in the header.
    pub digest: &'static str,
    tensors: FxHashMap<&'static str, Tensor>,
    data: &'static [u8],
}

struct Tensor {
    kind: &'static str,
    rows: usize,
    columns: usize,
    offset: usize,
}

/// Rows of int8 values, each row with its scale.
pub struct QuantisedRows {
    bytes: &'static [u8],
    scales: Vec<f32>,
    columns: usize,
}

/// A linear layer: int8 weights in the order in which the kernels read them; the rest is one number for each output.
pub struct LinearLayer {
    pub panels: &'static [u8],
    pub scales: Vec<f32>,
    /// Sums of the int8 weights.
    pub sums: Vec<i32>,
    /// Sums of the weights: what a row adds for each unit of its lowest value.
    pub offsets: Vec<f32>,
    pub bias: Vec<f32>,
    pub inputs: usize,
    pub outputs: usize,
}

impl ModelWeights {
    pub fn read(file: &'static [u8]) -> Result<ModelWeights, String> {
        let broken = || "the weights have no readable header".to_string();
        let (length, rest) = file.strip_prefix(MAGIC).and_then(<[u8]>::split_first_chunk::<4>).ok_or_else(broken)?;
        let length = u32::from_le_bytes(*length) as usize;
        let header = rest.get(..length).and_then(|bytes| std::str::from_utf8(bytes).ok()).ok_or_else(broken)?;
        let start = (MAGIC.len() + 4 + length).next_multiple_of(ALIGN);
        let data = file.get(start..).ok_or_else(broken)?;
        let mut lines = header.lines();
        let digest = lines.next().and_then(|line| line.strip_prefix("sha256 ")).ok_or_else(broken)?;
        let tensors = lines.map(tensor).collect::<Option<_>>().ok_or_else(broken)?;
        Ok(ModelWeights { digest, tensors, data })
    }

    pub fn floats(&self, name: &str, length: usize) -> Result<Vec<f32>, String> {
        let bytes = self.bytes(name, "f32", 1, length, 4)?;
        Ok(bytes.as_chunks::<4>().0.iter().map(|&chunk| f32::from_le_bytes(chunk)).collect())
    }

    pub fn rows(&self, name: &str, rows: usize, columns: usize) -> Result<QuantisedRows, String> {
        let bytes = self.bytes(name, "rows", rows, columns, 1)?;
        Ok(QuantisedRows { bytes, scales: self.floats(&format!("{name}.scales"), rows)?, columns })
    }

    #[expect(clippy::cast_possible_truncation, reason = "sums are whole numbers of at most 1,536 times 127")]
    pub fn linear(&self, name: &str, outputs: usize, inputs: usize) -> Result<LinearLayer, String> {
        let weight = format!("{name}.weight");
        let scales = self.floats(&format!("{weight}.scales"), outputs)?;
        let sums = self.floats(&format!("{weight}.sums"), outputs)?;
        Ok(LinearLayer {
            panels: self.bytes(&weight, "quads", outputs, inputs, 1)?,
            offsets: scales.iter().zip(&sums).map(|(scale, sum)| scale * sum).collect(),
            sums: sums.iter().map(|&sum| sum as i32).collect(),
            scales,
            bias: self.floats(&format!("{name}.bias"), outputs)?,
            inputs,
            outputs,
        })
    }

    fn bytes(
        &self,
        name: &str,
        kind: &str,
        rows: usize,
        columns: usize,
        width: usize,
    ) -> Result<&'static [u8], String> {
        let tensor = self.tensors.get(name).ok_or_else(|| format!("the weights have no `{name}`"))?;
        if (tensor.kind, tensor.rows, tensor.columns) != (kind, rows, columns) {
            return Err(format!("`{name}` of the weights has another shape than the model"));
        }
        let end = tensor.offset + rows * columns * width;
        self.data.get(tensor.offset..end).ok_or_else(|| format!("the weights end within `{name}`"))
    }
}

/// Parses a line `name kind rows columns offset`.
fn tensor(line: &'static str) -> Option<(&'static str, Tensor)> {
    let mut words = line.split(' ');
    let (name, kind) = (words.next()?, words.next()?);
    let mut number = || words.next()?.parse().ok();
    Some((name, Tensor { kind, rows: number()?, columns: number()?, offset: number()? }))
}

impl QuantisedRows {
    /// Adds row `row` to `sum`.
    pub fn add_to(&self, row: usize, sum: &mut [f32]) {
        let scale = self.scales[row];
        let bytes = &self.bytes[row * self.columns..][..self.columns];
        for (sum, &byte) in sum.iter_mut().zip(bytes) {
            *sum += f32::from(byte.cast_signed()) * scale;
        }
    }
}
