package probes

import (
	"net/http"

	"jobpolicy.dev/services/internal/loopback"
)

// local serves only clients on the loopback interface, and no pages of other sites. Not everybody
// who can reach probes and metrics may read these pages. kubectl port-forward to a pod comes over
// the loopback interface, too.
func local(h http.Handler) http.Handler {
	h = readAtLeisure(h)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := loopback.Refusal(r); err != nil {
			http.Error(w, err.Error(), http.StatusForbidden)
			return
		}
		h.ServeHTTP(w, r)
	})
}
