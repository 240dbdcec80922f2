//! The shipped JSON Schema files match the types.
//!
//! `CROSSWIND_WRITE_SCHEMAS=1 cargo test -p crosswind-schema` rewrites them after a change of the types.

use crosswind_schema::json_schema;

#[test]
fn the_shipped_json_schemas_are_those_of_the_types() {
    for kind in json_schema::KINDS {
        let schema = json_schema::of(kind).expect("every kind has a schema");
        let generated = serde_json::to_string_pretty(&schema).expect("serialises") + "\n";
        let path = format!("{}/../../docs/reference/schemas/{kind}.schema.json", env!("CARGO_MANIFEST_DIR"));
        if std::env::var_os("CROSSWIND_WRITE_SCHEMAS").is_some() {
            std::fs::write(&path, &generated).expect("writes");
        }
        let shipped = std::fs::read_to_string(&path).unwrap_or_default();
        assert!(shipped == generated, "{path} is stale; write it anew with CROSSWIND_WRITE_SCHEMAS=1");
    }
}
