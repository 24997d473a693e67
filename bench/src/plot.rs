//! Draws the rows of a report as horizontal bars: the median as a bar, the 99th percentile as a line. Colours work on light and dark pages.

use std::fmt::Write as _;

use crate::report::{Report, Row, shown};

const LARGEST_BAR: f64 = 340.0;
const FIGURES: f64 = 130.0;
/// The usual width of a character.
const CHARACTER: f64 = 6.9;
const ROW: f64 = 26.0;
const TOP: f64 = 44.0;

/// An SVG document. Rows of one unit share a scale; a row of another unit than the one before it starts a new scale.
pub(crate) fn bars(report: &Report) -> String {
    let height = TOP + ROW * report.rows.len() as f64 + 14.0;
    let longest = report.rows.iter().map(|row| row.name.chars().count()).max().unwrap_or_default();
    let label = longest as f64 * CHARACTER + 16.0;
    let width = label + LARGEST_BAR + FIGURES;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {width} {height}\" width=\"{width}\" height=\"{height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<title>{}</title>\n\
         <style>text{{fill:#57606a}}.bar{{fill:#2f81f7}}.plexus{{fill:#2da44e}}.p99{{stroke:#8b949e;stroke-width:1.5}}</style>\n\
         <text x=\"0\" y=\"16\" font-weight=\"600\">{}</text>\n\
         <text x=\"0\" y=\"34\" font-size=\"11\">bar: median; line: 99th percentile; green: Plexus; blue: baseline</text>\n",
        escaped(&report.measures),
        escaped(&report.benchmark),
    );
    for (index, row) in report.rows.iter().enumerate() {
        let scale =
            report.rows.iter().filter(|other| other.unit == row.unit).map(largest).fold(0.0, f64::max);
        let y = TOP + ROW * index as f64;
        let to_x = |value: f64| label + if scale > 0.0 { value / scale * LARGEST_BAR } else { 0.0 };
        let class = if row.baseline { "bar" } else { "bar plexus" };
        let (end, whisker, middle) = (to_x(row.p50), to_x(row.p99), y + 8.0);
        // Writing to a string cannot fail.
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n\
             <rect class=\"{class}\" x=\"{label}\" y=\"{y}\" width=\"{:.1}\" height=\"16\" rx=\"2\"/>\n",
            label - 8.0,
            y + 13.0,
            escaped(&row.name),
            (end - label).max(1.0),
        );
        if row.p99 > row.p50 {
            let _ = writeln!(
                svg,
                "<path class=\"p99\" fill=\"none\" d=\"M{end:.1} {middle}H{whisker:.1}M{whisker:.1} {}v8\"/>",
                middle - 4.0
            );
        }
        let _ = writeln!(
            svg,
            "<text x=\"{:.1}\" y=\"{}\">{} {}</text>",
            whisker.max(end) + 6.0,
            y + 13.0,
            shown(row.p50),
            escaped(&row.unit)
        );
    }
    svg + "</svg>\n"
}

fn largest(row: &Row) -> f64 {
    row.p99.max(row.p50)
}

pub(crate) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn text_is_escaped() {
        assert_eq!(escaped("a<b> & \"c\""), "a&lt;b&gt; &amp; &quot;c&quot;");
    }
}
