package hostnode

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/deploy/local/must"
)

// runOnce starts a pod's first container and waits for its end.
func runOnce(t *testing.T, r *runner, pod *corev1.Pod, c *container) *run {
	t.Helper()
	must.Succeed(t, r.prepare(t.Context(), pod))
	ends := make(chan endedRun, 1)
	n, err := r.start(t.Context(), pod, c, func(n *run, e ending, message string) { ends <- endedRun{n, e, message} })
	must.Succeed(t, err)
	if n.end == nil {
		e := receive(t, ends, "end")
		n.finish(e.end, e.message)
	}
	c.begin(n, time.Now())
	return n
}

func firstOf(pod *corev1.Pod) *container { return newContainers(&pod.Spec, crashBackoff{})[0] }

func (r *runner) logOf(t *testing.T, pod *corev1.Pod, container string, attempt int32) string {
	t.Helper()
	return readAll(t, r.layout.log(pod.UID, container, attempt))
}

func TestEnvironmentOfAContainer(t *testing.T) {
	t.Setenv("OF_THE_NODE", "must not be seen")
	c := shell("c", "env | grep -v -e ^PWD= -e ^SHLVL= -e ^_= | sort")
	c.Env = []corev1.EnvVar{{Name: "HOME", Value: "/mine"}, {Name: "INDEX", ValueFrom: fieldRef("metadata.labels['i']")}}
	c.VolumeMounts = []corev1.VolumeMount{{Name: "my-vol.1", MountPath: "/data", SubPath: "sub"}}
	pod := podOf(never, c)
	pod.Labels = map[string]string{"i": "3"}
	pod.Spec.Hostname = "worker-3"
	pod.Spec.Volumes = []corev1.Volume{{Name: "my-vol.1", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	r := newTestRunner(t)
	runOnce(t, r, pod, firstOf(pod))
	want := strings.Join([]string{
		"HOME=/mine",
		"HOSTNAME=worker-3",
		"INDEX=3",
		"JOBPOLICY_POD_DIR=" + r.layout.pod(pod.UID),
		"JOBPOLICY_VOLUME_MY_VOL_1=" + filepath.Join(r.layout.volume(pod.UID, "my-vol.1"), "sub"),
		"PATH=" + defaultPath,
		"",
	}, "\n")
	must.Equal(t, "environment", want, r.logOf(t, pod, "c", 0))
}

func TestCommandAndArgsAreExpanded(t *testing.T) {
	pod := podOf(never, corev1.Container{
		Name: "c", Command: []string{"$(TOOL)", "[%s]"}, Args: []string{"$(A)", "$$(A)", "$(NONE)", "two words"},
		Env: []corev1.EnvVar{{Name: "TOOL", Value: "printf"}, {Name: "A", Value: "a"}},
	})
	r := newTestRunner(t)
	runOnce(t, r, pod, firstOf(pod))
	if got, want := r.logOf(t, pod, "c", 0), "[a][$(A)][$(NONE)][two words]"; got != want {
		t.Errorf("output is %q, want %q", got, want)
	}
}

func TestEveryRunHasAnEmptyDirectoryAndALogOfItsOwn(t *testing.T) {
	pod := podOf(always, shell("c", "ls; pwd; touch left-over"))
	r := newTestRunner(t)
	c := firstOf(pod)
	runOnce(t, r, pod, c)
	runOnce(t, r, pod, c)
	want := r.layout.container(pod.UID, "c") + "\n"
	for attempt := range int32(2) {
		if got := r.logOf(t, pod, "c", attempt); got != want {
			t.Errorf("log %d is %q, want %q", attempt, got, want)
		}
	}
	if c.restarts != 1 || c.previous == nil || c.previous.id == c.current.id {
		t.Errorf("restarts %d, previous %+v, current %+v", c.restarts, c.previous, c.current)
	}
}

func TestEmptyDirIsSharedAndLinkedByRelativePaths(t *testing.T) {
	mount := func(path string) []corev1.VolumeMount { return []corev1.VolumeMount{{Name: "v", MountPath: path}} }
	a, b := shell("a", "echo hello >$JOBPOLICY_VOLUME_V/f"), shell("b", "cat in/here/f")
	a.VolumeMounts, b.VolumeMounts = mount("/absolute"), mount("in/here")
	pod := podOf(never, a, b)
	pod.Spec.Volumes = []corev1.Volume{{Name: "v", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}}
	r := newTestRunner(t)
	for _, c := range newContainers(&pod.Spec, crashBackoff{}) {
		if n := runOnce(t, r, pod, c); n.end.code != 0 {
			t.Fatalf("%s ended with %d: %s", c.spec.Name, n.end.code, r.logOf(t, pod, c.spec.Name, 0))
		}
	}
	if got := r.logOf(t, pod, "b", 0); got != "hello\n" {
		t.Errorf("read %q through the volume, want hello", got)
	}
}

func TestServiceAccountVolume(t *testing.T) {
	c := shell("c", `cd $JOBPOLICY_SERVICE_ACCOUNT_DIR; for f in *; do echo $f: $(cat $f); done`)
	c.VolumeMounts = []corev1.VolumeMount{{Name: "kube-api-access-abcde", MountPath: "/var/run/secrets/kubernetes.io/serviceaccount"}}
	pod := podOf(never, c)
	pod.Spec.Volumes = []corev1.Volume{{Name: "kube-api-access-abcde", VolumeSource: corev1.VolumeSource{
		Projected: &corev1.ProjectedVolumeSource{Sources: []corev1.VolumeProjection{
			{ServiceAccountToken: &corev1.ServiceAccountTokenProjection{Path: "token"}},
			{ConfigMap: &corev1.ConfigMapProjection{Items: []corev1.KeyToPath{{Key: "ca.crt", Path: "ca.crt"}}}},
			{DownwardAPI: &corev1.DownwardAPIProjection{Items: []corev1.DownwardAPIVolumeFile{
				{Path: "namespace", FieldRef: &corev1.ObjectFieldSelector{FieldPath: "metadata.namespace"}},
			}}},
		}},
	}}}
	r := newTestRunner(t)
	runOnce(t, r, pod, firstOf(pod))
	if got, want := r.logOf(t, pod, "c", 0), "ca.crt: a-certificate\nnamespace: ns\ntoken: a-token\n"; got != want {
		t.Errorf("files are %q, want %q", got, want)
	}
}

func TestCommandThatCannotBeExecuted(t *testing.T) {
	script := filepath.Join(t.TempDir(), "script")
	must.Succeed(t, os.WriteFile(script, []byte("#!/no/such/interpreter\n"), 0o755))
	cases := map[string]struct{ command, want string }{
		"not in the path":                  {"no-such-command", "executable file not found in $PATH"},
		"a path to nothing":                {"/no/such/file", "no such file or directory"},
		"found, but refused by the system": {script, "no such file or directory"},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := podOf(never, corev1.Container{Name: "c", Command: []string{tc.command}})
			n := runOnce(t, newTestRunner(t), pod, firstOf(pod))
			if n.end.code != 128 || n.end.reason != "StartError" || !strings.Contains(n.end.message, tc.want) {
				t.Errorf("ended with %+v, want StartError 128 and %q", n.end, tc.want)
			}
		})
	}
}

func TestTerminationMessageFallsBackToTheLogOnError(t *testing.T) {
	cases := map[string]struct {
		policy corev1.TerminationMessagePolicy
		code   int
		want   string
	}{
		"on an error with the policy": {corev1.TerminationMessageFallbackToLogsOnError, 1, "last words\n"},
		"not on success":              {corev1.TerminationMessageFallbackToLogsOnError, 0, ""},
		"not without the policy":      {corev1.TerminationMessageReadFile, 1, ""},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			c := shell("c", fmt.Sprintf("echo last words; exit %d", tc.code))
			c.TerminationMessagePolicy = tc.policy
			pod := podOf(never, c)
			if got := runOnce(t, newTestRunner(t), pod, firstOf(pod)).end.message; got != tc.want {
				t.Errorf("message is %q, want %q", got, tc.want)
			}
		})
	}
}
