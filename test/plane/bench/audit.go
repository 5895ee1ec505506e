package bench

import (
	"bufio"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"os"
	"time"
)

// An auditLog counts the API calls of each user from the API server's audit log.
type auditLog struct {
	path   string
	offset int64
	calls  map[string]calls
}

// calls are numbers of API calls by verb and resource: "patch pods", "update
// jobs/status".
type calls map[string]int

// An auditEvent has the fields that are read from a line of the log.
type auditEvent struct {
	Stage, Verb string
	User        struct{ Username string }
	ObjectRef   struct{ Resource, Subresource string }
}

func newAuditLog(path string) *auditLog { return &auditLog{path: path, calls: map[string]calls{}} }

// read returns all calls of a user so far. The API server writes a line before
// it ends its answer, so no call is missing whose answer has arrived.
func (a *auditLog) read(user string) (calls, error) {
	file, err := os.Open(a.path)
	if err != nil {
		return nil, err
	}
	defer file.Close()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		return nil, err
	}
	lines := bufio.NewReaderSize(file, 1<<20)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			return maps.Clone(a.calls[user]), nil // The text after the last line break is still being written.
		}
		if err != nil {
			return nil, err
		}
		a.offset += int64(len(line))
		var event auditEvent
		if err := json.Unmarshal(line, &event); err != nil {
			return nil, err
		}
		a.count(&event)
	}
}

// count counts each call once: a watch when it begins, as it may not end.
func (a *auditLog) count(e *auditEvent) {
	counted := "ResponseComplete"
	if e.Verb == "watch" {
		counted = "ResponseStarted"
	}
	if e.Stage != counted {
		return
	}
	if a.calls[e.User.Username] == nil {
		a.calls[e.User.Username] = calls{}
	}
	what := e.ObjectRef.Resource
	if e.ObjectRef.Subresource != "" {
		what += "/" + e.ObjectRef.Subresource
	}
	a.calls[e.User.Username][e.Verb+" "+what]++
}

// quiet reports whether nothing was written for that long.
func (a *auditLog) quiet(d time.Duration) (bool, error) {
	info, err := os.Stat(a.path)
	if err != nil {
		return false, err
	}
	return time.Since(info.ModTime()) > d, nil
}

// minus are the calls that were added since earlier.
func (c calls) minus(earlier calls) calls {
	more := calls{}
	for what, n := range c {
		if n > earlier[what] {
			more[what] = n - earlier[what]
		}
	}
	return more
}

// sum adds up the calls of some kinds.
func (c calls) sum(kinds ...string) int {
	n := 0
	for _, kind := range kinds {
		n += c[kind]
	}
	return n
}

func (c calls) total() int {
	n := 0
	for _, k := range c {
		n += k
	}
	return n
}
