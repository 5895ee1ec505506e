package main

import (
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"jobpolicy.dev/executor"
	"jobpolicy.dev/services/internal/servicemain"
	"jobpolicy.dev/services/internal/testenv"
)

// jobsThatNeedAPod are n Jobs of one pod each.
func jobsThatNeedAPod(n int) []*batchv1.Job {
	jobs := make([]*batchv1.Job, n)
	for i := range jobs {
		jobs[i] = &batchv1.Job{
			TypeMeta: metav1.TypeMeta{APIVersion: "batch/v1", Kind: "Job"},
			ObjectMeta: metav1.ObjectMeta{
				Namespace: "ns", Name: fmt.Sprintf("job-%d", i), UID: types.UID(fmt.Sprintf("00000000-0000-4000-8000-%012d", i)),
				ResourceVersion: "1", Generation: 1,
			},
			Spec: batchv1.JobSpec{
				Parallelism: new(int32(1)), Completions: new(int32(1)), BackoffLimit: new(int32(6)),
				ManagedBy: new(executor.ManagedBy), Suspend: new(false),
				CompletionMode: new(batchv1.NonIndexedCompletion), PodReplacementPolicy: new(batchv1.TerminatingOrFailed),
				Selector: &metav1.LabelSelector{MatchLabels: map[string]string{"job": fmt.Sprint(i)}},
				Template: corev1.PodTemplateSpec{
					ObjectMeta: metav1.ObjectMeta{Labels: map[string]string{"job": fmt.Sprint(i)}},
					Spec:       corev1.PodSpec{RestartPolicy: corev1.RestartPolicyNever, Containers: []corev1.Container{{Name: "c", Image: "i"}}},
				},
			},
		}
	}
	return jobs
}

// clockEnv names a file in which a test says how far the process's wall clock is ahead.
const clockEnv = "JOBPOLICY_TEST_CLOCK_FILE"

// clockIn is a wall clock that is set by writing a duration into a file.
func clockIn(file string) func() time.Time {
	return func() time.Time {
		text, err := os.ReadFile(file)
		if err != nil {
			return time.Now()
		}
		ahead, err := time.ParseDuration(string(text))
		if err != nil {
			panic(err)
		}
		return time.Now().Add(ahead)
	}
}

// TestALeaderThatWasAwayWritesNothingOnceAnotherLeads takes the leader away while each of
// its writes has arrived whole and none is answered. Once another replica leads,
// all of them fail: what it would do next is to send an event about each, and to
// try again.
func TestALeaderThatWasAwayWritesNothingOnceAnotherLeads(t *testing.T) {
	ways := map[string]struct {
		away, back func(*testing.T, *testenv.Process, *testenv.Door)
	}{
		"it is frozen": {
			away: func(t *testing.T, p *testenv.Process, _ *testenv.Door) {
				t.Helper()
				p.Signal(t, syscall.SIGSTOP)
				stopped(t, p)
			},
			back: func(t *testing.T, p *testenv.Process, _ *testenv.Door) {
				t.Helper()
				p.Signal(t, syscall.SIGCONT)
			},
		},
		"the API server hangs for it": {
			away: func(_ *testing.T, _ *testenv.Process, d *testenv.Door) { d.HangLeases() },
			back: func(*testing.T, *testenv.Process, *testenv.Door) {},
		},
	}
	for name, way := range ways {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			jobs := jobsThatNeedAPod(20)
			api := testenv.StartAPI(t, jobs...)
			door, next := api.Door(t), api.Door(t)
			args := append(slices.Clone(busyReplica), "--leader-elect-lease-duration=8s", "--leader-elect-renew-deadline=7s")
			first := testenv.Start(t, nil, append(args, "--kubeconfig", door.Kubeconfig)...)
			writes(t, door, len(jobs))
			way.away(t, first, door)

			second := testenv.Start(t, nil, append(args, "--kubeconfig", next.Kubeconfig)...)
			writes(t, next, len(jobs)) // so it leads
			before := door.Writes()
			door.Answer()
			way.back(t, first, door)
			if code := first.ExitCode(t); code != servicemain.ExitFailed {
				t.Errorf("exit code of the replica that was away = %d, want %d", code, servicemain.ExitFailed)
			}
			if after := door.Writes(); len(after) > len(before) {
				t.Errorf("the replica that was away wrote beside the next leader: %q", after[len(before):])
			}

			next.Answer()
			testenv.Eventually(t, func() error { // the next leader may write
				for _, want := range []string{"POST /api/v1/namespaces/ns/pods", "POST /api/v1/namespaces/ns/events"} {
					if !slices.Contains(next.Writes()[len(jobs):], want) {
						return fmt.Errorf("the next leader did not send %s, but %q", want, next.Writes()[len(jobs):])
					}
				}
				return nil
			})
			second.Signal(t, syscall.SIGTERM)
			if code := second.ExitCode(t); code != servicemain.ExitOK {
				t.Errorf("exit code of the next leader = %d, want %d", code, servicemain.ExitOK)
			}
		})
	}
}

