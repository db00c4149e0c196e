//! The addresses of the hosted pages, below the public address: rooms that mail links to them need them too.

pub const IDENTIFIER: &str = "/auth/login";
/// The ways to sign in, for people who have several.
pub const WAYS: &str = "/auth/login/ways";
/// Where a browser continues that comes back from an identity provider.
pub const FEDERATION_DONE: &str = "/auth/federation/done";
pub const PASSWORD: &str = "/auth/login/password";
/// Behind the links that set a password; its form is taken where workspaces can be made.
pub const SET_PASSWORD: &str = "/auth/login/set-password";
/// Where somebody with an account agrees to an invitation.
pub const INVITATION: &str = "/auth/login/invitation";
pub const FORGOT: &str = "/auth/login/forgot";
/// Where a login can end in development.
pub const DEMO: &str = "/auth/demo";
pub const SEND_LINK: &str = "/auth/login/send-link";
pub const LINK_SENT: &str = "/auth/login/link-sent";
pub const MAGIC_LINK: &str = "/auth/login/magic-link";
/// Where somebody confirms their new address.
pub const NEW_ADDRESS: &str = "/auth/login/new-address";
pub const WORKSPACE: &str = "/auth/login/workspace";
/// For whoever has tried too often.
pub const WAIT: &str = "/auth/login/wait";
pub const SIGN_UP: &str = "/auth/login/signup";
pub const SIGN_UP_SENT: &str = "/auth/login/signup-sent";
/// Where somebody signs up whose address a provider has proven.
pub const PROVIDER_SIGN_UP: &str = "/auth/login/signup-provider";
pub const SIGNED_OUT: &str = "/auth/login/signed-out";
pub const MFA: &str = "/auth/login/mfa";
pub const MFA_RESEND: &str = "/auth/login/mfa/resend";
pub const MFA_BACKUP: &str = "/auth/login/mfa/backup";
pub const MFA_CONTINUE: &str = "/auth/login/mfa/continue";
pub const MFA_SETUP: &str = "/auth/login/mfa/setup";
pub const MFA_SETUP_FINISH: &str = "/auth/login/mfa/setup/finish";
pub const PASSKEY: &str = "/auth/login/passkey";
pub const PASSKEY_OPTIONS: &str = "/auth/login/passkey/options";
pub const PASSKEY_LINK: &str = "/auth/login/passkey-link";
pub const PASSKEY_SETUP: &str = "/auth/login/passkey-setup";
pub const PASSKEY_SETUP_OPTIONS: &str = "/auth/login/passkey-setup/options";
pub const PASSKEY_READY: &str = "/auth/login/passkey-ready";

/// Where the way to a connection's identity provider begins; `protocol` is its type.
pub fn connection_login(protocol: &str, connection: impl std::fmt::Display) -> String {
    format!("/auth/federation/{protocol}/{connection}/login")
}

/// Where the way to a social or directory provider begins.
pub fn provider_login(provider: &str) -> String {
    format!("/auth/federation/{provider}/login")
}
