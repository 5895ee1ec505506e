package hostnode

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"os"
	"strings"
	"time"
)

// logQuery says which part of a log is wanted, as PodLogOptions does.
type logQuery struct {
	follow, timestamps bool
	// tail is the number of lines from the end; negative means all.
	tail int64
	// since leaves out lines stamped before it; zero means none.
	since time.Time
	// limit is the most bytes to answer with; 0 means no limit.
	limit int64
}

// errLogLimit ends the reading of a log when limit bytes are written.
var errLogLimit = errors.New("log limit reached")

// readLog copies the wanted part of a log file to w and flushes it whenever it has caught up. With follow it goes on
// until the run's log, which may be nil for a run of an earlier life of the node, is complete, or ctx ends.
func readLog(ctx context.Context, path string, log *runLog, q logQuery, w io.Writer, flush func()) error {
	file, err := os.Open(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if q.tail >= 0 {
		if err := seekTail(file, q.tail); err != nil {
			return err
		}
	}
	r := &logReader{in: bufio.NewReader(file), query: q, out: w}
	for {
		grown, done := logGrowth(log)
		if err := r.catchUp(); err != nil {
			return endOfLog(err)
		}
		flush()
		if done || !q.follow {
			return endOfLog(r.rest())
		}
		select {
		case <-ctx.Done():
			return nil
		case <-grown:
		}
	}
}

func endOfLog(err error) error {
	if errors.Is(err, errLogLimit) {
		return nil
	}
	return err
}

func logGrowth(log *runLog) (<-chan struct{}, bool) {
	if log == nil {
		return nil, true
	}
	return log.more()
}

// logReader turns stored lines into answered text.
type logReader struct {
	in    *bufio.Reader
	query logQuery
	out   io.Writer
	// pending is the beginning of a stored line that was not complete yet.
	pending []byte
	written int64
	// within means that the last text was no whole line: what follows continues it.
	within bool
}

// catchUp answers all complete lines there are now.
func (r *logReader) catchUp() error {
	for {
		line, err := r.in.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			r.pending = append(r.pending, line...)
			return nil
		}
		if err != nil {
			return err
		}
		if err := r.answer(append(r.pending, line...)); err != nil {
			return err
		}
		r.pending = nil
	}
}

// rest answers a line that will not be completed; only a node that died while writing leaves one.
func (r *logReader) rest() error {
	if len(r.pending) == 0 {
		return nil
	}
	return r.answer(append(r.pending, '\n'))
}

func (r *logReader) answer(line []byte) error {
	stamp, text, whole, ok := parseLogLine(line)
	if !ok {
		return nil
	}
	if !r.query.since.IsZero() && storedBefore(stamp, r.query.since) {
		return nil
	}
	if r.query.timestamps && !r.within {
		text = append([]byte(stamp+" "), text...)
	}
	r.within = !whole
	return r.write(text)
}

func (r *logReader) write(text []byte) error {
	limit := r.query.limit
	if limit > 0 && r.written+int64(len(text)) >= limit {
		text = text[:limit-r.written]
	}
	n, err := r.out.Write(text)
	r.written += int64(n)
	if err != nil {
		return err
	}
	if limit > 0 && r.written >= limit {
		return errLogLimit
	}
	return nil
}

func storedBefore(stamp string, t time.Time) bool {
	at, err := time.Parse(time.RFC3339Nano, stamp)
	return err == nil && at.Before(t)
}

// parseLogLine takes a stored line apart; whole says whether text is a line with its newline.
func parseLogLine(line []byte) (stamp string, text []byte, whole, ok bool) {
	head, rest, found := bytes.Cut(line, []byte(" "))
	if !found {
		return "", nil, false, false
	}
	if text, found = bytes.CutPrefix(rest, []byte(logFull)); found {
		return string(head), text, true, true
	}
	if text, found = bytes.CutPrefix(rest, []byte(logPartial)); found {
		return string(head), text[:len(text)-1], false, true
	}
	return "", nil, false, false
}

// seekTail moves file to the start of its n-th last stored line, or to its start if there are fewer.
func seekTail(file *os.File, n int64) error {
	end, err := file.Seek(0, io.SeekEnd)
	if err != nil || n == 0 {
		return err
	}
	block := make([]byte, 64<<10)
	for end > 0 {
		size := min(int64(len(block)), end)
		start := end - size
		if _, err := file.ReadAt(block[:size], start); err != nil {
			return err
		}
		for i := size - 1; i >= 0; i-- {
			if block[i] != '\n' {
				continue
			}
			if n--; n < 0 {
				_, err := file.Seek(start+i+1, io.SeekStart)
				return err
			}
		}
		end = start
	}
	_, err = file.Seek(0, io.SeekStart)
	return err
}

// The kubelet's bounds of a termination message that is taken from the log.
const (
	messageLines = 80
	messageBytes = 2048
)

// logTail returns the end of a finished log as a termination message; empty if it cannot be read.
func logTail(path string) string {
	var b strings.Builder
	if readLog(context.Background(), path, nil, logQuery{tail: messageLines}, &b, func() {}) != nil {
		return ""
	}
	text := b.String()
	return text[max(0, len(text)-messageBytes):]
}
