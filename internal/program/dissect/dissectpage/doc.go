// Package dissectpage writes what package dissect finds in a capture as one page of HTML: the verdict, connections,
// violations with their clauses, Terminates in a sentence, what each connection carried over time, and the
// exchange as a ladder with a filter. The ladder is compressed in pieces, of which a browser decompresses those that it shows.
package dissectpage
