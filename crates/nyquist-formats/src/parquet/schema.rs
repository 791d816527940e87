//! The columns of the table, in their order.

use ::parquet::errors::Result;
use ::parquet::schema::parser::parse_message_type;
use ::parquet::schema::types::TypePtr;
use std::sync::Arc;

/// The columns that the rows are sorted by, by their index.
pub(super) const SORTED_BY: [i32; 3] = [2, 9, 0];

/// The frames of a stack are a list of groups, whose members are columns of their own.
pub(super) const FUNCTION: &str = "frames.list.element.function";
pub(super) const FILE: &str = "frames.list.element.file";
pub(super) const LINE: &str = "frames.list.element.line";
pub(super) const MODULE: &str = "frames.list.element.module";
pub(super) const BUILD_ID: &str = "frames.list.element.build_id";
pub(super) const LABEL_KEY: &str = "labels.key_value.key";
pub(super) const LABEL_VALUE: &str = "labels.key_value.value";

/// Everything is required, because engines disagree about groups that are null. A text that is not known is empty.
const MESSAGE: &str = "
message profile {
  REQUIRED INT64 time (TIMESTAMP(MICROS,true));
  REQUIRED INT64 duration_us;
  REQUIRED BINARY service (STRING);
  REQUIRED GROUP labels (MAP) {
    REPEATED GROUP key_value {
      REQUIRED BINARY key (STRING);
      REQUIRED BINARY value (STRING);
    }
  }
  REQUIRED BINARY process (STRING);
  REQUIRED BINARY pid (STRING);
  REQUIRED BINARY thread (STRING);
  REQUIRED BINARY tid (STRING);
  REQUIRED BINARY kind (STRING);
  REQUIRED BINARY unit (STRING);
  REQUIRED INT64 value;
  REQUIRED BINARY function (STRING);
  REQUIRED BINARY stack (STRING);
  REQUIRED GROUP frames (LIST) {
    REPEATED GROUP list {
      REQUIRED GROUP element {
        REQUIRED BINARY function (STRING);
        REQUIRED BINARY file (STRING);
        REQUIRED INT32 line;
        REQUIRED BINARY module (STRING);
        REQUIRED BINARY build_id (STRING);
      }
    }
  }
}";

/// The schema.
pub(super) fn schema() -> Result<TypePtr> {
    parse_message_type(MESSAGE).map(Arc::new)
}
