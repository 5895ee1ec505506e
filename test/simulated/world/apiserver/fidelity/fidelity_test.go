package fidelity

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"golang.org/x/sync/errgroup"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/simulated/world/apiserver"
)

var (
	seedsFlag = flag.Int("apiserver.seeds", 20, "scripts to play")
	firstFlag = flag.Int("apiserver.first", 1, "the first one's seed")
	storyFlag = flag.Bool("apiserver.story", false, "tell what each script asked")
)

// together is how many scripts are played at once: mostly they wait for the
// controllers of the real cluster.
const together = 4

func TestBothServersAnswerTheSame(t *testing.T) {
	plane := startAPIServer(t)
	client, err := rest.HTTPClientFor(plane)
	must.Succeed(t, err)
	started, answers := time.Now(), map[int]int{}
	found := make([]error, *seedsFlag)
	scripts := make([]*script, *seedsFlag)
	var players errgroup.Group
	players.SetLimit(together)
	for i := range scripts {
		scripts[i] = newScript(uint64(*firstFlag+i), client, plane.Host)
		players.Go(func() error {
			found[i] = scripts[i].whole(t.Context())
			return nil
		})
	}
	_ = players.Wait()
	for i, s := range scripts {
		s.count(answers)
		if *storyFlag {
			t.Logf("seed %d:\n%s", *firstFlag+i, strings.Join(s.story, "\n"))
		}
		if found[i] != nil {
			t.Errorf("-apiserver.first=%d: %v", *firstFlag+i, found[i])
		}
	}
	t.Logf("%s; answers by status code: %v", time.Since(started).Round(time.Second), answers)
}

func newScript(seed uint64, client *http.Client, host string) *script {
	server := apiserver.New(apiserver.Options{})
	s := &script{
		drawer: newDrawer(seed), server: server,
		memory: newSide("memory", &http.Client{Transport: server.Transport("script")}, "http://memory"),
		real:   newSide("real", client, strings.TrimSuffix(host, "/")),
	}
	s.namespace = fmt.Sprintf("script-%d", seed)
	return s
}

// whole plays a script in a namespace of its own.
func (s *script) whole(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if err := s.createNamespace(ctx); err != nil {
		return err
	}
	if s.once(4) {
		if err := s.createQuota(ctx); err != nil {
			return err
		}
	}
	if err := s.play(ctx); err != nil {
		return err
	}
	if s.once(3) {
		return s.deleteNamespace(ctx)
	}
	return nil
}

// count counts the status codes, which are at the end of each line of the story.
func (s *script) count(answers map[int]int) {
	for _, line := range s.story {
		var code int
		if at := strings.LastIndex(line, "→ "); at >= 0 {
			if _, err := fmt.Sscan(line[at+len("→ "):], &code); err == nil {
				answers[code]++
			}
		}
	}
}

// startAPIServer starts a control plane with only those controllers whose work the
// server in memory does itself.
func startAPIServer(t *testing.T) *rest.Config {
	t.Helper()
	plane := controlplane.Start(t, cluster.Options{
		WithoutEngine: true, WithoutExecutor: true, WithoutNode: true, WithoutScheduler: true,
		ControllerManagerControllers: "serviceaccount-controller,garbage-collector-controller,namespace-controller,resourcequota-controller",
		ExtraArgs: map[string][]string{
			// It would wait for the service account of each new namespace.
			cluster.APIServer: {"--disable-admission-plugins=ServiceAccount"},
		},
	})
	config := rest.CopyConfig(plane.RESTConfig())
	config.QPS = -1
	return config
}
