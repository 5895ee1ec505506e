package hostnode

import (
	"fmt"
	"os"
	"strings"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/util/validation/field"
)

// reasonUnsupported is the status reason of a pod that asks for what the node cannot do.
const reasonUnsupported = "UnsupportedByHostNode"

// serviceAccountVolumePrefix begins the name of the volume that admission adds for the service-account token.
const serviceAccountVolumePrefix = "kube-api-access-"

// refusal collects the fields of a pod that the node cannot honour.
type refusal struct{ problems []string }

func (r *refusal) add(path *field.Path, why string) {
	r.problems = append(r.problems, path.String()+": "+why)
}

func (r *refusal) addIf(bad bool, path *field.Path, why string) {
	if bad {
		r.add(path, why)
	}
}

// unsupported returns a verdict that names every field the node cannot honour, or nil if it can run the pod.
func unsupported(pod *corev1.Pod) *verdict {
	var r refusal
	spec := field.NewPath("spec")
	r.checkPod(spec, &pod.Spec)
	for i := range pod.Spec.Volumes {
		r.checkVolume(spec.Child("volumes").Index(i), &pod.Spec.Volumes[i])
	}
	for i := range pod.Spec.InitContainers {
		r.checkContainer(spec.Child("initContainers").Index(i), pod, &pod.Spec.InitContainers[i])
	}
	for i := range pod.Spec.Containers {
		r.checkContainer(spec.Child("containers").Index(i), pod, &pod.Spec.Containers[i])
	}
	if len(r.problems) == 0 {
		return nil
	}
	return &verdict{reasonUnsupported, "This node runs host processes, not containers. " + strings.Join(r.problems, "; ")}
}

func (r *refusal) checkPod(path *field.Path, s *corev1.PodSpec) {
	r.addIf(s.OS != nil && s.OS.Name != corev1.Linux, path.Child("os", "name"), "only linux is supported")
	r.addIf(s.RuntimeClassName != nil, path.Child("runtimeClassName"), "there are no runtime classes")
	r.addIf(len(s.HostAliases) > 0, path.Child("hostAliases"), "the hosts file is the machine's own")
	r.addIf(len(s.ResourceClaims) > 0, path.Child("resourceClaims"), "resource claims are not supported")
	if c := s.SecurityContext; c != nil {
		r.checkUser(path.Child("securityContext"), c.RunAsUser, c.RunAsGroup, c.RunAsNonRoot)
	}
}

func (r *refusal) checkVolume(path *field.Path, v *corev1.Volume) {
	if v.EmptyDir != nil || isServiceAccountVolume(v) {
		return
	}
	r.add(path, fmt.Sprintf("volume %q: only emptyDir and the automatic service-account token are supported", v.Name))
}

func isServiceAccountVolume(v *corev1.Volume) bool {
	return v.Projected != nil && strings.HasPrefix(v.Name, serviceAccountVolumePrefix)
}

func (r *refusal) checkContainer(path *field.Path, pod *corev1.Pod, c *corev1.Container) {
	r.addIf(len(c.Command) == 0, path.Child("command"), "must be set: an image's entrypoint cannot be run")
	r.addIf(c.LivenessProbe != nil, path.Child("livenessProbe"), "probes are not supported")
	r.addIf(c.ReadinessProbe != nil, path.Child("readinessProbe"), "probes are not supported")
	r.addIf(c.StartupProbe != nil, path.Child("startupProbe"), "probes are not supported")
	r.addIf(c.Lifecycle != nil, path.Child("lifecycle"), "hooks and stop signals are not supported")
	for i, rule := range c.RestartPolicyRules {
		r.addIf(rule.Action != corev1.ContainerRestartRuleActionRestart, path.Child("restartPolicyRules").Index(i).Child("action"), "only Restart is supported")
	}
	r.addIf(len(c.VolumeDevices) > 0, path.Child("volumeDevices"), "block devices are not supported")
	r.addIf(len(c.Resources.Claims) > 0, path.Child("resources", "claims"), "resource claims are not supported")
	if s := c.SecurityContext; s != nil {
		r.checkUser(path.Child("securityContext"), s.RunAsUser, s.RunAsGroup, s.RunAsNonRoot)
	}
	for i := range c.VolumeMounts {
		m := path.Child("volumeMounts").Index(i)
		r.addIf(c.VolumeMounts[i].SubPathExpr != "", m.Child("subPathExpr"), "is not supported")
	}
	for i := range c.Env {
		r.checkEnv(path.Child("env").Index(i).Child("valueFrom"), pod, c.Env[i].ValueFrom)
	}
}

func (r *refusal) checkEnv(path *field.Path, pod *corev1.Pod, from *corev1.EnvVarSource) {
	if from == nil {
		return
	}
	r.addIf(from.ResourceFieldRef != nil, path.Child("resourceFieldRef"), "resources are not limited here")
	r.addIf(from.FileKeyRef != nil, path.Child("fileKeyRef"), "is not supported")
	if from.FieldRef == nil {
		return
	}
	if _, err := fieldValue(pod, from.FieldRef.FieldPath); err != nil {
		r.add(path.Child("fieldRef"), err.Error())
	}
}

// checkUser refuses another identity than the node's own: it would be a promise that is not kept.
func (r *refusal) checkUser(path *field.Path, user, group *int64, nonRoot *bool) {
	uid, gid := int64(os.Geteuid()), int64(os.Getegid())
	r.addIf(user != nil && *user != uid, path.Child("runAsUser"), fmt.Sprintf("processes run as user %d", uid))
	r.addIf(group != nil && *group != gid, path.Child("runAsGroup"), fmt.Sprintf("processes run as group %d", gid))
	r.addIf(nonRoot != nil && *nonRoot && uid == 0, path.Child("runAsNonRoot"), "processes run as root, like the node")
}
