package main

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/spf13/cobra"
)

// helpWidth is how many columns help texts have at most.
const helpWidth = 80

// fitHelp makes the help of a command and of those below it fit helpWidth columns: paragraphs of
// prose are filled, and the usages of flags are wrapped. Tables and examples stay as they are.
func fitHelp(root *cobra.Command) {
	root.SetHelpFunc(func(cmd *cobra.Command, _ []string) {
		text := cmd.Long
		if text == "" {
			text = cmd.Short
		}
		fmt.Fprintf(cmd.OutOrStdout(), "%s\n\n%s", fill(strings.TrimRight(text, "\n")), cmd.UsageString())
	})
	root.SetUsageTemplate(strings.NewReplacer(
		".LocalFlags.FlagUsages", ".LocalFlags.FlagUsagesWrapped 80",
		".InheritedFlags.FlagUsages", ".InheritedFlags.FlagUsagesWrapped 80",
	).Replace(root.UsageTemplate()))
}

// fill breaks the lines of each paragraph of prose anew.
func fill(text string) string {
	paragraphs := strings.Split(text, "\n\n")
	for i, p := range paragraphs {
		if !isTable(p) {
			paragraphs[i] = fillParagraph(p, "")
		}
	}
	return strings.Join(paragraphs, "\n\n")
}

// isTable reports whether the lines of a paragraph are to stay as they are.
func isTable(paragraph string) bool {
	return strings.Contains("\n"+paragraph, "\n ") || strings.HasPrefix(paragraph, "{")
}

// fillParagraph breaks the lines of a paragraph anew, each behind indent.
func fillParagraph(p, indent string) string {
	var b strings.Builder
	column := 0
	for word := range strings.FieldsSeq(p) {
		n := utf8.RuneCountInString(word)
		switch {
		case column == 0:
			b.WriteString(indent)
			column = len(indent)
		case column+1+n > helpWidth:
			b.WriteString("\n" + indent)
			column = len(indent)
		default:
			b.WriteByte(' ')
			column++
		}
		b.WriteString(word)
		column += n
	}
	return b.String()
}
