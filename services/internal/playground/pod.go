package playground

import (
	"fmt"
	"math"
	"time"

	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/services/internal/manifest"
)

// seconds is a number of seconds, at most the 292 years that a Duration holds.
func seconds(n int64) time.Duration {
	return time.Duration(min(n, int64(math.MaxInt64/time.Second))) * time.Second
}

// notPlayed returns the first field of a pod template that a play does not cover, although
// it may change how a Job ends. Paths begin at the pod's spec.
func notPlayed(pod *corev1.PodSpec) *manifest.Problem {
	if s := pod.ActiveDeadlineSeconds; s != nil && *s < 1 {
		return &manifest.Problem{Path: "activeDeadlineSeconds", Text: fmt.Sprintf("must be 1 or more, is %d", *s)}
	}
	if len(pod.SchedulingGates) > 0 {
		return &manifest.Problem{Path: "schedulingGates", Text: "is not played: the pods wait until another program removes the gates"}
	}
	if len(pod.EphemeralContainers) > 0 {
		return &manifest.Problem{Path: "ephemeralContainers", Text: "is not played: the API server accepts none in a pod template"}
	}
	if p := restartsNotPlayed("initContainers", pod.InitContainers); p != nil {
		return p
	}
	return restartsNotPlayed("containers", pod.Containers)
}

func restartsNotPlayed(list string, containers []corev1.Container) *manifest.Problem {
	for i, c := range containers {
		path := fmt.Sprintf("%s[%d].", list, i)
		if p := c.RestartPolicy; p != nil {
			switch *p {
			case corev1.ContainerRestartPolicyAlways, corev1.ContainerRestartPolicyOnFailure, corev1.ContainerRestartPolicyNever:
			default:
				return &manifest.Problem{Path: path + "restartPolicy", Text: fmt.Sprintf("%q: expected Always, OnFailure or Never", *p)}
			}
		} else if len(c.RestartPolicyRules) > 0 {
			return &manifest.Problem{Path: path + "restartPolicy", Text: "is required beside restartPolicyRules"}
		}
		for k, r := range c.RestartPolicyRules {
			if p := ruleNotPlayed(r); p != nil {
				return &manifest.Problem{Path: fmt.Sprintf("%srestartPolicyRules[%d].%s", path, k, p.Path), Text: p.Text}
			}
		}
	}
	return nil
}

func ruleNotPlayed(r corev1.ContainerRestartRule) *manifest.Problem {
	switch {
	case r.Action == corev1.ContainerRestartRuleActionRestartAllContainers:
		return &manifest.Problem{Path: "action", Text: "RestartAllContainers is not played, only Restart"}
	case r.Action != corev1.ContainerRestartRuleActionRestart:
		return &manifest.Problem{Path: "action", Text: fmt.Sprintf("%q: expected Restart", r.Action)}
	case r.ExitCodes == nil:
		return &manifest.Problem{Path: "exitCodes", Text: "is required"}
	case r.ExitCodes.Operator != corev1.ContainerRestartRuleOnExitCodesOpIn && r.ExitCodes.Operator != corev1.ContainerRestartRuleOnExitCodesOpNotIn:
		return &manifest.Problem{Path: "exitCodes.operator", Text: fmt.Sprintf("%q: expected In or NotIn", r.ExitCodes.Operator)}
	}
	return nil
}
