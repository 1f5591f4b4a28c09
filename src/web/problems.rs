//! Problems of rules.

use diana_config::{ConfigSource, Reader};
use serde_json::{Value, json};

/// Returns the problems with their positions, or advice if there are none.
pub fn of(rules: &str) -> Value {
    match ConfigSource::read(rules.as_bytes()).and_then(|it| Reader::default().read(&it)) {
        Ok((_, advice)) => {
            let advice: Vec<String> = advice.iter().map(diana_config::Advice::line).collect();
            json!({"problems": [], "advice": advice})
        }
        Err(problems) => {
            let list = problems.list().iter().map(|problem| {
                let (line, column) = problem.position.unwrap_or((1, 1));
                let message = match problem.path.as_str() {
                    "" => problem.message.clone(),
                    path => format!("{path}: {}", problem.message),
                };
                json!({"line": line, "column": column, "message": message})
            });
            json!({"problems": list.collect::<Vec<_>>(), "more": problems.more(), "advice": []})
        }
    }
}
