use super::Importer;
use crate::Counting;
use crate::outcome::Imported;
use crate::source::{SourceFiles, SourceText};

pub(crate) struct NoFiles;

impl SourceFiles for NoFiles {
    fn included(&self, _: &str, _: &str) -> Result<Vec<SourceText>, String> {
        Ok(Vec::new())
    }
}

/// Lines that apply at once are an object, with another verdict.
#[test]
fn limits_of_one_line_are_an_object() {
    for between in [" ", "\n"] {
        let text = format!(
            "http {{ limit_req_zone $http_a zone=a:1m rate=1r/s;\n\
             limit_req_zone $http_b zone=b:1m rate=2r/s;\n\
             server {{ location / {{ limit_req zone=a nodelay;{between}limit_req zone=b nodelay; }} }} }}"
        );
        let mut importer = Importer::new(None);
        importer.read(&SourceText { name: "nginx.conf".into(), text }, &NoFiles);
        let result = importer.finish(Counting::PerGateway);
        assert_eq!(result.objects.len(), 1, "{between:?}");
        assert_eq!(result.entries.iter().map(|it| it.rules.len()).sum::<usize>(), 2);
    }
}

/// More entries than any document has room for are counted, but not kept. The list has their
/// number, however long it is.
#[test]
fn further_entries_are_counted() {
    let ingress = |number: usize| {
        format!(
            "kind: Ingress\nmetadata: {{name: web-{number}, annotations: {{nginx.ingress.kubernetes.io/limit-rps: '1'}}}}\n\
             spec: {{rules: [{{host: h{number}.example.com, http: {{paths: [{{path: /a, pathType: Exact}}]}}}}]}}\n---\n"
        )
    };
    let filter = |number: usize| {
        let bucket = "token_bucket: {max_tokens: 1, fill_interval: 1s}, filter_enabled: {default_value: {numerator: 100}}";
        let limit = format!(
            "'@type': type.googleapis.com/envoy.extensions.filters.http.local_ratelimit.v3.LocalRateLimit, {bucket}"
        );
        format!(
            "kind: EnvoyFilter\nmetadata: {{name: web-{number}}}\nspec: {{workloadSelector: {{labels: {{app: a{number}}}}}, configPatches: \
             [{{applyTo: HTTP_FILTER, patch: {{operation: INSERT_BEFORE, value: {{name: limit, typed_config: {{{limit}}}}}}}}}]}}\n---\n"
        )
    };
    let count = Imported::MOST + 50;
    let texts: [(&str, String); 2] = [
        ("Ingress default/web-", (0..count).map(ingress).collect()),
        ("local_ratelimit of EnvoyFilter default/web-", (0..count).map(filter).collect()),
    ];
    for (title, text) in texts {
        let mut importer = Importer::new(None);
        importer.read(&SourceText { name: "all.yaml".into(), text }, &NoFiles);
        let result = importer.convert(Counting::PerGateway);
        let held = result.entries.len();
        let holds = format!("one document holds {held} of the {count} entries");
        let found = result.gaps.list().iter().find(|note| note.reason.starts_with(&holds));
        let about = found.map(|note| note.about.as_str());
        assert_eq!(about, Some(&*format!("{title}{held} and all later ones")), "{holds}");
        assert!(result.gaps.more() > 0);
    }
}
