package hostnode

import (
	"os"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
)

// plainPod is one that the node can run.
func plainPod() *corev1.Pod {
	return &corev1.Pod{Spec: corev1.PodSpec{
		RestartPolicy: corev1.RestartPolicyNever,
		Containers:    []corev1.Container{{Name: "c", Command: []string{"true"}}},
	}}
}

func TestUnsupportedFieldsAreNamed(t *testing.T) {
	container := func(change func(*corev1.Container)) func(*corev1.Pod) {
		return func(p *corev1.Pod) { change(&p.Spec.Containers[0]) }
	}
	env := func(from corev1.EnvVarSource) func(*corev1.Pod) {
		return container(func(c *corev1.Container) {
			c.Env = []corev1.EnvVar{{Name: "A", Value: "1"}, {Name: "V", ValueFrom: &from}}
		})
	}
	volume := func(v corev1.Volume) func(*corev1.Pod) {
		return func(p *corev1.Pod) {
			ok := corev1.Volume{Name: "ok", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}}
			p.Spec.Volumes = []corev1.Volume{ok, v}
		}
	}
	projected := corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}
	cases := map[string]struct {
		change func(*corev1.Pod)
		want   string
	}{
		"an image's entrypoint":          {container(func(c *corev1.Container) { c.Command, c.Args = nil, []string{"x"} }), "spec.containers[0].command"},
		"an init container's entrypoint": {func(p *corev1.Pod) { p.Spec.InitContainers = []corev1.Container{{Name: "i"}} }, "spec.initContainers[0].command"},
		"a liveness probe":               {container(func(c *corev1.Container) { c.LivenessProbe = &corev1.Probe{} }), "spec.containers[0].livenessProbe"},
		"a readiness probe":              {container(func(c *corev1.Container) { c.ReadinessProbe = &corev1.Probe{} }), "spec.containers[0].readinessProbe"},
		"a startup probe":                {container(func(c *corev1.Container) { c.StartupProbe = &corev1.Probe{} }), "spec.containers[0].startupProbe"},
		"a lifecycle hook":               {container(func(c *corev1.Container) { c.Lifecycle = &corev1.Lifecycle{} }), "spec.containers[0].lifecycle"},
		"a restart rule": {container(func(c *corev1.Container) {
			c.RestartPolicyRules = []corev1.ContainerRestartRule{{Action: corev1.ContainerRestartRuleActionRestartAllContainers}}
		}), "spec.containers[0].restartPolicyRules[0].action"},
		"a block device":       {container(func(c *corev1.Container) { c.VolumeDevices = make([]corev1.VolumeDevice, 1) }), "spec.containers[0].volumeDevices"},
		"a container's claim":  {container(func(c *corev1.Container) { c.Resources.Claims = make([]corev1.ResourceClaim, 1) }), "spec.containers[0].resources.claims"},
		"a sub-path to expand": {container(func(c *corev1.Container) { c.VolumeMounts = []corev1.VolumeMount{{SubPathExpr: "$(A)"}} }), "spec.containers[0].volumeMounts[0].subPathExpr"},
		"a resource field":     {env(corev1.EnvVarSource{ResourceFieldRef: &corev1.ResourceFieldSelector{}}), "spec.containers[0].env[1].valueFrom.resourceFieldRef"},
		"a key of a file":      {env(corev1.EnvVarSource{FileKeyRef: &corev1.FileKeySelector{}}), "spec.containers[0].env[1].valueFrom.fileKeyRef"},
		"an unknown field":     {env(corev1.EnvVarSource{FieldRef: &corev1.ObjectFieldSelector{FieldPath: "status.phase"}}), "spec.containers[0].env[1].valueFrom.fieldRef"},
		"a host path": {
			volume(corev1.Volume{Name: "h", VolumeSource: corev1.VolumeSource{HostPath: &corev1.HostPathVolumeSource{}}}), "spec.volumes[1]",
		},
		"a projected volume that admission did not add": {volume(corev1.Volume{Name: "mine", VolumeSource: projected}), "spec.volumes[1]"},
		"another operating system":                      {func(p *corev1.Pod) { p.Spec.OS = &corev1.PodOS{Name: corev1.Windows} }, "spec.os.name"},
		"a runtime class":                               {func(p *corev1.Pod) { p.Spec.RuntimeClassName = new("gvisor") }, "spec.runtimeClassName"},
		"host aliases":                                  {func(p *corev1.Pod) { p.Spec.HostAliases = make([]corev1.HostAlias, 1) }, "spec.hostAliases"},
		"a resource claim":                              {func(p *corev1.Pod) { p.Spec.ResourceClaims = make([]corev1.PodResourceClaim, 1) }, "spec.resourceClaims"},
		"another user of the pod": {
			func(p *corev1.Pod) {
				p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(os.Geteuid()) + 1)}
			}, "spec.securityContext.runAsUser",
		},
		"another group of the container": {
			container(func(c *corev1.Container) {
				c.SecurityContext = &corev1.SecurityContext{RunAsGroup: new(int64(os.Getegid()) + 1)}
			}), "spec.containers[0].securityContext.runAsGroup",
		},
	}
	for name, tc := range cases {
		t.Run(name, func(t *testing.T) {
			pod := plainPod()
			tc.change(pod)
			got := unsupported(pod)
			if got == nil {
				t.Fatal("the pod is not refused")
			}
			if got.reason != "UnsupportedByHostNode" || !strings.Contains(got.message, tc.want+": ") {
				t.Errorf("refused with %+v, which does not name %s", *got, tc.want)
			}
			if n := strings.Count(got.message, "spec."); n != 1 {
				t.Errorf("%d fields are named, want 1: %s", n, got.message)
			}
		})
	}
}

func TestSupportedPodsAreAccepted(t *testing.T) {
	cases := map[string]func(*corev1.Pod){
		"a plain one": func(*corev1.Pod) {},
		"with an emptyDir and the automatic token": func(p *corev1.Pod) {
			p.Spec.Volumes = []corev1.Volume{
				{Name: "work", VolumeSource: corev1.VolumeSource{EmptyDir: &corev1.EmptyDirVolumeSource{}}},
				{Name: "kube-api-access-x7d2p", VolumeSource: corev1.VolumeSource{Projected: &corev1.ProjectedVolumeSource{}}},
			}
		},
		"with the node's own user": func(p *corev1.Pod) {
			p.Spec.SecurityContext = &corev1.PodSecurityContext{RunAsUser: new(int64(os.Geteuid())), RunAsGroup: new(int64(os.Getegid()))}
		},
		"with what is ignored": func(p *corev1.Pod) {
			p.Spec.HostNetwork, p.Spec.Subdomain = true, "sub"
			p.Spec.Containers[0].Ports = []corev1.ContainerPort{{ContainerPort: 80}}
			p.Spec.Containers[0].SecurityContext = &corev1.SecurityContext{ReadOnlyRootFilesystem: new(true)}
		},
	}
	for name, change := range cases {
		t.Run(name, func(t *testing.T) {
			pod := plainPod()
			change(pod)
			if got := unsupported(pod); got != nil {
				t.Errorf("refused: %s", got.message)
			}
		})
	}
}
