use super::{FieldMapping, FieldTarget, LogField};

#[test]
fn mapping_has_targets_and_columns() {
    let given = ["header:X-Account-Id=14", "header:referer=req.from", "status=2"].map(String::from);
    let mapping = FieldMapping::new(&given).unwrap();
    assert!(mapping.is_deep);
    let columns: Vec<_> = mapping.columns().collect();
    let account = FieldTarget::Header("x-account-id".into());
    assert_eq!(columns, [(0, &account, 13), (2, &FieldTarget::Status, 1)]);
    assert_eq!(mapping.set[1].0, FieldTarget::Field(LogField::Referer));
    let mapping = FieldMapping::new(&["route=15".into()]).unwrap();
    assert_eq!(mapping.set[0].0, FieldTarget::Field(LogField::Route));
    assert_eq!(super::usual("route_name"), Some(FieldTarget::Field(LogField::Route)));
}

#[test]
fn mapping_refuses_unknown_names() {
    for wrong in ["time", "time=", "colour=5", "header:=x", "metadata:a=x"] {
        let error = FieldMapping::new(&[wrong.into()]).unwrap_err();
        assert!(error.contains(&format!("found `--set {wrong}`")), "{error}");
        assert!(error.contains("header:NAME"), "{error}");
    }
}
