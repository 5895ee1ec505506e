package clients

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/kubernetes"
	"sigs.k8s.io/yaml"

	"jobpolicy.dev/deploy/local/cluster"
	"jobpolicy.dev/deploy/local/must"
	"jobpolicy.dev/test/kit/certificates"
	"jobpolicy.dev/test/kit/controlplane"
	"jobpolicy.dev/test/kit/executables"
)

// startKueueSpecsPlane starts a control plane with what Kueue's specs expect: Kueue with the configuration of its end-to-end
// tests, its Deployment and its leader's lease, the nodes of the clusters that they are written for, and containers that do
// what their arguments ask for. It returns also a folder of programs for them.
func startKueueSpecsPlane(t *testing.T, module string) (plane *cluster.Cluster, programs string) {
	t.Helper()
	plane = startPlane(t)
	kube := kubernetes.NewForConfigOrDie(plane.RESTConfig())
	makeNamespace(t, kube, "kueue-system")
	prepareKueueAlone(t, plane, configurationOfSpecs(t, module)).start(t, plane)
	apply(t, plane, resource("apps", "v1", "deployments"), parseManifests(t, []byte(kueueDeployment))...)
	programs = t.TempDir()
	must.Succeed(t, os.WriteFile(filepath.Join(programs, "docker"), []byte(docker), 0o755))
	for name, labels := range nodesOfSpecs(t, module) {
		startNode(t, plane, programs, name, labels)
	}
	playAgnhost(t, plane, kube)
	return plane, programs
}

// kueueDeployment has no pods, since Kueue is a process here. The specs wait until it is available.
const kueueDeployment = `
apiVersion: apps/v1
kind: Deployment
metadata: {name: kueue-controller-manager, namespace: kueue-system}
spec:
  replicas: 0
  selector: {matchLabels: {control-plane: controller-manager}}
  template:
    metadata: {labels: {control-plane: controller-manager}}
    spec: {containers: [{name: manager, image: kueue}]}
`

// configurationOfSpecs takes from the configuration of Kueue's end-to-end tests what matters to Jobs. The leader's lease is
// what the specs wait for.
func configurationOfSpecs(t *testing.T, module string) string {
	t.Helper()
	file := filepath.Join(module, "test", "e2e", "config", "default", "controller_manager_config.yaml")
	theirs := readManifests(t, file)[0].Object
	gates, _, err := unstructured.NestedMap(theirs, "featureGates")
	if err != nil || len(gates) == 0 {
		t.Fatalf("%s: no featureGates, %v", file, err)
	}
	gates["VisibilityOnDemand"] = false
	text, err := yaml.Marshal(map[string]any{
		"leaderElection": map[string]any{"leaderElect": true, "resourceNamespace": "kueue-system"},
		"featureGates":   gates,
		"fairSharing":    theirs["fairSharing"],
		"controller":     theirs["controller"],
		"integrations":   map[string]any{"frameworks": []any{"batch/job"}},
	})
	must.Succeed(t, err)
	return string(text)
}

// nodesOfSpecs are the nodes of the two clusters of kind that the specs are written for, by the names that kind gives, and
// with the labels of both.
func nodesOfSpecs(t *testing.T, module string) map[string]map[string]any {
	t.Helper()
	nodes := map[string]map[string]any{}
	for _, file := range []string{"kind-cluster.yaml", "kind-cluster-tas.yaml"} {
		of, _, _ := unstructured.NestedSlice(readManifests(t, filepath.Join(module, "hack", "testing", file))[0].Object, "nodes")
		name, workers := "kind-worker", 0
		for _, node := range of {
			fields, _ := node.(map[string]any)
			if fields["role"] != "worker" {
				continue
			}
			if workers++; workers > 1 {
				name = fmt.Sprintf("kind-worker%d", workers)
			}
			if nodes[name] == nil {
				nodes[name] = map[string]any{}
			}
			labels, _ := fields["labels"].(map[string]any)
			maps.Copy(nodes[name], labels)
		}
		if workers == 0 {
			t.Fatalf("%s: no worker", file)
		}
	}
	return nodes
}

