//! A page that needs nothing else: tables and plots, by uPlot.

use std::io;

use super::json;
use crate::replay::report::Report;

const PAGE: &str = include_str!("../../assets/report.html");
const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");
const PLOT_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");
const PLOT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const PLOT_LICENSE: &str = include_str!("../../assets/uplot/LICENSE");

/// The page.
///
/// # Errors
/// None, as long as the report can be written as JSON.
pub fn page(report: &Report<'_>) -> io::Result<String> {
    // Within a script nothing may end it, whatever a log says.
    let data = serde_json::to_string(&json::object(report))?.replace('<', "\\u003c");
    let parts = [
        ("{{style}}", STYLE),
        ("{{plot-style}}", PLOT_STYLE),
        ("{{plot-license}}", PLOT_LICENSE),
        ("{{plot}}", PLOT),
        ("{{script}}", SCRIPT),
        // Last, since nothing in it is looked at.
        ("{{data}}", data.as_str()),
    ];
    Ok(parts.iter().fold(PAGE.to_owned(), |page, (name, text)| page.replacen(name, text, 1)))
}
