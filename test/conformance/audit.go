package conformance

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"sync"
)

// auditPolicy makes the API server write down every write of a Job's status.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  verbs: [update, patch]
  resources: [{group: batch, resources: [jobs/status]}]
- level: None
`

// An audit is what the API server says about the status writes that it was
// asked for. The API server writes its log before it answers, so whoever waits
// for an effect finds the write in it.
type audit struct {
	log string

	mu      sync.Mutex
	offset  int64
	codes   map[int]int         // writes by HTTP status code
	refused map[string][]string // messages of refused writes, by namespace
}

// newAudit prepares an audit in a directory, and returns the arguments with
// which the API server keeps it.
func newAudit(dir string) (*audit, []string, error) {
	policy := filepath.Join(dir, "audit-policy.yaml")
	a := &audit{log: filepath.Join(dir, "audit.log"), codes: map[int]int{}, refused: map[string][]string{}}
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, nil, err
	}
	return a, []string{
		"--audit-policy-file=" + policy, "--audit-log-path=" + a.log, "--audit-log-mode=blocking-strict",
		// In megabytes; the log must not be rotated under its reader.
		"--audit-log-maxsize=1000000",
	}, nil
}

// An auditEvent is the part of one line that is looked at.
type auditEvent struct {
	ObjectRef struct {
		Namespace string `json:"namespace"`
	} `json:"objectRef"`
	ResponseStatus struct {
		Code    int    `json:"code"`
		Message string `json:"message"`
	} `json:"responseStatus"`
}

// read takes in what was written since the last time.
func (a *audit) read() error {
	a.mu.Lock()
	defer a.mu.Unlock()
	file, err := os.Open(a.log)
	if errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := file.Seek(a.offset, io.SeekStart); err != nil {
		return err
	}
	lines := bufio.NewReader(file)
	for {
		line, err := lines.ReadBytes('\n')
		if errors.Is(err, io.EOF) {
			// What is left is a line that is not finished yet.
			return nil
		}
		if err != nil {
			return err
		}
		a.offset += int64(len(line))
		if err := a.take(line); err != nil {
			return err
		}
	}
}

func (a *audit) take(line []byte) error {
	var event auditEvent
	if err := json.Unmarshal(line, &event); err != nil {
		return fmt.Errorf("audit log: %w", err)
	}
	code, namespace := event.ResponseStatus.Code, event.ObjectRef.Namespace
	a.codes[code]++
	if code == http.StatusUnprocessableEntity || code == http.StatusBadRequest {
		a.refused[namespace] = append(a.refused[namespace], event.ResponseStatus.Message)
	}
	return nil
}

// refusals are the messages of the status writes in a namespace that were
// refused because of what they say.
func (a *audit) refusals(namespace string) ([]string, error) {
	if err := a.read(); err != nil {
		return nil, err
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.refused[namespace], nil
}

// counts are the writes by HTTP status code.
func (a *audit) counts() map[int]int {
	a.mu.Lock()
	defer a.mu.Unlock()
	counts := map[int]int{}
	for code, n := range a.codes {
		counts[code] = n
	}
	return counts
}
