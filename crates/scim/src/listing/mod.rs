//! Lists of resources (RFC 7644 §3.4.2): what is asked for, and the part of it that a page has.

pub(crate) mod http;

use kernel::{Error, Result};
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::{Value, json};
use web::Validate;

use crate::{
    filter::{self, BoundFilter, Target, parse_path},
    resource::{Selection, Written},
    schema::Schema,
};

/// Resources on a page at most.
const LARGEST_PAGE: i64 = 200;

/// A question for a list, as a query or as the body of a search.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Question {
    pub(crate) filter: Option<String>,
    sort_by: Option<String>,
    /// `ascending` or `descending`.
    sort_order: Option<String>,
    /// From 1 on.
    start_index: Option<i64>,
    /// At most 200.
    count: Option<i64>,
    /// Names separated by commas.
    attributes: Option<String>,
    /// Names separated by commas.
    excluded_attributes: Option<String>,
}

impl Validate for Question {}

/// Which attributes an answer about one resource has.
#[derive(Clone, Debug, Default, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", default)]
pub(crate) struct Shape {
    /// Names separated by commas.
    attributes: Option<String>,
    /// Names separated by commas.
    excluded_attributes: Option<String>,
}

impl Shape {
    pub(crate) fn selection(&self) -> Result<Selection> {
        Selection::new(self.attributes.as_deref(), self.excluded_attributes.as_deref())
    }
}

impl Question {
    /// From the body of a search, whose names come in any case and whose attributes are lists.
    pub(crate) fn of_search(body: &Value) -> Result<Self> {
        let member = |name: &str| {
            let members = body.as_object().into_iter().flatten();
            members.into_iter().find(|(known, _)| known.eq_ignore_ascii_case(name)).map(|(_, value)| value)
        };
        let text = |name: &str| match member(name) {
            None | Some(Value::Null) => Ok(None),
            Some(Value::String(text)) => Ok(Some(text.clone())),
            Some(Value::Array(names)) if name.to_lowercase().ends_with("attributes") => {
                let names: Option<Vec<&str>> = names.iter().map(Value::as_str).collect();
                let names = names.ok_or_else(|| Error::invalid(name.to_owned(), "must be a list of strings"))?;
                Ok(Some(names.join(",")))
            }
            Some(_) => Err(Error::invalid(name.to_owned(), "must be a string")),
        };
        let number = |name: &str| match member(name) {
            None | Some(Value::Null) => Ok(None),
            Some(value) => match value.as_i64() {
                Some(number) => Ok(Some(number)),
                None => Err(Error::invalid(name.to_owned(), "must be an integer")),
            },
        };
        Ok(Self {
            filter: text("filter")?,
            sort_by: text("sortBy")?,
            sort_order: text("sortOrder")?,
            start_index: number("startIndex")?,
            count: number("count")?,
            attributes: text("attributes")?,
            excluded_attributes: text("excludedAttributes")?,
        })
    }

    pub(crate) fn bind(&self, schema: &'static Schema) -> Result<Query> {
        let filter = match self.filter.as_deref().map(str::trim).filter(|text| !text.is_empty()) {
            Some(text) => Some(BoundFilter::new(&filter::parse(text)?, schema)?),
            None => None,
        };
        let sort = match &self.sort_by {
            Some(name) => Some(sort_target(schema, name)?),
            None => None,
        };
        let descending = match self.sort_order.as_deref().map(str::to_ascii_lowercase).as_deref() {
            None | Some("ascending") => false,
            Some("descending") => true,
            Some(_) => return Err(Error::invalid("sortOrder", "must be ascending or descending")),
        };
        Ok(Query {
            schema,
            filter,
            sort,
            descending,
            start: self.start_index.unwrap_or(1).max(1),
            count: self.count.unwrap_or(LARGEST_PAGE).clamp(0, LARGEST_PAGE),
            selection: Selection::new(self.attributes.as_deref(), self.excluded_attributes.as_deref())?,
        })
    }
}

fn sort_target(schema: &Schema, name: &str) -> Result<Target> {
    let unknown = || Error::invalid("sortBy", "must be the name of an attribute");
    let path = parse_path(name).map_err(|_| unknown())?;
    if path.filter.is_some() {
        return Err(unknown());
    }
    let path = filter::AttributePath { schema: path.schema, name: path.name, sub: path.sub };
    Target::of(schema, &path).ok_or_else(unknown)
}

/// A question about one kind of resource.
#[derive(Clone, Debug)]
pub(crate) struct Query {
    pub(crate) schema: &'static Schema,
    pub(crate) filter: Option<BoundFilter>,
    sort: Option<Target>,
    descending: bool,
    /// From 1 on.
    pub(crate) start: i64,
    pub(crate) count: i64,
    pub(crate) selection: Selection,
}

impl Query {
    /// Whether all resources are asked for in the order in which they are stored.
    pub(crate) fn is_plain(&self) -> bool {
        self.filter.is_none() && self.sort.is_none()
    }

    /// Whether an attribute has to be known to answer.
    pub(crate) fn needs(&self, attribute: &str) -> bool {
        self.selection.has(self.schema, attribute) || self.decides_by(attribute)
    }

    /// Whether an attribute has to be known to decide which resources are in the answer.
    pub(crate) fn decides_by(&self, attribute: &str) -> bool {
        self.filter.as_ref().is_some_and(|filter| filter.mentions(attribute))
            || self.sort.is_some_and(|sort| sort.names(attribute))
    }

    fn fits(&self, one: &Written) -> bool {
        self.filter.as_ref().is_none_or(|filter| filter.fits(&one.body))
    }
}

/// Resources gathered for a page, of which no more are kept than the page may need.
pub(crate) struct Gathered<'a> {
    query: &'a Query,
    total: i64,
    kept: Vec<Written>,
}

impl<'a> Gathered<'a> {
    pub(crate) fn new(query: &'a Query) -> Self {
        Self { query, total: 0, kept: Vec::new() }
    }

    pub(crate) fn add(&mut self, one: Written) {
        if !self.query.fits(&one) {
            return;
        }
        self.total += 1;
        let first = self.query.start;
        // In an order of its own, whatever is on the page shows in the end.
        if self.query.sort.is_some() || (first..first + self.query.count).contains(&self.total) {
            self.kept.push(one);
        }
    }

    pub(crate) fn page(mut self) -> Page {
        let Query { sort, descending, start, count, .. } = self.query;
        if let Some(sort) = sort {
            self.kept.sort_by(|one, other| match descending {
                false => sort.order(&one.body, &other.body),
                true => sort.order(&other.body, &one.body),
            });
            let skipped = usize::try_from(start - 1).unwrap_or(usize::MAX);
            let count = usize::try_from(*count).unwrap_or_default();
            self.kept = self.kept.into_iter().skip(skipped).take(count).collect();
        }
        Page { total: self.total, resources: self.kept }
    }
}

/// A page of a list.
pub(crate) struct Page {
    pub(crate) total: i64,
    pub(crate) resources: Vec<Written>,
}

impl Page {
    pub(crate) fn told(self, query: &Query) -> Value {
        let resources = self.resources.into_iter().map(|one| query.selection.apply(query.schema, one.body));
        told(self.total, query.start, &resources.collect::<Vec<_>>())
    }
}

/// RFC 7644 §3.4.2.
pub(crate) fn told(total: i64, start: i64, resources: &[Value]) -> Value {
    json!({
        "schemas": ["urn:ietf:params:scim:api:messages:2.0:ListResponse"],
        "totalResults": total,
        "startIndex": start,
        "itemsPerPage": resources.len(),
        "Resources": resources,
    })
}
