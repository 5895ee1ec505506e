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
	const own = "localhost:9080"
	cases := map[string]struct {
		host string
		// Headers, if not empty: Origin, and Sec-Fetch-Site, -Mode and -Dest.
		origin, site, mode, dest string
		want                     int
	}{
		"by name":                         {host: own, want: http.StatusOK},
		"by address":                      {host: "127.0.0.1:9080", want: http.StatusOK},
		"by address of version 6":         {host: "[::1]:9080", want: http.StatusOK},
		"without port":                    {host: "127.0.0.1", want: http.StatusOK},
		"of version 6 without port":       {host: "[::1]", want: http.StatusOK},
		"a name that points here":         {host: "evil.example:9080", want: http.StatusForbidden},
		"a name that looks like it":       {host: "localhost.evil.example:9080", want: http.StatusForbidden},
		"an address that looks like it":   {host: "127.0.0.1.evil.example", want: http.StatusForbidden},
		"another address":                 {host: "10.0.0.7:9080", want: http.StatusForbidden},
		"no host":                         {host: "", want: http.StatusForbidden},
		"its own page":                    {host: own, origin: "http://localhost:9080", site: "same-origin", want: http.StatusOK},
		"a page of another site":          {host: own, origin: "https://evil.example", want: http.StatusForbidden},
		"a page of another port":          {host: own, origin: "http://localhost:3000", want: http.StatusForbidden},
		"a page without origin":           {host: own, origin: "null", want: http.StatusForbidden},
		"an image on another site":        {host: own, site: "cross-site", mode: "no-cors", dest: "image", want: http.StatusForbidden},
		"a frame on another site":         {host: own, site: "cross-site", mode: "navigate", dest: "iframe", want: http.StatusForbidden},
		"a link on another site":          {host: own, site: "cross-site", mode: "navigate", dest: "document", want: http.StatusOK},
		"the address line of the browser": {host: own, site: "none", mode: "navigate", dest: "document", want: http.StatusOK},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			request := httptest.NewRequest(http.MethodGet, "/debug/x", nil)
			request.RemoteAddr, request.Host = "127.0.0.1:1234", tc.host
			for key, value := range map[string]string{"Origin": tc.origin, "Sec-Fetch-Site": tc.site, "Sec-Fetch-Mode": tc.mode, "Sec-Fetch-Dest": tc.dest} {
				if value != "" {
					request.Header.Set(key, value)
				}
			}
			answer := httptest.NewRecorder()
			server.Handler().ServeHTTP(answer, request)
			if answer.Code != tc.want {
				t.Errorf("%d, want %d: %s", answer.Code, tc.want, answer.Body)
			}
		})
	}
}
