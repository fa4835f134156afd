package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"urnic/conformance/report"
)

// maxCompared is how many reports one comparison takes: their columns have letters.
const maxCompared = 26

func newConformCompareCommand() *cobra.Command {
	var html string
	cmd := &cobra.Command{
		Use:   "compare REPORT.json REPORT.json...",
		Short: "Compare reports of several endpoints",
		Long: `Compare reads reports that "urnic conform --json" wrote, one for each endpoint or version of it, and
prints a matrix: a row for each case whose verdicts differ, a column for each report. A column
is called as its file. With --html it writes a page, which also has the cases that do not differ.

The exit status is 0 if the reports could be read, whether they differ or not.`,
		Example: `  urnic conform compare siw.json urnic.json
  urnic conform compare --html matrix.html v1.json v2.json v3.json`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) < 2 || len(args) > maxCompared {
				return untested(fmt.Errorf("give 2 to %d reports to compare, not %d", maxCompared, len(args)))
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			var endpoints []report.Endpoint
			for _, name := range args {
				e, err := readReport(name)
				if err != nil {
					return untested(fmt.Errorf("%s: %w", name, err))
				}
				endpoints = append(endpoints, e)
			}
			stdout := cmd.OutOrStdout()
			if html != "" {
				err := writeTo(html, stdout, func(w io.Writer) error { return report.CompareHTML(w, toolName(), endpoints) })
				if err != nil || html == "-" {
					return err
				}
			}
			return report.Compare(stdout, endpoints)
		},
	}
	cmd.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return untested(flagError(cmd, err)) })
	cmd.Flags().StringVar(&html, "html", "", "write the comparison as a page to this `FILE` as well (- is standard output)")
	return cmd
}

// readReport reads a report. Its column is called as the file.
func readReport(name string) (_ report.Endpoint, err error) {
	f, err := os.Open(name)
	if err != nil {
		return report.Endpoint{}, err
	}
	defer func() { err = errors.Join(err, f.Close()) }()
	r, err := report.Decode(f)
	return report.Endpoint{Name: strings.TrimSuffix(filepath.Base(name), ".json"), Report: r}, err
}
