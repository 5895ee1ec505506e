package cronjob

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/protobuf/types/known/timestamppb"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"jobpolicy.dev/executor/internal/policy"
	"jobpolicy.dev/executor/wire"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
	"jobpolicy.dev/proto/options"
)

// ofCluster makes etl a group of the cluster that bears n runs at once.
func ofCluster(t *testing.T, s *server, n int32) func(*Config) {
	t.Helper()
	client := dynamicfake.NewSimpleDynamicClientWithCustomListKinds(runtime.NewScheme(), map[schema.GroupVersionResource]string{policy.Resource: "JobPolicyList"})
	policies, err := policy.New(policy.Config{Client: client, Kubernetes: s, ClusterGroups: options.ClusterGroups{"etl": n}})
	if err != nil {
		t.Fatal(err)
	}
	return func(cfg *Config) { cfg.Policies = policies }
}

// withPolicies runs a Controller and its Policies.
func withPolicies(t *testing.T, s *server, d *script, change func(*Config)) (stop func()) {
	t.Helper()
	var policies *policy.Policies
	stop = run(t, s, d, change, func(cfg *Config) { policies = cfg.Policies })
	go policies.Run(t.Context())
	return stop
}

// inNamespaces are CronJobs of the group etl, each named NAMESPACE/NAME, that ask for another number of runs each.
func inNamespaces(names ...string) (objects []runtime.Object) {
	for i, text := range names {
		objects = append(objects, testCron(func(c *batchv1.CronJob) {
			c.Namespace, c.Name, _ = strings.Cut(text, "/")
			c.UID = testUID(1000 + i)
			c.Annotations = map[string]string{wire.Policy: fmt.Sprintf("{cronJob: {group: {name: etl, maxActiveRuns: %d}}}", 1+10*i)}
		}))
	}
	return objects
}

// inTurn starts one run of each CronJob as soon as it is its turn, as the engine does.
func inTurn(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	return inTurnFrom(created, req)
}

// inTurnFrom does the same with runs that are due at a time.
func inTurnFrom(due time.Time, req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
	wait := &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}
	if len(req.GetJobs()) > 0 {
		return wait, nil
	}
	group, others := req.GetSpec().GetOptions().GetGroup(), req.GetGroup()
	most, before := group.GetMaxActiveRuns(), int32(0)
	if n := others.GetMaxActiveRuns(); n > 0 {
		most = min(most, n)
	}
	own := &jobpolicyv1.GroupClaim{CronJob: req.GetCronJob().GetName(), Since: timestamppb.New(due), From: timestamppb.New(due)}
	if others.GetOfCluster() {
		own.Namespace = req.GetCronJob().GetNamespace()
	}
	if due.After(req.GetNow().AsTime()) {
		wait.GroupClaim, wait.RequeueTime = own, timestamppb.New(due)
		return wait, nil
	}
	for _, other := range others.GetClaims() {
		if options.CompareClaims(other, own) < 0 {
			before++
		}
	}
	wait.GroupClaim = own
	if others.GetUndecided() > 0 || others.GetActiveRuns()+before >= most {
		wait.Explanation = &jobpolicyv1.CronJobExplanation{Waits: []*jobpolicyv1.Wait{{
			Reason: jobpolicyv1.WaitReason_WAIT_REASON_RUN_GROUP, Detail: fmt.Sprintf("%d of %d", others.GetActiveRuns(), most),
		}}}
		return wait, nil
	}
	d, _ := starting(req.GetCronJob().GetName() + "-1")(req)
	d.GroupClaim = own
	return d, nil
}

// startedIn returns the runs of all namespaces, in the order of their creation.
func startedIn(s *server) (names []string) {
	for _, write := range s.Writes() {
		if job, ok := write.(interface{ GetObject() runtime.Object }); ok && write.Matches("create", "jobs") {
			names = append(names, write.GetNamespace()+"/"+job.GetObject().(*batchv1.Job).Name)
		}
	}
	return names
}

// completeIn completes a run NAMESPACE/NAME.
func completeIn(t *testing.T, s *server, run string) {
	t.Helper()
	space, name, _ := strings.Cut(run, "/")
	job, err := s.BatchV1().Jobs(space).Get(t.Context(), name, metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	job.Status.Conditions = []batchv1.JobCondition{{Type: batchv1.JobComplete, Status: corev1.ConditionTrue}}
	s.Stamp(job)
	if err := s.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("jobs"), job, space); err != nil {
		t.Fatal(err)
	}
}

