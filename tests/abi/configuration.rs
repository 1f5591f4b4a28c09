//! Configurations, good and bad, as Envoy hands them over.

mod bad;

use host::Host;
use host::request::Request;
use host::trap::StartError;
use host::vm::Vm;

const GOOD: &str =
    "limits: [{Url: /, rules: [{actor: all, unit: day, rpu: 2, algo: W, scope: local}]}]";

fn start(host: &mut Host, config: &str) -> Vm {
    host.start_vm(config).unwrap_or_else(|error| panic!("{config:.200}\n{error}"))
}

/// The lines that a refused configuration logs. Anything but a refusal fails.
fn problems(host: &mut Host, config: &str) -> String {
    match host.start_vm(config) {
        Ok(_) => panic!("accepted: {config:.200}"),
        Err(StartError::Refused(log)) => log.join("\n"),
        Err(error) => panic!("{config:.200}\n{error}"),
    }
}

fn admitted(vm: &mut Vm, requests: usize) -> usize {
    (0..requests).filter(|_| vm.request(&Request::get("/a")).is_admitted()).count()
}

#[test]
fn all_forms_mean_the_same() {
    let rule = "{actor: all, unit: day, rpu: 2, algo: W, scope: local}";
    let json = r#"{"actor": "all", "unit": "day", "rpu": 2, "algo": "W", "scope": "local"}"#;
    for config in [
        GOOD.to_owned(),
        format!("Url: /\nrules:\n- {rule}"),
        format!("- {{Url: /, rules: [{rule}]}}"),
        format!("--- {{Url: /, rules: [{rule}]}}\n--- {{Url: /b, rules: [{rule}]}}\n"),
        format!(r#"{{"limits": [{{"Url": "/", "rules": [{json}]}}]}}"#),
        format!(r#"[{{"url":"/","rules":[{json}]}}]"#).replace(": ", ":"),
    ] {
        let mut host = Host::new(1);
        assert_eq!(admitted(&mut start(&mut host, &config), 5), 2, "{config}");
    }
}

/// A `Struct` arrives as JSON whose numbers are all floating-point.
#[test]
fn a_struct_has_floating_point_numbers() {
    let config = r#"{"keys":1000.0,"response":{"status":429.0},"limits":[{"Url":"/","rules":[
        {"actor":"device","unit":"minute","rpu":10.0,"burst":3.0,"cost":1.0,"enforce":100.0,
         "algo":"TB","scope":"local"}]}],
        "actors":{"device":[{"client_address":{"v4":24.0,"v6":48.0}}]}}"#;
    let mut vm = start(&mut Host::new(2), config);
    assert_eq!(admitted(&mut vm, 9), 3);
    assert_eq!(vm.request(&Request::get("/").from("192.0.2.200:9")).status(), 429);
    assert!(vm.request(&Request::get("/").from("192.0.3.1:9")).is_admitted());
}

#[test]
fn no_limits_limit_nothing() {
    let mut vm = start(&mut Host::new(3), "limits: []");
    assert_eq!(admitted(&mut vm, 50), 50);
}

#[test]
fn a_bad_configuration_is_refused_with_every_problem_in_the_log() {
    for (config, expected) in bad::CASES {
        let log = problems(&mut Host::new(4), config);
        for expected in *expected {
            assert!(log.contains(expected), "{config}\nlacks {expected:?}:\n{log}");
        }
        assert!(log.lines().all(|line| line.starts_with("[error]")), "{log}");
    }
}

#[test]
fn a_refusal_is_counted_and_leaves_the_vm_as_it_was() {
    let mut host = Host::new(5);
    let mut vm = start(&mut host, GOOD);
    assert_eq!(admitted(&mut vm, 1), 1);
    for (config, _) in bad::CASES {
        let error = vm.configure(config).unwrap_err();
        assert!(matches!(error, StartError::Refused(_)), "{config}\n{error}");
    }
    assert_eq!(host.counter("diana.shop.config.rejected"), Some(bad::CASES.len() as u64));
    assert_eq!(admitted(&mut vm, 5), 1, "the old configuration is in force and remembers");
    vm.configure(&GOOD.replace("rpu: 2", "rpu: 7")).unwrap();
    assert_eq!(admitted(&mut vm, 9), 5, "and a good one can follow");
    vm.run(1_000_000);
}

#[test]
fn a_rule_for_the_fleet_is_counted_in_the_gateway_and_one_line_says_so() {
    let mut vm = start(&mut Host::new(6), &GOOD.replace("local", "global"));
    assert_eq!(admitted(&mut vm, 5), 2);
    let lines = vm.log();
    let warnings: Vec<_> = lines.iter().filter(|line| line.starts_with("[warn]")).collect();
    assert!(matches!(warnings[..], [line] if line.contains("global")), "{lines:?}");
}

/// What a configuration may cost, good or bad: less than a second of Envoy's time.
const MOST_FUEL: u64 = 15_000_000_000;
const MOST_MEMORY: usize = 32 << 20;

#[test]
fn no_document_takes_more_than_bounded_time_and_memory() {
    let mut over = Vec::new();
    for (what, document) in bad::bombs() {
        let mut vm = start(&mut Host::new(7), GOOD);
        vm.start_counting();
        match vm.configure(&document) {
            Ok(()) | Err(StartError::Refused(_)) => {}
            Err(error) => panic!("{what}: {error}"),
        }
        let (fuel, memory) = (vm.counted().1, vm.memory());
        println!("{what}: {} bytes, {} M fuel, {} MiB", document.len(), fuel >> 20, memory >> 20);
        if fuel > MOST_FUEL || memory > MOST_MEMORY {
            over.push((what, fuel, memory));
        }
        let longest = vm.log().iter().map(String::len).max();
        assert!(longest < Some(10_000), "{what}: a line of {longest:?} bytes");
        vm.configure(GOOD).unwrap();
        assert_eq!(admitted(&mut vm, 5), 2);
    }
    assert!(over.is_empty(), "{over:?}");
}
