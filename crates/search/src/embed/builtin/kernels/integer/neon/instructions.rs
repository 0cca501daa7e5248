//! Twins of the NEON instructions that the kernel uses, so that it is tested on other processors too.

#![allow(non_camel_case_types, unsafe_code, reason = "names and signatures are those of `std::arch::aarch64`")]

pub type int8x8_t = [i8; 8];
pub type int8x16_t = [i8; 16];
pub type int16x8_t = [i16; 8];
pub type int32x4_t = [i32; 4];

pub unsafe fn vld1q_s8(from: *const i8) -> int8x16_t {
    // SAFETY: the caller guarantees sixteen bytes.
    unsafe { from.cast::<int8x16_t>().read_unaligned() }
}

pub unsafe fn vst1q_s32(to: *mut i32, value: int32x4_t) {
    // SAFETY: the caller guarantees room for four numbers.
    unsafe { to.cast::<int32x4_t>().write_unaligned(value) }
}

pub fn vdupq_n_s32(value: i32) -> int32x4_t {
    [value; 4]
}

pub fn vreinterpretq_s8_s32(value: int32x4_t) -> int8x16_t {
    std::array::from_fn(|at| value[at / 4].to_le_bytes()[at % 4].cast_signed())
}

pub fn vget_low_s8(value: int8x16_t) -> int8x8_t {
    std::array::from_fn(|at| value[at])
}

fn high(value: int8x16_t) -> int8x8_t {
    std::array::from_fn(|at| value[at + 8])
}

pub fn vmull_s8(a: int8x8_t, b: int8x8_t) -> int16x8_t {
    std::array::from_fn(|at| i16::from(a[at]) * i16::from(b[at]))
}

/// Panics where the instruction would overflow.
pub fn vmlal_s8(sum: int16x8_t, a: int8x8_t, b: int8x8_t) -> int16x8_t {
    let products = vmull_s8(a, b);
    std::array::from_fn(|at| sum[at].checked_add(products[at]).expect("sums of two products fit"))
}

pub fn vmull_high_s8(a: int8x16_t, b: int8x16_t) -> int16x8_t {
    vmull_s8(high(a), high(b))
}

pub fn vmlal_high_s8(sum: int16x8_t, a: int8x16_t, b: int8x16_t) -> int16x8_t {
    vmlal_s8(sum, high(a), high(b))
}

pub fn vpadalq_s16(sum: int32x4_t, pairs: int16x8_t) -> int32x4_t {
    std::array::from_fn(|at| sum[at] + i32::from(pairs[2 * at]) + i32::from(pairs[2 * at + 1]))
}

pub fn vpaddq_s32(a: int32x4_t, b: int32x4_t) -> int32x4_t {
    [a[0] + a[1], a[2] + a[3], b[0] + b[1], b[2] + b[3]]
}
