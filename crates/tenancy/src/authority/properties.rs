//! No way of giving hands out more than the giver holds.

use proptest::{prelude::*, sample::subsequence};

use super::rules::{Held, beyond, handed_out, powerful_setting};
use crate::{
    apps::Profile,
    callers::privileges::{BUILT_IN, is_destructive},
    roles::{PrivilegeId, PrivilegeRecord, Role, RoleId},
};

fn all_keys() -> Vec<String> {
    BUILT_IN.iter().map(|known| known.key.to_owned()).chain(["EXPORT".to_owned(), "IMPORT".to_owned()]).collect()
}

fn some_keys() -> impl Strategy<Value = Vec<String>> {
    let all = all_keys();
    let most = all.len();
    subsequence(all, 0..=most)
}

fn role() -> impl Strategy<Value = Role> {
    (some_keys(), any::<bool>()).prop_map(|(keys, is_default)| Role {
        id: RoleId::from_u128(1),
        name: "Role".into(),
        key: "ROLE".into(),
        description: String::new(),
        privileges: keys
            .into_iter()
            .map(|key| PrivilegeRecord { id: PrivilegeId::from_u128(2), key, description: String::new() })
            .collect(),
        is_default,
    })
}

fn has(role: &Role, key: &str) -> bool {
    role.privileges.iter().any(|privilege| privilege.key == key)
}

proptest! {
    #[test]
    fn a_role_is_given_by_whoever_holds_it_all(held in some_keys(), role in role()) {
        let covers = role.privileges.iter().all(|privilege| held.contains(&privilege.key));
        let may = beyond(&Held::Only(held.into()), &role).is_none();
        prop_assert_eq!(may, covers || role.is_default);
        prop_assert!(beyond(&Held::Everything, &role).is_none());
    }

    /// Whatever two steps a caller takes with a role, its members have nothing new that the caller lacks.
    #[test]
    fn nobody_gains_what_the_definer_lacks(
        held in some_keys(), first in role(), second in role(), third in role(),
    ) {
        let holder = Held::Only(held.clone().into());
        let allowed = |before: &Role, after: &Role| holder.first_lacking(handed_out(Some(before), after)).is_none();
        if allowed(&first, &second) && allowed(&second, &third) {
            for key in all_keys().iter().filter(|key| has(&third, key) && !has(&first, key)) {
                prop_assert!(held.contains(key), "{key} was handed out");
            }
            // Everybody who joins gets the default role.
            if third.is_default && !first.is_default {
                prop_assert!(third.privileges.iter().all(|one| held.contains(&one.key)));
            }
        }
    }

    #[test]
    fn power_is_everything_but_destruction(held in some_keys()) {
        let needed = BUILT_IN.iter().filter(|known| !is_destructive(known.key));
        let holds_all = needed.clone().all(|known| held.iter().any(|key| key == known.key));
        prop_assert_eq!(Held::Only(held.into()).lacks_power().is_none(), holds_all);
        prop_assert!(Held::Everything.lacks_power().is_none());
    }
}

#[test]
fn a_new_page_moves_power_when_its_origin_is_new() {
    let before = Profile { ui_url: Some("https://app.example/start".into()), ..Profile::default() };
    let changed = ["name".to_owned(), "uiUrl".to_owned()];
    let moved = |ui_url: &str| {
        let after = Profile { ui_url: Some(ui_url.into()), ..before.clone() };
        powerful_setting(&before, &after, &changed)
    };
    assert_eq!(moved("https://app.example/elsewhere"), None);
    assert_eq!(moved("https://evil.example/start"), Some("uiUrl"));
}
