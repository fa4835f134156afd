// Package plot draws lines over two axes as SVG, for the pages in docs and for urnic perf. The
// same chart gives the same bytes.
package plot
