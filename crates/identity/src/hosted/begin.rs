//! The first step of a login, and signing out.

use std::sync::Arc;

use kernel::{Actor, Code, MemberId, Result};
use store::Tx;
use tenancy::{
    App,
    federation::{self, Protocol, Provider},
    standing,
};

use super::{
    Reply, Visit,
    cookies::{Cookie, Jar},
    finish::{self, Finished, SignInProof},
    paths,
};
use crate::{
    Identity,
    authorize::{AuthorizationRequest, AuthorizeRefusal, Forced, LoginRequest, Prompt, SignUpPreferences},
    browser::Request,
    browser_sessions, sessions, tokens,
};

/// Answers an app's request to sign somebody in: with a page, or at once when somebody is signed in. `field` is what
/// the redirect address is called in the request.
pub(crate) async fn begin(
    identity: &Identity,
    from: &Request,
    app: Arc<App>,
    asked: &AuthorizationRequest,
    field: &str,
) -> Result<Reply> {
    let request = asked.addressed(&app, field)?;
    let refuse = |request: &LoginRequest, refusal: &AuthorizeRefusal| {
        let parameters = [("error", refusal.error), ("error_description", refusal.description.as_str())];
        Reply::found(request.answered(&identity.tenancy.issuer, &parameters))
    };
    let (request, prompt) = match asked.check(&app, request.clone(), identity.tenancy.db.clock().now()) {
        Ok(checked) => checked,
        Err(refusal) => return Ok(refuse(&request, &refusal)),
    };
    let wanted = (asked.force_federation.clone(), asked.federation_connection.clone());
    let (asked, owned) = (request.clone(), Arc::clone(&app));
    if let Err(refusal) = identity.tenancy.db.read(move |tx| known_words(tx, &owned, &asked)).await? {
        return Ok(refuse(&request, &refusal));
    }
    let (owned, room) = (Arc::clone(&app), identity.clone());
    let request = match identity.tenancy.db.read(move |tx| forced(tx, &room, &owned, &wanted)).await? {
        Ok(forced) => LoginRequest { forced, ..request },
        Err(refusal) => return Ok(refuse(&request, &refusal)),
    };
    let visit = Visit::for_request(identity, from, request).await?;
    if visit.request.sign_up.is_some() {
        return Ok(match prompt {
            Prompt::None => refuse(
                &visit.request,
                &AuthorizeRefusal::new("interaction_required", "signing up requires user interaction"),
            ),
            _ => Reply::found(visit.path(paths::SIGN_UP)?),
        });
    }
    match signed_in(&visit, prompt).await? {
        First::Finished(reply) => Ok(reply),
        First::Choose => Ok(Reply::found(visit.path(paths::WORKSPACE)?)),
        First::AskNobody(error) => {
            Ok(refuse(&visit.request, &AuthorizeRefusal::new(error, "user interaction is required")))
        }
        First::Ask => Ok(Reply::found(match visit.request.forced {
            Some(Forced::Connection(id, protocol)) => visit.path(&paths::connection_login(protocol.as_str(), id))?,
            Some(Forced::Provider(provider)) => visit.path(&paths::provider_login(provider.as_str()))?,
            _ => visit.path(paths::IDENTIFIER)?,
        })),
    }
}

/// The provider that the app insists on: `force_federation` and `federation_connection`.
fn forced(
    tx: &mut Tx<'_>,
    identity: &Identity,
    app: &App,
    (kind, connection): &(Option<String>, Option<String>),
) -> Result<std::result::Result<Option<Forced>, AuthorizeRefusal>> {
    let missing = || Ok(Err(AuthorizeRefusal::invalid("this app has no such identity provider to sign in through")));
    let protocol: Option<Protocol> = kind.as_deref().and_then(|kind| kind.parse().ok());
    let provider: Option<Provider> = kind.as_deref().and_then(|kind| kind.parse().ok());
    match (protocol, provider, connection) {
        (None, None, None) => Ok(Ok(None)),
        (wanted, None, Some(id)) => {
            let Ok(id) = id.parse() else { return missing() };
            let known = federation::find(tx, app.id, id)?;
            match known.filter(|known| wanted.is_none_or(|wanted| wanted == known.protocol)) {
                Some(known) => Ok(Ok(Some(Forced::Connection(known.id, known.protocol)))),
                None => missing(),
            }
        }
        (Some(protocol), None, None) => match federation::first_of(tx, app.id, protocol)?.as_slice() {
            [] => missing(),
            [only] => Ok(Ok(Some(Forced::Connection(only.id, protocol)))),
            _ => Ok(Ok(Some(Forced::AnyOf(protocol)))),
        },
        (None, Some(provider), None) => {
            match identity.federation.providers.client(tx, &identity.tenancy, app, provider)? {
                Some(_) => Ok(Ok(Some(Forced::Provider(provider)))),
                None => missing(),
            }
        }
        _ => missing(),
    }
}

/// Checks the words that only the store knows: privileges in the scope, the plan of a sign-up.
fn known_words(
    tx: &mut Tx<'_>,
    app: &App,
    request: &LoginRequest,
) -> Result<std::result::Result<(), AuthorizeRefusal>> {
    let asked = AuthorizationRequest::asked_scope(request);
    match tokens::check_scope(tx, app, &asked) {
        Ok(()) => {}
        Err(error) if error.code() == Code::InvalidScope => {
            return Ok(Err(AuthorizeRefusal::new("invalid_scope", error.public())));
        }
        Err(error) => return Err(error),
    }
    match &request.sign_up {
        None => Ok(Ok(())),
        Some(preferences) => plan_exists(tx, app, preferences),
    }
}

