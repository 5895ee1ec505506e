package demo

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/must"
)

// An apiServer answers each request in another way.
type apiServer struct{ asked int }

// RoundTrip implements http.RoundTripper.
func (s *apiServer) RoundTrip(r *http.Request) (*http.Response, error) {
	s.asked++
	body := fmt.Sprintf(`{"kind":"Job","metadata":{"name":"%d","managedFields":[]}}`, s.asked)
	if strings.HasSuffix(r.URL.Path, "/jobs") {
		body = `{"items":[` + body + `],"kind":"JobList"}`
	}
	return &http.Response{StatusCode: 200 + s.asked, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// All commands see one moment of a list. An object is read anew each time, and keeps its
// managed fields: a probe looks for a change of them.
func TestTheProxyReadsEachListOnce(t *testing.T) {
	p := &recordingProxy{api: &apiServer{}, apiURL: "https://api"}
	ask := func(path, as string) int {
		r := httptest.NewRequest(http.MethodGet, path, nil)
		if as != "" {
			r.Header.Set("Impersonate-User", as)
		}
		w := httptest.NewRecorder()
		p.ServeHTTP(w, r)
		return w.Code
	}
	codes := []int{ask("/jobs?limit=500", ""), ask("/jobs?limit=500", ""), ask("/jobs?limit=500", "jane"), ask("/jobs/a", ""), ask("/jobs/a", "")}
	must.Equal(t, "answers", []int{201, 201, 202, 203, 204}, codes)
	var got []string
	for _, a := range p.recording.Answers {
		got = append(got, fmt.Sprintf("%s: %d %s", a.Request, a.Code, a.Body))
	}
	want := []string{
		`GET /jobs?limit=500: 201 {"items":[{"kind":"Job","metadata":{"name":"1"}}],"kind":"JobList"}`,
		`GET /jobs?limit=500 as jane: 202 {"items":[{"kind":"Job","metadata":{"name":"2"}}],"kind":"JobList"}`,
		`GET /jobs/a: 203 {"kind":"Job","metadata":{"name":"3","managedFields":[]}}`,
		`GET /jobs/a: 204 {"kind":"Job","metadata":{"name":"4","managedFields":[]}}`,
	}
	must.Equal(t, "recorded", want, got)
}
