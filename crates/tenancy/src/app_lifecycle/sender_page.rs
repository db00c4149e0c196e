//! `/cloud-views/verify-sender`: the page behind the mailed link. Only its button changes something, because mail
//! scanners follow links.

use http::StatusCode;
use kernel::{Error, Kind, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use web::{
    Anyone, Form, Params, Routes, State,
    pages::{Brand, HostedPage, PostForm},
};

use super::sender::{self, SenderRequest};
use crate::{
    Tenancy,
    branding::{self, Translations},
};

pub(super) fn routes() -> Routes<Tenancy> {
    let path = "/cloud-views/verify-sender";
    Routes::pages("Hosted pages").get(path, ask, "Ask whether an app may send mail from an address").post(
        path,
        agree,
        "Let an app send mail from an address",
    )
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct SenderToken {
    #[serde(default)]
    token: String,
}

/// A page's looks and words.
struct PageLooks {
    brand: Brand,
    words: Translations,
}

async fn ask(State(tenancy): State<Tenancy>, Params(SenderToken { token }): Params<SenderToken>) -> Result<HostedPage> {
    let presented = token.clone();
    let found = tenancy
        .db
        .snapshot(move |tx| {
            let asked = sender::peek(tx, &presented)?;
            Ok((setting(tx, &asked)?, asked))
        })
        .await;
    let (PageLooks { brand, words }, asked) = match found {
        Ok(found) => found,
        Err(error) => return no_such_link(error),
    };
    let question = words.get("{appName} wants to send email from this address:");
    let form = PostForm::new("verify-sender").hidden("token", &token).button(words.get("Confirm email address"));
    Ok(HostedPage::new(&brand, words.get("Confirm this sender address"))
        .paragraph(&question.replace("{appName}", &brand.app_name))
        .highlight(&asked.address)
        .form(&form))
}

async fn agree(
    caller: Anyone,
    State(tenancy): State<Tenancy>,
    Form(SenderToken { token }): Form<SenderToken>,
) -> Result<HostedPage> {
    let db = tenancy.db.by(&caller);
    let verified = db
        .write(move |tx| {
            let asked = match sender::verify(tx, &tenancy, &token) {
                Err(error) if error.kind() == Kind::Unauthenticated => sender::confirmed(tx, &token)?,
                verified => verified?,
            };
            Ok((setting(tx, &asked)?, asked))
        })
        .await;
    let (PageLooks { brand, words }, asked) = match verified {
        Ok(verified) => verified,
        Err(error) => return no_such_link(error),
    };
    Ok(HostedPage::new(&brand, words.get("Email address confirmed"))
        .paragraph(&words.get("{appName} now sends email from this address:").replace("{appName}", &brand.app_name))
        .highlight(&asked.address)
        .paragraph(words.get("You can close this page.")))
}

fn setting(tx: &mut ::store::Tx<'_>, asked: &SenderRequest) -> Result<PageLooks> {
    Ok(PageLooks { brand: branding::brand(tx, &asked.app)?, words: branding::translations(tx, asked.app.id)? })
}

/// Whose link it was is not known, so the page has no app's looks.
fn no_such_link(error: Error) -> Result<HostedPage> {
    if !matches!(error.kind(), Kind::Unauthenticated | Kind::NotFound) {
        return Err(error);
    }
    let page = HostedPage::new(&Brand { app_name: "Tenantry".into(), ..Brand::default() }, "This link no longer works");
    Ok(page
        .status(StatusCode::NOT_FOUND)
        .paragraph("It has expired, has already been used, or has been replaced by a newer link.")
        .paragraph("If you still need it, set the sender address again to get a new link."))
}
