//! A self-contained page with tables, and plots by uPlot.

use std::io;

use super::json;
use crate::replay::report::ReplayReport;

const PAGE: &str = include_str!("../../assets/report.html");
const STYLE: &str = include_str!("../../assets/report.css");
const SCRIPT: &str = include_str!("../../assets/report.js");
const PLOT_STYLE: &str = include_str!("../../assets/uplot/uPlot.min.css");
const PLOT: &str = include_str!("../../assets/uplot/uPlot.iife.min.js");
const PLOT_LICENSE: &str = include_str!("../../assets/uplot/LICENSE");

/// The page.
///
/// # Errors
/// None, if the report can be written as JSON.
pub fn page(report: &ReplayReport<'_>) -> io::Result<String> {
    // Data of a log must not end the script element.
    let data = serde_json::to_string(&json::object(report))?.replace('<', "\\u003c");
    let parts = [
        ("{{style}}", STYLE),
        ("{{plot-style}}", PLOT_STYLE),
        ("{{plot-license}}", PLOT_LICENSE),
        ("{{plot}}", PLOT),
        ("{{script}}", SCRIPT),
        // Last, so that placeholders in the data are not replaced.
        ("{{data}}", data.as_str()),
    ];
    Ok(parts.iter().fold(PAGE.to_owned(), |page, (name, text)| page.replacen(name, text, 1)))
}
