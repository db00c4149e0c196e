//! SMS through a real HTTP gateway and into files.

use std::time::Duration;

use kernel::Secret;
use spine::{NewSms, Runner, TestClock, Texter, queue_sms, sms::SmsTransport};
use store::{Db, args, on_both_engines, testing::TestDb};

use crate::{MIGRATIONS, mail::keyring, servers};

async fn queue(db: &Db) -> String {
    let sms = NewSms { app: None, to: "+491701234567".into(), text: "Your code is 123456".into() };
    db.write(move |tx| queue_sms(tx, &keyring(), &sms)).await.unwrap().to_string()
}

fn texter(db: &Db, url: &str) -> Runner {
    let runner = Runner::new();
    let transport = SmsTransport::from_url(&Secret::new(url.to_owned())).unwrap();
    Texter::new(db.clone(), keyring(), transport).add_to(&runner);
    runner
}

async fn state(db: &Db, id: &str) -> (String, i64, String) {
    let sql = "SELECT state, attempts, sealed FROM sms_outbox WHERE id = $1";
    db.get_one(sql, &args![id]).await.unwrap().unwrap()
}

async fn a_gateway_that_is_down_gets_it_later(test: TestDb) {
    let (gateway, mut requests) = servers::http(&[503, 429, 202]).await;
    let runner = texter(&test.db, &format!("http://me:s3cret@{gateway}/send"));
    let clock = TestClock::open(test.db.clone(), runner).await.unwrap();
    let id = queue(&test.db).await;
    clock.advance_by(Duration::from_secs(600)).await.unwrap();
    assert_eq!(state(&test.db, &id).await, ("sent".into(), 3, String::new()));
    for _ in 0..3 {
        let request = requests.recv().await.unwrap();
        assert!(request.starts_with("POST /send HTTP/1.1\r\n"), "{request}");
        assert!(request.to_ascii_lowercase().contains(&format!("idempotency-key: {id}")), "{request}");
        assert!(request.contains("authorization: Basic "), "{request}");
        let (_, body) = request.split_once("\r\n\r\n").unwrap();
        let body: serde_json::Value = serde_json::from_str(body).unwrap();
        assert_eq!(body, serde_json::json!({ "to": "+491701234567", "text": "Your code is 123456" }));
    }
}

async fn a_refusal_is_final_and_forgotten_after_a_month(test: TestDb) {
    let (gateway, _requests) = servers::http(&[400]).await;
    let runner = texter(&test.db, &format!("http://{gateway}/send"));
    let clock = TestClock::open(test.db.clone(), runner.clone()).await.unwrap();
    let id = queue(&test.db).await;
    runner.drain().await.unwrap();
    assert_eq!(state(&test.db, &id).await, ("failed".into(), 1, String::new()));
    clock.advance_by(Duration::from_secs(31 * 24 * 3_600)).await.unwrap();
    runner.drain().await.unwrap();
    let left = test.db.get_one::<(String,)>("SELECT id FROM sms_outbox WHERE id = $1", &args![id]).await.unwrap();
    assert_eq!(left, None);
}

async fn files_hold_one_message_each(test: TestDb) {
    let folder = tempfile::tempdir().unwrap();
    let runner = texter(&test.db, &format!("file:{}", folder.path().display()));
    let id = queue(&test.db).await;
    runner.drain().await.unwrap();
    let text = std::fs::read_to_string(folder.path().join(format!("{id}.json"))).unwrap();
    assert_eq!(serde_json::from_str::<serde_json::Value>(&text).unwrap()["text"], "Your code is 123456");
}

async fn only_international_numbers_are_taken(test: TestDb) {
    for wrong in ["0170 1234567", "+49 170", "+0170123456", "", "+1234567890123456", "+49170123456\n"] {
        let sms = NewSms { app: None, to: wrong.into(), text: "x".into() };
        let error = test.db.write(move |tx| queue_sms(tx, &keyring(), &sms)).await.unwrap_err();
        assert_eq!(error.details()[0].field, "to", "{wrong}");
    }
}

on_both_engines!(
    MIGRATIONS: a_gateway_that_is_down_gets_it_later,
    a_refusal_is_final_and_forgotten_after_a_month,
    files_hold_one_message_each,
    only_international_numbers_are_taken,
);
