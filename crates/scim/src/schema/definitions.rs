//! Users and groups as they are provisioned here.

use super::{Attribute, Kind, Mutability, Schema};

const PLAIN: Attribute = Attribute {
    name: "",
    kind: Kind::Text,
    many: false,
    single: false,
    required: false,
    case_exact: false,
    mutability: Mutability::ReadWrite,
    always_returned: false,
    unique: false,
    refers_to: "uri",
    description: "",
    parts: &[],
};

const READ_ONLY: Attribute = Attribute { mutability: Mutability::ReadOnly, case_exact: true, ..PLAIN };

const META: Attribute = Attribute {
    name: "meta",
    kind: Kind::Complex,
    description: "What the service knows of the resource.",
    parts: &[
        Attribute { name: "resourceType", description: "User or Group.", ..READ_ONLY },
        Attribute { name: "created", kind: Kind::Instant, description: "When it was made.", ..READ_ONLY },
        Attribute { name: "location", kind: Kind::Reference, description: "Its address.", ..READ_ONLY },
        Attribute { name: "version", description: "Its ETag.", ..READ_ONLY },
    ],
    ..READ_ONLY
};

const COMMON: &[Attribute] = &[
    Attribute { name: "id", always_returned: true, unique: true, description: "Its id here.", ..READ_ONLY },
    Attribute { name: "externalId", case_exact: true, description: "Its id in the directory.", ..PLAIN },
    META,
];

/// RFC 7643 §4.1.
pub const USER: Schema = Schema {
    urn: "urn:ietf:params:scim:schemas:core:2.0:User",
    name: "User",
    description: "A member of the workspace, or somebody who is invited to it.",
    common: COMMON,
    attributes: &[
        Attribute {
            name: "userName",
            required: true,
            unique: true,
            always_returned: true,
            description: "The email address.",
            ..PLAIN
        },
        Attribute {
            name: "name",
            kind: Kind::Complex,
            description: "What the person is called.",
            parts: &[
                Attribute { name: "familyName", description: "The last name.", ..PLAIN },
                Attribute { name: "givenName", description: "The first name.", ..PLAIN },
            ],
            ..PLAIN
        },
        Attribute {
            name: "active",
            kind: Kind::Boolean,
            required: true,
            description: "Whether they can sign in to the workspace. Always there; true when a new user is sent without.",
            ..PLAIN
        },
        Attribute {
            name: "emails",
            kind: Kind::Complex,
            many: true,
            description: "One entry that repeats userName.",
            mutability: Mutability::ReadOnly,
            parts: &[
                Attribute { name: "value", description: "The address.", mutability: Mutability::ReadOnly, ..PLAIN },
                Attribute { name: "type", description: "Always work.", mutability: Mutability::ReadOnly, ..PLAIN },
                Attribute { name: "primary", kind: Kind::Boolean, description: "Always true.", ..READ_ONLY },
            ],
            ..PLAIN
        },
        Attribute {
            name: "roles",
            kind: Kind::Complex,
            many: true,
            single: true,
            required: true,
            description: "One entry: the key of the role in the workspace. Always there; the app's default role when a new user is sent without.",
            parts: &[
                Attribute { name: "value", required: true, case_exact: true, description: "The role's key.", ..PLAIN },
                Attribute { name: "primary", kind: Kind::Boolean, description: "Always true.", ..PLAIN },
            ],
            ..PLAIN
        },
        Attribute {
            name: "groups",
            kind: Kind::Complex,
            many: true,
            description: "The groups that the user belongs to; changed through the groups.",
            parts: &[
                Attribute { name: "value", description: "The group's id.", ..READ_ONLY },
                Attribute {
                    name: "$ref",
                    kind: Kind::Reference,
                    refers_to: "Group",
                    description: "The group's address.",
                    ..READ_ONLY
                },
                Attribute { name: "display", description: "The group's name.", ..READ_ONLY },
                Attribute { name: "type", description: "Always direct.", ..READ_ONLY },
            ],
            ..READ_ONLY
        },
    ],
    ignored: &[
        "emails",
        "name.formatted",
        "name.middleName",
        "name.honorificPrefix",
        "name.honorificSuffix",
        "displayName",
        "nickName",
        "profileUrl",
        "title",
        "userType",
        "preferredLanguage",
        "locale",
        "timezone",
        "password",
        "phoneNumbers",
        "ims",
        "photos",
        "addresses",
        "entitlements",
        "x509Certificates",
        "schemas",
    ],
};

/// RFC 7643 §4.2.
pub const GROUP: Schema = Schema {
    urn: "urn:ietf:params:scim:schemas:core:2.0:Group",
    name: "Group",
    description: "A team of the workspace.",
    common: COMMON,
    attributes: &[
        Attribute {
            name: "displayName",
            required: true,
            unique: true,
            always_returned: true,
            description: "The name, which is in the teams of its members. Unique in the workspace, whatever the case.",
            ..PLAIN
        },
        Attribute {
            name: "members",
            kind: Kind::Complex,
            many: true,
            description: "The users who belong to the group.",
            parts: &[
                Attribute {
                    name: "value",
                    case_exact: true,
                    description: "The user's id.",
                    mutability: Mutability::Immutable,
                    ..PLAIN
                },
                Attribute {
                    name: "$ref",
                    kind: Kind::Reference,
                    case_exact: true,
                    refers_to: "User",
                    description: "The user's address.",
                    mutability: Mutability::Immutable,
                    ..PLAIN
                },
            ],
            ..PLAIN
        },
    ],
    ignored: &["schemas"],
};
