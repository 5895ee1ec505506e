package apistatus

import (
	"flag"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/kubernetes"
	typedbatchv1 "k8s.io/client-go/kubernetes/typed/batch/v1"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/test/kit/controlplane"
)

var (
	transitionsFlag = flag.Int("apistatus.transitions", 12000, "statuses to write")
	seedFlag        = flag.Uint64("apistatus.seed", 1, "what the walks follow from")
)

const (
	walkers = 8
	// leastBroken is how often each rule must have been broken, and how often an update
	// must have been legal only because the wrong part did not change. With fewer cases
	// the comparison would prove little.
	leastBroken = 10
	// At least this share of the written statuses must have been legal, and the same
	// share bad.
	leastShare = 0.3
)

// neverBroken are the rules that no walk can break, with the reasons.
var neverBroken = map[string]string{
	"SuccessCriteriaMetAfterComplete": "no status is Complete without SuccessCriteriaMet: CompleteWithoutSuccessCriteriaMet sees to it",
}

func TestTheAPIServerSaysWhatTheRulesSay(t *testing.T) {
	jobs := startAPIServer(t)
	walks := make([]*walker, walkers)
	var all sync.WaitGroup
	started := time.Now()
	for i := range walks {
		walks[i] = newWalker(jobs, *seedFlag, uint64(i))
		all.Go(func() {
			if err := walks[i].walk(t.Context(), *transitionsFlag/walkers); err != nil {
				t.Errorf("%s of -apistatus.seed=%d: %v", walks[i].name, *seedFlag, err)
			}
		})
	}
	all.Wait()
	sum := tally{broken: map[string]int{}}
	for _, w := range walks {
		sum.join(w.seen)
	}
	t.Logf("%d transitions in %s\n%s", sum.legal+sum.bad, time.Since(started).Round(time.Second), sum)
	if !t.Failed() {
		checkCoverage(t, sum)
	}
}

func checkCoverage(t *testing.T, sum tally) {
	t.Helper()
	for _, rule := range server.Rules() {
		n := sum.broken[rule.Name]
		if why, never := neverBroken[rule.Name]; never {
			if n > 0 {
				t.Errorf("%s was broken, which cannot be: %s", rule.Name, why)
			}
			continue
		}
		if n < leastBroken {
			t.Errorf("%s was broken %d times, want %d: more transitions are needed", rule.Name, n, leastBroken)
		}
	}
	if sum.unchecked < leastBroken {
		t.Errorf("%d updates left alone what is wrong, want %d", sum.unchecked, leastBroken)
	}
	least := int(leastShare * float64(sum.legal+sum.bad))
	if sum.legal < least || sum.bad < least {
		t.Errorf("%d legal and %d bad transitions, want at least %d of each", sum.legal, sum.bad, least)
	}
}

func (y *tally) join(other tally) {
	y.legal += other.legal
	y.bad += other.bad
	y.unchecked += other.unchecked
	for rule, n := range other.broken {
		y.broken[rule] += n
	}
}

// String is a table: how often each rule was broken.
func (y tally) String() string {
	var b strings.Builder
	fmt.Fprintf(&b, "%6d  legal\n%6d  legal with something wrong that was so before\n%6d  bad\n", y.legal, y.unchecked, y.bad)
	for _, rule := range server.Rules() {
		fmt.Fprintf(&b, "%6d  %s\n", y.broken[rule.Name], rule.Name)
	}
	return b.String()
}

// startAPIServer starts a control plane without a Job controller.
func startAPIServer(t *testing.T) typedbatchv1.JobInterface {
	t.Helper()
	plane := controlplane.Start(t, cluster.Options{
		WithoutEngine: true, WithoutExecutor: true, WithoutNode: true, WithoutScheduler: true,
		ControllerManagerControllers: "serviceaccount-controller",
	})
	config := rest.CopyConfig(plane.RESTConfig())
	config.QPS = -1 // The API server is all that is to be waited for.
	return kubernetes.NewForConfigOrDie(config).BatchV1().Jobs(metav1.NamespaceDefault)
}
