//! Aggregates over the rows of a group: sums, counts, extremes, lists and percentiles.

use super::eval::{fail, wrong};
use super::expr::{Aggregate, AggregateCall};
use super::fault::FaultClass;
use super::operators;
use super::run::QueryStop;
use super::value::{GroupKey, Value, order};
use crate::convert::to_index;
use rustc_hash::FxHashSet;
use std::cmp::Ordering;

/// The state of one aggregate over one group.
pub(super) struct Total {
    /// The values so far, for DISTINCT.
    seen: Option<Box<FxHashSet<GroupKey>>>,
    so_far: SoFar,
}

enum SoFar {
    Count(i64),
    Sum(Value),
    Average {
        sum: Value,
        count: i64,
    },
    Extreme(Option<Value>, Ordering),
    Collect(Vec<Value>),
    /// Count, mean, and the sum of squared distances from it.
    Deviation {
        count: f64,
        mean: f64,
        squares: f64,
        of_all: bool,
    },
    Percentile {
        values: Vec<Value>,
        share: Option<f64>,
        continuous: bool,
    },
}

impl Total {
    pub fn new(call: &AggregateCall) -> Total {
        let so_far = match call.function {
            Aggregate::Count => SoFar::Count(0),
            Aggregate::Sum => SoFar::Sum(Value::Integer(0)),
            Aggregate::Average => SoFar::Average { sum: Value::Null, count: 0 },
            Aggregate::Least => SoFar::Extreme(None, Ordering::Less),
            Aggregate::Most => SoFar::Extreme(None, Ordering::Greater),
            Aggregate::Collect => SoFar::Collect(Vec::new()),
            Aggregate::Deviation | Aggregate::DeviationOfAll => {
                let of_all = call.function == Aggregate::DeviationOfAll;
                SoFar::Deviation { count: 0.0, mean: 0.0, squares: 0.0, of_all }
            }
            Aggregate::PercentileContinuous | Aggregate::PercentileDiscrete => {
                let continuous = call.function == Aggregate::PercentileContinuous;
                SoFar::Percentile { values: Vec::new(), share: None, continuous }
            }
        };
        Total { seen: call.distinct.then(Box::default), so_far }
    }

    /// Counts a row, if only rows are counted.
    #[inline]
    pub fn row(&mut self) {
        if let SoFar::Count(count) = &mut self.so_far {
            *count += 1;
        }
    }

    /// Adds a value. Returns how many bytes it keeps because of it.
    pub fn add(&mut self, value: &Value, second: Option<Value>, at: usize) -> Result<usize, QueryStop> {
        if let (SoFar::Percentile { share, .. }, Some(second)) = (&mut self.so_far, second) {
            let found = match second {
                Value::Integer(n) => n as f64,
                Value::Float(f) => f,
                other => {
                    let message = format!("a percentile is a number from 0 to 1, not a {}", other.type_name());
                    return Err(fail(FaultClass::Type, "InvalidArgumentType", message, at));
                }
            };
            if !(0.0..=1.0).contains(&found) {
                let message = format!("a percentile is a number from 0 to 1, not {found}");
                return Err(fail(FaultClass::Argument, "NumberOutOfRange", message, at));
            }
            *share = Some(found);
        }
        if value.is_null() {
            return Ok(0);
        }
        let mut bytes = 0;
        if let Some(seen) = &mut self.seen {
            if !seen.insert(GroupKey(value.clone())) {
                return Ok(0);
            }
            bytes += size_of::<Value>() + value.heap() + 8;
        }
        match &mut self.so_far {
            SoFar::Count(count) => *count += 1,
            SoFar::Sum(sum) => *sum = amount(sum, value, at)?,
            SoFar::Average { sum, count } => {
                *sum = if sum.is_null() { amount(&Value::Integer(0), value, at)? } else { average(sum, value, at)? };
                *count += 1;
            }
            SoFar::Extreme(best, wanted) => {
                if best.as_ref().is_none_or(|b| order(value, b) == *wanted) {
                    *best = Some(value.clone());
                }
            }
            SoFar::Collect(values) => {
                bytes += size_of::<Value>() + value.heap();
                values.push(value.clone());
            }
            SoFar::Deviation { count, mean, squares, .. } => {
                let x = number(value, at)?;
                *count += 1.0;
                let away = x - *mean;
                *mean += away / *count;
                *squares += away * (x - *mean);
            }
            SoFar::Percentile { values, .. } => {
                number(value, at)?;
                bytes += size_of::<Value>();
                values.push(value.clone());
            }
        }
        Ok(bytes)
    }

