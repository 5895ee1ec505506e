package leading

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/kubernetes/fake"
	ktesting "k8s.io/client-go/testing"

	"jobpolicy.dev/services/internal/testenv"
)

// options renew often, and let a lease that is not given up stand for an hour: a
// test that waits for one to expire never ends.
func options() Options {
	return Options{
		Enabled: true, LeaseDuration: time.Hour, RenewDeadline: 200 * time.Millisecond, RetryPeriod: 20 * time.Millisecond,
		Namespace: "kube-system", Name: "jobpolicy-executor",
	}
}

func newElection(t *testing.T, client kubernetes.Interface) *Election {
	t.Helper()
	e, err := New(options(), client, (&testenv.Log{}).Logger())
	if err != nil {
		t.Fatal(err)
	}
	return e
}

// replica is an Election that runs. It leads until it is told to end.
type replica struct {
	*Election
	ask     func()        // as SIGTERM would
	began   chan struct{} // closed when it leads
	asked   chan struct{} // closed when its leading context is done
	end     chan error    // what leading is to return
	outcome chan error    // what Run returned
}

func start(t *testing.T, client kubernetes.Interface) *replica {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	r := &replica{
		Election: newElection(t, client), ask: cancel,
		began: make(chan struct{}), asked: make(chan struct{}), end: make(chan error, 1), outcome: make(chan error, 1),
	}
	go func() {
		r.outcome <- r.Run(ctx, func(leading context.Context) error {
			close(r.began)
			<-leading.Done()
			close(r.asked)
			return <-r.end
		})
	}()
	t.Cleanup(func() {
		cancel()
		select {
		case r.end <- nil:
		default:
		}
	})
	return r
}

func holder(t *testing.T, client kubernetes.Interface) string {
	t.Helper()
	lease, err := client.CoordinationV1().Leases("kube-system").Get(t.Context(), "jobpolicy-executor", metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	if lease.Spec.HolderIdentity == nil {
		return ""
	}
	return *lease.Spec.HolderIdentity
}

func TestLeaseIsHeldUntilLeadingHasEnded(t *testing.T) {
	client := fake.NewClientset()
	r := start(t, client)
	<-r.began
	r.ask()
	<-r.asked
	time.Sleep(5 * options().RetryPeriod) // several renewals
	if got := holder(t, client); got != r.lock.Identity() {
		t.Errorf("holder while draining = %q, want %q", got, r.lock.Identity())
	}
	want := errors.New("as leading ended")
	r.end <- want
	if err := <-r.outcome; !errors.Is(err, want) {
		t.Errorf("Run() = %v, want what leading returned", err)
	}
	if got := holder(t, client); got != "" {
		t.Errorf("holder afterwards = %q, want none", got)
	}
}

func TestNextReplicaTakesOverAtOnce(t *testing.T) {
	client := fake.NewClientset()
	first := start(t, client)
	<-first.began
	second := start(t, client)
	testenv.Eventually(t, func() error {
		leader, standby := second.Standby()
		if !standby || leader != first.lock.Identity() {
			return fmt.Errorf("Standby() = %q, %v; want the first replica to lead", leader, standby)
		}
		return nil
	})
	if _, standby := first.Standby(); standby {
		t.Error("the leader takes itself for a standby")
	}
	first.ask()
	first.end <- nil
	if err := <-first.outcome; err != nil {
		t.Errorf("Run() = %v, want nil", err)
	}
	select {
	case <-second.began:
	case <-time.After(20 * time.Second):
		t.Fatal("the second replica does not lead")
	}
}

func TestStandbyEndsWithoutLeading(t *testing.T) {
	client := fake.NewClientset()
	leader := start(t, client)
	<-leader.began
	standby := start(t, client)
	standby.ask()
	if err := <-standby.outcome; err != nil {
		t.Errorf("Run() = %v, want nil", err)
	}
	select {
	case <-standby.began:
		t.Error("the standby led")
	default:
	}
	if got := holder(t, client); got != leader.lock.Identity() {
		t.Errorf("holder = %q, want still %q", got, leader.lock.Identity())
	}
}

func TestReplicaThatIsAskedToEndBeforeItLeadsLeavesNoLease(t *testing.T) {
	client := fake.NewClientset()
	ctx, cancel := context.WithCancel(t.Context())
	client.PrependReactor("create", "leases", func(ktesting.Action) (bool, runtime.Object, error) {
		cancel() // while the lease is being acquired
		return false, nil, nil
	})
	led := false
	err := newElection(t, client).Run(ctx, func(context.Context) error { led = true; return nil })
	if err != nil || led {
		t.Errorf("Run() = %v, led = %v; want nil, without leading", err, led)
	}
	if leases, err := client.CoordinationV1().Leases("kube-system").List(t.Context(), metav1.ListOptions{}); err != nil || (len(leases.Items) > 0 && holder(t, client) != "") {
		t.Errorf("lease is left behind: %v, %v", leases, err)
	}
}

// clientThatGoesAway refuses renewals once away is set.
func clientThatGoesAway() (client *fake.Clientset, away *atomic.Bool) {
	client, away = fake.NewClientset(), &atomic.Bool{}
	client.PrependReactor("update", "leases", func(ktesting.Action) (bool, runtime.Object, error) {
		return away.Load(), nil, errors.New("the API server is away")
	})
	return client, away
}

func TestLostLeaseIsReportedWithoutWaitingForLeadingToEnd(t *testing.T) {
	client, away := clientThatGoesAway()
	r := start(t, client)
	<-r.began
	away.Store(true)
	if err := <-r.outcome; !errors.Is(err, ErrLost) {
		t.Errorf("Run() = %v, want ErrLost", err)
	}
	<-r.asked // and leading is asked to end
}

func TestLostLeaseIsReportedHoweverFastLeadingEnds(t *testing.T) {
	for range 5 { // who is first, leading or the election, is not said
		client, away := clientThatGoesAway()
		err := newElection(t, client).Run(t.Context(), func(leading context.Context) error {
			away.Store(true)
			<-leading.Done()
			return nil
		})
		if !errors.Is(err, ErrLost) {
			t.Errorf("Run() = %v, want ErrLost", err)
		}
	}
}

func TestOptionsAreCheckedByFlag(t *testing.T) {
	valid := Options{
		Enabled: true, LeaseDuration: 15 * time.Second, RenewDeadline: 10 * time.Second, RetryPeriod: 2 * time.Second,
		Namespace: "kube-system", Name: "x",
	}
	cases := map[string]struct {
		change func(*Options)
		want   string // empty: valid
	}{
		"the defaults": {func(*Options) {}, ""},
		"a lease that ends before the leader gives up": {func(o *Options) { o.LeaseDuration = 10 * time.Second }, "--leader-elect-renew-deadline"},
		"a lease below a second":                       {func(o *Options) { o.LeaseDuration = time.Millisecond }, "--leader-elect-lease-duration"},
		"no time between two tries":                    {func(o *Options) { o.RetryPeriod = 0 }, "--leader-elect-retry-period"},
		"no time for a second try":                     {func(o *Options) { o.RetryPeriod = 9 * time.Second }, "--leader-elect-retry-period"},
		"no name":                                      {func(o *Options) { o.Name = "" }, "--leader-elect-resource-name"},
		"nonsense that is not used":                    {func(o *Options) { *o = Options{} }, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			o := valid
			tc.change(&o)
			err := o.Validate()
			if tc.want == "" && err != nil {
				t.Errorf("Validate() = %v, want nil", err)
			}
			if tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)) {
				t.Errorf("Validate() = %v, want an error that names %s", err, tc.want)
			}
		})
	}
}
