//! The CSS of an app's hosted pages. It is served as a style sheet of its own and never written into a page; it is
//! refused all the same when it could break out of a style element, for whoever may copy it into one.

use kernel::{Content, Problems};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use web::Validate;

/// The style as it is; empty while the default stands.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "BrandStyle")]
pub struct Style {
    pub content: String,
}

/// The body of `POST /admin/brand/css`.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
#[schemars(rename = "NewBrandStyle")]
pub struct NewStyle {
    /// CSS, at most 512 KiB. Images and fonts load only from this service and from the logo's origin.
    #[schemars(extend("format" = "css"))]
    pub content: Content,
}

/// What ends or opens something else inside a style element.
const BREAKS_OUT: [&[u8]; 2] = [b"</style", b"<!--"];

impl Validate for NewStyle {
    fn validate(&self, problems: &mut Problems) {
        problems.check("content", !breaks_out(&self.content), "must not contain </style or <!--");
    }
}

fn breaks_out(css: &str) -> bool {
    BREAKS_OUT.iter().any(|mark| css.as_bytes().windows(mark.len()).any(|window| window.eq_ignore_ascii_case(mark)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_leaves_a_style_element_is_refused() {
        for bad in ["</style>", "a{} </STYLE x>", "a{content:'</sTyLe'}", "<!-- -->", "</style"] {
            assert!(breaks_out(bad), "{bad}");
        }
        for good in ["@media (width <= 40rem) { a { color: red } }", "a > b { --x: '<'; }", "/* é < style */"] {
            assert!(!breaks_out(good), "{good}");
        }
    }
}
