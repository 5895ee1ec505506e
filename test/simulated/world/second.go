package world

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"sync"

	batchv1 "k8s.io/api/batch/v1"
	"k8s.io/apimachinery/pkg/runtime/serializer/protobuf"
	"k8s.io/client-go/kubernetes/scheme"

	"jobpolicy.dev/test/simulated/parity/virtual"
)

// secondName is the field manager of the built-in Job controller that runs although the
// executors replace it. executorManager is the field manager of all executors.
const secondName, executorManager = "kube-controller-manager", "executor"

func isSecond(by string) bool { return by == secondName }

// fieldManager is the name that the API server records for a client.
func fieldManager(by string) string {
	if isExecutor(by) {
		return executorManager
	}
	return by
}

// A second is the built-in Job controller, which somebody left on. Its network is as slow as
// that of executors, but nothing fails there: worlds do not search for its defects.
type second struct {
	w *world

	mu    sync.Mutex
	stop  func() // nil: it is off.
	ended sync.WaitGroup
}

// switchOn starts the built-in Job controller.
func (s *second) switchOn(*step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop != nil {
		return fmt.Errorf("it is on")
	}
	w := s.w
	quiet := *w.plan
	quiet.faults = nil
	quiet.network.noWatchList = true // client-go passes what a watch lists in the order of a map.
	n := newNetwork(&quiet, w.begun, w.note)
	n.runAway = func() { w.broken("run", "there is no end to what the built-in controller sends") }
	l := n.link(secondName, w.server.Transport(secondName))
	ctx, end := context.WithCancel(background)
	s.stop = func() {
		l.cut()
		end()
	}
	s.ended.Go(func() {
		if err := virtual.BuiltinJobs(ctx, virtual.Config(ordered{l})); err != nil {
			w.broken("run", "the built-in controller ended: "+err.Error())
		}
	})
	return nil
}

// switchOff ends the built-in Job controller at once.
func (s *second) switchOff(*step) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.stop == nil {
		return fmt.Errorf("it is off")
	}
	s.stop()
	s.stop = nil
	return nil
}

// ordered sorts the UIDs in each status of a Job that the built-in controller writes. Their order is that of a map,
// and how long a request takes follows from its content: a seed would have two histories.
type ordered struct{ to http.RoundTripper }

// RoundTrip implements http.RoundTripper.
func (o ordered) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Method != http.MethodPut || resourceOf(r.URL.Path) != "jobs/status" {
		return o.to.RoundTrip(r)
	}
	body, err := io.ReadAll(r.Body)
	r.Body.Close()
	if err != nil {
		return nil, err
	}
	if body, err = sortUncounted(body); err != nil {
		return nil, err
	}
	out := r.WithContext(r.Context())
	out.Body, out.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return o.to.RoundTrip(out)
}

// sortUncounted sorts the UIDs of pods in a Job that is encoded as protobuf.
func sortUncounted(body []byte) ([]byte, error) {
	coder := protobuf.NewSerializer(scheme.Scheme, scheme.Scheme)
	job := &batchv1.Job{}
	if _, _, err := coder.Decode(body, nil, job); err != nil {
		return nil, fmt.Errorf("a Job in protobuf was expected: %w", err)
	}
	uncounted := job.Status.UncountedTerminatedPods
	if uncounted == nil {
		return body, nil
	}
	slices.Sort(uncounted.Succeeded)
	slices.Sort(uncounted.Failed)
	var sorted bytes.Buffer
	if err := coder.Encode(job, &sorted); err != nil {
		return nil, fmt.Errorf("encoding a Job: %w", err)
	}
	return sorted.Bytes(), nil
}
