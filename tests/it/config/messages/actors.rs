use insta::assert_snapshot;

/// What is said about `actors`.
fn of(actors: &str) -> String {
    super::super::messages(&format!("limits: []\nactors: {actors}"))
}

#[test]
fn shape() {
    assert_snapshot!(of("[account]"), @"actors: found a list, allowed: a mapping such as `{tenant: [{header: x-tenant}]}`");
    assert_snapshot!(of("{tenant: x-tenant}"), @"actors.tenant: found `x-tenant`, allowed: a list of sources such as `[{header: x-tenant}, {client_address: {}}]`");
    assert_snapshot!(of("{tenant: {header: x-tenant}}"), @"actors.tenant: found a mapping, allowed: a list of sources such as `[{header: x-tenant}, {client_address: {}}]`");
    assert_snapshot!(of("{tenant: []}"), @"actors.tenant: found an empty list, allowed: a list of sources such as `[{header: x-tenant}, {client_address: {}}]`");
    assert_snapshot!(of("{tenant: [header]}"), @"actors.tenant[0]: found `header`, allowed: a mapping such as `{header: x-tenant}`");
}

#[test]
fn names() {
    assert_snapshot!(of("{all: [{header: a}], actor: [{header: a}], A B: [{header: a}]}"), @"
    actors.all: `all` has a meaning of its own; choose another name
    actors.actor: `actor` has a meaning of its own; choose another name
    actors.`A B`: not a name, allowed: 1 … 64 of the characters a-z, 0-9, `_` and `-`
    ");
    assert_snapshot!(of("{tenant: [{header: a}], tenant: [{header: b}]}"), @"actors.tenant: duplicate key");
}

#[test]
fn sources() {
    assert_snapshot!(of("{tenant: [{}]}"), @"actors.tenant[0]: found 0 sources, allowed: exactly one of header, cookie, query, client_address, jwt_claim, metadata, peer");
    assert_snapshot!(of("{tenant: [{headr: x}]}"), @"actors.tenant[0].headr: unknown key, allowed: header, cookie, query, client_address, jwt_claim, metadata, peer; did you mean `header`?");
    assert_snapshot!(of("{tenant: [{header: x, cookie: y}]}"), @"actors.tenant[0]: found 2 sources, allowed: exactly one of header, cookie, query, client_address, jwt_claim, metadata, peer");
    assert_snapshot!(of("{tenant: [{header: x, unverified: true}]}"), @"actors.tenant[0].unverified: unknown key, allowed: header");
    assert_snapshot!(of("{tenant: [{header: 'a b'}, {cookie: 'a=b'}, {query: 5}]}"), @"
    actors.tenant[0].header: found `a b`, allowed: a header's name
    actors.tenant[1].cookie: found `a=b`, allowed: a cookie's name without `=`, `;` or spaces
    actors.tenant[2].query: found `5`, allowed: a name
    ");
    assert_snapshot!(of("{tenant: [{client_address: {v4: 33, v5: 1}}, {client_address: 24}]}"), @"
    actors.tenant[0].client_address.v4: found `33`, allowed: 0 … 32
    actors.tenant[0].client_address.v5: is not a key; allowed: `v4`, `v6`
    actors.tenant[1].client_address: found `24`, allowed: `{v4: 32, v6: 64}` or `{}`
    ");
    assert_snapshot!(of("{tenant: [{client_address: {v4: 8, v4: 9}}]}"), @"actors.tenant[0].client_address.v4: duplicate key");
    assert_snapshot!(of("{tenant: [{jwt_claim: sub}, {jwt_claim: sub, payload: 5}]}"), @"
    actors.tenant[0].jwt_claim: needs exactly one of `payload: <payload_in_metadata of jwt_authn>` and `unverified: true` beside it
    actors.tenant[1].payload: found `5`, allowed: a name
    ");
    assert_snapshot!(of("{tenant: [{metadata: a}, {peer: dns}]}"), @"
    actors.tenant[0].metadata: found `a`, allowed: a list of a namespace and keys
    actors.tenant[1].peer: found `dns`, allowed: `uri_san`, `sha256`
    ");
}
