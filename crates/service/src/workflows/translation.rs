//! `POST /account/tenant/translate/text`: the app's own words first, then the configured translator, else the text itself.

use kernel::{Code, Error, Locale, Result, Words};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use tenancy::{
    branding,
    callers::{TenantCaller, TenantRead},
    workspaces,
};
use web::{Json, Routes, State, Valid, Validate};

use crate::Core;

pub(crate) fn routes() -> Routes<Core> {
    Routes::new("Workspaces")
        .post("/account/tenant/translate/text", translate, "Translate a text into the workspace's language")
        .answers(502, "The translator failed")
}

/// A text to be read in the workspace's language.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TextToTranslate {
    text: Words,
    /// ISO 639-1; found out by the translator without it.
    source_language: Option<Locale>,
}

impl Validate for TextToTranslate {}

/// The text as the workspace's people read it.
#[derive(Clone, Debug, Serialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct TranslatedText {
    translated_text: String,
    /// What was given, else what the translator found, else `en`.
    source_language_code: String,
    /// The workspace's `locale`.
    target_language_code: Locale,
}

async fn translate(
    caller: TenantCaller<TenantRead>,
    State(core): State<Core>,
    Valid(asked): Valid<TextToTranslate>,
) -> Result<Json<TranslatedText>> {
    let (app, tenant, text) = (caller.app_id(), caller.tenant(), asked.text.to_string());
    let wanted = text.clone();
    let known = core.db.read(move |tx| {
        let target = workspaces::get(tx, app, tenant)?.locale;
        let own = branding::translations(tx, app)?.find(&wanted).map(str::to_owned);
        Ok((target, own))
    });
    let (target, own) = known.await?;
    let source = asked.source_language;
    let answer = |translated_text: String, detected: Option<String>| {
        let given = source.map(|given| given.to_string());
        let source_language_code = given.or(detected).unwrap_or_else(|| Locale::ENGLISH.to_string());
        Ok(Json(TranslatedText { translated_text, source_language_code, target_language_code: target }))
    };
    match (own, &core.translator) {
        (Some(own), _) => answer(own, None),
        (None, Some(translator)) if source != Some(target) => {
            let source = source.map(|given| given.to_string());
            match translator.translate(&text, source.as_deref(), &target.to_string()).await {
                Ok(translated) => answer(translated.text, translated.detected),
                Err(cause) => {
                    Err(Error::new(Code::ProviderFailed, "The translator failed. Try again later.").with_source(cause))
                }
            }
        }
        (None, _) => answer(text, None),
    }
}
