//! `docs/configuration.md`, made from the list of settings.

use std::fmt::Write as _;

use super::settings::{Kind, SETTINGS};

pub fn reference_page() -> String {
    let mut page = String::from(
        "# Configuration\n\n\
         Generated from the program's list of settings; `tenantry config show` prints the values in force and where each \
         comes from.\n\n\
         Values come from `tenantry.toml` in the working folder (or the file named by `--config`), overridden by \
         environment variables, overridden by flags. In the file a dot stands for a table: `metrics.public` is `public` \
         under `[metrics]`.\n",
    );
    for setting in SETTINGS.iter().copied() {
        let form = match setting.kind {
            Kind::Text => "text",
            Kind::Switch => "true or false",
            Kind::Number => "number",
            Kind::Secret => "secret, never shown",
        };
        let _ = write!(
            page,
            "\n## `{}`\n\n{}\n\n- variable `{}`, flag `--{}` ({form})\n- default: {}\n",
            setting.name,
            setting.help,
            setting.variable(),
            setting.flag(),
            setting.default
        );
    }
    page
}
