package page

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

// serveAll streams what every page shows.
func (h *hub) serveAll(w http.ResponseWriter, r *http.Request) {
	if err := h.join(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer h.leave()
	out := newStream(w)
	for last := uint64(0); ; {
		m, n, next := h.since(last)
		if err := out.send(encoded(m)); err != nil {
			return
		}
		last = n
		select {
		case <-r.Context().Done():
			return
		case <-next:
		}
	}
}

// serveJob streams the Job of the UID in the query.
func (h *hub) serveJob(w http.ResponseWriter, r *http.Request) {
	uid := types.UID(r.URL.Query().Get("uid"))
	if uid == "" {
		http.Error(w, "uid: expected the UID of a Job", http.StatusBadRequest)
		return
	}
	if err := h.join(); err != nil {
		http.Error(w, err.Error(), http.StatusServiceUnavailable)
		return
	}
	defer h.leave()
	out := newStream(w)
	var sent []byte
	for {
		h.mu.Lock()
		now, next := h.now, h.next
		h.mu.Unlock()
		// A Job at rest changes only where a text says how long ago something was.
		if text := encoded(h.life(uid, now)); text != nil && !bytes.Equal(text, sent) {
			if err := out.send(text); err != nil {
				return
			}
			sent = text
		}
		select {
		case <-r.Context().Done():
			return
		case <-next:
		}
	}
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
