package clients

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/executables"
	"jobpolicy.dev/test/node/specs"
)

// jobsetOwnSpecs are JobSet's own end-to-end specs. They need real containers: probes, names of pods, and volumes.
var jobsetOwnSpecs = ownSpecs{
	client: client{name: "jobset-specs", needs: []string{"kubectl", "jobset", "jobset-specs"}},
	suites: []suite{{"jobset-specs", false}},
	runs: []string{
		"JobSet when dns hostnames is enabled ",
		"JobSet when ttl seconds after finished is set ",
		"JobSet when JobSet is suspended ",
		"JobSet when JobSet is resumed ",
		"JobSet when DependsOn is enabled ",
		"JobSet when Using Server-Side Apply ",
		"JobSet when VolumeClaimPolicies is enabled ",
		"JobSet when JobSet uses RestartJobSet ",
	},
	leaves: []leftSpec{{"JobSet when deleted using foreground propagation policy ", byChance}},
}

// byChance is why a spec of JobSet's does not run. The scenario deleted plays it with Jobs that are there.
const byChance = "chance decides: it deletes the JobSet at once, and the garbage collector may not know of its Jobs yet"

// TestJobSetsOwnSpecs lets specs that fail show the objects that there are.
func TestJobSetsOwnSpecs(t *testing.T) {
	jobsetOwnSpecs.need(t, jobsetOwnSpecs.asked())
	r := jobsetOwnSpecs.prepare(t, specRun{env: []string{"JOBSET_E2E_TESTS_DUMP_NAMESPACE=true"}})
	engine := filepath.Join(t.TempDir(), cluster.EngineBinary)
	must.Succeed(t, os.Symlink(engineProgram(t), engine))
	plane := startPlaneWith(t, cluster.Options{Node: cluster.Containers, ControllerManagerControllers: "*", EnginePath: engine})
	deployJobSet(t, plane)
	r.compare(t, plane)
	i := slices.IndexFunc(r.chosen, func(s specs.Spec) bool { return strings.HasSuffix(s.Text, restarts) })
	if i < 0 || t.Failed() {
		return
	}
	t.Run("an engine with a defect is noticed", func(t *testing.T) {
		replaceEngine(t, plane, engine, failedSucceed.build(t))
		result := r.run(t, plane, r.chosen[i:i+1])[0]
		if want := "<int32>: 0\nto equal\n    <int32>: 1"; !strings.Contains(result.Failure, want) {
			t.Errorf("got %q, want a failure with %q: the JobSet has never begun again\n%s", result.Failure, want, result.Log)
		}
	})
}

// restarts is how the text of the spec ends whose JobSet begins again, because the pod of a Job has failed.
const restarts = "should recover by recreating all jobs and succeeding eventually"

// failedSucceed lets the engine take pods that failed for pods that succeeded.
var failedSucceed = defect{
	file:    "engine/tally.go",
	old:     "r.succeeded = pod.GetPhase() == jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED\n",
	planted: "r.succeeded = pod.GetPhase() >= jobpolicyv1.PodPhase_POD_PHASE_SUCCEEDED\n",
}

// replaceEngine replaces the program of a control plane's engine.
func replaceEngine(t *testing.T, plane *cluster.Cluster, engine, program string) {
	t.Helper()
	if _, err := plane.StopComponent(t.Context(), cluster.Engine); err != nil {
		t.Fatal(err)
	}
	must.Succeed(t, os.Rename(program, engine))
	must.Succeed(t, plane.StartComponent(t.Context(), cluster.Engine))
}

// deployJobSet installs JobSet by the manifests of its end-to-end tests, and what its specs need besides, and waits until it is
// available.
func deployJobSet(t *testing.T, plane *cluster.Cluster) {
	t.Helper()
	folder := t.TempDir()
	theirs, err := filepath.Rel(folder, filepath.Join(moduleDir(t, "jobset", "sigs.k8s.io/jobset"), "test", "e2e", "config", "default"))
	must.Succeed(t, err)
	program := filepath.Join(executables.MustDir(t), "clients", "jobset")
	for name, text := range map[string]string{
		"kustomization.yaml": fmt.Sprintf(jobsetKustomization, theirs, program),
		"volumes.yaml":       volumes(filepath.Join(plane.StateDir(), "volumes"), 2*len(sides)),
	} {
		must.Succeed(t, os.WriteFile(filepath.Join(folder, name), []byte(text), 0o600))
	}
	for _, args := range [][]string{
		{"apply", "--server-side", "--kustomize", folder},
		{"rollout", "status", "--namespace=jobset-system", "deployment/jobset-controller-manager", "--timeout=5m"},
	} {
		kubectl := exec.CommandContext(t.Context(), filepath.Join(programsDir(t), "kubectl"), args...)
		kubectl.Env = append(os.Environ(), "KUBECONFIG="+plane.Kubeconfig())
		if out, err := kubectl.CombinedOutput(); err != nil {
			t.Fatalf("kubectl %v: %v\n%s", args, err, out)
		}
	}
}

// jobsetKustomization runs the program of this machine in place of JobSet's image, which nothing can pull.
const jobsetKustomization = `
resources: [%s, volumes.yaml]
patches:
- patch: |
    apiVersion: apps/v1
    kind: Deployment
    metadata: {name: jobset-controller-manager, namespace: jobset-system}
    spec:
      template:
        spec:
          containers:
          - name: manager
            image: bash:latest
            securityContext: {runAsUser: 65534}
            volumeMounts: [{name: program, mountPath: /manager, readOnly: true}]
          volumes: [{name: program, hostPath: {path: %s, type: File}}]
`

// volumes are as many volumes, folders of the node, for the claims of a spec. A cluster of kind makes them when they are claimed.
func volumes(folder string, n int) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `---
apiVersion: v1
kind: PersistentVolume
metadata: {name: volume-%d}
spec:
  capacity: {storage: 1Gi}
  accessModes: [ReadWriteOnce]
  hostPath: {path: %s/%d, type: DirectoryOrCreate}
`, i, folder, i)
	}
	return b.String()
}
