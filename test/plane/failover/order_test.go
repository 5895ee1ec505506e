package failover

import (
	"bufio"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"syscall"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	auditv1 "k8s.io/apiserver/pkg/apis/audit/v1"
	"k8s.io/client-go/tools/clientcmd"

	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/objects"
)

// jobsEach is how many Jobs are created before the leader is ended, and how many after.
const jobsEach = 20

// The leader is told to stop, or is killed, while there is work. The standby goes on, and no
// write of the first leader arrives after the standby has taken the lease.
func TestNoWriteOfTheOldLeaderAfterTheNewOneLeads(t *testing.T) {
	dir := t.TempDir()
	log, args := writesLog(t, dir)
	plane := startPlane(t, args...)
	for name, signal := range map[string]syscall.Signal{"told-to-stop": syscall.SIGTERM, "killed": syscall.SIGKILL} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := &measurement{t: t, plane: plane, client: newClient(plane)}
			m.namespace(name)
			replica := func(user string) *replica {
				return m.startAs(m.kubeconfig(dir, user), "--warm-standby", "--managed-by=example.com/"+name, "--leader-elect-resource-name="+name,
					"--leader-elect-lease-duration=10s", "--leader-elect-renew-deadline=8s", "--leader-elect-retry-period=1s")
			}
			first, second := name+"-first", name+"-second"
			m.leader = replica(first)
			m.leads(m.leader)
			m.standby = replica(second)
			m.await("the replica stands by", func() bool {
				return m.standby.logged("leader elected") && m.standby.logged("pod cache filled while standing by")
			})
			m.jobs(name, 0)
			m.await("the leader creates a pod", func() bool { return m.pods(name) > 0 })
			must.Succeed(t, m.leader.cmd.Process.Signal(signal))
			m.jobs(name, jobsEach)
			m.await("every Job has its pod", func() bool { return m.pods(name) == 2*jobsEach })
			_ = m.leader.cmd.Wait() // It was told to end.
			checkOrder(t, log, first, second)
			m.standby.end(t, syscall.SIGTERM)
			m.onePodEach(name)
		})
	}
}

// jobs creates some Jobs of one pod.
func (m *measurement) jobs(namespace string, from int) {
	m.t.Helper()
	for i := range jobsEach {
		j, by := job(fmt.Sprintf("job-%d", from+i), 1), "example.com/"+namespace
		j.Spec.ManagedBy = &by
		objects.Create(m.t, m.client.BatchV1().Jobs(namespace), j)
	}
}

// pods is how many there are, 0 if nobody knows.
func (m *measurement) pods(namespace string) int {
	pods, err := m.client.CoreV1().Pods(namespace).List(m.t.Context(), metav1.ListOptions{})
	if err != nil {
		return 0
	}
	return len(pods.Items)
}

// onePodEach checks that both leaders together created one pod for each Job.
func (m *measurement) onePodEach(namespace string) {
	m.t.Helper()
	pods := objects.List(m.t, m.client.CoreV1().Pods(namespace), metav1.ListOptions{})
	of := map[string]int{}
	for i := range pods.Items {
		of[controllerOf(&pods.Items[i])]++
	}
	if len(pods.Items) != 2*jobsEach || len(of) != 2*jobsEach {
		m.t.Errorf("%d pods of %d Jobs, want one pod of each of %d Jobs: %v", len(pods.Items), len(of), 2*jobsEach, of)
	}
}

func controllerOf(pod *corev1.Pod) string {
	if owner := metav1.GetControllerOf(pod); owner != nil {
		return owner.Name
	}
	return ""
}

// kubeconfig writes one with which the API server knows a replica by its own user.
func (m *measurement) kubeconfig(dir, user string) string {
	m.t.Helper()
	config, err := clientcmd.LoadFromFile(m.plane.Kubeconfig())
	must.Succeed(m.t, err)
	for _, auth := range config.AuthInfos {
		auth.Impersonate, auth.ImpersonateGroups = user, []string{"system:masters"}
	}
	path := filepath.Join(dir, user)
	must.Succeed(m.t, clientcmd.WriteToFile(*config, path))
	return path
}

// writesLog makes an API server record all writes in a file, in the order in which it
// answered them.
func writesLog(t *testing.T, dir string) (log string, args []string) {
	t.Helper()
	policy, log := filepath.Join(dir, "policy.json"), filepath.Join(dir, "audit.log")
	text, err := json.Marshal(map[string]any{
		"apiVersion": "audit.k8s.io/v1", "kind": "Policy", "omitStages": []string{"RequestReceived"},
		"rules": []map[string]any{{"level": "Metadata", "verbs": []string{"create", "update", "patch", "delete"}}, {"level": "None"}},
	})
	must.Succeed(t, err)
	must.Succeed(t, os.WriteFile(policy, text, 0o600))
	return log, []string{"--audit-policy-file=" + policy, "--audit-log-path=" + log}
}

// checkOrder reads who wrote when. A standby writes the lease for the first time when it
// takes it: a write that the API server received from the first leader after it answered
// that is one too many.
func checkOrder(t *testing.T, log, first, second string) {
	t.Helper()
	file, err := os.Open(log)
	must.Succeed(t, err)
	defer file.Close()
	var taken *auditv1.Event
	byFirst, bySecond := 0, 0
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		event := &auditv1.Event{}
		if json.Unmarshal(lines.Bytes(), event) != nil || event.ImpersonatedUser == nil || event.ObjectRef == nil {
			continue // The last line may be incomplete.
		}
		lease := event.ObjectRef.Resource == "leases"
		accepted := event.ResponseStatus != nil && event.ResponseStatus.Code < 300
		switch event.ImpersonatedUser.Username {
		case second:
			if lease && accepted && taken == nil {
				taken = event
			}
			if !lease && accepted {
				bySecond++
			}
			if !lease && taken == nil {
				t.Errorf("%s writes before it has the lease: %s %v", second, event.Verb, event.ObjectRef)
			}
		case first:
			if taken != nil && event.RequestReceivedTimestamp.After(taken.StageTimestamp.Time) {
				t.Errorf("%s writes after %s has the lease: %s %v", first, second, event.Verb, event.ObjectRef)
			}
			if !lease && accepted {
				byFirst++
			}
		}
	}
	if taken == nil || byFirst == 0 || bySecond == 0 {
		t.Errorf("writes: %d of the first leader, %d of the second, which took the lease: %t; the test shows nothing", byFirst, bySecond, taken != nil)
	}
	t.Logf("writes: %d of the first leader, %d of the second", byFirst, bySecond)
}
