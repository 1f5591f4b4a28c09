//! `local_ratelimit`. Buckets refill by one token a day, so that time does not matter: the requests
//! that they admit at once, the charges of a refusal and the requests that share them are compared,
//! and not how they refill.

use crate::{Case, Compared, Verdict, compare};

const ON: &str = "filter_enabled: {default_value: {numerator: 100}}, filter_enforced: {default_value: {numerator: 100}}";

const CASES: [Case; 18] = [
    Case {
        filter: "token_bucket: {max_tokens: 4000, fill_interval: 86400s}",
        host: "",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    Case {
        filter: "token_bucket: {max_tokens: 0, fill_interval: 86400s}",
        host: "",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // A bucket for each address.
    Case {
        filter: "token_bucket: {max_tokens: 4294967295, fill_interval: 1s}, descriptors: [{entries: [{key: remote_address}], token_bucket: {max_tokens: 600, fill_interval: 86400s}}]",
        host: "rate_limits: [{actions: [{remote_address: {}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // Networks.
    Case {
        filter: "token_bucket: {max_tokens: 4294967295, fill_interval: 1s}, descriptors: [{entries: [{key: masked_remote_address}], token_bucket: {max_tokens: 900, fill_interval: 86400s}}]",
        host: "rate_limits: [{actions: [{masked_remote_address: {v4_prefix_mask_len: 31}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // A bucket of one plan, one for each other plan, and the default for requests without a plan.
    Case {
        filter: "token_bucket: {max_tokens: 500, fill_interval: 86400s}, always_consume_default_token_bucket: false, descriptors: [{entries: [{key: plan, value: gold}], token_bucket: {max_tokens: 2000, fill_interval: 86400s}}, {entries: [{key: plan}], token_bucket: {max_tokens: 300, fill_interval: 86400s}}]",
        host: "rate_limits: [{actions: [{request_headers: {header_name: x-plan, descriptor_key: plan}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // Users of one plan.
    Case {
        filter: "token_bucket: {max_tokens: 4294967295, fill_interval: 1s}, descriptors: [{entries: [{key: plan, value: free}, {key: user}], token_bucket: {max_tokens: 70, fill_interval: 86400s}}]",
        host: "",
        route: "rate_limits: [{actions: [{request_headers: {header_name: x-plan, descriptor_key: plan}}, {request_headers: {header_name: x-user, descriptor_key: user}}]}]",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // An optional header.
    Case {
        filter: "token_bucket: {max_tokens: 700, fill_interval: 86400s}, always_consume_default_token_bucket: false, descriptors: [{entries: [{key: all, value: a}, {key: user}], token_bucket: {max_tokens: 200, fill_interval: 86400s}}, {entries: [{key: all, value: a}], token_bucket: {max_tokens: 900, fill_interval: 86400s}}]",
        host: "rate_limits: [{actions: [{generic_key: {descriptor_key: all, descriptor_value: a}}, {request_headers: {header_name: x-user, descriptor_key: user, skip_if_absent: true}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // The requests of a method and a plan, and the others.
    Case {
        filter: "token_bucket: {max_tokens: 4294967295, fill_interval: 1s}, descriptors: [{entries: [{key: header_match, value: post}], token_bucket: {max_tokens: 1000, fill_interval: 86400s}}, {entries: [{key: other, value: b}], token_bucket: {max_tokens: 1500, fill_interval: 86400s}}]",
        host: "rate_limits: [{actions: [{header_value_match: {descriptor_value: post, headers: [{name: ':method', string_match: {exact: POST}}, {name: x-plan, string_match: {exact: gold}}]}}]}, {actions: [{header_value_match: {descriptor_key: other, descriptor_value: b, expect_match: false, headers: [{name: ':method', string_match: {exact: POST}}, {name: x-plan, string_match: {exact: gold}}]}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // Some requests pay both.
    Case {
        filter: "token_bucket: {max_tokens: 4294967295, fill_interval: 1s}, descriptors: [{entries: [{key: header_match, value: post}], token_bucket: {max_tokens: 1000, fill_interval: 86400s}}, {entries: [{key: other, value: b}], token_bucket: {max_tokens: 1500, tokens_per_fill: 2, fill_interval: 86400s}}]",
        host: "rate_limits: [{actions: [{header_value_match: {descriptor_value: post, headers: [{name: ':method', string_match: {exact: POST}}]}}]}, {actions: [{header_value_match: {descriptor_key: other, descriptor_value: b, expect_match: false, headers: [{name: x-plan, string_match: {exact: gold}}]}}]}]",
        route: "",
        verdict: Verdict::Looser,
        has_whole_model: false,
    },
    // A test that must not pass, of a header that must be there.
    Case {
        filter: "token_bucket: {max_tokens: 4294967295, fill_interval: 1s}, descriptors: [{entries: [{key: header_match, value: a}], token_bucket: {max_tokens: 900, fill_interval: 86400s}}]",
        host: "rate_limits: [{actions: [{header_value_match: {descriptor_value: a, headers: [{name: x-plan, invert_match: true, string_match: {prefix: go}}]}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // A parameter, and one value of a parameter.
    Case {
        filter: "token_bucket: {max_tokens: 4294967295, fill_interval: 1s}, descriptors: [{entries: [{key: q}], token_bucket: {max_tokens: 250, fill_interval: 86400s}}, {entries: [{key: query_match, value: r}], token_bucket: {max_tokens: 1000, fill_interval: 86400s}}]",
        host: "rate_limits: [{actions: [{query_parameters: {query_parameter_name: q, descriptor_key: q}}]}]",
        route: "rate_limits: [{actions: [{query_parameter_value_match: {descriptor_value: r, query_parameters: [{name: q, string_match: {exact: z}}]}}]}]",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    Case {
        filter: "token_bucket: {max_tokens: 4294967295, fill_interval: 1s}, descriptors: [{entries: [{key: q}], token_bucket: {max_tokens: 2500, fill_interval: 86400s}}, {entries: [{key: header_match, value: gold}], token_bucket: {max_tokens: 300, tokens_per_fill: 2, fill_interval: 86400s}}]",
        host: "rate_limits: [{actions: [{query_parameters: {query_parameter_name: q, descriptor_key: q}}]}, {actions: [{header_value_match: {descriptor_value: gold, headers: [{name: x-plan, string_match: {exact: gold}}]}}]}]",
        route: "",
        verdict: Verdict::Looser,
        has_whole_model: false,
    },
    // Two buckets of all requests with a user: the first one is charged for those that the second one
    // refuses.
    Case {
        filter: "token_bucket: {max_tokens: 3000, tokens_per_fill: 2, fill_interval: 86400s}, descriptors: [{entries: [{key: user}], token_bucket: {max_tokens: 1000, fill_interval: 86400s}}]",
        host: "rate_limits: [{actions: [{request_headers: {header_name: x-user, descriptor_key: user}}]}]",
        route: "",
        verdict: Verdict::Looser,
        has_whole_model: true,
    },
    Case {
        filter: "token_bucket: {max_tokens: 4294967295, fill_interval: 1s}, descriptors: [{entries: [{key: user}], token_bucket: {max_tokens: 1000, fill_interval: 86400s}}, {entries: [{key: plan}], token_bucket: {max_tokens: 1200, tokens_per_fill: 2, fill_interval: 86400s}}]",
        host: "rate_limits: [{actions: [{request_headers: {header_name: x-user, descriptor_key: user}}]}, {actions: [{request_headers: {header_name: x-plan, descriptor_key: plan}}]}]",
        route: "",
        verdict: Verdict::Looser,
        has_whole_model: true,
    },
    // More users than Envoy remembers.
    Case {
        filter: "token_bucket: {max_tokens: 4294967295, fill_interval: 1s}, max_dynamic_descriptors: 2, descriptors: [{entries: [{key: user}], token_bucket: {max_tokens: 3, fill_interval: 86400s}}]",
        host: "rate_limits: [{actions: [{request_headers: {header_name: x-user, descriptor_key: user}}]}]",
        route: "",
        verdict: Verdict::Stricter,
        has_whole_model: false,
    },
    // The cost of a request.
    Case {
        filter: "token_bucket: {max_tokens: 4294967295, fill_interval: 1s}, descriptors: [{entries: [{key: plan, value: gold}], token_bucket: {max_tokens: 1000, tokens_per_fill: 3, fill_interval: 86400s}}], rate_limits: [{actions: [{request_headers: {header_name: x-plan, descriptor_key: plan}}], hits_addend: {number: 3}}]",
        host: "",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // The rate limits of the virtual host are not those of a route that has its own.
    Case {
        filter: "token_bucket: {max_tokens: 4294967295, fill_interval: 1s}, descriptors: [{entries: [{key: generic_key, value: host}], token_bucket: {max_tokens: 1000, fill_interval: 86400s}}, {entries: [{key: generic_key, value: route}], token_bucket: {max_tokens: 500, fill_interval: 86400s}}]",
        host: "rate_limits: [{actions: [{generic_key: {descriptor_value: host}}]}]",
        route: "rate_limits: [{actions: [{generic_key: {descriptor_value: route}}]}]",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
    // Another stage, and a path.
    Case {
        filter: "token_bucket: {max_tokens: 2500, fill_interval: 86400s}, stage: 1, always_consume_default_token_bucket: false, descriptors: [{entries: [{key: header_match, value: login}], token_bucket: {max_tokens: 800, fill_interval: 86400s}}, {entries: [{key: generic_key, value: none}], token_bucket: {max_tokens: 1, fill_interval: 86400s}}]",
        host: "rate_limits: [{stage: 1, actions: [{header_value_match: {descriptor_value: login, headers: [{name: ':path', string_match: {prefix: /login}}]}}]}, {actions: [{generic_key: {descriptor_value: none}}]}]",
        route: "",
        verdict: Verdict::Equal,
        has_whole_model: false,
    },
];

#[test]
#[ignore = "needs an Envoy: `make test-all`, or `DIANA_ENVOY=… cargo test --test ratelimits -- --ignored`"]
fn verdicts_about_local_limits_hold_against_envoy() {
    for (number, case) in CASES.iter().enumerate() {
        // Each bucket has a separate line, by which the import names it.
        let filter = case.filter.replace("{entries", "\n            {entries");
        let filter = format!("local_ratelimit.v3.LocalRateLimit, stat_prefix: a, {ON}, {filter}");
        let (name, service) = (format!("local-{number}"), String::new());
        compare(case, &Compared { name, seed: number as u64, filter, service, port: None });
    }
}
