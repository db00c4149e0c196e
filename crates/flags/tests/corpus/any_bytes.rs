//! Any two JSON texts as a rule and a context: whatever is accepted can be compiled and evaluated, both ways of finding
//! attributes agree, the explanation comes to the same, and nothing panics.

use flags::{
    model::{Definition, FlagId, Rule, State, ValueType},
    rules::{Attributes, Flag, Groups, OnDemand, Resolved, SentContext, check, evaluate, explain},
};
use kernel::Problems;
use serde_json::json;

/// A zero byte stands between the rule and the context. Says whether there was a rule to evaluate.
pub fn evaluate_any(data: &[u8]) -> bool {
    let Some(middle) = data.iter().position(|byte| *byte == 0) else { return false };
    let (rule, body) = (&data[..middle], &data[middle + 1..]);
    let Ok(rule) = serde_json::from_slice::<Rule>(rule) else { return false };
    let definition = Definition {
        key: "fuzzed".into(),
        description: String::new(),
        state: State::OnWithRule,
        value_type: ValueType::Json,
        off_value: json!(false),
        on_value: json!(true),
        rule: Some(rule),
    };
    let groups = Groups::new();
    let mut problems = Problems::new();
    check(&definition, &groups, &mut problems);
    let accepted = problems.is_empty();
    let mut attributes = Attributes::default();
    let flag = Flag::compile(FlagId::from_u128(1), &definition, &groups, &mut attributes);
    assert!(!accepted || !flag.is_broken(), "what is accepted can be evaluated");
    attributes.seal();
    for sent in [SentContext::read(body), SentContext::read_open_feature(body)].into_iter().flatten() {
        let identity = sent.context.identity();
        let on_demand = OnDemand { attributes: &attributes, context: &sent.context };
        let verdict = evaluate(&flag, &on_demand, identity.as_deref());
        let resolved = evaluate(&flag, &Resolved::new(&attributes, &sent.context), identity.as_deref());
        assert_eq!(verdict.reason, resolved.reason);
        assert_eq!(verdict.outcome.body, resolved.outcome.body);
        let told = explain(FlagId::from_u128(1), &definition, &groups, &sent.context);
        assert_eq!(told.variant_index, verdict.outcome.variant);
    }
    true
}
