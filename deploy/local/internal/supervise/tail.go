package supervise

import (
	"io"
	"os"
	"strings"
)

// tailBytes bounds how much of a log's end is read. The stack traces of a large
// server, all of which a fatal error prints, fit.
const tailBytes = 1 << 20

// Tail returns the last lines of a file, at most n, ignoring what lies before
// offset. Where a Go program crashed, it returns the lines from the one that
// says why, and not the end of the stack trace. A file that cannot be read gives "": the caller is already reporting
// an error, and this only illustrates it.
func Tail(path string, offset int64, n int) string {
	f, err := os.Open(path)
	if err != nil {
		return ""
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return ""
	}
	cut := info.Size()-tailBytes > offset
	if cut {
		offset = info.Size() - tailBytes
	}
	text, err := io.ReadAll(io.NewSectionReader(f, offset, tailBytes))
	if err != nil {
		return ""
	}
	return lastLines(string(text), n, cut)
}

// lastLines drops the first line when cut says that it is only the end of one.
func lastLines(text string, n int, cut bool) string {
	lines := strings.Split(strings.TrimRight(text, "\n"), "\n")
	if cut && len(lines) > 1 {
		lines = lines[1:]
	}
	first := max(0, len(lines)-n)
	if crash := crashLine(lines); crash >= 0 && crash < first {
		first = crash
	}
	return strings.Join(lines[first:min(first+n, len(lines))], "\n")
}

// crashLine finds the last line with which the Go runtime begins to report a
// crash, or returns -1.
func crashLine(lines []string) int {
	for i := len(lines) - 1; i >= 0; i-- {
		for _, start := range []string{"panic: ", "fatal error: ", "SIGABRT: ", "SIGQUIT: "} {
			if strings.HasPrefix(lines[i], start) {
				return i
			}
		}
	}
	return -1
}