// wantStarted compares which runs have started so far. Those for which there is room at once start in any order.
func wantStarted(t *testing.T, s *server, want ...string) {
	t.Helper()
	time.Sleep(time.Second)
	if got := slices.Sorted(slices.Values(startedIn(s))); !slices.Equal(got, slices.Sorted(slices.Values(want))) {
		t.Errorf("started %v, want %v", got, want)
	}
}

// The runs of two namespaces share two places, by namespace and then by name because all wait since the same time, although
// one of them asks for one run at once, and the Controller is replaced in the middle.
func TestAGroupOfTheClusterCountsAllNamespaces(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(inNamespaces("blue/z", "red/a", "blue/a", "red/b", "blue/b")...)
		stop := withPolicies(t, s, &script{Otherwise: inTurn}, ofCluster(t, s, 2))
		order := []string{"blue/a-1", "blue/b-1", "blue/z-1", "red/a-1", "red/b-1"}
		for n := range order {
			wantStarted(t, s, order[:min(n+2, len(order))]...)
			if n == 1 {
				stop()
				stop = withPolicies(t, s, &script{Otherwise: inTurn}, ofCluster(t, s, 2))
				time.Sleep(time.Second)
			}
			completeIn(t, s, order[n])
		}
		stop()
		time.Sleep(time.Minute) // Until the events are told.
	})
}

// Without the operator's word, namespaces have nothing to do with each other, and the smallest number of each counts.
func TestGroupsOfTwoNamespacesAreTwo(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(inNamespaces("blue/a", "red/a", "blue/b")...)
		stop := run(t, s, &script{Otherwise: inTurn})
		wantStarted(t, s, "blue/a-1", "red/a-1")
		stop()
	})
}

// Whoever leaves the group makes room for a run of another namespace: its own run counts there no more.
func TestLeavingAGroupOfTheClusterMakesRoomInOthers(t *testing.T) {
	for name, leave := range map[string]func(*testing.T, *server, *batchv1.CronJob){
		"deleted": func(t *testing.T, s *server, c *batchv1.CronJob) {
			if err := s.Tracker().Delete(batchv1.SchemeGroupVersion.WithResource("cronjobs"), c.Namespace, c.Name); err != nil {
				t.Fatal(err)
			}
		},
		"in a group of its namespace": func(t *testing.T, s *server, c *batchv1.CronJob) {
			c.Annotations = map[string]string{wire.Policy: "{cronJob: {group: {name: other, maxActiveRuns: 2}}}"}
			s.put(t, c)
		},
		"handed to another controller": func(t *testing.T, s *server, c *batchv1.CronJob) {
			c.Annotations[wire.CronJobManagedBy] = "example.com/other"
			s.put(t, c)
		},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				crons := inNamespaces("blue/a", "red/a")
				s := newServer(crons...)
				stop := withPolicies(t, s, &script{Otherwise: inTurn}, ofCluster(t, s, 1))
				wantStarted(t, s, "blue/a-1")
				leave(t, s, crons[0].(*batchv1.CronJob).DeepCopy())
				wantStarted(t, s, "blue/a-1", "red/a-1")
				stop()
				time.Sleep(time.Minute)
			})
		})
	}
}

// put stores a CronJob, as its user does.
func (s *server) put(t *testing.T, cron *batchv1.CronJob) {
	t.Helper()
	s.Stamp(cron)
	if err := s.Tracker().Update(batchv1.SchemeGroupVersion.WithResource("cronjobs"), cron, cron.Namespace); err != nil {
		t.Fatal(err)
	}
}