fn plan_exists(
    tx: &mut Tx<'_>,
    app: &App,
    preferences: &SignUpPreferences,
) -> Result<std::result::Result<(), AuthorizeRefusal>> {
    let Some(key) = &preferences.plan else {
        let nothing = preferences.currency.is_none() && preferences.interval.is_none();
        return Ok(if nothing {
            Ok(())
        } else {
            Err(AuthorizeRefusal::invalid("currency and interval require a plan"))
        });
    };
    let Some(plan) = billing::catalog::find_plan_by_key(tx, app.id, key)? else {
        return Ok(Err(AuthorizeRefusal::invalid("this app has no such plan")));
    };
    let fits = preferences.currency.is_none() && preferences.interval.is_none()
        || plan.prices.iter().any(|price| {
            preferences.currency.as_deref().is_none_or(|currency| currency == price.amount.currency.code())
                && preferences.interval.as_deref().is_none_or(|interval| interval == price.interval.as_str())
        });
    Ok(if fits {
        Ok(())
    } else {
        Err(AuthorizeRefusal::invalid("the plan has no price in this currency and interval"))
    })
}

/// What to do first.
enum First {
    Finished(Reply),
    Choose,
    Ask,
    /// `prompt=none` and no way without a page: the error's name.
    AskNobody(&'static str),
}

/// Lets in whoever is signed in already, as far as the request allows it.
async fn signed_in(visit: &Visit, prompt: Prompt) -> Result<First> {
    let ask = if prompt == Prompt::None { First::AskNobody("login_required") } else { First::Ask };
    let Some(cookie) = visit.cookie(Cookie::SignedIn) else { return Ok(ask) };
    let (app, shown, request) = (visit.app.id, cookie.to_owned(), visit.request.clone());
    let not_before = request.not_before;
    let found = visit.identity.tenancy.db.read(move |tx| {
        let Some(session) = browser_sessions::live(tx, app, &shown)? else { return Ok(None) };
        if not_before.is_some_and(|not_before| session.authenticated_at <= not_before)
            || !request.is_met(tx, session.reach(), session.method)?
        {
            return Ok(None);
        }
        let members: Vec<MemberId> =
            standing::of_user(tx, app, session.user, session.reach())?.iter().map(|at| at.member).collect();
        Ok(Some((session, members)))
    });
    let Some((session, members)) = found.await? else { return Ok(ask) };
    let chosen = match (prompt, members.as_slice()) {
        (_, []) => return Ok(ask),
        (Prompt::Select, _) => return Ok(First::Choose),
        (_, [only]) => *only,
        (Prompt::None, several) if several.contains(&session.member) => session.member,
        (Prompt::None, _) => return Ok(First::AskNobody("interaction_required")),
        _ => return Ok(First::Choose),
    };
    let proof = SignInProof::Browser(cookie.to_owned());
    match finish::try_finish(visit, proof, Some(chosen), prompt != Prompt::None).await {
        Ok(Finished::Answered(answer)) => Ok(First::Finished(answer.found(visit)?)),
        Ok(Finished::NeedsFactor(_)) if prompt == Prompt::None => Ok(First::AskNobody("interaction_required")),
        Ok(Finished::NeedsFactor(begun)) => Ok(First::Finished(finish::ask_again(visit, begun)?)),
        // Somebody has signed the browser out, or the workspace asks for its identity provider since.
        Err(error) if matches!(error.code(), Code::InvalidCredential | Code::SsoRequired) => Ok(ask),
        Err(error) => Err(error),
    }
}

/// Ends the sign-in of this browser and all that came from it, and leads to the login.
pub(crate) async fn sign_out(
    identity: &Identity,
    from: &Request,
    app: &App,
    redirect_uri: Option<&str>,
) -> Result<Reply> {
    let base_url = &identity.tenancy.base_url;
    // An app that insists on PKCE has to begin the next login itself.
    let begins_here = app.profile.default_callback_uri.as_ref().filter(|_| !app.profile.require_pkce);
    let location = match (redirect_uri.filter(|_| !app.profile.require_pkce), begins_here) {
        (Some(uri), _) => {
            let query = url::form_urlencoded::Serializer::new(String::new()).append_pair("redirectUri", uri).finish();
            format!("{base_url}/auth/url/login/{}?{query}", app.id)
        }
        (None, Some(_)) => format!("{base_url}/auth/url/login/{}", app.id),
        // There is nowhere to return to from a login.
        (None, None) => format!("{base_url}{}?app={}", paths::SIGNED_OUT, app.id),
    };
    sign_out_to(identity, from, app, location).await
}

/// The same, and leads to this address.
pub(crate) async fn sign_out_to(identity: &Identity, from: &Request, app: &App, location: String) -> Result<Reply> {
    let jar = Jar::new(app.id, &identity.tenancy.base_url);
    let (app_id, signed_in) = (app.id, jar.read(&from.headers, Cookie::SignedIn).map(str::to_owned));
    let under_way = jar.read(&from.headers, Cookie::Login);
    let under_way = under_way.and_then(|token| sessions::verify(&identity.tenancy, token).ok());
    if signed_in.is_some() || under_way.is_some() {
        let ended = identity.tenancy.db.write(move |tx| {
            if let Some(session) = under_way.as_ref().filter(|session| session.aid == app_id) {
                sessions::end(tx, session)?;
            }
            let Some(cookie) = &signed_in else { return Ok(()) };
            if let Some(person) = browser_sessions::live(tx, app_id, cookie)? {
                tx.acting_as(Actor::user(person.user));
            }
            browser_sessions::end(tx, app_id, cookie)
        });
        ended.await?;
    }
    Ok(Reply::found(location).with_cookies([jar.clear(Cookie::SignedIn), jar.clear(Cookie::Login)]))
}
