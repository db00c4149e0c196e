//! `/scim/v2/…`: provisioning by a workspace's directory.

mod directories;
mod discovery;
mod groups;
mod races;
mod reach;
mod tester;
mod users;
