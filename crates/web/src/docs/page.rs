//! Writes the API page: operations by heading, each folded until it is wanted, with what it takes, what it answers and
//! a command line to try it.

use std::fmt::{Display, Formatter, Result as Written, Write as _};

use serde_json::Value;

use super::schema::{Member, Schemas};
use crate::Escaped;

pub(super) fn render(document: &Value) -> String {
    let page = DocsPage { document };
    let mut html = String::with_capacity(64 * 1024);
    page.write(&mut html).expect("a String takes any text");
    html
}

/// Text in which backticks mark code.
struct Prose<'a>(&'a str);

impl Display for Prose<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> Written {
        for (place, stressed) in self.0.split("**").enumerate() {
            let (open, close) = if place % 2 == 1 { ("<strong>", "</strong>") } else { ("", "") };
            f.write_str(open)?;
            for (place, part) in stressed.split('`').enumerate() {
                if place % 2 == 1 {
                    write!(f, "<code>{}</code>", Escaped(part))?;
                } else {
                    write!(f, "{}", Escaped(part))?;
                }
            }
            f.write_str(close)?;
        }
        Ok(())
    }
}

fn text(value: &Value) -> Escaped<'_> {
    Escaped(value.as_str().unwrap_or_default())
}

/// As people look for them: reading first, deleting last.
const METHODS: [&str; 5] = ["get", "post", "put", "patch", "delete"];

struct DocsPage<'a> {
    document: &'a Value,
}

struct DocsOperation<'a> {
    method: &'a str,
    path: &'a str,
    value: &'a Value,
}

impl<'a> DocsPage<'a> {
    fn schemas(&self) -> Schemas<'_> {
        Schemas { document: self.document }
    }

    fn operations(&self) -> impl Iterator<Item = DocsOperation<'a>> {
        let paths = self.document["paths"].as_object().into_iter().flatten();
        paths.flat_map(|(path, methods)| {
            let mut methods: Vec<(&String, &Value)> = methods.as_object().into_iter().flatten().collect();
            methods.sort_by_key(|(method, _)| METHODS.iter().position(|known| known == method));
            methods.into_iter().map(move |(method, value)| DocsOperation { method, path, value })
        })
    }

    fn tags(&self) -> impl Iterator<Item = &'a str> {
        self.document["tags"].as_array().into_iter().flatten().filter_map(|tag| tag["name"].as_str())
    }

    fn write(&self, html: &mut String) -> Written {
        let info = &self.document["info"];
        write!(
            html,
            "<!doctype html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n\
             <meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n\
             <meta name=\"color-scheme\" content=\"light dark\">\n<title>{title}</title>\n\
             <link rel=\"stylesheet\" href=\"docs/style.css\">\n</head>\n<body>\n\
             <header>\n<h1>{title} <small>{version}</small></h1>\n<p>{description}</p>\n\
             <p><a href=\"openapi.json\">OpenAPI document</a></p>\n</header>\n<nav aria-label=\"Headings\">\n<ul>\n",
            title = text(&info["title"]),
            version = text(&info["version"]),
            description = text(&info["description"]),
        )?;
        for tag in self.tags() {
            writeln!(html, "<li><a href=\"#{}\">{}</a></li>", slug(tag), Escaped(tag))?;
        }
        html.push_str("</ul>\n</nav>\n<main>\n");
        for tag in self.tags() {
            writeln!(html, "<section id=\"{}\">\n<h2>{}</h2>", slug(tag), Escaped(tag))?;
            for operation in self.operations().filter(|operation| operation.value["tags"][0] == tag) {
                self.operation(html, &operation)?;
            }
            html.push_str("</section>\n");
        }
        html.push_str("</main>\n</body>\n</html>\n");
        Ok(())
    }

    fn operation(&self, html: &mut String, operation: &DocsOperation<'_>) -> Written {
        let DocsOperation { method, path, value } = operation;
        write!(
            html,
            "<details id=\"{id}\">\n<summary><span class=\"method {method}\">{upper}</span> <code>{path}</code> \
             <span class=\"what\">{summary}</span></summary>\n",
            id = text(&value["operationId"]),
            upper = method.to_ascii_uppercase(),
            path = Escaped(path),
            summary = text(&value["summary"]),
        )?;
        for paragraph in value["description"].as_str().unwrap_or_default().split("\n\n").filter(|p| !p.is_empty()) {
            writeln!(html, "<p>{}</p>", Prose(paragraph))?;
        }
        writeln!(html, "<p class=\"who\">{}</p>", who(value))?;
        self.parameters(html, value)?;
        if let Some((_, body)) = first_content(&value["requestBody"]) {
            self.body(html, "Body", &body["schema"])?;
        }
        self.answers(html, value)?;
        write!(html, "<h3>Try it</h3>\n<pre><code>{}</code></pre>\n</details>\n", Escaped(&self.curl(operation)))
    }

    fn parameters(&self, html: &mut String, operation: &Value) -> Written {
        let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
        let rows: Vec<Member> = parameters
            .iter()
            .map(|parameter| {
                let place = parameter["in"].as_str().unwrap_or_default();
                Member {
                    path: parameter["name"].as_str().unwrap_or_default().to_owned(),
                    kind: format!("{place}, {}", self.schemas().kind(&parameter["schema"])),
                    required: parameter["required"] == true,
                    note: self.schemas().note(parameter, &parameter["schema"]),
                }
            })
            .collect();
        if rows.is_empty() { Ok(()) } else { table(html, "Parameters", &rows) }
    }

    fn body(&self, html: &mut String, heading: &str, schema: &Value) -> Written {
        let schemas = self.schemas();
        let members = schemas.members(schema);
        if members.is_empty() {
            return write!(html, "<h3>{heading}</h3>\n<p>{}</p>\n", Escaped(&schemas.kind(schema)));
        }
        table(html, heading, &members)
    }

    fn answers(&self, html: &mut String, operation: &Value) -> Written {
        let answers = operation["responses"].as_object().into_iter().flatten();
        let (good, bad): (Vec<_>, Vec<_>) = answers.partition(|(status, _)| status.starts_with('2'));
        for (status, answer) in good {
            let heading = format!("Answer {status}");
            match first_content(answer) {
                Some((_, content)) => self.body(html, &heading, &content["schema"])?,
                None => write!(html, "<h3>{heading}</h3>\n<p>No body.</p>\n")?,
            }
        }
        let bad: Vec<_> = bad.into_iter().filter(|(status, _)| *status != "default").collect();
        if bad.is_empty() {
            return Ok(());
        }
        html.push_str("<h3>Failures</h3>\n<ul class=\"failures\">\n");
        for (status, answer) in bad {
            writeln!(html, "<li><b>{status}</b> {}</li>", text(&answer["description"]))?;
        }
        html.push_str("</ul>\n");
        Ok(())
    }

    /// A command that works once its variables are set.
    fn curl(&self, operation: &DocsOperation<'_>) -> String {
        let DocsOperation { method, path, value } = operation;
        let parameters = value["parameters"].as_array().map_or(&[][..], Vec::as_slice);
        let required = |place: &'static str| {
            let named = parameters.iter().filter(move |p| p["in"] == place && p["required"] == true);
            named.filter_map(|parameter| parameter["name"].as_str())
        };
        let path = path.replace('{', "${");
        let query: Vec<String> = required("query").map(|name| format!("{name}=${{{name}}}")).collect();
        let mark = if query.is_empty() { "" } else { "?" };
        let mut command =
            format!("curl -X {} \"$BASE_URL{path}{mark}{}\"", method.to_ascii_uppercase(), query.join("&"));
        let mut option = |text: String| command.push_str(&format!(" \\\n  {text}"));
        if let Some(header) = credential(value) {
            option(format!("-H \"{header}\""));
        }
        for name in parameters.iter().filter(|p| p["in"] == "header").filter_map(|p| p["name"].as_str()) {
            let variable = name.trim_start_matches("x-").replace('-', "_").to_ascii_uppercase();
            option(format!("-H \"{name}: ${variable}\""));
        }
        if let Some((media_type, content)) = first_content(&value["requestBody"]) {
            option(format!("-H \"content-type: {media_type}\""));
            let example = self.schemas().example(&content["schema"]);
            option(format!("-d '{}'", example.to_string().replace('\'', "'\\''")));
        }
        command
    }
}

