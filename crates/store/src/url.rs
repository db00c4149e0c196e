//! Where the data lives: `sqlite:PATH` or `postgres://…`.

use std::{fmt, path::PathBuf, str::FromStr};

use kernel::Secret;

/// A parsed database URL. Printing it never shows a password.
#[derive(Clone)]
pub enum DatabaseUrl {
    Sqlite(PathBuf),
    Postgres(Secret<String>),
}

impl FromStr for DatabaseUrl {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        if let Some(path) = text.strip_prefix("sqlite:") {
            let path = path.strip_prefix("//").unwrap_or(path);
            if path.is_empty() {
                return Err("sqlite: needs a path, such as sqlite:./tenantry-data/tenantry.db".into());
            }
            return Ok(Self::Sqlite(path.into()));
        }
        if text.starts_with("postgres://") || text.starts_with("postgresql://") {
            return Ok(Self::Postgres(Secret::new(text.to_owned())));
        }
        Err("must be sqlite:PATH or postgres://user:password@host:port/database".into())
    }
}

impl fmt::Display for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Sqlite(path) => write!(f, "sqlite:{}", path.display()),
            Self::Postgres(url) => {
                // Passwords hold any character, also unescaped: only what surely lies behind the last @ is shown.
                let rest = url.expose().split_once("://").map_or("", |(_, rest)| rest);
                let (place, query) = rest.split_once('?').unwrap_or((rest, ""));
                if query.contains('@') {
                    return f.write_str("postgres://…");
                }
                let place = place.rsplit_once('@').map_or(place, |(_, place)| place);
                let (host, database) = place.split_once('/').unwrap_or((place, ""));
                write!(f, "postgres://{host}/{database}")
            }
        }
    }
}

impl fmt::Debug for DatabaseUrl {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reads_both_engines_and_hides_the_password() {
        let url: DatabaseUrl = "postgres://me:s3c/r@t@db.example:5432/app?sslmode=require".parse().expect("valid");
        assert!(!url.to_string().contains("s3c"), "{url}");
        let url: DatabaseUrl = "postgres://me:secret@db.example:5432/app?password=other".parse().expect("valid");
        assert_eq!(url.to_string(), "postgres://db.example:5432/app");
        let url: DatabaseUrl = "postgres://me:s3c?r@db.example/app".parse().expect("valid");
        assert!(!url.to_string().contains("s3c"), "{url}");
        let url: DatabaseUrl = "sqlite:./data/x.db".parse().expect("valid");
        assert_eq!(url.to_string(), "sqlite:./data/x.db");
        for tricky in ["postgres://me:s3c?r@t/@db.example/app", "postgres://db.example/app?password=s3c@ret"] {
            let url: DatabaseUrl = tricky.parse().expect("valid");
            assert!(!url.to_string().contains("s3c") && !url.to_string().contains("ret"), "{url}");
        }
        assert!("mysql://x".parse::<DatabaseUrl>().is_err());
        assert!("sqlite:".parse::<DatabaseUrl>().is_err());
    }
}
