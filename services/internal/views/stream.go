package views

import (
	"bytes"
	"fmt"
	"net/http"
	"time"

	"k8s.io/apimachinery/pkg/types"
)

// sendTimeout is how long a reader may take for one event. A slower one is disconnected;
// a browser then connects again by itself.
const sendTimeout = 10 * time.Second

// serve streams what event returns, if that is not nil, until the reader is gone. It asks
// again when the channel is closed.
func (h *hub) serve(w http.ResponseWriter, r *http.Request, event func() ([]byte, <-chan struct{})) {
	if err := h.join(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer h.leave()
	for out := newStream(w); ; {
		text, next := event()
		if text != nil && out.send(text) != nil {
			return
		}
		select {
		case <-r.Context().Done():
			return
		case <-next:
		}
	}
}

// serveAll streams what every page shows.
func (h *hub) serveAll(w http.ResponseWriter, r *http.Request) {
	last := uint64(0)
	h.serve(w, r, func() ([]byte, <-chan struct{}) {
		m, n, next := h.since(last)
		last = n
		return encoded(m), next
	})
}

// serveJob streams the Job of the UID in the query.
func (h *hub) serveJob(w http.ResponseWriter, r *http.Request) {
	uid := types.UID(r.URL.Query().Get("uid"))
	if uid == "" {
		http.Error(w, "uid: expected the UID of a Job", http.StatusBadRequest)
		return
	}
	var sent []byte
	h.serve(w, r, func() ([]byte, <-chan struct{}) {
		h.mu.Lock()
		now, next := h.now, h.next
		h.mu.Unlock()
		text := encoded(h.life(uid, now))
		// A Job at rest changes only where a text says how long ago something was.
		if text == nil || bytes.Equal(text, sent) {
			return nil, next
		}
		sent = text
		return text, next
	})
}

// A stream sends server-sent events.
type stream struct {
	w       http.ResponseWriter
	control *http.ResponseController
}

func newStream(w http.ResponseWriter) *stream {
	w.Header().Set("Content-Type", "text/event-stream")
	return &stream{w, http.NewResponseController(w)}
}

// send sends one event. JSON has no line breaks, so it is one line.
func (s *stream) send(text []byte) error {
	if err := s.control.SetWriteDeadline(time.Now().Add(sendTimeout)); err != nil {
		return err
	}
	if _, err := fmt.Fprintf(s.w, "data: %s\n\n", text); err != nil {
		return err
	}
	return s.control.Flush()
}
