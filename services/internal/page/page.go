package page

import (
	"embed"
	"io/fs"
	"net/http"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/executor/cronjob"
	"jobpolicy.dev/executor/tracker"
	"jobpolicy.dev/services/internal/probes"
)

// Path is where the page is served.
const Path = "/debug/page/"

// maxWatchers is how many streams may be open at once. A page has one, and the view of a
// Job a second one.
const maxWatchers = 64

// Jobs is the controller of Jobs, package executor.
type Jobs interface {
	EachJob(f func(executor.Observation))
	Job(uid types.UID, mostPods int) (executor.Observation, tracker.Census, bool)
}

// CronJobs is the controller of CronJobs, package executor/cronjob.
type CronJobs interface {
	EachCronJob(f func(cronjob.Observation))
}

// Config says what the page shows. All fields but CronJobs and Interval are required.
type Config struct {
	Jobs Jobs
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

// New returns the handler of everything below Path.
func New(cfg Config) http.Handler {
	if cfg.Interval == 0 {
		cfg.Interval = time.Second
	}
	files, err := fs.Sub(assets, "assets")
	if err != nil {
		panic(err) // cannot happen: the folder is embedded
	}
	h := newHub(cfg)
	mux := http.NewServeMux()
	mux.HandleFunc("GET "+Path+"events", h.serveAll)
	mux.HandleFunc("GET "+Path+"job", h.serveJob)
	mux.Handle("GET "+Path, http.StripPrefix(Path, http.FileServerFS(files)))
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
