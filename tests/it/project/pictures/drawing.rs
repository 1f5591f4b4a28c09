//! A picture as SVG, which follows the reader's light or dark theme.

use std::fmt::Write;

/// Width of a picture.
pub const WIDTH: f64 = 860.0;

const STYLE: &str = "<style>
    .page { fill: #ffffff; stroke: #c4ccd6; } .box { fill: #f4f6f9; stroke: #c4ccd6; } text { fill: #1b2430; } .dim { fill: #5b6b7f; }
    .yes { fill: #1a6b3c; } .no { fill: #a32020; } .wait { fill: #9a6700; } .line { stroke: #c4ccd6; } .curve { stroke: #1a6b3c; stroke-width: 2; fill: none; }
    .limit { stroke: #a32020; stroke-dasharray: 5 4; } .area { fill: #1a6b3c; opacity: 0.18; } .label { font-weight: 600; }
    @media (prefers-color-scheme: dark) {
      .page { fill: #161b22; stroke: #3b4654; } .box { fill: #1d2530; stroke: #3b4654; } text { fill: #e6edf3; } .dim { fill: #93a1b3; }
      .yes { fill: #6fd39a; } .no { fill: #ff8d85; } .wait { fill: #e3b341; } .line { stroke: #3b4654; } .curve { stroke: #6fd39a; }
      .limit { stroke: #ff8d85; } .area { fill: #6fd39a; }
    }
  </style>";

/// A picture. Positions are in pixels from the upper left corner.
pub struct Drawing {
    height: f64,
    title: &'static str,
    body: String,
}

impl Drawing {
    pub fn new(title: &'static str, height: f64) -> Drawing {
        Drawing { height, title, body: String::new() }
    }

    /// A text. `anchor` is `start`, `middle` or `end`.
    pub fn text(&mut self, (x, y): (f64, f64), class: &str, anchor: &str, text: &str) {
        let text = text.replace('&', "&amp;").replace('<', "&lt;");
        self.add(&format!(
            r#"<text class="{class}" x="{x:.1}" y="{y:.1}" text-anchor="{anchor}">{text}</text>"#
        ));
    }

    pub fn rect(&mut self, (x, y): (f64, f64), (width, height): (f64, f64), class: &str) {
        self.add(&format!(
            r#"<rect class="{class}" x="{x:.1}" y="{y:.1}" width="{width:.1}" height="{height:.1}" rx="2"/>"#
        ));
    }

    pub fn line(&mut self, (x1, y1): (f64, f64), (x2, y2): (f64, f64), class: &str) {
        self.add(&format!(
            r#"<line class="{class}" x1="{x1:.1}" y1="{y1:.1}" x2="{x2:.1}" y2="{y2:.1}"/>"#
        ));
    }

    /// A line through `points`.
    pub fn curve(&mut self, points: &[(f64, f64)], class: &str) {
        let mut path = String::new();
        for (x, y) in points {
            let _ = write!(path, "{x:.1},{y:.1} ");
        }
        self.add(&format!(r#"<polyline class="{class}" points="{}"/>"#, path.trim_end()));
    }

    /// The file.
    pub fn finish(self) -> String {
        let Drawing { height, title, body } = self;
        let (inner, most) = (WIDTH - 1.0, height - 1.0);
        format!(
            r#"<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img" aria-labelledby="title" font-family="system-ui, sans-serif" font-size="13">
  <title id="title">{title}</title>
  {STYLE}
  <rect class="page" x="0.5" y="0.5" width="{inner}" height="{most}" rx="10"/>
{body}</svg>
"#
        )
    }

    fn add(&mut self, element: &str) {
        let _ = writeln!(self.body, "  {element}");
    }
}