// startNode starts another node without containers, labels it, and writes the ID of its process into a folder.
func startNode(t *testing.T, plane *cluster.Cluster, pids, name string, labels map[string]any) {
	t.Helper()
	dir := certificates.Folder(t)
	manager{name: name, command: []string{
		"sh", "-c", `echo $$ >"$1" && shift && exec "$@"`, "sh", filepath.Join(pids, name),
		filepath.Join(executables.MustDir(t), "jobpolicy-local"), "node", "--kubeconfig=" + plane.Kubeconfig(), "--node-name=" + name,
		"--root-dir=" + t.TempDir(), "--tls-cert-file=" + filepath.Join(dir, "tls.crt"),
		"--tls-private-key-file=" + filepath.Join(dir, "tls.key"), "--client-ca-file=" + filepath.Join(dir, "ca.crt"),
	}}.start(t, plane)
	t.Cleanup(func() { // A spec that is interrupted does not let its node go on.
		if out, err := exec.Command(filepath.Join(pids, "docker"), "exec", name, "systemctl", "start", "kubelet").CombinedOutput(); err != nil {
			t.Errorf("%s: %v %s", name, err, out)
		}
	})
	patch, err := json.Marshal(map[string]any{"metadata": map[string]any{"labels": labels}})
	must.Succeed(t, err)
	nodes := kubernetes.NewForConfigOrDie(plane.RESTConfig()).CoreV1().Nodes()
	controlplane.Eventually(t, "the node "+name+" is there", func() (bool, string) {
		_, err := nodes.Patch(t.Context(), name, types.MergePatchType, patch, metav1.PatchOptions{})
		return err == nil, fmt.Sprint(err)
	})
}

// docker is what a spec calls to stop and start the kubelet of a node of kind. It stops the process of a node, and lets it go on.
const docker = `#!/bin/sh
case "$*" in
"exec $2 systemctl stop kubelet") exec kill -STOP "$(cat "$(dirname "$0")/$2")" ;;
"exec $2 systemctl start kubelet") exec kill -CONT "$(cat "$(dirname "$0")/$2")" ;;
esac
echo "not understood: $*" >&2
exit 1
`

// agnhost gives pods whose container has no command one, as the image agnhost does, which nearly all specs use: its program reads
// its first argument. The script does what matters of the three arguments that occur: netexec runs until it is told to end, and then
// succeeds; test-webserver fails then; entrypoint-tester succeeds at once. In one spec a container has another image, which does
// not exist, and no argument. It runs here until it is told to end.
const agnhost = `
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicy
metadata: {name: agnhost}
spec:
  failurePolicy: Fail
  reinvocationPolicy: Never
  matchConstraints:
    resourceRules:
    - {apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}
  matchConditions:
  - {name: no-command, expression: "object.spec.containers.size() == 1 && !has(object.spec.containers[0].command)"}
  mutations:
  - patchType: JSONPatch
    jsonPatch:
      expression: >-
        [JSONPatch{op: "add", path: "/spec/containers/0/command", value: ["sh", "-c",
        "case $0 in netexec) trap 'exit 0' TERM; sleep infinity & wait ;; entrypoint-tester) ;; *) exec sleep infinity ;; esac"]}]
---
apiVersion: admissionregistration.k8s.io/v1
kind: MutatingAdmissionPolicyBinding
metadata: {name: agnhost}
spec: {policyName: agnhost}
`

// playAgnhost applies agnhost, and waits until the API server goes by it.
func playAgnhost(t *testing.T, plane *cluster.Cluster, kube kubernetes.Interface) {
	t.Helper()
	objects := parseManifests(t, []byte(agnhost))
	apply(t, plane, resource("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicies"), objects[0])
	apply(t, plane, resource("admissionregistration.k8s.io", "v1", "mutatingadmissionpolicybindings"), objects[1])
	pod := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: "asks"},
		Spec:       corev1.PodSpec{Containers: []corev1.Container{{Name: "c", Image: "agnhost"}}},
	}
	controlplane.Eventually(t, "containers have commands", func() (bool, string) {
		got, err := kube.CoreV1().Pods("kueue-system").Create(t.Context(), pod, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
		return err == nil && len(got.Spec.Containers[0].Command) > 0, fmt.Sprint(err)
	})
}
