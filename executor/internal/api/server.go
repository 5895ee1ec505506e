package api

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	schedulingv1beta1 "k8s.io/api/scheduling/v1beta1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/version"

	"jobpolicy.dev/executor/internal/telemetry"
)

const (
	// retryPeriod is how long after an ask without an answer, or while gangs cannot be had, the
	// API server is asked again.
	retryPeriod = 10 * time.Second
	// settlePeriod is the shortest time between two asks: several connections that are made
	// at the same time lead to one.
	settlePeriod = time.Second
	askTimeout   = 10 * time.Second
)

// Discovery is the part of client-go's discovery client that a Server needs.
type Discovery interface {
	ServerVersionWithContext(ctx context.Context) (*version.Info, error)
	ServerResourcesForGroupVersionWithContext(ctx context.Context, groupVersion string) (*metav1.APIResourceList, error)
}

// ServerConfig is what a Server is made of. Logger is required.
type ServerConfig struct {
	// Gangs: the executor is to schedule pods in gangs, which needs Workloads and PodGroups
	// of scheduling.k8s.io/v1beta1.
	Gangs bool
	// TypesMinor is the minor version of Kubernetes whose types the program was compiled with;
	// see TypesMinor. 0: not known.
	TypesMinor int
	Registerer prometheus.Registerer
	Logger     *slog.Logger
}

// Server is what is known of the API server. A nil *Server knows nothing, and is ready.
type Server struct {
	cfg   ServerConfig
	minor *prometheus.GaugeVec
	again chan struct{}

	mu    sync.Mutex
	known answers
}

// answers are what the API server has said last.
type answers struct {
	version string // as it names itself, for example "v1.37.2"; empty: not known yet
	minor   int    // 0: not known
	gangs   gangAPI
}

// gangAPI says whether the API of gangs is served.
type gangAPI int

const (
	gangsUnknown gangAPI = iota
	gangsServed
	gangsAbsent
)

// NewServer registers the metric jobpolicy_kubernetes_minor, which has no value before the first
// answer.
func NewServer(cfg ServerConfig) (*Server, error) {
	r := &telemetry.Registrar{To: cfg.Registerer}
	s := &Server{
		cfg: cfg, again: make(chan struct{}, 1),
		minor: r.Gauge("jobpolicy", "kubernetes_minor", "The minor version of Kubernetes that the API server has, for example 37."),
	}
	return s, r.Err
}

// Run asks the API server until ctx ends.
func (s *Server) Run(ctx context.Context, api Discovery) {
	for ctx.Err() == nil {
		var retry <-chan time.Time // nil: there is nothing to wait for
		if !s.ask(ctx, api) {
			retry = time.After(retryPeriod)
		}
		settled := time.After(settlePeriod)
		select {
		case <-ctx.Done():
		case <-retry:
		case <-s.again:
		}
		select {
		case <-ctx.Done():
		case <-settled:
		}
	}
}

// Ask makes Run ask again soon. Call it when another process may have acted meanwhile, as at the
// beginning of a leader's term.
func (s *Server) Ask() {
	select {
	case s.again <- struct{}{}:
	default: // It will ask soon anyway.
	}
}

// ask asks the API server, and reports whether nothing has to be asked again.
func (s *Server) ask(ctx context.Context, api Discovery) bool {
	ctx, cancel := context.WithTimeout(ctx, askTimeout)
	defer cancel()
	info, err := api.ServerVersionWithContext(ctx)
	if err != nil {
		s.cfg.Logger.DebugContext(ctx, "the API server's version is not known", slog.Any("error", err))
		return false
	}
	found := answers{version: info.GitVersion, minor: minorOf(info)}
	if s.cfg.Gangs {
		found.gangs = s.askForGangs(ctx, api)
	}
	s.learn(found)
	return !s.cfg.Gangs || found.gangs == gangsServed
}

// askForGangs: an answer other than the list of resources or "not found" says nothing.
func (s *Server) askForGangs(ctx context.Context, api Discovery) gangAPI {
	list, err := api.ServerResourcesForGroupVersionWithContext(ctx, schedulingv1beta1.SchemeGroupVersion.String())
	switch {
	case apierrors.IsNotFound(err):
		return gangsAbsent
	case err != nil:
		s.cfg.Logger.WarnContext(ctx, "it is not known whether the API server serves gangs", slog.Any("error", err))
		return gangsUnknown
	case has(list, "workloads") && has(list, "podgroups"):
		return gangsServed
	}
	return gangsAbsent
}

func has(list *metav1.APIResourceList, resource string) bool {
	return slices.ContainsFunc(list.APIResources, func(r metav1.APIResource) bool { return r.Name == resource })
}

// learn takes over the answers, and logs what has changed.
func (s *Server) learn(found answers) {
	s.mu.Lock()
	before := s.known
	s.known = found
	s.mu.Unlock()
	if found.minor > 0 {
		s.minor.WithLabelValues().Set(float64(found.minor))
	}
	if found == before {
		return
	}
	s.cfg.Logger.Info("API server", slog.String("version", found.version), slog.Int("typesMinor", s.cfg.TypesMinor))
	if s.newer(found) {
		s.cfg.Logger.Warn("the API server is newer than this executor", slog.String("risk", s.risk(found)))
	}
	if found.gangs == gangsAbsent {
		s.cfg.Logger.Error("gangs cannot be scheduled", slog.Any("error", missing(found)))
	}
}

func (s *Server) answers() answers {
	if s == nil {
		return answers{}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.known
}

func (s *Server) newer(a answers) bool {
	return s.cfg.TypesMinor > 0 && a.minor > s.cfg.TypesMinor
}

// risk names what an API server has that is newer than the types. Templates are not among it:
// the executor passes them on as it read them.
func (s *Server) risk(a answers) string {
	return fmt.Sprintf("fields of Job and CronJob specs that came after v1.%d have no effect, except inside of their pod and Job templates, which are passed on whole; "+
		"use an executor that was built for v1.%d", s.cfg.TypesMinor, a.minor)
}

// GangsAbsent reports whether the API server has said that it does not serve the API of gangs. So it is
// false before the first answer.
func (s *Server) GangsAbsent() bool { return s.answers().gangs == gangsAbsent }

// Ready returns an error that says what to do if gangs are wanted and the API server does not serve
// them. Before the first answer it is nil: what needs the API server waits for it anyway.
func (s *Server) Ready(context.Context) error {
	if a := s.answers(); a.gangs == gangsAbsent {
		return missing(a)
	}
	return nil
}

func missing(a answers) error {
	return fmt.Errorf("the API server (%s) does not serve the Workloads and PodGroups of %s, which the feature gate WorkloadWithJob needs: "+
		"start the API server (v1.37 or newer) with --feature-gates=GenericWorkload=true,WorkloadWithJob=true --runtime-config=%s=true, or this executor without WorkloadWithJob",
		a.version, schedulingv1beta1.SchemeGroupVersion, schedulingv1beta1.SchemeGroupVersion)
}

// Note is the API server's version in words, with a warning if it is newer than the types.
func (s *Server) Note() string {
	switch a := s.answers(); {
	case a.version == "":
		return "its version is not known"
	case s.newer(a):
		return a.version + "; " + s.risk(a)
	default:
		return a.version
	}
}