// Who waits for runs of a namespace that he may not see reads it in an event of his own, also after the API server has
// forgotten the first one.
func TestAWaitInAGroupOfTheClusterIsTold(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s := newServer(inNamespaces("blue/a", "red/a")...)
		stop := withPolicies(t, s, &script{Otherwise: inTurn}, ofCluster(t, s, 1))
		time.Sleep(2*tellPeriod + time.Minute)
		stop()
		time.Sleep(time.Minute)
		told := int32(0)
		for _, space := range []string{"blue", "red"} {
			events, err := s.CoreV1().Events(space).List(t.Context(), metav1.ListOptions{})
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range events.Items {
				if e.Reason != eventWaitingForGroup {
					continue
				}
				if e.InvolvedObject.Name != "a" || space != "red" || e.Message != "1 of 1" || e.Type != corev1.EventTypeNormal {
					t.Errorf("event %s in %s on %s: %s", e.Reason, space, e.InvolvedObject.Name, e.Message)
				}
				told += max(1, e.Count)
			}
		}
		if told != 3 {
			t.Errorf("told %d times in an hour, want 3", told)
		}
	})
}

// A wait of a moment is not told. It lasts since nothing but the group keeps the run.
func TestAWaitOfAMomentIsNotTold(t *testing.T) {
	for name, tc := range map[string]struct {
		ends time.Duration // When the run ends for which the other waits.
		kept bool          // The runs have been due for long, and something else has kept them.
		told bool
	}{
		"shorter":                               {tellAfter - 2*time.Second, false, false},
		"longer":                                {tellAfter + 2*time.Second, false, true},
		"shorter, and something kept it before": {tellAfter - 2*time.Second, true, false},
		"longer, and something kept it before":  {tellAfter + 2*time.Second, true, true},
	} {
		t.Run(name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				s := newServer(inNamespaces("blue/a", "red/a")...)
				const later = time.Minute // When each of the CronJobs was looked at.
				stop := withPolicies(t, s, &script{Otherwise: func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
					d, err := inTurnFrom(created.Add(later), req)
					if claim := d.GetGroupClaim(); tc.kept && req.GetNow().AsTime().Before(created.Add(later)) {
						d.GroupClaim = nil // As with concurrencyPolicy Forbid, while an earlier run is active.
					} else if tc.kept && claim != nil {
						claim.Since, claim.From = timestamppb.New(created), timestamppb.New(created)
					}
					return d, err
				}}, ofCluster(t, s, 1))
				time.Sleep(later + tc.ends)
				first, waiting := "blue/a-1", "red"
				if !slices.Contains(startedIn(s), first) {
					first, waiting = "red/a-1", "blue" // Neither had a place in the line while something else kept them.
				}
				completeIn(t, s, first)
				wantStarted(t, s, "blue/a-1", "red/a-1")
				stop()
				time.Sleep(time.Minute)
				events, err := s.CoreV1().Events(waiting).List(t.Context(), metav1.ListOptions{})
				if err != nil {
					t.Fatal(err)
				}
				told := slices.ContainsFunc(events.Items, func(e corev1.Event) bool { return e.Reason == eventWaitingForGroup })
				if told != tc.told {
					t.Errorf("told: %v, want %v", told, tc.told)
				}
			})
		})
	}
}

// Since when a run is asked for by hand is its place in the line of a group of the cluster; a new text has a new place.
func TestSinceWhenARunIsAskedForByHand(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		crons := inNamespaces("blue/a")
		s := newServer(crons...)
		var since []string
		edits := 0
		ask := func(text string) {
			cron := crons[0].(*batchv1.CronJob).DeepCopy()
			cron.Annotations[wire.RunNow] = text
			cron.Labels = map[string]string{"edit": fmt.Sprint(edits)} // So the same text is decided on again.
			s.put(t, cron)
			edits++
			time.Sleep(time.Minute)
		}
		stop := withPolicies(t, s, &script{Otherwise: func(req *jobpolicyv1.DecideCronJobRequest) (*jobpolicyv1.DecideCronJobResponse, error) {
			at := "-"
			if asked := req.GetGroup().GetRunNowSince(); asked != nil {
				at = asked.AsTime().Sub(created).Round(time.Minute).String()
			}
			since = append(since, req.GetSpec().GetRunNow()+" "+at)
			return &jobpolicyv1.DecideCronJobResponse{Disposition: jobpolicyv1.Disposition_DISPOSITION_SETTLED}, nil
		}}, ofCluster(t, s, 1))
		time.Sleep(time.Minute)
		ask("one")
		ask("one")
		ask("two")
		stop()
		if want := []string{" -", "one 1m0s", "one 1m0s", "two 3m0s"}; !slices.Equal(since, want) {
			t.Errorf("asked since %q, want %q", since, want)
		}
	})
}
