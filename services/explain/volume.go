package explain

import (
	"fmt"
	"regexp"
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
)

// Texts of the kubelet, in events with the reason FailedMount, and of the scheduler, in a
// pod's condition.
var (
	// The first is about one volume. The second lists the volumes that are not mounted in
	// time, without a cause.
	mountOfVolume = regexp.MustCompile(`^MountVolume\.\S+ failed for volume "([^"]*)"\s*:\s*(.*)$`)
	mountsInTime  = regexp.MustCompile(`^Unable to attach or mount volumes: unmounted volumes=\[([^\]]*)\]`)

	missingObject = regexp.MustCompile(`\b(configmap|secret) "(?:[^"/]*/)?([^"]*)" not found`)
	missingClaim  = regexp.MustCompile(`\bpersistentvolumeclaim "([^"]*)" not found`)
	missingKey    = regexp.MustCompile(`\b(?:configmap|secret) references non-existent (?:config|secret) key: (\S+)`)
)

// volumeEvent is the kubelet's last event on a volume that it cannot mount; nil if there is
// none. It prefers one that names the cause.
func volumeEvent(events []corev1.Event) *corev1.Event {
	causes := slices.DeleteFunc(slices.Clone(events), func(e corev1.Event) bool { return mountsInTime.MatchString(e.Message) })
	if e := latest(causes, failedMount); e != nil {
		return e
	}
	return latest(events, failedMount)
}

// unmounted says in plain English which volume is not mounted, and why.
func unmounted(p *corev1.Pod, message string) PodProblem {
	problem := PodProblem{Kind: "volume", Change: fmt.Sprintf("kubectl describe pod %s -n %s", p.Name, p.Namespace)}
	if m := mountsInTime.FindStringSubmatch(message); m != nil {
		problem.Why = fmt.Sprintf("the volume %q cannot be mounted (%s)", m[1], failedMount+": "+message)
		return problem
	}
	m := mountOfVolume.FindStringSubmatch(message)
	if m == nil {
		problem.Why = "a volume cannot be mounted (" + failedMount + ": " + message + ")"
		return problem
	}
	volume, cause := m[1], m[2]
	if missing := missingObjects(cause); len(missing) > 0 {
		do, it := "does", "it"
		if len(missing) > 1 {
			do, it = "do", "them"
		}
		names := strings.Join(missing, " and ")
		problem.Why = fmt.Sprintf("%s %s not exist, and the volume %q needs %s (%s)", names, do, volume, it, failedMount)
		problem.Change = fmt.Sprintf("Create %s in the namespace %s: the kubelet tries again by itself.", names, p.Namespace)
		return problem
	}
	if key := missingKey.FindStringSubmatch(cause); key != nil {
		source := sourceOf(p, volume)
		problem.Why = fmt.Sprintf("%s lacks the key %q, and the volume %q needs it (%s)", source, key[1], volume, failedMount)
		problem.Change = fmt.Sprintf("Add the key %q to %s: the kubelet tries again by itself.", key[1], source)
		return problem
	}
	problem.Why = fmt.Sprintf("the volume %q cannot be mounted (%s)", volume, failedMount+": "+strings.TrimSpace(cause))
	return problem
}

// kinds are the words in reports for those of the kubelet.
var kinds = map[string]string{"configmap": "config map", "secret": "secret"}

// missingObjects are the config maps and secrets that do not exist. A projected volume may
// lack several.
func missingObjects(cause string) []string {
	var names []string
	for _, m := range missingObject.FindAllStringSubmatch(cause, -1) {
		names = append(names, fmt.Sprintf("the %s %q", kinds[m[1]], m[2]))
	}
	return names
}

// sourceOf names the config map or secret of a volume.
func sourceOf(p *corev1.Pod, volume string) string {
	for i := range p.Spec.Volumes {
		v := &p.Spec.Volumes[i]
		switch {
		case v.Name != volume:
		case v.ConfigMap != nil:
			return fmt.Sprintf("the config map %q", v.ConfigMap.Name)
		case v.Secret != nil:
			return fmt.Sprintf("the secret %q", v.Secret.SecretName)
		}
	}
	return "what it is made of"
}
