package apiserver

import (
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"sync"
)

// A stream is the connection of an open watch: the client reads what the handler writes. It
// is the handler's http.ResponseWriter and http.Flusher, and the body of the client's response.
type stream struct {
	*response
	server *Server
	by     string
	cancel context.CancelFunc

	reader *io.PipeReader
	writer *io.PipeWriter
	// begun is closed when the handler has sent its header.
	begun   chan struct{}
	flushed sync.Once
}

// stream serves a watch in a goroutine of its own, which ends with the client's
// context, when the client closes the body, or when the watch is over.
func (s *Server) stream(req *http.Request, ctx context.Context, by string) (*http.Response, error) {
	ctx, cancel := context.WithCancel(ctx)
	w := &stream{response: &response{header: http.Header{}}, server: s, by: by, cancel: cancel, begun: make(chan struct{})}
	w.reader, w.writer = io.Pipe()
	s.mu.Lock()
	s.streams = append(s.streams, w)
	s.mu.Unlock()
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer w.end(req.Context())
		handle(w, ofServer(req, ctx))
	}()
	select {
	case <-w.begun:
		return newResponse(req, w.code, w.header, w, -1), nil
	case <-ended:
	}
	select {
	case <-w.begun: // The watch began, and ended at once.
		return newResponse(req, w.code, w.header, w, -1), nil
	default:
		return w.result(req), nil
	}
}

// end tells the client that nothing more comes.
func (w *stream) end(client context.Context) {
	w.cancel()
	w.server.mu.Lock()
	w.server.streams = slices.DeleteFunc(w.server.streams, func(other *stream) bool { return other == w })
	w.server.mu.Unlock()
	_ = w.writer.CloseWithError(client.Err()) // nil: the end of the body.
}

// Flush implements http.Flusher.
func (w *stream) Flush() { w.flushed.Do(func() { close(w.begun) }) }

// Write implements http.ResponseWriter. Data that is written before the header is flushed
// is the text of an error.
func (w *stream) Write(data []byte) (int, error) {
	select {
	case <-w.begun:
		if n, err := w.writer.Write(data); !errors.Is(err, io.ErrClosedPipe) {
			return n, err
		}
		return len(data), nil // Nobody reads any more; the handler's context tells it so.
	default:
		return w.response.Write(data)
	}
}

// Read implements the response's body.
func (w *stream) Read(data []byte) (int, error) { return w.reader.Read(data) }

// Close implements the response's body.
func (w *stream) Close() error {
	w.cancel()
	return w.reader.Close()
}

// BreakWatches ends all watches of the client by, as a lost connection does.
func (s *Server) BreakWatches(by string) {
	for _, w := range s.streamsOf(by) {
		_ = w.writer.CloseWithError(io.ErrUnexpectedEOF)
		w.cancel()
	}
}

func (s *Server) streamsOf(by string) []*stream {
	s.mu.Lock()
	defer s.mu.Unlock()
	var found []*stream
	for _, w := range s.streams {
		if w.by == by {
			found = append(found, w)
		}
	}
	return found
}
