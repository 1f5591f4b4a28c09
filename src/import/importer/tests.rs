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

/// Lines that apply at once are an object, with a verdict of its own.
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

/// More Ingresses than any document has room for are counted, but not kept.
#[test]
fn further_entries_are_counted() {
    let ingress = |number: usize| {
        format!(
            "kind: Ingress\nmetadata: {{name: web-{number}, annotations: {{nginx.ingress.kubernetes.io/limit-rps: '1'}}}}\n\
             spec: {{rules: [{{host: h{number}.example.com, http: {{paths: [{{path: /}}]}}}}]}}\n---\n"
        )
    };
    let count = Imported::MOST + 50;
    let mut importer = Importer::new(None);
    let text = (0..count).map(ingress).collect();
    importer.read(&SourceText { name: "all.yaml".into(), text }, &NoFiles);
    let result = importer.convert(Counting::PerGateway);
    let [.., last] = result.gaps.list() else { panic!("no remarks") };
    let holds = format!("one document holds {} of the {count} entries", result.entries.len());
    assert!(last.reason.starts_with(&holds), "{}", last.reason);
    assert_eq!(
        last.about,
        format!("Ingress default/web-{} and all later ones", result.entries.len())
    );
}
