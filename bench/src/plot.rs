//! Draws the rows of a report as horizontal bars: the median as a bar, the 99th percentile as a line. Colours work on light and dark pages.

use std::fmt::Write as _;

use crate::report::{Report, Row, shown};

const WIDTH: f64 = 760.0;
const LABEL: f64 = 290.0;
const FIGURES: f64 = 130.0;
const ROW: f64 = 26.0;
const TOP: f64 = 44.0;

/// An SVG document. Rows of one unit share a scale; a row of another unit than the one before it starts a new scale.
pub(crate) fn bars(report: &Report) -> String {
    let height = TOP + ROW * report.rows.len() as f64 + 14.0;
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"13\">\n<title>{}</title>\n\
         <style>text{{fill:#57606a}}.bar{{fill:#2f81f7}}.plexus{{fill:#2da44e}}.p99{{stroke:#8b949e;stroke-width:1.5}}</style>\n\
         <text x=\"0\" y=\"16\" font-weight=\"600\">{}</text>\n\
         <text x=\"0\" y=\"34\" font-size=\"11\">bar: median; line: 99th percentile</text>\n",
        escaped(&report.benchmark),
        escaped(&report.measures),
    );
    for (index, row) in report.rows.iter().enumerate() {
        let scale =
            report.rows.iter().filter(|other| other.unit == row.unit).map(largest).fold(0.0, f64::max);
        let y = TOP + ROW * index as f64;
        let to_x =
            |value: f64| LABEL + if scale > 0.0 { value / scale * (WIDTH - LABEL - FIGURES) } else { 0.0 };
        let class = if row.name.contains("Plexus") { "bar plexus" } else { "bar" };
        let (end, whisker, middle) = (to_x(row.p50), to_x(row.p99), y + 8.0);
        // Writing to a string cannot fail.
        let _ = write!(
            svg,
            "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text>\n\
             <rect class=\"{class}\" x=\"{LABEL}\" y=\"{y}\" width=\"{:.1}\" height=\"16\" rx=\"2\"/>\n",
            LABEL - 8.0,
            y + 13.0,
            escaped(&row.name),
            (end - LABEL).max(1.0),
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
