// Command gen makes the assembly of package crc32c. Run without arguments it
// writes the files; with -check it says whether they are what it would write.
package main
