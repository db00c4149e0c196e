//! Where values come from: the file, overridden by the environment, overridden by flags.

use std::{collections::BTreeMap, fmt, path::Path};

use super::settings::{Kind, SETTINGS, Setting};

/// Where a value was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Origin {
    File(String),
    Variable(String),
    Flag(String),
}

impl fmt::Display for Origin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::File(path) => write!(f, "{path}"),
            Self::Variable(name) => write!(f, "{name}"),
            Self::Flag(name) => write!(f, "--{name}"),
        }
    }
}

/// The values that were given, by the setting's name.
#[derive(Debug, Default)]
pub struct Values(BTreeMap<&'static str, (String, Origin)>);

impl Values {
    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(|(value, _)| value.as_str())
    }

    pub fn origin(&self, name: &str) -> Option<&Origin> {
        self.0.get(name).map(|(_, origin)| origin)
    }

    pub fn set(&mut self, setting: &'static Setting, value: String, origin: Origin) {
        self.0.insert(setting.name, (value, origin));
    }

    /// Reads a TOML file. An unknown key is an error: it is most likely a misspelt one.
    pub fn read_file(&mut self, path: &Path) -> Result<(), String> {
        let text = std::fs::read_to_string(path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        let table: toml::Table = text.parse().map_err(|error| format!("{}: {error}", path.display()))?;
        self.take_table("", &table, path)
    }

    fn take_table(&mut self, prefix: &str, table: &toml::Table, path: &Path) -> Result<(), String> {
        for (key, value) in table {
            let name = format!("{prefix}{key}");
            let text = match value {
                toml::Value::Table(inner) if Setting::find(&name).is_none() => {
                    self.take_table(&format!("{name}."), inner, path)?;
                    continue;
                }
                toml::Value::String(text) => text.clone(),
                toml::Value::Integer(number) => number.to_string(),
                toml::Value::Boolean(switch) => switch.to_string(),
                toml::Value::Array(list) => join(list).ok_or_else(|| wrong_type(&name, path))?,
                _ => return Err(wrong_type(&name, path)),
            };
            let setting = Setting::find(&name).ok_or_else(|| unknown(&name, path))?;
            self.set(setting, text, Origin::File(path.display().to_string()));
        }
        Ok(())
    }

    /// Takes `TENANTRY_*` variables from the given environment; an empty value counts as not given.
    /// Returns the names of those that mean nothing, which are most likely misspelt.
    pub fn read_environment(&mut self, environment: impl Iterator<Item = (String, String)>) -> Vec<String> {
        let environment: BTreeMap<String, String> = environment.collect();
        for setting in SETTINGS.iter().copied() {
            let variable = setting.variable();
            if let Some(value) = environment.get(&variable).filter(|value| !value.is_empty()) {
                self.set(setting, value.clone(), Origin::Variable(variable));
            }
        }
        let known = |name: &str| {
            name == "TENANTRY_URL"
                // Of tests of the program itself.
                || name == "TENANTRY_RECORD_STATEMENTS"
                || name.starts_with("TENANTRY_TEST_POSTGRES")
                || name == "TENANTRY_PG_BIN"
                || SETTINGS.iter().any(|setting| setting.variable() == name)
        };
        environment.into_keys().filter(|name| name.starts_with("TENANTRY_") && !known(name)).collect()
    }

    /// Each setting with its value as it may be shown, and where it comes from.
    pub fn shown(&self) -> impl Iterator<Item = (&'static Setting, String, String)> {
        SETTINGS.iter().copied().map(|setting| match self.0.get(setting.name) {
            Some((_, origin)) if setting.kind == Kind::Secret => (setting, "(set)".to_owned(), origin.to_string()),
            Some((value, origin)) if setting.name.ends_with("_url") => {
                (setting, without_password(value), origin.to_string())
            }
            Some((value, origin)) => (setting, value.clone(), origin.to_string()),
            None => (setting, setting.default.to_owned(), "default".to_owned()),
        })
    }
}

fn join(list: &[toml::Value]) -> Option<String> {
    let texts: Option<Vec<&str>> = list.iter().map(toml::Value::as_str).collect();
    texts.map(|texts| texts.join(","))
}

fn wrong_type(name: &str, path: &Path) -> String {
    format!("{}: {name} must be a text, a number, true or false", path.display())
}

fn unknown(name: &str, path: &Path) -> String {
    format!("{}: {name} is not a setting; `tenantry config show` lists them all", path.display())
}

/// Hides what stands between the scheme and the last `@`.
fn without_password(url: &str) -> String {
    match (url.split_once("://"), url.rfind('@')) {
        (Some((scheme, _)), Some(at)) if at > scheme.len() => format!("{scheme}://…{}", &url[at..]),
        _ => url.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(text: &str) -> Result<Values, String> {
        let folder = tempfile::tempdir().expect("a temporary folder");
        let path = folder.path().join("tenantry.toml");
        std::fs::write(&path, text).expect("written");
        let mut values = Values::default();
        values.read_file(&path).map(|()| values)
    }

    #[test]
    fn the_environment_overrides_the_file() {
        let mut values =
            file("listen = \"0.0.0.0:80\"\n[metrics]\npublic = true\n[limits]\nin_flight = 10").expect("valid");
        let given =
            [("TENANTRY_LISTEN", "127.0.0.1:1"), ("TENANTRY_LISTEM", "1"), ("TENANTRY_URL", "x"), ("HOME", "/")];
        let unknown =
            values.read_environment(given.map(|(name, value)| (name.to_owned(), value.to_owned())).into_iter());
        assert_eq!(unknown, ["TENANTRY_LISTEM"]);
        assert_eq!(values.get("listen"), Some("127.0.0.1:1"));
        assert_eq!(values.get("metrics.public"), Some("true"));
        assert_eq!(values.get("limits.in_flight"), Some("10"));
        assert_eq!(values.origin("listen"), Some(&Origin::Variable("TENANTRY_LISTEN".into())));
    }

    #[test]
    fn a_misspelt_key_is_named() {
        let message = file("lsten = \"x\"").expect_err("unknown key");
        assert!(message.contains("lsten is not a setting"), "{message}");
    }

    #[test]
    fn secrets_are_not_shown() {
        let mut values = Values::default();
        let environment = [
            ("TENANTRY_OPERATOR_KEY".to_owned(), "s3cret".to_owned()),
            ("TENANTRY_MAIL_URL".to_owned(), "smtp://me:s3cret@mail.example:25".to_owned()),
        ];
        values.read_environment(environment.into_iter());
        for (setting, value, _) in values.shown() {
            assert!(!value.contains("s3cret"), "{}: {value}", setting.name);
        }
    }
}
