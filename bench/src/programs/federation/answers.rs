//! What taking a provider's answer costs, beside what it cannot do without: one verification and one write.

use bench::{
    Result,
    client::Request,
    load::{self, work_off},
    report::{self, Aim, Bound, times},
    series::{Round, Series, Spread},
};

use super::{
    Options,
    provider::{Answer, groups},
    server::Server,
    subject::VERIFICATIONS,
};

/// How long an answer is, as XML: that of somebody in many groups.
const SIZE: usize = 10 * 1024;

/// Answers to as many logins that were begun for them.
async fn stock(server: &Server, count: usize) -> Result<Vec<Request>> {
    let mut stock = Vec::with_capacity(count);
    let mut attributes = String::new();
    for relay_state in server.begin(count).await? {
        let request_id = format!("_{relay_state}");
        let answer = |attributes| Answer {
            request_id: &request_id,
            acs_url: &server.acs_url,
            audience: &server.entity_id,
            attributes,
            prefixes: "",
        };
        if attributes.is_empty() {
            let plain = server.provider.response(&answer(""))?.len();
            attributes = groups((SIZE - plain).div_ceil(groups(2).len() - groups(1).len()));
        }
        stock.push(server.answer(&server.provider.response(&answer(&attributes))?, &relay_state));
    }
    Ok(stock)
}

pub async fn measure(engine: &str, options: &Options, server: &Server, aims: &mut Vec<Aim>) -> Result<Vec<Series>> {
    let callers = options.connections;
    let mut series = [
        Series::new("one RSA verification", callers),
        Series::new("one write", callers),
        Series::new("POST /auth/federation/saml/{id}/acs, 10 KiB", callers),
    ];
    for round in 1..=options.flags.rounds() {
        eprintln!("{engine}: answers, round {round}");
        for (place, path) in ["/verify", "/write"].into_iter().enumerate() {
            let mut connections = Vec::new();
            for _ in 0..callers {
                let request = Request::post(path, "", "{}").expecting(200);
                connections.push(bench::client::Connection::open(server.beside, request).await?);
            }
            let mut round = load::drive(connections, options.flags.turn(), || server.cpu()).await?.round;
            if place == 0 {
                round.cpu_micros /= VERIFICATIONS as f64;
                round.per_second *= VERIFICATIONS as f64;
            }
            series[place].rounds.push(round);
        }
        let stock = stock(server, options.answers()).await?;
        series[2].rounds.push(work_off(server.address, callers, stock, || server.cpu()).await?);
    }
    let cpu = |round: &Round| round.cpu_micros;
    let compared: Vec<_> = series.iter().map(|one| vec![times(one.ratio(&series[1], cpu))]).collect();
    println!("\n{engine}\n\n{}", report::table(&series, None, &compared, "CPU over a write"));
    let together = Spread::of(
        (0..series[2].rounds.len())
            .map(|round| series.iter().map(|one| one.rounds[round].cpu_micros).sum::<f64>() / 1e3),
    );
    let what = format!("{engine}: CPU of an answer of 10 KiB, a verification and a write together");
    aims.push(Aim::new(what, together.median, Bound::AtMost(3.0), " ms"));
    Ok(series.into())
}