// busyReplica are the flags of a replica that writes much and elects often.
var busyReplica = []string{
	"--engine=embedded", "--http-address=127.0.0.1:0", "--shutdown-timeout=1s", "--kube-api-qps=1000", "--kube-api-burst=1000",
	"--leader-elect-retry-period=200ms",
}

// The wall clock jumps over the end of the lease, as after a suspension, and the lease
// cannot be renewed: another replica may lead by now.
func TestALeaderWhoseClockJumpsOverTheLeaseWritesNothing(t *testing.T) {
	jobs := jobsThatNeedAPod(20)
	for name, jump := range map[string]time.Duration{"over the lease": 2 * time.Hour, "within the lease": time.Minute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := testenv.StartAPI(t, jobs...)
			door := api.Door(t)
			clock := filepath.Join(t.TempDir(), "clock")
			p := testenv.Start(t, []string{clockEnv + "=" + clock}, append(slices.Clone(busyReplica),
				"--leader-elect-lease-duration=1h", "--leader-elect-renew-deadline=10s", "--kubeconfig", door.Kubeconfig)...)
			writes(t, door, len(jobs))
			api.RefuseRenewals.Store(true)
			// Whole, by renaming: the process reads it at any time.
			testenv.WriteFile(t, clock+".new", jump.String())
			if err := os.Rename(clock+".new", clock); err != nil {
				t.Fatal(err)
			}
			before := len(door.Writes())
			door.Answer()
			if code := p.ExitCode(t); code != servicemain.ExitFailed { // it could not renew the lease
				t.Errorf("exit code = %d, want %d", code, servicemain.ExitFailed)
			}
			if wrote := len(door.Writes()) > before; wrote != (jump < time.Hour) {
				t.Errorf("it wrote: %t; the lease was renewed less than an hour before, by its clock: %t", wrote, jump < time.Hour)
			}
		})
	}
}

// A person deletes the Lease. Its holder makes it anew; until then nobody else writes.
func TestADeletedLeaseMakesNoSecondLeader(t *testing.T) {
	jobs := jobsThatNeedAPod(20)
	api := testenv.StartAPI(t, jobs...)
	door, next := api.Door(t), api.Door(t)
	args := append(slices.Clone(busyReplica), "--leader-elect-lease-duration=1h", "--leader-elect-renew-deadline=30s")
	first := testenv.Start(t, nil, append(args, "--kubeconfig", door.Kubeconfig)...)
	writes(t, door, len(jobs))
	holder := api.Holder()
	second := testenv.Start(t, nil, append(args, "--kubeconfig", next.Kubeconfig)...)
	testenv.Readyz(t, second.Logged(t, "service started", "http"), http.StatusOK, "standing by, "+holder+" leads")
	for range 5 {
		api.DeleteLease()
		testenv.Eventually(t, func() error {
			if now := api.Holder(); now != holder {
				return fmt.Errorf("the lease is held by %q, want %q", now, holder)
			}
			return nil
		})
	}
	if got := next.Writes(); len(got) > 0 {
		t.Errorf("the standby wrote beside the leader: %q", got)
	}
	door.Answer()
	for _, p := range []*testenv.Process{second, first} {
		p.Signal(t, syscall.SIGTERM)
		if code := p.ExitCode(t); code != servicemain.ExitOK {
			t.Errorf("exit code = %d, want %d", code, servicemain.ExitOK)
		}
	}
}

// writes waits until so many have come.
func writes(t *testing.T, d *testenv.Door, n int) {
	t.Helper()
	testenv.Eventually(t, func() error {
		if got := d.Writes(); len(got) != n {
			return fmt.Errorf("%d writes, want %d: %q", len(got), n, got)
		}
		return nil
	})
}

// stopped waits until the process does not run any more.
func stopped(t *testing.T, p *testenv.Process) {
	t.Helper()
	testenv.Eventually(t, func() error {
		stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.ID()))
		if err != nil {
			return err
		}
		// The state follows the name, which is in brackets.
		if _, state, _ := strings.Cut(string(stat), ") "); !strings.HasPrefix(state, "T") {
			return fmt.Errorf("the process is in state %.1s", state)
		}
		return nil
	})
}
