use super::Importer;
use crate::Counting;
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
