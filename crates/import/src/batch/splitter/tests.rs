use proptest::prelude::*;

use super::{super::cut::LARGEST_PIECE, *};

fn split(body: &[u8], step: usize) -> Result<Vec<Piece>> {
    let (mut splitter, mut pieces) = (Splitter::new(), Vec::new());
    for bytes in body.chunks(step.max(1)) {
        splitter.push(bytes, &mut pieces)?;
    }
    splitter.finish()?;
    Ok(pieces)
}

fn value(json: &str) -> Value {
    serde_json::from_str(json).expect(json)
}

fn tenant(item: usize, json: &str) -> Piece {
    Piece::Tenant { item, place: Place::Tenant(item), value: value(json) }
}

fn user(item: usize, place: usize, json: &str) -> Piece {
    Piece::User { item, place: Place::User(item, place), person: Person::Given(value(json)) }
}

#[test]
fn a_list_is_cut_into_workspaces_and_people() {
    let body = br#" [ {"tenant": {"a":"]\"}"}, "x": [1, {"y": 2}], "users" : [ {"b":1},2 ,"c" ]} , {"users":[],"tenant":3} ]  "#;
    let pieces = split(body, 1).expect("it is JSON");
    let expected = [
        tenant(0, r#"{"a":"]\"}"}"#),
        user(0, 0, r#"{"b":1}"#),
        user(0, 1, "2"),
        user(0, 2, r#""c""#),
        Piece::End { item: 0 },
        tenant(1, "3"),
        Piece::End { item: 1 },
    ];
    assert_eq!(pieces, expected);
}

#[test]
fn what_is_not_in_its_place_is_named() {
    let pieces = split(br#"[1,{"users":{}},"a",{"users":null}]"#, 3).expect("it is JSON");
    let wrong = |tenant_of, place: &str, problem| wrong(tenant_of, place.to_owned(), problem);
    let expected = [
        wrong(Some(0), "[0]", "must be an object"),
        Piece::End { item: 0 },
        wrong(None, "[1].users", "must be a list"),
        Piece::End { item: 1 },
        wrong(Some(2), "[2]", "must be an object"),
        Piece::End { item: 2 },
        Piece::End { item: 3 },
    ];
    assert_eq!(pieces, expected);
}

#[test]
fn what_is_given_twice_is_named_and_passed_over() {
    let body = br#"[{"users":[1],"tenant":1,"users":[{"a":]},"tenant":2}]"#;
    assert_eq!(split(body, 3).expect_err("no JSON").code(), Code::MalformedJson);
    for body in [r#"[{"tenant":{"a":1,"a":2]}]"#, r#"[{"users":[{"a":1,"a":2,}]}]"#] {
        assert_eq!(split(body.as_bytes(), 3).expect_err(body).code(), Code::MalformedJson, "{body}");
    }
    let body = br#"[{"users":[1],"tenant":1,"users":[3],"tenant":2},{"users":[{"a":{"b":1,"b":2}}]}]"#;
    let pieces = split(body, 3).expect("it is JSON");
    let expected = [
        user(0, 0, "1"),
        tenant(0, "1"),
        wrong(None, "[0].users".to_owned(), "is given twice"),
        wrong(None, "[0].tenant".to_owned(), "is given twice"),
        Piece::End { item: 0 },
        wrong_person(None, "[1].users[0]".to_owned(), "cannot be read: the member \"b\" is given twice"),
        Piece::End { item: 1 },
    ];
    assert_eq!(pieces, expected);
}

#[test]
fn what_is_no_list_or_no_json_is_refused() {
    for body in ["{}", "1", "null", "\"a\""] {
        assert_eq!(split(body.as_bytes(), 1).expect_err(body).code(), Code::ValidationFailed, "{body}");
    }
    let deep = "[".repeat(1_000_000);
    for body in [
        "",
        " ",
        "[",
        "[}",
        "[1",
        "[1}",
        "[{]",
        "[{\"a\"}]",
        "[{\"a\":}]",
        "[{\"a\":1,}]",
        "[1,]",
        "[,1]",
        "[1]]",
        "[tru]",
        "[{\"users\":[1 2]}]",
        "[{a:1}]",
        "[{\"users\":[{\"a\":]}]",
        &deep,
    ] {
        let code = split(body.as_bytes(), 7).expect_err(body).code();
        assert_eq!(code, Code::MalformedJson, "{}", body.chars().take(40).collect::<String>());
    }
}

#[test]
fn a_piece_that_is_too_large_is_passed_over() {
    let body = format!(
        r#"[{{"tenant":{{"a":"{}"}},"users":["{}",1]}}]"#,
        "x".repeat(LARGEST_PIECE),
        "y".repeat(LARGEST_PIECE)
    );
    let pieces = split(body.as_bytes(), 4096).expect("it is JSON");
    let wrong = |tenant_of, place: &str| wrong_person(tenant_of, place.to_owned(), TOO_LARGE);
    assert_eq!(
        pieces,
        [wrong(Some(0), "[0].tenant"), wrong(None, "[0].users[0]"), user(0, 1, "1"), Piece::End { item: 0 }]
    );
}

#[test]
fn no_batch_has_more_than_it_may() {
    let body = format!("[{}{{}}]", "{},".repeat(MOST_TENANTS));
    assert_eq!(split(body.as_bytes(), 999).expect_err("too many").code(), Code::ValidationFailed);
    let body = format!(r#"[{{"users":[{}1]}}]"#, "1,".repeat(MOST_USERS));
    assert_eq!(split(body.as_bytes(), 999).expect_err("too many").code(), Code::ValidationFailed);
}

proptest! {
    /// Where the network cuts a body makes no difference, and whatever is taken is JSON.
    #[test]
    fn every_cut_gives_the_same_pieces(
        parts in prop::collection::vec(
            prop_oneof![
                Just("["), Just("]"), Just("{"), Just("}"), Just(","), Just(":"), Just("\"tenant\""), Just("\"users\""),
                Just("\"a\\\"\""), Just("1"), Just("null"), Just(" "), Just("{\"tenant\":{},\"users\":[1]}"), Just("\\"),
            ],
            0..24,
        ),
        step in 1_usize..9,
    ) {
        let body = format!("[{}]", parts.concat());
        let (whole, cut) = (split(body.as_bytes(), usize::MAX), split(body.as_bytes(), step));
        prop_assert_eq!(whole.is_ok(), cut.is_ok());
        if let (Ok(whole), Ok(cut)) = (whole, cut) {
            prop_assert_eq!(whole, cut);
            prop_assert!(serde_json::from_str::<IgnoredAny>(&body).is_ok(), "{}", body);
        }
    }
}
