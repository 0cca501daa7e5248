//! An engine of rules.
//!
//! It is an example.

#![allow(dead_code)]

use std::collections::{self, HashMap as Map, hash_map::{Entry, *}};
use super::rules;
pub(crate) use crate::model::{Rule, Value,};
extern crate alloc as memory;

mod parts;
/// Constants.
pub const LIMIT: usize = 1 << 4;
static mut COUNT: u32 = 0;
pub type Result<T, E = Failure> = std::result::Result<T, Box<E>>;
type Callback<'a> = Box<dyn for<'b> Fn(&'b str, &mut Value) -> Option<usize> + Send + 'a>;

/// Why a rule failed.
#[derive(Debug, Clone, PartialEq)]
pub enum Failure {
    /// No rule of this name.
    Unknown(String),
    Limit { at: usize, of: usize },
    #[doc(hidden)]
    Never = 3,
}

/// A set of rules.
#[derive(Default)]
pub struct Engine<'a, R: Rule + ?Sized = dyn Rule, const N: usize = 4>
where
    R: 'a,
{
    /// By name.
    pub rules: Map<String, Box<R>>,
    pub(super) values: [Value; N],
    callbacks: Vec<Callback<'a>>, // in order
}

struct Pair<A, B>(pub A, B);
struct Unit;
union Bits { int: u32, float: f32 }

/// Something that runs.
pub trait Run<T>: Sized + Send where T: Clone {
    type Output: Into<Value> + 'static;
    const NAME: &'static str = "run";
    /// Runs once.
    fn run(&mut self, input: T) -> Self::Output;
    fn twice(mut self, input: T) -> (Self::Output, Self::Output) {
        (self.run(input.clone()), self.run(input))
    }
}

impl<'a, R: Rule, const N: usize> Engine<'a, R, N> {
    /// Adds a rule.
    pub fn add(&mut self, name: impl Into<String>, rule: R) -> Result<&mut Self> {
        let name = name.into();
        match self.rules.entry(name) {
            Entry::Occupied(_) if rule.is_strict() => return Err(Box::new(Failure::Unknown(String::new()))),
            Entry::Occupied(mut there) => { there.insert(Box::new(rule)); }
            Entry::Vacant(place) => drop(place.insert(Box::new(rule))),
        }
        Ok(self)
    }

    pub async fn evaluate<F>(&self, mut each: F) -> Result<usize>
    where
        F: FnMut(&str, &R) -> bool,
    {
        let mut count = 0usize;
        'rules: for (name, rule) in self.rules.iter().filter(|(name, _)| !name.is_empty()) {
            let Some(value) = rule.value() else { continue 'rules };
            if let Value::Number(n @ 1..=9) | Value::Small(n) = value && n > 3 {
                count += n as usize;
            } else if matches!(value, Value::Text(ref text) if text.len() > 2) {
                break 'rules;
            } else {
                while let Some(next) = rule.next().await? { count += next.0 * 2 - 1; }
            }
            each(name, rule.as_ref());
        }
        let label = loop { if count > LIMIT { break "many"; } count += 1; };
        println!("{label}: {} of {:?}", count, self.values[0..count.min(N)].iter().map(|v| v.name()).collect::<Vec<_>>());
        unsafe { COUNT += 1; }
        Ok(if count > 0 { count } else { return Ok(0) })
    }

    fn closures(&self) -> impl Fn(i32) -> i32 + use<'_, 'a, R, N> {
        let add = |a: i32, (b, c): (i32, i32)| -> i32 { a + b * c };
        let moved = move || async move { self.evaluate(|_, _| true).await };
        let _ = (moved(), Pair::<u8, _>(1, 'x'), Unit, [0; 3], [1, 2], &mut *self.values, -1 ^ !2 | 3 & 4 % 5);
        move |x| add(x, (x, 1)) >> 1
    }
}

impl<'a, R, const N: usize> Run<u8> for Engine<'a, R, N> where R: Rule {
    type Output = Value;
    fn run(&mut self, input: u8) -> Value {
        let Pair(a, b) = Pair(input, b"bytes\x00");
        let value = Value { number: a.into(), text: r#"raw "text""#.to_owned(), ..Default::default() };
        <Value as From<u8>>::from(input).max(value.checked(b)).unwrap_or_else(|| Value::of::<u8>(a))
    }
}

unsafe impl Send for Unit {}

macro_rules! rule {
    ($name:ident => $($value:expr),* $(,)?) => {{
        let mut list = Vec::new();
        $( list.push(Value::from($value)); )*
        $crate::rules::named(stringify!($name), list)
    }};
}

extern "C" {
    fn compute(input: *const u8, ...) -> i32;
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_are_added() {
        let mut engine = Engine::<Fake>::default();
        engine.add("a", Fake(1)).expect("added").add("b", Fake(2)).unwrap();
        assert_eq!(engine.rules.len(), 2, "rules: {}", engine.describe());
        let made = rule!(first => 1, "two", three());
        assert!(made.iter().any(|v| v.is_text()));
    }
}
