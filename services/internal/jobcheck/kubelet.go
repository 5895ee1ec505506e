package jobcheck

import (
	"fmt"
	"slices"
	"strings"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"

	"jobpolicy.dev/engine/simulate"
	jobpolicyv1 "jobpolicy.dev/proto/jobpolicy/v1"
)

// KubeletContainers are the containers of a pod as a play has them. Rules that the API server
// refuses are left out.
func KubeletContainers(pod *corev1.PodSpec) []simulate.Container {
	var out []simulate.Container
	for i, c := range slices.Concat(pod.InitContainers, pod.Containers) {
		to := simulate.Container{Name: c.Name, Init: i < len(pod.InitContainers)}
		if c.RestartPolicy != nil {
			to.RestartPolicy = string(*c.RestartPolicy)
		}
		for _, r := range c.RestartPolicyRules {
			if r.ExitCodes != nil {
				to.RestartRules = append(to.RestartRules, simulate.RestartRule{
					Except: r.ExitCodes.Operator == corev1.ContainerRestartRuleOnExitCodesOpNotIn, ExitCodes: r.ExitCodes.Values,
				})
			}
		}
		out = append(out, to)
	}
	return out
}

// eachContainer calls f for each container of the pod template, with its path.
func (s *subject) eachContainer(f func(path string, c *simulate.Container)) {
	pod := &s.spec.Template.Spec
	for i, c := range KubeletContainers(pod) {
		path := fmt.Sprintf("template.spec.initContainers[%d]", i)
		if !c.Init {
			path = fmt.Sprintf("template.spec.containers[%d]", i-len(pod.InitContainers))
		}
		f(path, &c)
	}
}

func alwaysRestarted(s *subject) {
	s.eachContainer(func(path string, c *simulate.Container) {
		if c.Init || c.RestartPolicy != string(corev1.ContainerRestartPolicyAlways) {
			return
		}
		end := "so its pod never ends, and keeps the Job open for ever"
		switch {
		case s.onFailure():
			end = fmt.Sprintf("and the Job fails when restarts reach backoffLimit (%d)", s.backoffLimit())
		case s.spec.Template.Spec.ActiveDeadlineSeconds != nil:
			end = "so only its deadline ends its pod, as failed"
		case s.spec.ActiveDeadlineSeconds != nil:
			end = "so its pod never ends, and the Job fails at its deadline"
		}
		s.find(Warning, path+".restartPolicy", "Always: the container is restarted also after a success, "+end+". As an init container, it would be a sidecar")
	})
}

func uncountedRestarts(s *subject) {
	if s.onFailure() || s.spec.ActiveDeadlineSeconds != nil || s.spec.Template.Spec.ActiveDeadlineSeconds != nil {
		return
	}
	s.eachContainer(func(path string, c *simulate.Container) {
		if field := restartField(c); field != "" && c.RestartPolicy != string(corev1.ContainerRestartPolicyAlways) {
			s.find(Warning, path+field,
				"restarts of the container do not count toward backoffLimit, because the pod's restartPolicy is Never: one that always fails keeps the Job open for ever; activeDeadlineSeconds would end it")
		}
	})
}

// restartField is the field by which a container is restarted on its own; empty: it is not.
func restartField(c *simulate.Container) string {
	switch {
	case len(c.RestartRules) > 0:
		return ".restartPolicyRules"
	case c.RestartPolicy != "" && c.RestartPolicy != string(corev1.ContainerRestartPolicyNever):
		return ".restartPolicy"
	}
	return ""
}

func restartBeforePolicy(s *subject) {
	if s.spec.PodFailurePolicy == nil {
		return
	}
	s.eachContainer(func(path string, c *simulate.Container) {
		for i, rule := range s.spec.PodFailurePolicy.Rules {
			on := rule.OnExitCodes
			if on == nil || on.ContainerName != nil && *on.ContainerName != c.Name {
				continue
			}
			if codes := restartedCodes(c, on); len(codes) > 0 {
				s.find(Warning, path+restartField(c), fmt.Sprintf(
					"the kubelet restarts the container after exit code %s, so podFailurePolicy.rules[%d] (%s) never sees it", few(codes), i, rule.Action))
				return
			}
		}
	})
}

const maxExitCode = 255

// restartedCodes are the exit codes that a rule of the pod failure policy matches, and after
// which the container is restarted.
func restartedCodes(c *simulate.Container, on *batchv1.PodFailurePolicyOnExitCodesRequirement) []string {
	var codes []string
	for code := int32(1); code <= maxExitCode; code++ {
		matches := slices.Contains(on.Values, code) == (on.Operator == batchv1.PodFailurePolicyOnExitCodesOpIn)
		if matches && c.Restarted(code, jobpolicyv1.RestartPolicy_RESTART_POLICY_NEVER) {
			codes = append(codes, fmt.Sprint(code))
		}
	}
	return codes
}

// few writes at most three of the words.
func few(words []string) string {
	const most = 3
	if len(words) > most {
		words = append(words[:most:most], "…")
	}
	return strings.Join(words, ", ")
}
