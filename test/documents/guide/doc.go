// Package guide runs the commands of a Markdown page, so that a page whose
// commands do not work fails a test.
//
// A fenced block whose language is sh is a command. Each is one bash script of
// its own (with errexit, nounset and pipefail), so a reader may paste any of them
// into a new terminal. A block whose language is text that follows a command,
// with no other block and no heading between, is what the command prints. Blocks
// in other languages are for reading only.
//
// In expected output, "…" stands for any text within a line, and a line that is
// only "…" for any number of lines. Runs of blanks count as one blank, because
// tables are as wide as their contents.
package guide
