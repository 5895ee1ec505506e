package probes

import (
	"bytes"
	"maps"
	"net/http"
	"time"
)

// restTimes: after an answer that took t to make, the next one waits restTimes x t. So answers
// keep at most a tenth of one processor busy, however many clients ask.
const restTimes = 9

// maxRest is how long it waits at most: on a machine that is too busy, answers take long, and
// whoever monitors it must get them all the same.
const maxRest = time.Second

// oneAtATime makes answers one after the other, with a rest between them, so that many
// clients at once leave the processors to others. It writes an answer only when it is
// complete, so that a slow reader does not delay the others.
func oneAtATime(h http.Handler) http.Handler {
	turn := make(chan struct{}, 1)
	answer := func(r *http.Request) *buffered {
		b := &buffered{header: http.Header{}, code: http.StatusOK}
		select {
		case turn <- struct{}{}:
		case <-r.Context().Done(): // The client is gone.
			return b
		}
		began := time.Now()
		defer func() { time.AfterFunc(min(restTimes*time.Since(began), maxRest), func() { <-turn }) }()
		h.ServeHTTP(b, r)
		return b
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		b := answer(r)
		maps.Copy(w.Header(), b.header)
		w.WriteHeader(b.code)
		_, _ = w.Write(b.body.Bytes()) // The client may be gone.
	})
}

// A buffered answer is kept in memory.
type buffered struct {
	header http.Header
	code   int
	body   bytes.Buffer
}

// Header implements http.ResponseWriter.
func (b *buffered) Header() http.Header { return b.header }

// WriteHeader implements http.ResponseWriter.
func (b *buffered) WriteHeader(code int) { b.code = code }

// Write implements http.ResponseWriter.
func (b *buffered) Write(p []byte) (int, error) { return b.body.Write(p) }
