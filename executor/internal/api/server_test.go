package api

import (
	"context"
	"errors"
	"log/slog"
	"runtime/debug"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/version"
)

// A fakeAPI answers as it is told to, and counts what it is asked.
type fakeAPI struct {
	mu        sync.Mutex
	version   *version.Info // nil: no answer
	resources []string      // nil: the group version is not served
	refuses   error         // of the list of resources
	asked     int
}

func (f *fakeAPI) set(change func(*fakeAPI)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

func (f *fakeAPI) ServerVersionWithContext(context.Context) (*version.Info, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	f.asked++
	if f.version == nil {
		return nil, errors.New("connection refused")
	}
	return f.version, nil
}

func (f *fakeAPI) ServerResourcesForGroupVersionWithContext(_ context.Context, gv string) (*metav1.APIResourceList, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.refuses != nil {
		return nil, f.refuses
	}
	if f.resources == nil || gv != "scheduling.k8s.io/v1beta1" {
		return nil, apierrors.NewNotFound(schema.GroupResource{}, "")
	}
	list := &metav1.APIResourceList{}
	for _, name := range f.resources {
		list.APIResources = append(list.APIResources, metav1.APIResource{Name: name})
	}
	return list, nil
}

func (f *fakeAPI) count() int {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.asked
}

func versionOf(minor string) *version.Info {
	return &version.Info{Major: "1", Minor: minor, GitVersion: "v1." + minor + ".2"}
}

// run runs a Server in a bubble until the test ends, and lets it ask for the first time.
func run(t *testing.T, api *fakeAPI, gangs bool) (s *Server, registry *prometheus.Registry, log *strings.Builder) {
	t.Helper()
	registry, log = prometheus.NewRegistry(), &strings.Builder{}
	s, err := NewServer(ServerConfig{Gangs: gangs, TypesMinor: 37, Registerer: registry, Logger: slog.New(slog.NewTextHandler(log, nil))})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	var running sync.WaitGroup
	running.Go(func() { s.Run(ctx, api) })
	t.Cleanup(func() { cancel(); running.Wait() })
	synctest.Wait()
	return s, registry, log
}

func TestTheVersionIsTold(t *testing.T) {
	cases := map[string]struct {
		minor      string
		wantMetric string // its value; empty: none
		wantNote   string // how it begins
		wantWarned bool
	}{
		"an older server":         {minor: "34", wantMetric: "34", wantNote: "v1.34.2"},
		"that of the types":       {minor: "37", wantMetric: "37", wantNote: "v1.37.2"},
		"a newer server":          {minor: "38", wantMetric: "38", wantNote: "v1.38.2; fields of Job and CronJob specs that came after v1.37", wantWarned: true},
		"a vendor's version":      {minor: "36+", wantMetric: "36", wantNote: "v1.36+.2"},
		"one that cannot be read": {minor: "", wantNote: "v1..2"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s, registry, log := run(t, &fakeAPI{version: versionOf(tc.minor)}, false)
				want := ""
				if tc.wantMetric != "" {
					want = "# HELP jobpolicy_kubernetes_minor The minor version of Kubernetes that the API server has, for example 37.\n" +
						"# TYPE jobpolicy_kubernetes_minor gauge\njobpolicy_kubernetes_minor " + tc.wantMetric + "\n"
				}
				if err := testutil.GatherAndCompare(registry, strings.NewReader(want)); err != nil {
					t.Error(err)
				}
				if note := s.Note(); !strings.HasPrefix(note, tc.wantNote) || !tc.wantWarned && note != tc.wantNote {
					t.Errorf("Note() = %q, want %q", note, tc.wantNote)
				}
				if warned := strings.Contains(log.String(), "level=WARN"); warned != tc.wantWarned {
					t.Errorf("warned: %t, want %t\n%s", warned, tc.wantWarned, log)
				}
				if err := s.Ready(t.Context()); err != nil {
					t.Errorf("Ready() = %v, want nil: no gangs are wanted", err)
				}
			})
		})
	}
}

