package views

import (
	"embed"
	"io/fs"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/services/internal/probes"
)

// PagePath is where the page is served.
const PagePath = "/debug/page/"

// maxWatchers is how many streams may be open at once. A page has one, and the view of a
// Job a second one.
const maxWatchers = 64

// PageJobs is the controller of Jobs, package executor, with the pods and the options of one Job.
type PageJobs interface {
	Jobs
	Job(uid types.UID, mostPods int) (executor.Observation, tracker.Census, bool)
	Options(uid types.UID) executor.Options
}

// PageConfig says what the page shows. All fields but CronJobs and Interval are required.
type PageConfig struct {
	Jobs PageJobs
	// CronJobs is nil if that controller does not run.
	CronJobs CronJobs
	// Gatherer has the metrics of both.
	Gatherer prometheus.Gatherer
	// Checks are those of /readyz.
	Checks []probes.Check
	// Interval is the time between two snapshots. Default 1 s.
	Interval time.Duration
}

//go:embed assets
var assets embed.FS

// Page returns the handler of everything below PagePath.
func Page(cfg PageConfig) http.Handler {
	if cfg.Interval == 0 {
		cfg.Interval = time.Second
	}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // cannot happen: the folder is embedded
	}
	h := newHub(cfg)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+PagePath+"events", h.serveAll)
	mux.HandleFunc("GET "+PagePath+"job", h.serveJob)
	mux.Handle("GET "+PagePath, http.StripPrefix(PagePath, http.FileServerFS(files)))
	return guarded(mux)
}

// policy allows the page to load only its own files, and does not allow a text to become
// markup or a script.
const policy = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

func guarded(h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		header := w.Header()
		header.Set("Content-Security-Policy", policy)
		header.Set("X-Content-Type-Options", "nosniff")
		header.Set("Referrer-Policy", "no-referrer")
		header.Set("Cross-Origin-Opener-Policy", "same-origin")
		header.Set("Cross-Origin-Resource-Policy", "same-origin")
		header.Set("Cache-Control", "no-store")
		h.ServeHTTP(w, r)
	})
}
