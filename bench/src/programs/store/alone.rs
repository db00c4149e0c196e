//! What one thread does without any database: signing, verifying, hashing and making ids.

use std::{hint::black_box, time::Duration};

use bench::{
    Result,
    report::{Table, count, figure, with_ends},
    series::Spread,
};
use kernel::{AppId, Clock, Entropy, Ticker};
use serde_json::{Value, json};
use store::Db;
use vault::{Keyring, MasterKey, SigningKeys};

struct Work {
    name: &'static str,
    run: Box<dyn Fn() -> Result<()>>,
    /// Nanoseconds each, per round.
    rounds: Vec<f64>,
}

const TYPE: &str = "at+jwt";

/// Measures in turns and prints a table. `db` keeps the signing key.
pub async fn measure(db: &Db, rounds: usize, turn: Duration) -> Result<()> {
    let mut works = works(db).await?;
    for _ in 0..rounds {
        for work in &mut works {
            let nanos = repeat(&*work.run, turn)?;
            work.rounds.push(nanos);
        }
    }
    let mut table = Table::new(["one thread", "µs each (min–max)", "per s"]);
    for work in &works {
        let nanos = Spread::of(work.rounds.iter().copied());
        let cost = with_ends(nanos, |nanos| figure(nanos / 1e3));
        table.row([work.name.into(), cost, count(1e9 / nanos.median)]);
    }
    println!("\nWithout storage\n\n{table}");
    Ok(())
}

async fn works(db: &Db) -> Result<Vec<Work>> {
    let (clock, entropy) = (Clock::system(), Entropy::os());
    let keyring = Keyring::new(&MasterKey::generate(&entropy), None, entropy);
    let keys = SigningKeys::new(keyring, clock);
    keys.ensure_first(db).await?;
    let claims = json!({
        "iss": "https://auth.example/auth", "sub": "user_01h455vb4pex5vsknk084sn02q", "aud": "https://app.example",
        "exp": 1_900_000_000, "iat": 1_800_000_000, "tenant": "tenant_01h455vb4pex5vsknk084sn02q", "roles": ["owner"],
    });
    let token = keys.sign(TYPE, &claims)?;
    let (signer, ids) = (keys.clone(), db.ids().clone());
    let work = |name, run| Work { name, run, rounds: Vec::new() };
    Ok(vec![
        work(
            "PS256 signature of a token",
            Box::new(move || black_box(signer.sign(TYPE, &claims)).map(drop).map_err(Into::into)),
        ),
        work(
            "PS256 verification",
            Box::new(move || black_box(keys.verify::<Value>(&token, TYPE)).map(drop).map_err(Into::into)),
        ),
        work(
            "a new id",
            Box::new(move || {
                let id: AppId = ids.next();
                drop(black_box(id.to_string()));
                Ok(())
            }),
        ),
        work("an id read from text", {
            let id: AppId = db.ids().next();
            let text = id.to_string();
            Box::new(move || black_box(text.parse::<AppId>()).map(|_| ()).map_err(Into::into))
        }),
        work("SHA-256 of an API key", {
            let key = format!("tnt_{}", db.entropy().base62(43));
            Box::new(move || {
                drop(black_box(vault::hash_token(&key)));
                Ok(())
            })
        }),
    ])
}

fn repeat(run: &dyn Fn() -> Result<()>, turn: Duration) -> Result<f64> {
    let (started, mut count) = (Ticker.now(), 0_u32);
    loop {
        for _ in 0..64 {
            run()?;
        }
        count += 64;
        let elapsed = Ticker.since(started);
        if elapsed >= turn {
            return Ok(elapsed.as_nanos() as f64 / f64::from(count));
        }
    }
}
