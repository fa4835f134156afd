package main

import (
	"context"
	"fmt"
	"io"
	"path/filepath"

	"github.com/spf13/cobra"

	"urnic/internal/program/timeline"
)

func newTimelineCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "timeline DIRECTORY FILE",
		Short: "Show when work requests were posted, sent, completed and polled",
		Long: `Timeline makes a timeline of what programs in Go have recorded into a directory by package
rnictimeline. For each work request it says when it was posted, when its first and last byte left, when data was
placed, when it was complete, and when its completion was polled.

FILE is a page for a browser if it ends in .html, and a Chrome trace, for chrome://tracing and Perfetto, if it ends in
.json. For programs in C, urnic run --timeline FILE does all of it.`,
		Example: `  urnic timeline recordings page.html
  urnic timeline recordings trace.json`,
		Args: func(cmd *cobra.Command, args []string) error {
			if err := cobra.ExactArgs(2)(cmd, args); err != nil {
				return fmt.Errorf("give the directory of the recordings, and the file to write: %w", err)
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			if timelineWriter(args[1]) == nil {
				return fmt.Errorf("%s: give a file that ends in .html or .json", args[1])
			}
			return writeTimeline(cmd.Context(), args[0], filepath.Base(args[0]), args[1], cmd.OutOrStdout())
		},
	}
}

// timelineWriter returns what writes a timeline into a file of that name, or nil.
func timelineWriter(file string) func(l *timeline.Timeline, w io.Writer, name string) error {
	switch filepath.Ext(file) {
	case ".html":
		return func(l *timeline.Timeline, w io.Writer, name string) error { return l.WritePage(w, toolName(), name) }
	case ".json":
		return func(l *timeline.Timeline, w io.Writer, _ string) error { return l.WriteChrome(w) }
	}
	return nil
}

// writeTimeline writes a timeline, of what has that name, of the recordings in a directory.
func writeTimeline(ctx context.Context, dir, name, file string, stdout io.Writer) error {
	l, err := timeline.Load(ctx, dir)
	if err != nil {
		return err
	}
	return writeTo(file, stdout, func(w io.Writer) error { return timelineWriter(file)(l, w, name) })
}