fn first_content(holder: &Value) -> Option<(&String, &Value)> {
    holder["content"].as_object()?.iter().next()
}

fn schemes(operation: &Value) -> impl Iterator<Item = &str> {
    let choices = operation["security"].as_array().into_iter().flatten();
    choices.filter_map(|choice| choice.as_object()?.keys().next().map(String::as_str))
}

fn who(operation: &Value) -> String {
    let names: Vec<&str> = schemes(operation)
        .map(|scheme| match scheme {
            "operatorKey" => "the operator key",
            "apiKey" => "an API key or token in <code>x-api-key</code>",
            _ => "a user’s access token",
        })
        .collect();
    if names.is_empty() { "Public.".to_owned() } else { format!("Needs {}.", names.join(" or ")) }
}

fn credential(operation: &Value) -> Option<&'static str> {
    Some(match schemes(operation).next()? {
        "operatorKey" => "authorization: Bearer $OPERATOR_KEY",
        "apiKey" => "x-api-key: $API_KEY",
        _ => "authorization: Bearer $ACCESS_TOKEN",
    })
}

fn table(html: &mut String, heading: &str, members: &[Member]) -> Written {
    write!(html, "<h3>{heading}</h3>\n<dl>\n")?;
    for Member { path, kind, required, note } in members {
        let needed = if *required { "" } else { " <span class=\"optional\">optional</span>" };
        writeln!(html, "<div><dt><code>{}</code>{needed}</dt><dd>{}", Escaped(path), Escaped(kind))?;
        if !note.is_empty() {
            write!(html, "<p>{}</p>", Prose(note))?;
        }
        html.push_str("</dd></div>\n");
    }
    html.push_str("</dl>\n");
    Ok(())
}

/// A heading as a fragment: letters and digits, joined by dashes.
fn slug(heading: &str) -> String {
    let words = heading.split(|c: char| !c.is_ascii_alphanumeric()).filter(|word| !word.is_empty());
    words.map(str::to_ascii_lowercase).collect::<Vec<_>>().join("-")
}
