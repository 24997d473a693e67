//! Draws the stages of each path one below the other, each bar from the end of the stage before it. Bars have the medians of the stages.

use std::fmt::Write as _;

use super::Traced;
use super::paths::Kind;
use crate::plot::escaped;
use crate::report::median_of;

const WIDTH: f64 = 820.0;
const LABEL: f64 = 250.0;
const FIGURES: f64 = 130.0;
const ROW: f64 = 20.0;
const TOP: f64 = 56.0;
const HEADING: f64 = 34.0;

const KINDS: [(Kind, &str, &str); 3] = [
    (Kind::HandOver, "#bf8700", "hand-over to another process, thread or task"),
    (Kind::Work, "#2f81f7", "work"),
    (Kind::Store, "#2da44e", "transaction and disk"),
];

/// An SVG document. All paths share one scale.
pub(super) fn draw(title: &str, paths: &[Traced]) -> String {
    let rows: usize = paths.iter().map(|path| path.stages.len()).sum();
    let height = TOP + HEADING * paths.len() as f64 + ROW * rows as f64 + 8.0;
    let longest = paths.iter().map(Traced::sum_of_medians).fold(1.0, f64::max);
    let scale = (WIDTH - LABEL - FIGURES) / longest;
    // Writing to a string cannot fail.
    let mut svg = format!(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height}\" width=\"{WIDTH}\" height=\"{height}\" role=\"img\" \
         font-family=\"system-ui, sans-serif\" font-size=\"12\">\n<title>trace</title>\n<style>text{{fill:#57606a}}</style>\n\
         <text x=\"0\" y=\"16\" font-size=\"13\" font-weight=\"600\">{}</text>\n",
        escaped(title)
    );
    let mut x = 0.0;
    for (_, colour, meaning) in KINDS {
        let _ = writeln!(
            svg,
            "<rect x=\"{x}\" y=\"28\" width=\"12\" height=\"12\" rx=\"2\" fill=\"{colour}\"/><text x=\"{}\" y=\"38\">{meaning}</text>",
            x + 17.0
        );
        x += 40.0 + meaning.len() as f64 * 6.2;
    }
    let mut y = TOP;
    for path in paths {
        let _ = writeln!(
            svg,
            "<text x=\"0\" y=\"{}\" font-weight=\"600\">{}: {:.0} µs</text>",
            y + 20.0,
            path.path.name(),
            median_of(&path.totals)
        );
        y += HEADING;
        let mut at = 0.0;
        for (stage, times) in &path.stages {
            let length = median_of(times);
            let colour =
                KINDS.iter().find(|(kind, ..)| *kind == stage.kind).map_or("", |(_, colour, _)| colour);
            let (from, wide) = (LABEL + at * scale, (length * scale).max(1.0));
            let _ = writeln!(
                svg,
                "<text x=\"{}\" y=\"{}\" text-anchor=\"end\">{}</text><rect x=\"{from:.1}\" y=\"{}\" width=\"{wide:.1}\" height=\"14\" rx=\"2\" \
                 fill=\"{colour}\"/><text x=\"{:.1}\" y=\"{}\">{length:.0} µs, {:.0} %</text>",
                LABEL - 8.0,
                y + 11.0,
                escaped(stage.name),
                y,
                from + wide + 6.0,
                y + 11.0,
                path.share(times),
            );
            at += length;
            y += ROW;
        }
    }
    svg + "</svg>\n"
}