    pub fn finish(self, at: usize) -> Result<Value, QueryStop> {
        Ok(match self.so_far {
            SoFar::Count(count) => Value::Integer(count),
            SoFar::Sum(sum) => sum,
            SoFar::Average { sum, count } => match sum {
                Value::Null => Value::Null,
                Value::Integer(n) => Value::Float(n as f64 / count as f64),
                other => operators::divide(&other, &Value::Integer(count)).map_err(|w| wrong(w, at))?,
            },
            SoFar::Extreme(best, _) => best.unwrap_or_default(),
            SoFar::Collect(values) => Value::list(values),
            SoFar::Deviation { count, squares, of_all, .. } => {
                let by = if of_all { count } else { count - 1.0 };
                Value::Float(if by > 0.0 { (squares / by).sqrt() } else { 0.0 })
            }
            SoFar::Percentile { mut values, share, continuous } => {
                values.sort_by(order);
                percentile(&values, share.unwrap_or(0.5), continuous)
            }
        })
    }
}

fn amount(sum: &Value, value: &Value, at: usize) -> Result<Value, QueryStop> {
    match value {
        Value::Integer(_) | Value::Float(_) => operators::add(sum, value).map_err(|w| wrong(w, at)),
        // Durations are added to durations only.
        Value::Duration(_) if matches!(sum, Value::Integer(0)) => Ok(value.clone()),
        Value::Duration(_) => operators::add(sum, value).map_err(|w| wrong(w, at)),
        other => {
            let message = format!("a {} cannot be summed", other.type_name());
            Err(fail(FaultClass::Type, "InvalidArgumentType", message, at))
        }
    }
}

/// Sums that overflow an integer continue as floats, because an average can fit even if the sum does not.
fn average(sum: &Value, value: &Value, at: usize) -> Result<Value, QueryStop> {
    if let (Value::Integer(a), Value::Integer(b)) = (sum, value) {
        return Ok(a.checked_add(*b).map_or(Value::Float(*a as f64 + *b as f64), Value::Integer));
    }
    amount(sum, value, at)
}

fn number(value: &Value, at: usize) -> Result<f64, QueryStop> {
    match value {
        Value::Integer(n) => Ok(*n as f64),
        Value::Float(f) => Ok(*f),
        other => {
            let message = format!("expected a number, found a {}", other.type_name());
            Err(fail(FaultClass::Type, "InvalidArgumentType", message, at))
        }
    }
}

fn percentile(sorted: &[Value], share: f64, continuous: bool) -> Value {
    let Some(last) = sorted.len().checked_sub(1) else { return Value::Null };
    if !continuous {
        let place = to_index((share * sorted.len() as f64).ceil());
        return sorted[place.saturating_sub(1).min(last)].clone();
    }
    let float = |v: &Value| match v {
        Value::Integer(n) => *n as f64,
        Value::Float(f) => *f,
        _ => f64::NAN,
    };
    let place = share * last as f64;
    let (below, above) = (to_index(place), to_index(place.ceil()));
    let (a, b) = (float(&sorted[below.min(last)]), float(&sorted[above.min(last)]));
    Value::Float(if below == above { a } else { a + (b - a) * (place - below as f64) })
}
