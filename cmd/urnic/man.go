package main

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"urnic/internal/host/version"
)

// newManCommand returns the command that writes the manual pages, for those who make packages.
func newManCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "man DIRECTORY",
		Short:   "Write the manual pages of all commands",
		Long:    "Man writes a manual page of section 1 for each command into DIRECTORY, which must exist.",
		Example: "  urnic man /usr/local/share/man/man1",
		Hidden:  true,
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) != 1 {
				return fmt.Errorf("give one directory: see `%s --help`", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(cmd *cobra.Command, args []string) error {
			for _, c := range documented(cmd.Root()) {
				if err := os.WriteFile(filepath.Join(args[0], manName(c)+".1"), manPage(c), 0o644); err != nil {
					return err
				}
			}
			return nil
		},
	}
}

// documented returns a command and all below it that users see.
func documented(cmd *cobra.Command) []*cobra.Command {
	all := []*cobra.Command{cmd}
	for _, c := range cmd.Commands() {
		if !c.Hidden && c.Name() != "help" {
			all = append(all, documented(c)...)
		}
	}
	return all
}

// manName is the name of a command's page: urnic-perf-local.
func manName(cmd *cobra.Command) string { return strings.ReplaceAll(cmd.CommandPath(), " ", "-") }

// manPage returns the page of a command, in the macros of man(7).
func manPage(cmd *cobra.Command) []byte {
	cmd.InitDefaultHelpFlag()
	cmd.InitDefaultVersionFlag()
	var w bytes.Buffer
	fmt.Fprintf(&w, ".TH %s 1 %q \"urnic %s\" \"urnic manual\"\n", strings.ToUpper(manName(cmd)), version.Date, strings.TrimPrefix(version.Number, "v"))
	fmt.Fprintf(&w, ".SH NAME\n%s \\-\n", roff(manName(cmd)))
	manText(&w, strings.ToLower(cmd.Short[:1])+cmd.Short[1:])
	w.WriteString(".SH SYNOPSIS\n")
	manText(&w, strings.TrimSpace(cmd.UseLine()))
	w.WriteString(".SH DESCRIPTION\n")
	long := cmd.Long
	if long == "" {
		long = cmd.Short + "."
	}
	manParagraphs(&w, long)
	manFlags(&w, "OPTIONS", cmd.NonInheritedFlags())
	manFlags(&w, "OPTIONS OF ALL SUBCOMMANDS", cmd.InheritedFlags())
	if cmd.Example != "" {
		w.WriteString(".SH EXAMPLES\n")
		manVerbatim(&w, cmd.Example)
	}
	manSeeAlso(&w, cmd)
	return w.Bytes()
}

// manSeeAlso writes the names of the pages above and below.
func manSeeAlso(w *bytes.Buffer, cmd *cobra.Command) {
	var pages []string
	if cmd.HasParent() {
		pages = append(pages, manName(cmd.Parent()))
	}
	for _, c := range cmd.Commands() {
		if !c.Hidden && c.Name() != "help" {
			pages = append(pages, manName(c))
		}
	}
	w.WriteString(".SH \"SEE ALSO\"\n")
	for i, p := range pages {
		comma := ","
		if i == len(pages)-1 {
			comma = ""
		}
		fmt.Fprintf(w, ".BR %s (1)%s\n", roff(p), comma)
	}
}

// manFlags writes a section of flags, if there are any.
func manFlags(w *bytes.Buffer, title string, flags *pflag.FlagSet) {
	if !flags.HasAvailableFlags() {
		return
	}
	fmt.Fprintf(w, ".SH %q\n", title)
	flags.VisitAll(func(f *pflag.Flag) {
		if f.Hidden {
			return
		}
		name, usage := pflag.UnquoteUsage(f)
		w.WriteString(".TP\n")
		if f.Shorthand != "" {
			fmt.Fprintf(w, "\\fB\\-%s\\fR, ", f.Shorthand)
		}
		fmt.Fprintf(w, "\\fB\\-\\-%s\\fR", roff(f.Name))
		if name != "" {
			fmt.Fprintf(w, " \\fI%s\\fR", roff(name))
		}
		w.WriteString("\n")
		switch f.DefValue {
		case "", "0", "0s", "false", "[]":
		default:
			usage += fmt.Sprintf(" (default %s)", f.DefValue)
		}
		manText(w, usage)
	})
}

// manParagraphs writes a text of paragraphs: those whose lines are indented stay as they are.
func manParagraphs(w *bytes.Buffer, text string) {
	for i, p := range strings.Split(strings.Trim(text, "\n"), "\n\n") {
		if isTable(p) {
			if i > 0 {
				w.WriteString(".PP\n")
			}
			manVerbatim(w, p)
			continue
		}
		if i > 0 {
			w.WriteString(".PP\n")
		}
		manText(w, p)
	}
}

// manVerbatim writes lines that are not filled.
func manVerbatim(w *bytes.Buffer, text string) {
	w.WriteString(".nf\n")
	for line := range strings.Lines(text) {
		line = roff(strings.TrimRight(line, " \n"))
		if line == "" {
			line = "\\&"
		}
		for len(line) > manWidth { // a line of output may take several lines of input
			i := strings.LastIndex(line[:manWidth], " ")
			if strings.Trim(line[:max(i, 0)], " \\&") == "" { // one long word
				break
			}
			fmt.Fprintf(w, "%s\\c\n", line[:i])
			line = "\\&" + line[i:]
		}
		w.WriteString(line + "\n")
	}
	w.WriteString(".fi\n")
}

const manWidth = 76

// manText writes a paragraph, in lines that are short. A sentence begins a line.
func manText(w *bytes.Buffer, text string) {
	line := ""
	flush := func() {
		if line != "" {
			w.WriteString(line + "\n")
		}
		line = ""
	}
	for word := range strings.FieldsSeq(text) {
		ends := strings.HasSuffix(word, ".")
		word = roff(word)
		if line != "" && len(line)+1+len(word) > manWidth {
			flush()
		}
		if line != "" {
			line += " "
		} else if strings.HasPrefix(word, ".") || strings.HasPrefix(word, "'") {
			line = "\\&"
		}
		line += word
		if ends {
			flush()
		}
	}
	flush()
}

// roff escapes what means something to roff.
func roff(s string) string {
	s = strings.NewReplacer("\\", "\\e", "-", "\\-", "^", "\\(ha", "~", "\\(ti", "`", "\\(ga", "\t", "    ").Replace(s)
	if strings.HasPrefix(s, ".") || strings.HasPrefix(s, "'") {
		s = "\\&" + s
	}
	return s
}