// It asks again when there is a reason, and logs only what has changed.
func TestItAsksAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{}
		s, _, log := run(t, api, false)
		if note := s.Note(); note != "its version is not known" {
			t.Errorf("Note() = %q before an answer", note)
		}
		api.set(func(f *fakeAPI) { f.version = versionOf("36") })
		time.Sleep(retryPeriod)
		synctest.Wait()
		if note := s.Note(); note != "v1.36.2" {
			t.Errorf("Note() = %q after the first answer", note)
		}
		before := api.count()
		time.Sleep(time.Hour)
		if n := api.count(); n != before {
			t.Errorf("asked %d times in an hour without a reason", n-before)
		}
		api.set(func(f *fakeAPI) { f.version = versionOf("37") })
		for range 100 {
			s.Ask()
		}
		time.Sleep(time.Minute)
		if n := api.count() - before; n < 1 || n > 2 {
			t.Errorf("asked %d times for reasons that came together, want once or twice", n)
		}
		if n := strings.Count(log.String(), "API server"); n != 2 || !strings.Contains(log.String(), "v1.37.2") {
			t.Errorf("want a line for each of two versions:\n%s", log)
		}
	})
}

func TestGangsThatCannotBeHad(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		api := &fakeAPI{version: versionOf("36")}
		s, _, log := run(t, api, true)
		err := s.Ready(t.Context())
		for _, part := range []string{"v1.36.2", "scheduling.k8s.io/v1beta1", "WorkloadWithJob", "--runtime-config=scheduling.k8s.io/v1beta1=true", "GenericWorkload"} {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("Ready() = %v, want it to name %s", err, part)
			}
		}
		if !s.GangsAbsent() || strings.Count(log.String(), "level=ERROR") != 1 {
			t.Errorf("GangsAbsent() = %t, want true, and one error:\n%s", s.GangsAbsent(), log)
		}
		api.set(func(f *fakeAPI) { f.resources = []string{"workloads"} }) // as in v1.35, without PodGroups
		time.Sleep(2 * retryPeriod)
		if !s.GangsAbsent() {
			t.Error("without PodGroups: GangsAbsent() = false, want true")
		}
		api.set(func(f *fakeAPI) { f.resources = []string{"workloads", "workloads/status", "podgroups"} })
		time.Sleep(2 * retryPeriod) // Nobody tells it to ask.
		if err := s.Ready(t.Context()); err != nil || s.GangsAbsent() {
			t.Errorf("Ready() = %v, GangsAbsent() = %t once they are served", err, s.GangsAbsent())
		}
	})
}

// Whoever may not ask is not kept from trying.
func TestNoAnswerAboutGangsIsNoRefusal(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		forbidden := apierrors.NewForbidden(schema.GroupResource{}, "", errors.New("no"))
		s, _, _ := run(t, &fakeAPI{version: versionOf("37"), refuses: forbidden}, true)
		if err := s.Ready(t.Context()); err != nil || s.GangsAbsent() {
			t.Errorf("Ready() = %v, GangsAbsent() = %t, want nil and false", err, s.GangsAbsent())
		}
	})
}

func TestANilServerIsReady(t *testing.T) {
	var s *Server
	if err := s.Ready(t.Context()); err != nil || s.GangsAbsent() {
		t.Errorf("Ready() = %v, GangsAbsent() = %t, want nil and false", err, s.GangsAbsent())
	}
}

func TestTypesMinor(t *testing.T) {
	module := func(path, version string, replace *debug.Module) *debug.Module {
		return &debug.Module{Path: path, Version: version, Replace: replace}
	}
	cases := map[string]struct {
		deps []*debug.Module
		want int
	}{
		"as required":    {deps: []*debug.Module{module("k8s.io/api", "v0.37.2", nil)}, want: 37},
		"replaced":       {deps: []*debug.Module{module("k8s.io/api", "v0.37.2", module("k8s.io/api", "v0.36.3", nil))}, want: 36},
		"not a version":  {deps: []*debug.Module{module("k8s.io/api", "(devel)", nil)}},
		"another module": {deps: []*debug.Module{module("k8s.io/apimachinery", "v0.37.2", nil)}},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			if got := typesMinor(&debug.BuildInfo{Deps: tc.deps}); got != tc.want {
				t.Errorf("typesMinor() = %d, want %d", got, tc.want)
			}
		})
	}
}
