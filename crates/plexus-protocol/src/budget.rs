//! Budgets of a session and all below it: the grants and their use. Amounts are stored in whole units
//! (millionths of a dollar, milliseconds), so that grants add up exactly.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Number;

use crate::{Error, Object};

/// What a budget can limit.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum BudgetLimit {
    /// The cost of turns, in dollars.
    CostUsd,
    /// The number of turns.
    Turns,
    /// The number of tool calls that pass the gate.
    ToolCalls,
    /// The running time of turns, in seconds.
    WallSecs,
    /// The number of sessions created below.
    Children,
}

/// The largest amount of a grant, in dollars, seconds or counts.
const MOST: f64 = 1e9;

impl BudgetLimit {
    /// All budgets.
    pub const ALL: [Self; 5] = [Self::CostUsd, Self::Turns, Self::ToolCalls, Self::WallSecs, Self::Children];

    /// The name on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::CostUsd => "cost_usd",
            Self::Turns => "turns",
            Self::ToolCalls => "tool_calls",
            Self::WallSecs => "wall_secs",
            Self::Children => "children",
        }
    }

    fn units_in_one(self) -> u32 {
        match self {
            Self::CostUsd => 1_000_000,
            Self::WallSecs => 1_000,
            Self::Turns | Self::ToolCalls | Self::Children => 1,
        }
    }

    /// Converts an amount to units, rounded up: any use counts in full. `None` if the amount is not positive.
    pub fn units(self, amount: f64) -> Option<u64> {
        let fits = amount > 0.0 && amount <= MOST;
        // Subtracts the rounding error of a float, so that a whole amount is not rounded up by one unit.
        fits.then(|| ((amount * f64::from(self.units_in_one()) - 1e-6).ceil() as u64).max(1))
    }

    /// Converts units to the amount that callers see.
    pub fn shown(self, units: u64) -> Number {
        let whole = u64::from(self.units_in_one());
        if units.is_multiple_of(whole) {
            return Number::from(units / whole);
        }
        let amount = units as f64 / whole as f64;
        Number::from_f64(amount).unwrap_or_else(|| Number::from(units / whole))
    }
}

/// The budget of a session and all below it; omitted fields are unlimited.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Budget {
    /// Dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<f64>,
    /// Turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<u64>,
    /// Tool calls that pass the gate.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<u64>,
    /// Seconds of running turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_secs: Option<u64>,
    /// Sessions created below it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<u64>,
}

impl Budget {
    /// The given amounts, in units.
    pub fn limits(&self) -> Result<Vec<(BudgetLimit, u64)>, Error> {
        let count = |given: Option<u64>| given.map(|count| count as f64);
        let given = [
            (BudgetLimit::CostUsd, self.cost_usd),
            (BudgetLimit::Turns, count(self.turns)),
            (BudgetLimit::ToolCalls, count(self.tool_calls)),
            (BudgetLimit::WallSecs, count(self.wall_secs)),
            (BudgetLimit::Children, count(self.children)),
        ];
        let mut limits = Vec::new();
        for (limit, amount) in given {
            let Some(amount) = amount else { continue };
            let bad = || {
                let why = "must be a positive number, at most a billion; omit it for no limit";
                Error::invalid(&format!("budget.{}", limit.as_str()), why)
            };
            limits.push((limit, limit.units(amount).ok_or_else(bad)?));
        }
        Ok(limits)
    }
}

/// The amount that an answer to a budget approval grants: `{"more": N}`.
pub fn more_of(limit: BudgetLimit, given: &Object) -> Result<u64, Error> {
    const FIELD: &str = "updated_input";
    if let Some(unknown) = given.keys().find(|key| *key != "more") {
        return Err(Error::invalid(FIELD, format!("unknown field `{unknown}`; pass {{\"more\": N}}")));
    }
    let amount = given.get("more").and_then(serde_json::Value::as_f64);
    let whole = limit == BudgetLimit::CostUsd || amount.is_none_or(|amount| amount.fract() == 0.0);
    amount
        .filter(|_| whole)
        .and_then(|amount| limit.units(amount))
        .ok_or_else(|| Error::invalid(FIELD, "`more` must be a positive number, at most a billion"))
}

/// The state of one budget.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct LimitView {
    /// The amount granted.
    #[schemars(with = "f64")]
    pub limit: Number,
    /// What the session and all below it have used of it.
    #[schemars(with = "f64")]
    pub used: Number,
    /// What the session can still use or grant, without what is reserved for the budgets of sessions below
    /// it.
    #[schemars(with = "f64")]
    pub left: Number,
}

/// The budgets of a session; unlimited ones are omitted.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct BudgetView {
    /// Dollars.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub cost_usd: Option<LimitView>,
    /// Turns.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turns: Option<LimitView>,
    /// Tool calls.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_calls: Option<LimitView>,
    /// Seconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub wall_secs: Option<LimitView>,
    /// Sessions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub children: Option<LimitView>,
}

impl BudgetView {
    /// The field of one budget.
    pub fn place(&mut self, limit: BudgetLimit) -> &mut Option<LimitView> {
        match limit {
            BudgetLimit::CostUsd => &mut self.cost_usd,
            BudgetLimit::Turns => &mut self.turns,
            BudgetLimit::ToolCalls => &mut self.tool_calls,
            BudgetLimit::WallSecs => &mut self.wall_secs,
            BudgetLimit::Children => &mut self.children,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn amounts_are_whole_units_and_shown_as_they_were_given() {
        for (limit, given, shown) in [
            (BudgetLimit::CostUsd, 0.1 + 0.2, json!(0.3)),
            (BudgetLimit::CostUsd, 5.0, json!(5)),
            (BudgetLimit::CostUsd, 1e-9, json!(0.000001)),
            (BudgetLimit::WallSecs, 90.0, json!(90)),
            (BudgetLimit::ToolCalls, 3.0, json!(3)),
        ] {
            assert_eq!(json!(limit.shown(limit.units(given).expect("a positive amount"))), shown);
        }
        for bad in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e10] {
            assert_eq!(BudgetLimit::Turns.units(bad), None, "{bad}");
        }
    }

    #[test]
    fn an_invalid_limit_is_refused_by_field_name() {
        let zero = Budget { tool_calls: Some(0), ..Budget::default() };
        assert_eq!(zero.limits().expect_err("refused").details["field"], "budget.tool_calls");
        let negative = Budget { cost_usd: Some(-0.5), ..Budget::default() };
        assert_eq!(negative.limits().expect_err("refused").details["field"], "budget.cost_usd");
    }

    #[test]
    fn more_is_one_positive_number() {
        let given = |value: serde_json::Value| value.as_object().cloned().expect("an object");
        assert_eq!(more_of(BudgetLimit::ToolCalls, &given(json!({"more": 2}))), Ok(2));
        assert_eq!(more_of(BudgetLimit::CostUsd, &given(json!({"more": 0.5}))), Ok(500_000));
        for bad in [
            json!({}),
            json!({"more": 0}),
            json!({"more": "2"}),
            json!({"more": 1, "x": 1}),
            json!({"more": 1.5}),
        ] {
            assert!(more_of(BudgetLimit::ToolCalls, &given(bad.clone())).is_err(), "{bad}");
        }
    }
}
