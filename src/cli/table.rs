//! Tables for terminals.

use std::io::{self, Write};

/// The alignment of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Align {
    /// For text.
    Left,
    /// For numbers.
    Right,
}

/// Writes rows under a head. The first column is aligned left, all others right.
pub fn write(head: &[&str], rows: &[Vec<String>], out: &mut dyn Write) -> io::Result<()> {
    let columns: Vec<Align> = (0..head.len())
        .map(|column| if column == 0 { Align::Left } else { Align::Right })
        .collect();
    write_aligned(head, &columns, rows, out)
}

/// Writes rows under a head, with the alignment of each column.
pub fn write_aligned(
    head: &[&str],
    columns: &[Align],
    rows: &[Vec<String>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let head: Vec<String> = head.iter().map(|cell| (*cell).to_owned()).collect();
    let width = |column: usize| {
        let cells = std::iter::once(&head).chain(rows).filter_map(|row| row.get(column));
        cells.map(|cell| cell.chars().count()).max().unwrap_or(0)
    };
    let widths: Vec<usize> = (0..head.len()).map(width).collect();
    for row in std::iter::once(&head).chain(rows) {
        let cells = row.iter().zip(&widths).zip(columns);
        let cells: Vec<String> = cells
            .map(|((cell, width), align)| match align {
                Align::Left => format!("{cell:width$}"),
                Align::Right => format!("{cell:>width$}"),
            })
            .collect();
        writeln!(out, "{}", cells.join("  ").trim_end())?;
    }
    Ok(())
}

/// A number with a comma as thousands separator.
pub fn number(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// A part of a whole in per cent, such as `0.3 %`.
pub fn share(part: u64, whole: u64) -> String {
    let thousandths = u128::from(part) * 1000 / u128::from(whole.max(1));
    match thousandths {
        0 if part > 0 => "less than 0.1 %".into(),
        _ => format!("{}.{} %", thousandths / 10, thousandths % 10),
    }
}
