package main

import (
	"errors"
	"log/slog"
	"net/http"
	"os"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/spf13/pflag"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/rest"

	"jobpolicy.dev/executor/leaderelection"
	"jobpolicy.dev/services/internal/kubeclient"
	"jobpolicy.dev/services/internal/servicemain"
)

// electionOptions say whether and how to elect a leader. Names and defaults of
// the flags are those of kube-controller-manager.
type electionOptions struct {
	enabled       bool
	warm          bool
	leaseDuration time.Duration
	renewDeadline time.Duration
	retryPeriod   time.Duration
	namespace     string
	name          string
}

func (o *electionOptions) addFlags(fs *pflag.FlagSet) {
	fs.BoolVar(&o.enabled, "leader-elect", true, "Elect a leader among the replicas by a Lease, and act only while leading. Turn this off only where a second executor never runs, not even during a rollout: a Deployment starts the new pod before the old one has ended.")
	fs.DurationVar(&o.leaseDuration, "leader-elect-lease-duration", 15*time.Second, "How long other replicas wait after the last renewal before one of them takes over. A leader that has not renewed the lease for that long writes nothing. Rounded down to whole seconds.")
	fs.DurationVar(&o.renewDeadline, "leader-elect-renew-deadline", 10*time.Second, "How long the leader tries to renew the lease before it gives up and exits. Less than --leader-elect-lease-duration.")
	fs.DurationVar(&o.retryPeriod, "leader-elect-retry-period", 2*time.Second, "How long a replica waits between two tries to acquire or renew the lease.")
	fs.BoolVar(&o.warm, "warm-standby", false, "Fill the pod cache already while another replica leads, so that taking over takes no list of all pods. A standby then needs memory for the pods, too. Requires --leader-elect.")
	fs.StringVar(&o.namespace, "leader-elect-resource-namespace", "kube-system", "`Namespace` of the Lease.")
	fs.StringVar(&o.name, "leader-elect-resource-name", name, "`Name` of the Lease.")
}

// validate checks that the times go together. Errors name flags.
func (o *electionOptions) validate() error {
	if !o.enabled {
		if o.warm {
			return errors.New("--warm-standby requires --leader-elect: without it there is no standby")
		}
		return nil
	}
	var errs servicemain.Problems
	errs.Require(o.leaseDuration >= time.Second, "--leader-elect-lease-duration must be at least 1s, is %s", o.leaseDuration)
	lease := o.leaseDuration.Truncate(time.Second) // A lease has whole seconds.
	errs.Require(lease > o.renewDeadline,
		"--leader-elect-lease-duration (%s, in whole seconds) must be longer than --leader-elect-renew-deadline (%s)", lease, o.renewDeadline)
	errs.Require(o.retryPeriod > 0, "--leader-elect-retry-period must be longer than 0s, is %s", o.retryPeriod)
	errs.Require(float64(o.renewDeadline) > leaderelection.JitterFactor*float64(o.retryPeriod),
		"--leader-elect-renew-deadline (%s) must be longer than %g times --leader-elect-retry-period (%s)", o.renewDeadline, leaderelection.JitterFactor, o.retryPeriod)
	errs.Require(o.namespace != "" && o.name != "", "--leader-elect-resource-namespace and --leader-elect-resource-name must not be empty")
	return errors.Join(errs...)
}

// wallClock returns the wall time. A test sets it; nil: time.Now.
var wallClock func() time.Time

// newElection returns nil if there is no leader election. Otherwise every client that is
// made from api from now on writes only while this replica leads.
func (o *electionOptions) newElection(api *rest.Config, r prometheus.Registerer, log *slog.Logger) (*leaderelection.Election, error) {
	if !o.enabled {
		return nil, nil
	}
	client, err := kubeclient.NewForLease(api, o.renewDeadline)
	if err != nil {
		return nil, err
	}
	election, err := leaderelection.New(leaderelection.Config{
		Client:    client.CoordinationV1(),
		Namespace: o.namespace, Name: o.name, Identity: identity(os.Getenv("POD_NAME")),
		LeaseDuration: o.leaseDuration, RenewDeadline: o.renewDeadline, RetryPeriod: o.retryPeriod,
		Now: wallClock, Logger: log,
	})
	if err != nil {
		return nil, err
	}
	api.Wrap(election.Fence())
	return election, r.Register(election.Metric())
}

// identity is the name under which a replica holds the lease: the pod's name and a part that is
// unique to the process. It is empty if the pod's name is not known: then package leaderelection
// uses the host's name, which has at most 63 bytes and may be only the beginning of the pod's name.
func identity(pod string) string {
	if pod == "" {
		return ""
	}
	return pod + "_" + string(uuid.NewUUID())
}

// holds returns a function that returns nil while this replica is certain to lead. Without
// an election it returns nil itself.
func holds(election *leaderelection.Election) func() error {
	if election == nil {
		return nil
	}
	fenced := election.Fence()(nowhere{})
	return func() error {
		resp, err := fenced.RoundTrip(&http.Request{Method: http.MethodPost})
		if err != nil {
			return err
		}
		return resp.Body.Close()
	}
}

// nowhere answers the requests that the election's fence lets through, and sends nothing.
type nowhere struct{}

func (nowhere) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Body: http.NoBody}, nil
}
