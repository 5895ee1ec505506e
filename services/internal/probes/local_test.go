package probes_test

import (
	"log/slog"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/prometheus/client_golang/prometheus"

	"jobpolicy.dev/services/internal/probes"
)

// What a browser sends for pages of other sites, it sends from this machine.
func TestDebugPagesAreNotForOtherSites(t *testing.T) {
	page := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusOK) })
	server := probes.New(probes.Config{Gatherer: prometheus.NewRegistry(), Logger: slog.New(slog.DiscardHandler), Debug: map[string]http.Handler{"GET /debug/x": page}})
	cases := map[string]struct {
		host   string
		header map[string]string
		want   int
	}{
		"by name":                         {"localhost:9080", nil, http.StatusOK},
		"by address":                      {"127.0.0.1:9080", nil, http.StatusOK},
		"by address of version 6":         {"[::1]:9080", nil, http.StatusOK},
		"without port":                    {"127.0.0.1", nil, http.StatusOK},
		"of version 6 without port":       {"[::1]", nil, http.StatusOK},
		"a name that points here":         {"evil.example:9080", nil, http.StatusForbidden},
		"a name that looks like it":       {"localhost.evil.example:9080", nil, http.StatusForbidden},
		"an address that looks like it":   {"127.0.0.1.evil.example", nil, http.StatusForbidden},
		"another address":                 {"10.0.0.7:9080", nil, http.StatusForbidden},
		"no host":                         {"", nil, http.StatusForbidden},
		"its own page":                    {"localhost:9080", map[string]string{"Origin": "http://localhost:9080", "Sec-Fetch-Site": "same-origin"}, http.StatusOK},
		"a page of another site":          {"localhost:9080", map[string]string{"Origin": "https://evil.example"}, http.StatusForbidden},
		"a page of another port":          {"localhost:9080", map[string]string{"Origin": "http://localhost:3000"}, http.StatusForbidden},
		"a page without origin":           {"localhost:9080", map[string]string{"Origin": "null"}, http.StatusForbidden},
		"an image on another site":        {"localhost:9080", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "no-cors", "Sec-Fetch-Dest": "image"}, http.StatusForbidden},
		"a frame on another site":         {"localhost:9080", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "iframe"}, http.StatusForbidden},
		"a link on another site":          {"localhost:9080", map[string]string{"Sec-Fetch-Site": "cross-site", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, http.StatusOK},
		"the address line of the browser": {"localhost:9080", map[string]string{"Sec-Fetch-Site": "none", "Sec-Fetch-Mode": "navigate", "Sec-Fetch-Dest": "document"}, http.StatusOK},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodGet, "/debug/x", nil)
			request.RemoteAddr, request.Host = "127.0.0.1:1234", tc.host
			for key, value := range tc.header {
				request.Header.Set(key, value)
			}
			answer := httptest.NewRecorder()
			server.Handler().ServeHTTP(answer, request)
			if answer.Code != tc.want {
				t.Errorf("%d, want %d: %s", answer.Code, tc.want, answer.Body)
			}
		})
	}
}
