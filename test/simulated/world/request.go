package world

import (
	"bytes"
	"encoding/binary"
	"hash/fnv"
	"io"
	"math/rand/v2"
	"net/http"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
)

// A request is an HTTP request on its way to the API server. What happens to it follows from
// the seed, from its content, and from how often the same request was sent before, so it
// does not depend on the order of different requests.
type request struct {
	*rand.Rand
	*http.Request
	by       string
	body     []byte
	resource string
	watch    bool
	n        uint64 // How many requests executors sent before it.
	// lasts is how many seconds a watch lasts: as long as client-go asks for, but drawn
	// from the seed.
	lasts int
}

// read parses a request.
func (n *network) read(r *http.Request, by string) (*request, error) {
	req := &request{Request: r, by: by}
	if r.Body != nil {
		var err error
		if req.body, err = io.ReadAll(r.Body); err != nil {
			return nil, err
		}
		r.Body.Close()
	}
	query := r.URL.Query()
	req.watch = query.Get("watch") == "true" || query.Get("watch") == "1"
	req.resource = resourceOf(r.URL.Path)
	n.count(req)
	return req, nil
}

// listsPods reports whether the request is for a list of all pods, also as the first events of
// a watch. A list of the pods of one Job has a selector.
func (r *request) listsPods() bool {
	query := r.URL.Query()
	return r.resource == "pods" && r.Method == http.MethodGet && query.Get("labelSelector") == "" && (!r.watch || query.Has("sendInitialEvents"))
}

// resourceOf is the resource in a path of the API, such as pods or jobs/status.
func resourceOf(path string) string {
	parts := strings.Split(strings.Trim(path, "/"), "/")
	parts = parts[min(len(parts), 2):] // api/v1
	if strings.HasPrefix(path, "/apis/") && len(parts) > 0 {
		parts = parts[1:] // apis/batch/v1
	}
	if len(parts) > 2 && parts[0] == "namespaces" {
		parts = parts[2:]
	}
	switch len(parts) {
	case 0:
		return ""
	case 1, 2:
		return parts[0]
	}
	return parts[0] + "/" + parts[2]
}

// namespaceOf is the namespace in a path of the API, if it has one.
func namespaceOf(path string) string {
	_, rest, _ := strings.Cut(path, "/namespaces/")
	name, _, _ := strings.Cut(rest, "/")
	return name
}

// keyOf is the namespace and the name of the object in a path of the API.
func keyOf(path string) types.NamespacedName {
	namespace := namespaceOf(path)
	_, rest, _ := strings.Cut(path, "/namespaces/"+namespace+"/")
	parts := strings.Split(rest, "/") // jobs/job-a/status
	return types.NamespacedName{Namespace: namespace, Name: parts[min(1, len(parts)-1)]}
}

// count starts the random source of what happens to the request.
func (n *network) count(req *request) {
	h := fnv.New64a()
	for _, s := range []string{req.by, req.Method, req.URL.Path} {
		io.WriteString(h, s)
		h.Write([]byte{0})
	}
	if req.watch {
		io.WriteString(h, "watch")
	}
	h.Write(req.body)
	key := h.Sum64()
	n.mu.Lock()
	defer n.mu.Unlock()
	n.sent[key]++
	n.requests++
	req.n = n.requests
	req.Rand = rand.New(rand.NewPCG(n.seed^key, n.sent[key]))
	if req.watch {
		req.lasts = 300 + rand.New(rand.NewPCG(n.seed^key, ^n.sent[key])).IntN(300)
	}
}

// draw draws a time within a span, to the nanosecond.
func (r *request) draw(s span) time.Duration {
	if s.most <= s.least {
		return s.least
	}
	return s.least + time.Duration(r.Int64N(int64(s.most-s.least)))
}

// deliver sends the request to the server.
func (r *request) deliver(to http.RoundTripper, longWatch bool) (*http.Response, error) {
	out := r.WithContext(r.Context()) // A copy, so that the server changes nothing of the original.
	if r.body != nil {
		out.Body = io.NopCloser(bytes.NewReader(r.body))
	}
	if r.watch {
		seconds := r.lasts
		if longWatch {
			seconds = 86400
		}
		query, address := out.URL.Query(), *out.URL
		query.Set("timeoutSeconds", itoa(seconds))
		address.RawQuery = query.Encode()
		out.URL = &address
	}
	return to.RoundTrip(out)
}

// refusal is an answer of the API server that it did not do what was asked.
func (r *request) refusal(code int, reason metav1.StatusReason, text string) *http.Response {
	body := []byte(`{"kind":"Status","apiVersion":"v1","metadata":{},"status":"Failure","message":"` + text + `","reason":"` + string(reason) + `","code":` + itoa(code) + `}`)
	resp := r.respond(code, "application/json", body)
	if code == http.StatusTooManyRequests {
		resp.Header.Set("Retry-After", itoa(1+r.IntN(5)))
	}
	return resp
}

func (r *request) respond(code int, contentType string, body []byte) *http.Response {
	resp := &http.Response{
		StatusCode: code, Status: itoa(code) + " " + http.StatusText(code), Proto: "HTTP/2.0", ProtoMajor: 2,
		Header: http.Header{"Content-Type": {contentType}, "Date": {time.Now().UTC().Format(http.TimeFormat)}},
		Body:   io.NopCloser(bytes.NewReader(body)), ContentLength: int64(len(body)), Request: r.Request,
	}
	return resp
}

// nextFrame reads one event of a watch from its stream, as bytes.
func nextFrame(r io.Reader, protobuf bool) ([]byte, error) {
	if !protobuf {
		return nextLine(r)
	}
	var size [4]byte
	if _, err := io.ReadFull(r, size[:]); err != nil {
		return nil, err
	}
	frame := slices.Grow(size[:], int(binary.BigEndian.Uint32(size[:])))
	frame = frame[:4+binary.BigEndian.Uint32(size[:])]
	_, err := io.ReadFull(r, frame[4:])
	return frame, err
}

// nextLine reads to the end of a line. It has no buffer, which might read too much.
func nextLine(r io.Reader) ([]byte, error) {
	var line []byte
	for {
		var b [1]byte
		if _, err := io.ReadFull(r, b[:]); err != nil {
			return nil, err
		}
		if line = append(line, b[0]); b[0] == '\n' {
			return line, nil
		}
	}
}
