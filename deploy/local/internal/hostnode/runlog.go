package hostnode

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync/atomic"
	"time"
)

// A log file holds the output of one run of a container in the format of the container runtime interface: a line is
//
//	2006-01-02T15:04:05.999999999Z07:00 stdout F text
//
// with P instead of F where the text is not a whole line (it is longer than maxLogText, or the output ends without a
// newline). Both streams share one pipe so that their order is kept; all text is labelled stdout.
const (
	maxLogText = 16 << 10
	logFull    = "stdout F "
	logPartial = "stdout P "
)

// runLog is the log of a run that is alive, or was in this life of the node.
type runLog struct {
	file *os.File
	// done means that no more will be written.
	done atomic.Bool
}

func createLog(path string) (*runLog, error) {
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return nil, err
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	return &runLog{file: file}, nil
}

// copyFrom stamps and stores everything that r yields, and closes the log. Output that cannot be stored (a full disk) is
// dropped: the container must not block or die of it.
func (l *runLog) copyFrom(r io.Reader) {
	defer l.close()
	in := bufio.NewReaderSize(r, maxLogText)
	out := bufio.NewWriter(l.file)
	for {
		text, err := in.ReadSlice('\n')
		writeLogLine(out, time.Now(), text)
		if err == nil && holdsLine(in) {
			continue
		}
		if out.Flush() != nil {
			out.Reset(l.file)
		}
		if err != nil && !errors.Is(err, bufio.ErrBufferFull) {
			return
		}
	}
}

// holdsLine reports whether another whole line has been read from the pipe already.
func holdsLine(in *bufio.Reader) bool {
	waiting, _ := in.Peek(in.Buffered())
	return bytes.IndexByte(waiting, '\n') >= 0
}

func writeLogLine(w *bufio.Writer, at time.Time, text []byte) {
	if len(text) == 0 {
		return
	}
	tag, end := logPartial, "\n"
	if text[len(text)-1] == '\n' {
		tag, end = logFull, ""
	}
	fmt.Fprintf(w, "%s %s%s%s", at.Format(time.RFC3339Nano), tag, text, end)
}

func (l *runLog) close() {
	l.file.Close()
	l.done.Store(true)
}
